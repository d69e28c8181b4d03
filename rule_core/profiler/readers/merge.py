"""TimelineMerge: streams the timelines and system metrics of a training job into one trace.

System metrics become counters, with marks where a GPU was idle.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, Final

import numpy as np

from rule_core.modes import ModeKeys
from rule_core.profiler.converted.store import ConvertedFiles
from rule_core.profiler.files.constants import PYTHONTIMELINE_SUFFIX
from rule_core.profiler.files.file_names import TraceFile
from rule_core.profiler.readers.step_times import step_interval
from rule_core.profiler.system.samples import SeriesKey, SystemSamples
from rule_core.profiler.system.source import SystemSource
from rule_core.profiler.traces.assembler import LATEST, OpenEvents
from rule_core.profiler.traces.event import Number, TraceEvent, overlapping
from rule_core.profiler.traces.external_sort import SortedLines
from rule_core.profiler.traces.files import events_of
from rule_core.profiler.traces.writer import EventLines, TraceWriter, Write
from rule_core.storage.base import TrialStore

ALWAYS: Final = (0, LATEST)
FILE_TYPE: Final = "system_metrics"
COUNTERS: Final = "sys_metrics"
BOTTLENECKS: Final = "sys_metrics_bottlenecks"
_GPU: Final = "GPUUtilization"
_BUSY: Final = 85.0  # percent; below it a GPU counts as idle, as in merged timelines of smdebug
_NEAR_US: Final = 20_000  # microseconds between samples of the same moment
Samples = Callable[[int, int], SystemSamples]


class TimelineMerge:
    """Merges the profiler data written so far.

    Parameters
    ----------
    store
        The folder with ``system`` and ``framework``, or with traces of torch.profiler.
    suffixes
        Endings of the timelines to merge; None merges all.

    Attributes
    ----------
    problems
        A sentence for each file problem.
    """

    def __init__(self, store: TrialStore, suffixes: Sequence[str] | None = None) -> None:
        self.problems: list[str] = []
        self._suffixes = None if suffixes is None else tuple(suffixes)
        self._files = ConvertedFiles(store)
        self._store = self._files.store
        self._files.refresh()

    def step_interval(
        self, start_step: int, end_step: int, mode: ModeKeys | None = None
    ) -> tuple[Number, Number]:
        """Return the time range of steps (epoch us); see the function `step_interval`."""
        traces = self._files.traces_between(*ALWAYS)
        files = [file for file in traces if file.kind == PYTHONTIMELINE_SUFFIX]
        return step_interval(self._events(files, marks=False), start_step, end_step, mode)

    def merge(self, start: Number, end: Number, write: Write, *, system: bool = True) -> int:
        """Write a trace of all events that overlap ``[start, end]``; return the number of events.

        Parameters
        ----------
        start, end
            Epoch microseconds.
        write
            Called with each piece of the text.
        system
            Whether to include system metrics.
        """
        with SortedLines() as sorted_lines:
            lines = EventLines(sorted_lines)
            for event in self._merged_events(start, end, system=system):
                lines.add(event)
            TraceWriter(write).write_events(iter(sorted_lines), lines.tracks)
        if lines.left_out:
            self.problems.append(
                f"{lines.left_out} events are left out: of too many threads, or nested too deeply."
            )
        return lines.count

    def _merged_events(self, start: Number, end: Number, *, system: bool) -> Iterator[TraceEvent]:
        files = self._files.traces_between(int(start), int(end))
        if self._suffixes is not None:
            files = [file for file in files if file.key.endswith(self._suffixes)]
        yield from overlapping(self._events(files, marks=True), start, end)
        if system:
            yield from self._system(int(start), int(end) + 1)

    def _events(self, files: Sequence[TraceFile], *, marks: bool) -> Iterator[TraceEvent]:
        """Yield the events of files, including those that end in a later file."""
        open_events: dict[tuple[str, str], OpenEvents] = {}
        for file in files:
            pending = open_events.setdefault((file.kind, file.node), {})
            yield from events_of(
                self._store, file.key, self.problems, marks=marks, open_events=pending
            )

    def _system(self, start: int, end: int) -> Iterator[TraceEvent]:
        """Yield the events of system metrics, reading about one file per node at a time."""
        source = SystemSource(self._files)
        files = self._files.system_between(start, end)
        if files:
            last = min(end, source.last_time_us(files) + 1)
            starts = (file.start_us for file in files)
            bounds = {start, last, *(time_us for time_us in starts if start < time_us < last)}
            yield from system_events(source.samples, sorted(bounds))
        self.problems.extend(
            f"{key!r}: {text}" for key, text in self._files.problems.problems.items()
        )


def system_events(samples: Samples, bounds: Iterable[int]) -> Iterator[TraceEvent]:
    """Yield a counter for each sample, and an instant event for each moment of an idle GPU.

    Parameters
    ----------
    samples
        Returns the samples of a range of epoch microseconds, end excluded.
    bounds
        Ascending epoch microseconds; samples between two of them are in memory at once.

    Yields
    ------
    TraceEvent
        Window by window. The args of an instant event are all samples within 20 ms; instant events
        are further apart than that.
    """
    names: list[str] = []
    marked = -1 << 62
    for start, end in pairwise(bounds):
        window = samples(start - _NEAR_US, end + _NEAR_US)
        names.extend(_name(key) for key in window.keys[len(names) :])
        inside = slice(*np.searchsorted(window.time_us, [start, end]))
        columns = (
            column[inside].tolist() for column in (window.time_us, window.value, window.series)
        )
        for time_us, value, series in zip(*columns, strict=True):
            yield _event("C", names[series], COUNTERS, time_us, {"value": value})
        for time_us in _idle_times(window, inside):
            if time_us > marked + _NEAR_US:
                marked = time_us
                yield _event("i", BOTTLENECKS, BOTTLENECKS, time_us, _near(window, names, time_us))


def _name(key: SeriesKey) -> str:
    """Return the name of a series' counter.

    >>> _name(SeriesKey("algo-1", "cpu", "CPUUtilization", "cpu0"))
    'cpu0_CPUUtilization_algo-1'
    """
    return "_".join(part for part in (key.name, key.dimension, key.node) if part is not None)


def _idle_times(window: SystemSamples, inside: slice) -> list[int]:
    """Return the times at which some GPU was idle, ascending."""
    of_gpu = np.fromiter((key.dimension == _GPU for key in window.keys), bool, len(window.keys))
    series, value = window.series[inside], window.value[inside]
    times: list[int] = np.unique(window.time_us[inside][of_gpu[series] & (value < _BUSY)]).tolist()
    return times


def _near(window: SystemSamples, names: list[str], time_us: int) -> dict[str, float]:
    """Return the samples near a time."""
    first, last = np.searchsorted(window.time_us, [time_us - _NEAR_US, time_us + _NEAR_US + 1])
    near = zip(window.series[first:last].tolist(), window.value[first:last].tolist(), strict=True)
    return {names[series]: value for series, value in near}


def _event(kind: str, name: str, phase: str, time_us: int, args: dict[str, Any]) -> TraceEvent:
    return TraceEvent(time_us, name, 0, 0, 0, args, "", kind, FILE_TYPE, phase)
