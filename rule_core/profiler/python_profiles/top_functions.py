"""top_functions: the functions that took most of a training job's time, without pandas."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from rule_core.exceptions import SMDebugValueError
from rule_core.profiler.files.constants import CPROFILE_NAME
from rule_core.profiler.python_profiles.reader import (
    FRAMEWORK,
    READ_RANGE,
    ProblemList,
    ProfileFile,
    in_order,
    profile_files,
)
from rule_core.profiler.python_profiles.span import StepPythonProfileStats
from rule_core.profiler.python_profiles.stats import (
    Metrics,
    cProfileFunctionStats,
    cProfileStats,
    merged_cprofiles,
)
from rule_core.profiler.python_profiles.types import PythonProfileModes, StepPhase, to_mode, to_step
from rule_core.storage.base import TrialStore
from rule_core.storage.local import LocalStore
from rule_core.storage.uri import open_store


@dataclass(frozen=True, slots=True)
class TopFunctions:
    """The selected functions, and the profiles that contain them.

    Attributes
    ----------
    functions
        The first functions, largest first, over the selected spans; their names are untrusted.
    functions_in_all, time_in_all
        The number of all functions in the selected spans, and their time in seconds.
    chosen
        The selected spans without unusable files.
    available
        All files of Python profilers, of any node, mode and profiler.
    problems
        The reason for each skipped file, by path.
    """

    functions: tuple[cProfileFunctionStats, ...]
    functions_in_all: int
    time_in_all: float
    chosen: tuple[StepPythonProfileStats, ...]
    available: tuple[StepPythonProfileStats, ...]
    problems: dict[str, str]


def top_functions(
    folder: str | os.PathLike[str],
    *,
    steps: tuple[int | str, int | str] | None = None,
    mode: PythonProfileModes | str | None = None,
    node: str | None = None,
    sort: Metrics | str = Metrics.TOTAL_TIME,
    n: int | None = 20,
) -> TopFunctions:
    """Return the functions with the largest times or numbers of calls in cProfile's files.

    Parameters
    ----------
    folder
        The folder above ``framework``, or any folder below; local, or an S3 address, which is read
        in place.
    steps
        Selects spans in ``start <= step < end``; see
        `PythonProfileAnalysis.fetch_python_profile_stats_by_step`.
    mode
        Selects spans that begin and end in this mode.
    node
        Selects spans of this node; None adds up all nodes.
    sort
        Sort key, in descending order.
    n
        Number of functions; None returns all.

    Raises
    ------
    SMDebugValueError
        If an argument is invalid.
    ObjectNotFoundError, StorageUnavailableError
        If the folder does not exist, or cannot be read.
    TrialFileError
        The error of the first file, if all files are unusable.
    """
    metric = to_metric(sort)
    if n is not None and n < 0:
        raise SMDebugValueError(f"The number of functions must be 0 or more, got {n!r}.")
    is_selected = _selection(steps, mode, node)
    store = _open(folder)
    problems = ProblemList()
    files = _files(store, problems)
    keys = {file.stats.stats_path: file.key for file in files}
    available = in_order(file.stats for file in files)
    selected = [profile for profile in available if is_selected(profile)]
    merged = merged_cprofiles(selected, lambda path: store.read(keys[path], READ_RANGE), problems)
    functions = sorted(
        cProfileStats(merged).function_stats_list,
        key=lambda function: (-getattr(function, _FIELDS[metric]), function.function_name),
    )
    return TopFunctions(
        tuple(functions[:n]),
        len(functions),
        sum(function.total_time for function in functions),
        tuple(profile for profile in selected if profile.stats_path not in problems.texts),
        tuple(available),
        problems.texts,
    )


def has_python_profiles(folder: str | os.PathLike[str]) -> bool:
    """Return whether a training job's profilers left Python profiles in a folder.

    Raises
    ------
    ObjectNotFoundError, StorageUnavailableError
        If it cannot be listed.
    """
    store = _open(folder)
    is_file = isinstance(store, LocalStore) and store.root.is_file()
    return not is_file and bool(_files(store, ProblemList()))


_FIELDS: Final = {
    Metrics.TOTAL_TIME: "total_time",
    Metrics.CUMULATIVE_TIME: "cumulative_time",
    Metrics.PRIMITIVE_CALLS: "prim_calls",
    Metrics.TOTAL_CALLS: "total_calls",
}


def to_metric(sort: Metrics | str) -> Metrics:
    """Convert a sort key or its name to a sort key.

    Raises
    ------
    SMDebugValueError
        If it is invalid.

    >>> to_metric("tottime") is Metrics.TOTAL_TIME
    True
    """
    try:
        return Metrics(sort)
    except ValueError:
        words = ", ".join(metric.value for metric in Metrics)
        raise SMDebugValueError(f"Functions are sorted by one of {words}, got {sort!r}.") from None


def _selection(
    steps: tuple[int | str, int | str] | None,
    mode: PythonProfileModes | str | None,
    node: str | None,
) -> Callable[[StepPythonProfileStats], bool]:
    """Return a predicate for selected files."""
    profile_mode = None if mode is None else to_mode(mode)
    ends = None if steps is None else (to_step(steps[0]), to_step(steps[1]))

    def is_selected(profile: StepPythonProfileStats) -> bool:
        return (
            profile.profiler_name == CPROFILE_NAME
            and node in {None, profile.node_id}
            and (profile_mode is None or profile.has_start_and_end_mode(profile_mode, profile_mode))
            and (
                ends is None
                or profile.in_half_open_steps(*ends, StepPhase.STEP_START, StepPhase.STEP_END)
            )
        )

    return is_selected


def _open(folder: str | os.PathLike[str]) -> TrialStore:
    """Return the store of a folder; the root of a local one is absolute."""
    store = open_store(folder)
    if isinstance(store, LocalStore):
        return LocalStore(os.path.abspath(store.root))  # noqa: PTH100 - keeps links
    return store


def _files(store: TrialStore, problems: ProblemList) -> list[ProfileFile]:
    """Return the profiles below ``framework``; without any, search the whole folder.

    That also lists the many files of system metrics.
    """
    below = list(profile_files(store, store.uri, problems, FRAMEWORK))
    return below or list(profile_files(store, store.uri, problems))
