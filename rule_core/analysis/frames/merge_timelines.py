"""MergedTimeline, merge_timelines: the profiler data of a training job as one trace.

The trace can be opened in Perfetto and in Chrome's ``chrome://tracing``. Timelines can have any
size: events that do not fit in memory are sorted in temporary files below ``TMPDIR``.
"""

import os
import socket
from collections.abc import Mapping, Sequence
from enum import Enum
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from rule_core.exceptions import SMDebugValueError
from rule_core.logger import get_logger
from rule_core.modes import ModeKeys
from rule_core.profiler.files.constants import MERGEDTIMELINE_SUFFIX
from rule_core.profiler.readers.merge import ALWAYS, TimelineMerge
from rule_core.profiler.traces.event import Number
from rule_core.storage.base import PendingFile
from rule_core.storage.uri import open_output, open_store

Bound = float | None
_LOW_GPU: Final[Mapping[str, Any]] = MappingProxyType({"lowgpu": ()})


class MergeUnit(Enum):
    """The unit of the bounds of a merged timeline."""

    TIME = "time"
    STEP = "step"


class MergedTrace(NamedTuple):
    """A trace written by `merge_timelines`.

    Attributes
    ----------
    path
        The file.
    events
        The number of its events.
    problems
        A sentence for each file problem.
    """

    path: str
    events: int
    problems: list[str]


class MergedTimeline:
    """Merges the timelines of a training job, and marks where its GPUs were idle.

    Parameters
    ----------
    path
        The folder or S3 address with ``framework`` and ``system``.
    file_suffix_filter
        Endings of the timelines to merge, such as ``pythontimeline.json``; None merges all.
    output_directory
        Folder of the trace; None is `path`.

    Attributes
    ----------
    problems
        A sentence for each file problem of the last merge.
    """

    def __init__(
        self,
        path: str,
        file_suffix_filter: Sequence[str] | None = None,
        output_directory: str | None = None,
    ) -> None:
        self.path = path
        self.out_dir = path if output_directory is None else output_directory
        self.file_suffix_filter = file_suffix_filter
        self.problems: list[str] = []
        self._draft: PendingFile | None = None
        self._file_path = ""

    def open(self, file_path: str) -> None:
        """Open the file of the next merge, a path or an S3 address.

        The file appears under its name once it is complete.

        Raises
        ------
        OSError
            If the file cannot be written.
        """
        self._draft = _opened(file_path)
        self._file_path = file_path

    def file_name(self, end_timestamp_in_us: float) -> str:
        """Return the path of a merged timeline, with its end and the node that merges it."""
        node = f"{os.getpid()}-{socket.gethostname()}".replace("_", "-")
        name = f"{int(end_timestamp_in_us)}_{node}_{MERGEDTIMELINE_SUFFIX}"
        return f"{str(self.out_dir).rstrip('/')}/{name}"

    def merge_timeline(
        self,
        start: float,
        end: float,
        unit: MergeUnit | str = MergeUnit.TIME,
        sys_metrics_filter: Mapping[str, Any] | None = _LOW_GPU,
        mode: ModeKeys | None = None,
    ) -> str:
        """Write one trace of all events that overlap a range, and return its path.

        Parameters
        ----------
        start, end
            Epoch microseconds; with `MergeUnit.STEP` (or ``"step"``) the first step, and the step
            before which the trace ends.
        unit
            Unit of the bounds.
        sys_metrics_filter
            Empty or None omits system metrics. Otherwise each sample becomes a counter, and each
            moment with a GPU below 85 % an instant event with all samples within 20 ms.
        mode
            Mode of the steps; None selects the first mode that has them.

        Raises
        ------
        SMDebugValueError
            If the unit is unknown.
        OSError
            If the trace cannot be written.
        """
        merge = TimelineMerge(open_store(self.path), self.file_suffix_filter)
        span = _span(merge, start, end, unit, mode)
        if self._draft is None:
            self._file_path = self.file_name(span[1])
        draft, self._draft = self._draft or _opened(self._file_path), None
        try:
            merge.merge(*span, draft.write, system=bool(sys_metrics_filter))
            draft.publish()
        finally:
            draft.discard()
            self.problems = merge.problems
        for problem in merge.problems:
            get_logger("profiler").warning(problem)
        return self._file_path

    def close(self) -> None:
        """Publish the file under its name; a merge does this itself."""
        draft, self._draft = self._draft, None
        if draft is not None:
            draft.publish()


def merge_timelines(
    path: str,
    output: str | os.PathLike[str],
    start: float | None = None,
    end: float | None = None,
    unit: MergeUnit | str = MergeUnit.TIME,
    *,
    file_suffix_filter: Sequence[str] | None = None,
    system_metrics: bool = True,
    mode: ModeKeys | None = None,
) -> MergedTrace:
    """Write one trace of all events that overlap a range; the trial itself is not changed.

    Parameters
    ----------
    path
        The folder or S3 address with ``framework`` and ``system``.
    output
        Path or S3 address of the trace. An existing file is replaced once the trace is complete.
    start, end
        Bounds in `unit`, see `MergedTimeline.merge_timeline`; None is unbounded.
    unit
        Unit of the bounds.
    file_suffix_filter
        See `MergedTimeline`.
    system_metrics
        Whether to include system metrics.
    mode
        Mode of the steps; see `MergedTimeline.merge_timeline`.

    Raises
    ------
    SMDebugValueError
        If the range has no events, or the unit is unknown; nothing is written.
    OSError
        If the trace cannot be written.
    """
    merge = TimelineMerge(open_store(path), file_suffix_filter)
    span = _span(merge, start, end, unit, mode)
    draft = _opened(os.fspath(output))
    try:
        events = merge.merge(*span, draft.write, system=system_metrics)
        if events:
            draft.publish()
            return MergedTrace(os.fspath(output), events, merge.problems)
    finally:
        draft.discard()
    raise SMDebugValueError(
        " ".join([f"Nothing to merge: no events of that range in {path!r}.", *merge.problems])
    )


def _opened(file_path: str) -> PendingFile:
    """Open a file at a path or an S3 address."""
    folder, _, name = file_path.rpartition("/")
    if not name:
        raise SMDebugValueError(f"A merged timeline needs the name of a file, got {file_path!r}.")
    return open_output(folder or ("/" if file_path.startswith("/") else ".")).open(name)


def _span(
    merge: TimelineMerge, start: Bound, end: Bound, unit: MergeUnit | str, mode: ModeKeys | None
) -> tuple[Number, Number]:
    """Convert bounds to epoch microseconds.

    Raises
    ------
    SMDebugValueError
        If the unit is unknown.
    """
    try:
        merge_unit = MergeUnit(unit)
    except ValueError:
        raise SMDebugValueError(
            f"The unit of a merged timeline must be 'time' or 'step', got {unit!r}."
        ) from None
    first = ALWAYS[0] if start is None else start
    last = ALWAYS[1] if end is None else end
    if merge_unit is MergeUnit.TIME:
        return first, last
    return merge.step_interval(int(first), int(last), mode)
