"""TimelineMerge: the timelines and system metrics of a training job -> one trace, as a stream."""

from collections.abc import Iterator, Sequence
from typing import Final

from smdebug.core.modes import ModeKeys
from smdebug.profiler.damages import Damages
from smdebug.profiler.file_names import TraceFile
from smdebug.profiler.profiler_constants import PYTHONTIMELINE_SUFFIX
from smdebug.profiler.profiler_files import ProfilerFiles, Writer
from smdebug.profiler.sorted_lines import SortedLines
from smdebug.profiler.step_times import step_interval
from smdebug.profiler.system_events import system_events
from smdebug.profiler.system_source import SystemSource
from smdebug.profiler.trace_assembly import LATEST, OpenEvents
from smdebug.profiler.trace_event import Number, TraceEvent, overlapping
from smdebug.profiler.trace_files import events_of
from smdebug.profiler.trace_writer import EventLines, TraceWriter, Write
from smdebug.storage import TrialStore

ALWAYS: Final = (0, LATEST)


class TimelineMerge:
    """Merges what a training job has left so far.

    Parameters
    ----------
    store
        The folder that holds ``system`` and ``framework``.
    suffixes
        How the names of the timelines end that are merged; None is all.

    Attributes
    ----------
    problems
        A sentence for each damage that was met.
    """

    def __init__(self, store: TrialStore, suffixes: Sequence[str] | None = None) -> None:
        self.problems: list[str] = []
        self._store = store
        self._suffixes = None if suffixes is None else tuple(suffixes)
        self._files = ProfilerFiles(store)
        self._files.refresh()

    def step_interval(
        self, start_step: int, end_step: int, mode: ModeKeys | None = None
    ) -> tuple[Number, Number]:
        """Return when steps ran, in epoch microseconds; see `smdebug.profiler.step_times`."""
        files = [file for file in self._traces(*ALWAYS) if file.kind == PYTHONTIMELINE_SUFFIX]
        return step_interval(self._events(files, marks=False), start_step, end_step, mode)

    def merge(self, start: Number, end: Number, write: Write, *, system: bool = True) -> int:
        """Write one trace of what overlaps ``[start, end]``; return how many events it has.

        Parameters
        ----------
        start, end
            Epoch microseconds.
        write
            Takes the text piece by piece.
        system
            Whether system metrics are in it.
        """
        with SortedLines() as sorted_lines:
            lines = EventLines(sorted_lines)
            for event in self._wanted(start, end, system=system):
                lines.add(event)
            writer = TraceWriter(write)
            writer.write_events(iter(sorted_lines), lines.tracks)
            writer.end()
        if lines.left_out:
            self.problems.append(
                f"{lines.left_out} events are left out: of too many threads, or nested too deeply."
            )
        return lines.count

    def _wanted(self, start: Number, end: Number, *, system: bool) -> Iterator[TraceEvent]:
        files = self._traces(start, end)
        if self._suffixes is not None:
            files = [file for file in files if file.key.endswith(self._suffixes)]
        yield from overlapping(self._events(files, marks=True), start, end)
        if system:
            yield from self._system(int(start), int(end) + 1)

    def _traces(self, start: Number, end: Number) -> list[TraceFile]:
        return self._files.traces_between(int(start), int(end))

    def _events(self, files: Sequence[TraceFile], *, marks: bool) -> Iterator[TraceEvent]:
        """Yield the events of files; those that begin in one and end in a later one, too."""
        waiting: dict[Writer, OpenEvents] = {}
        for file in files:
            begun = waiting.setdefault((file.kind, file.node), {})
            yield from events_of(
                self._store, file.key, self.problems, marks=marks, open_events=begun
            )

    def _system(self, start: int, end: int) -> Iterator[TraceEvent]:
        """Yield the events of system metrics, of about one file of each node at a time."""
        damages = Damages(self._store.uri)
        source = SystemSource(self._files, damages)
        files = self._files.system_between(start, end)
        if files:
            last = min(end, source.last_time_us(files) + 1)
            bounds = {start, last, *(one.start_us for one in files if start < one.start_us < last)}
            yield from system_events(source.samples, sorted(bounds))
        self.problems.extend(f"{key!r}: {text}" for key, text in damages.problems.items())
