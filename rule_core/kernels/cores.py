"""measuring_threads: on how many cores tensors are measured."""

import functools
import os
from pathlib import Path
from typing import Final

from rule_core.environment import number

THREADS: Final = "RULE_RUNNER_THREADS"
MOST: Final = 8  # more would only wait for memory

_CGROUPS: Final = Path("/sys/fs/cgroup")
_OWN: Final = Path("/proc/self/cgroup")


def measuring_threads() -> int:
    """Return how many threads may measure: the cores that this process may use, at most 8.

    ``RULE_RUNNER_THREADS`` sets a lower limit; 0 means none.

    Raises
    ------
    SMDebugValueError
        If it is no number.
    """
    cores = min(len(os.sched_getaffinity(0)), _quota(), MOST)
    wanted = int(number(THREADS, 0, "threads"))
    return max(1, min(cores, wanted or cores))


@functools.cache
def _quota() -> int:
    """Return how many cores the control group of this process may use, rounded up."""
    return cgroup_cores(_OWN, _CGROUPS)


def cgroup_cores(own: Path, root: Path) -> int:
    """Return the least number of cores that a control group and those above it may use.

    Parameters
    ----------
    own
        The file that names the group of the process.
    root
        Where the groups are; those of version 1 are not looked at.
    """
    try:
        lines = own.read_text("utf-8").splitlines()
    except OSError:
        return MOST
    path = next((line[3:] for line in lines if line.startswith("0::")), "/")
    group = root / path.lstrip("/")
    limits = [MOST]
    for folder in (group, *group.parents):
        if not folder.is_relative_to(root):
            break
        try:
            quota, period = (folder / "cpu.max").read_text("ascii").split()
            limits.append(-(-int(quota) // int(period)))
        except (OSError, ValueError, ZeroDivisionError):  # "max", or none
            continue
    return max(1, min(limits))
