"""top_functions: the functions that took most of a training job's time, without pandas."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple

from rule_core.exceptions import SMDebugValueError
from rule_core.profiler.constants import CPROFILE_NAME
from rule_core.profiler.python_profiles.contents import merged_cprofiles
from rule_core.profiler.python_profiles.reader import (
    FRAMEWORK,
    READ_RANGE,
    ProblemList,
    ProfileFile,
    in_order,
    profile_files,
)
from rule_core.profiler.python_profiles.span import StepPythonProfileStats
from rule_core.profiler.python_profiles.stats import Metrics, cProfileFunctionStats, cProfileStats
from rule_core.profiler.python_profiles.types import PythonProfileModes, StepPhase, to_mode, to_step
from rule_core.storage import TrialStore, open_store
from rule_core.storage.local import LocalStore


class FunctionTimes(NamedTuple):
    """What one function did over all chosen spans.

    Attributes
    ----------
    name
        ``file:line(name)``, or ``{name}`` of what is built in; a stranger wrote it.
    primitive_calls, total_calls
        Calls that are not recursive; all.
    total_time, cumulative_time
        Seconds in the function itself; in it and in all that it calls.
    """

    name: str
    primitive_calls: int
    total_calls: int
    total_time: float
    cumulative_time: float


@dataclass(frozen=True, slots=True)
class TopFunctions:
    """The functions that were asked for, and what they were found in.

    Attributes
    ----------
    functions
        The first ones, largest first.
    functions_in_all, time_in_all
        How many there are over the chosen spans, and the seconds in all of them.
    chosen
        The spans that were added up.
    available
        All files of Python profilers that there are, of any node, mode and profiler.
    problems
        Files that were left out, and why.
    """

    functions: tuple[FunctionTimes, ...]
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
    """Return the functions that cProfile saw most of.

    Parameters
    ----------
    folder
        Where a profiler writes (the folder above ``framework``), or any folder below; local, or an
        S3 address, which is read in place.
    steps
        Spans in ``start <= step < end`` only, as
        `PythonProfileAnalysis.fetch_python_profile_stats_by_step` takes them.
    mode
        Spans that begin and end in this mode only.
    node
        Spans of this node only; by default all nodes are added up.
    sort
        By what; largest first.
    n
        How many functions; None is all.

    Raises
    ------
    SMDebugValueError
        If an argument cannot be understood.
    ObjectNotFoundError, StorageUnavailableError
        If the folder is not there, or cannot be read.
    TrialFileError
        If there are files and none can be used: what is wrong with the first.
    """
    by, most = to_metric(sort), _number(n)
    wanted = _choice(steps, mode, node)
    store, root = _opened(folder)
    problems = ProblemList()
    files = _files(store, root, problems)
    keys = {one.stats.stats_path: one.key for one in files}
    available = in_order(one.stats for one in files)
    chosen = [one for one in available if wanted(one)]
    merged = merged_cprofiles(
        chosen, lambda one: store.read(keys[one.stats_path], READ_RANGE), problems
    )
    functions = [_times(one) for one in cProfileStats(merged).function_stats_list]
    functions.sort(key=lambda one: (-_ORDERS[by](one), one.name))
    return TopFunctions(
        tuple(functions[:most]),
        len(functions),
        sum(one.total_time for one in functions),
        tuple(one for one in chosen if one.stats_path not in problems.texts),
        tuple(available),
        problems.texts,
    )


_ORDERS: Final[dict[Metrics, Callable[[FunctionTimes], float]]] = {
    Metrics.TOTAL_TIME: lambda one: one.total_time,
    Metrics.CUMULATIVE_TIME: lambda one: one.cumulative_time,
    Metrics.PRIMITIVE_CALLS: lambda one: one.primitive_calls,
    Metrics.TOTAL_CALLS: lambda one: one.total_calls,
}


def to_metric(sort: Metrics | str) -> Metrics:
    """Return what to sort by, given as itself or by its word.

    Raises
    ------
    SMDebugValueError
        If there is none of that name.

    >>> to_metric("tottime") is Metrics.TOTAL_TIME
    True
    """
    try:
        return Metrics(sort)
    except ValueError:
        words = ", ".join(one.value for one in Metrics)
        msg = f"Functions are sorted by one of {words}, got {sort!r}."
        raise SMDebugValueError(msg) from None


def _number(n: int | None) -> int | None:
    if n is not None and n < 0:
        msg = f"The number of functions must be 0 or more, got {n!r}."
        raise SMDebugValueError(msg)
    return n


def _choice(
    steps: tuple[int | str, int | str] | None,
    mode: PythonProfileModes | str | None,
    node: str | None,
) -> Callable[[StepPythonProfileStats], bool]:
    """Return what says of a file whether it is wanted."""
    asked = None if mode is None else to_mode(mode)
    ends = None if steps is None else (to_step(steps[0]), to_step(steps[1]))

    def wanted(one: StepPythonProfileStats) -> bool:
        return (
            one.profiler_name == CPROFILE_NAME
            and node in {None, one.node_id}
            and (asked is None or one.has_start_and_end_mode(asked, asked))
            and (
                ends is None
                or one.in_half_open_steps(*ends, StepPhase.STEP_START, StepPhase.STEP_END)
            )
        )

    return wanted


def _opened(folder: str | os.PathLike[str]) -> tuple[TrialStore, str]:
    """Return the store of a folder, and its root as keys are to be read behind it."""
    store = open_store(folder)
    if isinstance(store, LocalStore):
        store = LocalStore(os.path.abspath(store.root))  # noqa: PTH100 - links stay
    return store, store.uri


def _files(store: TrialStore, root: str, problems: ProblemList) -> list[ProfileFile]:
    """Return the profiles; the many files of metrics beside them are listed only if need be."""
    below = list(profile_files(store, root, problems, FRAMEWORK))
    return below or list(profile_files(store, root, problems))


def _times(one: cProfileFunctionStats) -> FunctionTimes:
    calls = one.prim_calls, one.total_calls
    return FunctionTimes(one.function_name, *calls, one.total_time, one.cumulative_time)
