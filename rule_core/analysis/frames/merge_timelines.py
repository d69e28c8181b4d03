"""MergedTimeline, merge_timelines: all that a training job's profiler saw, in one trace.

What is written loads in Perfetto and in Chrome's ``chrome://tracing``. Timelines of any size are
merged: what does not fit into memory waits in temporary files, where ``TMPDIR`` says.
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
from rule_core.profiler.constants import MERGEDTIMELINE_SUFFIX
from rule_core.profiler.traces.event import Number
from rule_core.profiler.traces.merge import ALWAYS, TimelineMerge
from rule_core.storage import PendingFile, open_output, open_store

_LOW_GPU: Final[Mapping[str, Any]] = MappingProxyType({"lowgpu": ()})


class MergeUnit(Enum):
    """What the bounds of a merged timeline count."""

    TIME = "time"
    STEP = "step"


class MergedTrace(NamedTuple):
    """What `merge_timelines` wrote.

    Attributes
    ----------
    path
        The file.
    events
        How many events it has.
    problems
        A sentence for each damage that was met.
    """

    path: str
    events: int
    problems: list[str]


class MergedTimeline:
    """Merges the timelines of a training job, and marks where its GPUs had little to do.

    Parameters
    ----------
    path
        The folder that holds ``framework`` and ``system``: a path or an S3 address.
    file_suffix_filter
        How the names of the timelines end that are merged, such as ``pythontimeline.json``; None is
        all.
    output_directory
        Where the trace is written; None is `path`.

    Attributes
    ----------
    problems
        A sentence for each damage that the last merge met.
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
        """Open the file that the next merge is written to: a path or an S3 address.

        It has its name once it is whole.

        Raises
        ------
        OSError
            If it cannot be written.
        """
        self._draft = _opened(file_path)
        self._file_path = file_path

    def file_name(self, end_timestamp_in_us: float) -> str:
        """Return the path of a merged timeline: it names its end and the node that merged it."""
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
            What the bounds count.
        sys_metrics_filter
            Empty or None leaves out system metrics. Anything else: each sample is a counter, and
            where a GPU is used for less than 85 %, what was measured within 20 ms of it is an
            instant event.
        mode
            Whose steps are meant; None is the first that has them.

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
            self.open(self.file_name(span[1]))
        try:
            merge.merge(*span, self._write, system=bool(sys_metrics_filter))
            self.close()
        finally:
            self._discard()
            self.problems = merge.problems
        for problem in merge.problems:
            get_logger("profiler").warning(problem)
        return self._file_path

    def _write(self, text: bytes) -> None:
        if self._draft is not None:
            self._draft.write(text)

    def _discard(self) -> None:
        """Drop a file that did not become whole."""
        draft, self._draft = self._draft, None
        if draft is not None:
            draft.discard()

    def close(self) -> None:
        """Give the file its name; a merge does that by itself."""
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
    """Write all that overlaps a range into one trace; nothing is written into the trial.

    Parameters
    ----------
    path
        The folder that holds ``framework`` and ``system``: a path or an S3 address.
    output
        The file to write: a path or an S3 address. What is there is replaced once the trace is
        whole.
    start, end
        Bounds in `unit`, see `MergedTimeline.merge_timeline`; None is the beginning and the end.
    unit
        What the bounds count.
    file_suffix_filter
        See `MergedTimeline`.
    system_metrics
        Whether system metrics are in the trace.
    mode
        Whose steps are meant.

    Raises
    ------
    SMDebugValueError
        If there are no events in the range, or the unit is unknown; nothing is written then.
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
    msg = f"Nothing to merge: no events of that range in {path!r}."
    raise SMDebugValueError(" ".join([msg, *merge.problems]))


def _opened(file_path: str) -> PendingFile:
    """Begin a file at a path or an S3 address."""
    folder, _, name = file_path.rpartition("/")
    if not name:
        msg = f"A merged timeline needs the name of a file, got {file_path!r}."
        raise SMDebugValueError(msg)
    return open_output(folder or ("/" if file_path.startswith("/") else ".")).open(name)


def _span(
    merge: TimelineMerge,
    start: float | None,
    end: float | None,
    unit: MergeUnit | str,
    mode: ModeKeys | None,
) -> tuple[Number, Number]:
    """Return the epoch microseconds that bounds mean.

    Raises
    ------
    SMDebugValueError
        If the unit is unknown.
    """
    try:
        known = MergeUnit(unit)
    except ValueError:
        msg = f"The unit of a merged timeline must be 'time' or 'step', got {unit!r}."
        raise SMDebugValueError(msg) from None
    first = ALWAYS[0] if start is None else start
    last = ALWAYS[1] if end is None else end
    if known is MergeUnit.TIME:
        return first, last
    return merge.step_interval(int(first), int(last), mode)
