"""ProfilerSource: the profiler's data of one job: how far they reach, and what they hold."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from itertools import islice
from typing import Final

from smdebug.core.clock import Clock
from smdebug.profiler.damages import Damages
from smdebug.profiler.profiler_constants import TIME_BUFFER_DEFAULT
from smdebug.profiler.profiler_files import ProfilerFiles
from smdebug.profiler.stop_signal import StopSignal
from smdebug.profiler.system_columns import SystemColumns
from smdebug.profiler.system_samples import SeriesKey, SystemSamples
from smdebug.profiler.system_source import SystemSource
from smdebug.profiler.trace_event import Number, TraceEvent
from smdebug.profiler.trace_source import TraceSource
from smdebug.storage.protocol import TrialStore

LATEST_WRITER_US: Final = TIME_BUFFER_DEFAULT  # who is further behind is no longer waited for
LONGEST_JOB_US: Final = 28 * 24 * 3600 * 1_000_000  # what SageMaker lets a training job last


class ProfilerSource:
    """What several views of one profiler trial share; nothing here waits.

    Parameters
    ----------
    store
        The folder that holds ``system`` and ``framework``.
    clock
        Tells when a stop signal counts, and whether clocks of nodes can be right.
    signal
        The stop signal.

    Attributes
    ----------
    files
        What there is.
    is_over
        Whether the training job has left its end mark, or a stop signal was given.
    is_complete
        Whether it is over, and of two looks since then the second has brought nothing.
    waits_for_unseen
        Whether data are settled only when no writer that has left nothing yet can be the one that
        was slow: `LATEST_WRITER_US` after them.
    looked_at
        When a view of a remote trial last looked for new files because it was asked something.
    """

    def __init__(self, store: TrialStore, clock: Clock, signal: StopSignal) -> None:
        self.store = store
        self._clock = clock
        self.signal = signal
        self.files = ProfilerFiles(store)
        self.damages = Damages(store.uri)
        self.system = SystemSource(self.files, self.damages)
        self.traces = TraceSource(self.files, self.damages)
        self.is_over = False
        self.is_complete = False
        self._looked_since = False
        self._is_marked = False
        self.waits_for_unseen = False
        self._late = 0
        self._settled_before: dict[str, int] = {}  # timelines: what was settled when they came
        self.looked_at = float("-inf")
        self._first = 0
        self._is_read = False
        self._settled = 0
        self._last_sample: tuple[int, int] = (-1, 0)  # at which look; its time

    @property
    def is_remote(self) -> bool:
        """Whether each request to the store takes its time."""
        return self.store.costs.parallel > 1

    def refresh(self) -> bool:
        """Look once for new files and for the end; say whether there was anything new.

        Raises
        ------
        StorageUnavailableError
            If the store cannot be asked.
        """
        was_over = self.is_over
        settled = self.settled_us
        over = self.has_ended()  # before the look: what its writer wrote is there by then
        system, traces = self.files.refresh(whole=over, ended=self._is_marked)
        self.is_complete = self._looked_since and not (system or traces)
        self._looked_since = over
        if settled > self._first:
            self._late += sum(file.start_us < settled for file in system)
            self._settled_before |= {file.key: settled for file in traces}
        elif (system or traces) and not self._is_read:
            self._first = self._find_first()
        return bool(system or traces) or over != was_over

    def has_ended(self) -> bool:
        """Say whether the job is over, by its end mark or a stop signal."""
        self._is_marked = self._is_marked or self.files.has_end_mark()
        self.is_over = self.is_over or self._is_marked or self.stop_signalled()
        return self.is_over

    def stop_signalled(self) -> bool:
        """Say whether a stop signal was given, and its grace time has passed."""
        return self.signal.is_given(self._clock.time())

    # -- how far the data reach --------------------------------------------------------------

    @property
    def first_us(self) -> int:
        """When the data begin; 0 while there are none.

        It stands once anything was read, or settled.
        """
        return self._first

    @property
    def newest_us(self) -> int:
        """When the newest data end; 0 while there are none.

        As names of files tell, until the job is over: then the last samples are looked at.
        """
        known = max(self._marks(), default=0)
        return max(known, self._last_sample_us()) if self.is_over else known

    @property
    def ahead_us(self) -> int:
        """How much later than what is settled there must be data."""
        return LATEST_WRITER_US if self.waits_for_unseen else 0

    @property
    def settled_us(self) -> int:
        """The time before which all data are there.

        It is that of the writer that is furthest behind; of system metrics the beginning of the
        newest file, since the one before is whole then. Who is further behind the newest than
        `LATEST_WRITER_US` is no longer waited for: nor, before that, is a writer that has left
        nothing yet known to be there. A node whose clock is ahead of ours does not make the others
        late. At the end it is after all data. It never goes back.
        """
        marks = list(self._marks())
        if self.is_complete:
            settled = self.newest_us + 1 if marks else 0
        else:
            now_us = self._clock.time() * 1_000_000
            plausible = [one for one in marks if one <= now_us + LATEST_WRITER_US] or marks
            newest = max(plausible, default=0)
            earliest = newest - LATEST_WRITER_US
            known = min((one for one in marks if one >= earliest), default=0)
            settled = earliest if self.waits_for_unseen else known
        self._settled = max(self._settled, settled)
        return self._settled

    @property
    def late(self) -> int:
        """How many files have come with data from before a time that was settled already."""
        first_ends = self.traces.first_ends
        return self._late + sum(
            first_ends.get(file.key, file.end_us) < settled
            for files in self.files.traces.values()
            for file in files
            if (settled := self._settled_before.get(file.key, 0))
        )

    @property
    def latest_us(self) -> int:
        """Up to when every kind of data is there, as names of files tell; `newest_us` at the end.

        0 while there are none.
        """
        system = max((files[-1].start_us for files in self.files.system.values()), default=0)
        traces = max((files[-1].end_us for files in self.files.traces.values()), default=0)
        return self.newest_us if self.is_over else min(filter(None, (system, traces)), default=0)

    @property
    def nodes(self) -> list[str]:
        """The nodes that have written system metrics, sorted; without any, those of timelines."""
        return sorted(self.files.system or {node for _, node in self.files.traces})

    def _marks(self) -> Iterator[int]:
        """Yield how far each writer has come."""
        yield from (files[-1].start_us for files in self.files.system.values())
        yield from (files[-1].end_us for files in self.files.traces.values())

    def _find_first(self) -> int:
        """Return when the data begin.

        The name of a timeline says when its last event ends: those that may begin before all others
        are looked into. An event without a sensible time does not begin the job in 1970.
        """
        first = min((files[0].start_us for files in self.files.system.values()), default=None)
        for file in sorted(files[0] for files in self.files.traces.values()):
            if first is not None and file.end_us - LATEST_WRITER_US >= first:
                break
            end = max(int(self.traces.first_end_us(file)), file.end_us - LONGEST_JOB_US)
            first = end if first is None else min(first, end)
        return first or 0

    def _last_sample_us(self) -> int:
        looks, last = self._last_sample
        if looks != self.files.looks:
            last = self.system.last_time_us([files[-1] for files in self.files.system.values()])
            self._last_sample = self.files.looks, last
        return last

    def next_us(self, time_us: int) -> int | None:
        """Return the first time at or after `time_us` at which there may be data; None is never.

        Who walks over time need not visit what lies between. Names of files tell, and where they
        leave much time open what is in them: there a clock may have jumped.
        """
        found: list[Number | None] = []
        for files in self.files.system.values():
            at = bisect_right(files, time_us, key=lambda one: one.start_us)
            found += (
                self.system.next_time_us(file, time_us) for file in files[max(at - 1, 0) : at]
            )
            found += (file.start_us for file in files[at : at + 1])
        for traces in self.files.traces.values():
            at = bisect_left(traces, time_us, key=lambda one: one.end_us)
            ends = (self.traces.next_end_us(file, time_us) for file in islice(traces, at, None))
            found.append(next(filter(None, ends), None))
        return min(map(int, filter(None, found)), default=None)

    def silent_nodes(self, start_us: int, end_us: int) -> list[str]:
        """Return the nodes that have samples, but none from a start until before an end."""
        found = []
        for node, files in sorted(self.files.system.items()):
            at = bisect_left(files, end_us, key=lambda one: one.start_us)
            if at and files[at - 1].start_us < start_us:
                begins = self.system.next_time_us(files[at - 1], start_us)
                if begins is None or begins >= end_us:
                    found.append(node)
        return found

    # -- what they hold ----------------------------------------------------------------------

    def system_samples(self, start_us: int, end_us: int) -> SystemSamples:
        """Return the samples of ``start_us <= time < end_us``."""
        self._is_read = True
        return self.system.samples(start_us, end_us)

    def framework_events(self, start_us: int, end_us: int) -> list[TraceEvent]:
        """Return the events that end at ``start_us <= time < end_us``."""
        self._is_read = True
        return self.traces.ending(start_us, end_us)

    def system_columns(self, start_us: int, end_us: int) -> Iterator[SystemColumns]:
        """Yield the samples of ``start_us <= time <= end_us``, file by file, as they are there."""
        self._is_read = True
        return self.system.columns(start_us, end_us)

    def overlapping_events(self, start_us: int, end_us: int) -> Iterator[TraceEvent]:
        """Yield the events that overlap a range of time, kind by kind."""
        self._is_read = True
        return self.traces.overlapping(start_us, end_us)

    @property
    def keys(self) -> tuple[SeriesKey, ...]:
        """The series of system metrics by their numbers."""
        return self.system.series.keys
