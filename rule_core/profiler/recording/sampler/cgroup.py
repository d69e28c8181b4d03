"""Cgroup: the limits and the usage of this process's control group."""

import os
from pathlib import Path
from typing import Final

from rule_core.profiler.recording.sampler.readings import number_in, numbers_in, text_of

ROOT: Final = Path("/sys/fs/cgroup")
_NO_LIMIT: Final = 1 << 60  # bytes; groups without a limit have a number near 2**63
_US: Final = 1e6
_NS: Final = 1e9


class Cgroup:
    """The control group of the container, of version 2 or 1.

    Parameters
    ----------
    root
        Where control groups are mounted.
    """

    def __init__(self, root: Path = ROOT) -> None:
        self._is_v2 = (root / "cgroup.controllers").exists()
        self._cpu = root if self._is_v2 else root / "cpu"
        self._usage = root if self._is_v2 else root / "cpuacct"
        self._memory = root if self._is_v2 else root / "memory"

    def cpus(self) -> float | None:
        """Return how many processors the group may use at a time; None without a limit."""
        if self._is_v2:
            quota, _, period = text_of(self._cpu / "cpu.max").strip().partition(" ")
        else:
            quota = text_of(self._cpu / "cpu.cfs_quota_us").strip()
            period = text_of(self._cpu / "cpu.cfs_period_us").strip()
        if not quota.isdigit() or not period.isdigit() or int(period) == 0:
            return None
        limit = int(quota) / int(period)
        return limit if 0 < limit < (os.cpu_count() or 1) else None

    def cpu_seconds(self) -> float | None:
        """Return the processor time that the group has used; None if it is unknown."""
        if self._is_v2:
            usage, unit = numbers_in(self._usage / "cpu.stat").get("usage_usec"), _US
        else:
            usage, unit = number_in(self._usage / "cpuacct.usage"), _NS
        return None if usage is None else usage / unit

    def memory_used_percent(self) -> float | None:
        """Return the memory in use as a percentage of the limit; None without a limit.

        Pages of files that the kernel can drop are not in use.
        """
        names = (
            ("memory.max", "memory.current", "inactive_file")
            if self._is_v2
            else ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
        )
        limit, used = (number_in(self._memory / name) for name in names[:2])
        if not limit or limit >= _NO_LIMIT or used is None:
            return None
        used -= numbers_in(self._memory / "memory.stat").get(names[2], 0)
        return 100 * max(used, 0) / limit
