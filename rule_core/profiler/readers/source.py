"""ProfilerSource: the profiler data of one job, and the time up to which it is complete."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from itertools import islice
from typing import Final

from rule_core.clock import Clock
from rule_core.profiler.converted.store import ConvertedFiles
from rule_core.profiler.files.constants import TIME_BUFFER_DEFAULT
from rule_core.profiler.files.stop_signal import StopSignal
from rule_core.profiler.system.columns import SystemColumns
from rule_core.profiler.system.samples import SeriesKey, SystemSamples
from rule_core.profiler.system.source import SystemSource
from rule_core.profiler.traces.event import Number, TraceEvent
from rule_core.profiler.traces.source import TraceSource
from rule_core.storage.base import TrialStore

LATEST_WRITER_US: Final = TIME_BUFFER_DEFAULT  # slower writers are not waited for
LONGEST_JOB_US: Final = 28 * 24 * 3600 * 1_000_000  # the longest training job of SageMaker


class ProfilerSource:
    """Data shared by several views of one profiler trial; no method waits.

    Parameters
    ----------
    store
        The folder with ``system`` and ``framework``.
    clock
        Clock for the stop signal and for checking the clocks of nodes.
    signal
        The stop signal.

    Attributes
    ----------
    files
        The files of the job.
    is_over
        Whether the training job has left its end mark, or a stop signal was given.
    is_complete
        Whether the job is over and the second of two refreshes since then found nothing new.
    first_us
        The start of the data in epoch microseconds; 0 while there are none. It is fixed once data
        was read or settled.
    waits_for_unseen
        Whether to allow for writers without any file yet: data then counts as settled only
        `LATEST_WRITER_US` later.
    looked_at
        Time at which a view of a remote trial last refreshed the files to answer a query.
    """

    def __init__(self, store: TrialStore, clock: Clock, signal: StopSignal) -> None:
        self.store = store
        self._clock = clock
        self.signal = signal
        self.files = ConvertedFiles(store)
        self.system = SystemSource(self.files)
        self.traces = TraceSource(self.files)
        self.is_over = False
        self.is_complete = False
        self._refreshed_since_end = False
        self._is_marked = False
        self.waits_for_unseen = False
        self._late = 0
        self._settled_before: dict[str, int] = {}  # settled time at the arrival of each timeline
        self.looked_at = float("-inf")
        self.first_us = 0
        self._is_read = False
        self._settled = 0
        self._last_sample: tuple[int, int] = (-1, 0)  # number of the refresh, and the time

    @property
    def is_remote(self) -> bool:
        """Whether requests to the store are slow."""
        return self.store.costs.parallel > 1

    def refresh(self) -> bool:
        """Look once for new files and the end mark; return whether anything is new.

        Raises
        ------
        StorageUnavailableError
            If the store is unavailable.
        """
        was_over = self.is_over
        settled = self.settled_us
        is_over = self.has_ended()  # checked first: all files precede the end mark
        system, traces = self.files.refresh(whole=is_over, ended=self._is_marked)
        self.is_complete = self._refreshed_since_end and not (system or traces)
        self._refreshed_since_end = is_over
        if settled > self.first_us:
            self._late += sum(file.start_us < settled for file in system)
            self._settled_before |= {file.key: settled for file in traces}
        elif (system or traces) and not self._is_read:
            self.first_us = self._find_first()
        return bool(system or traces) or is_over != was_over

    def has_ended(self) -> bool:
        """Return whether the job is over, by its end mark or a stop signal."""
        self._is_marked = self._is_marked or self.files.has_end_mark()
        self.is_over = self.is_over or self._is_marked or self.stop_signalled()
        return self.is_over

    def stop_signalled(self) -> bool:
        """Return whether a stop signal was given and its grace time has passed."""
        return self.signal.is_given(self._clock.time())

    # -- the extent of the data --------------------------------------------------------------

    @property
    def newest_us(self) -> int:
        """The end of the newest data in epoch microseconds; 0 while there are none.

        It comes from file names until the job is over, then also from the last samples.
        """
        newest = max(self._writer_times(), default=0)
        return max(newest, self._last_sample_us()) if self.is_over else newest

    @property
    def ahead_us(self) -> int:
        """By how much data must exceed the settled time."""
        return LATEST_WRITER_US if self.waits_for_unseen else 0

    @property
    def settled_us(self) -> int:
        """The time before which all data is complete, in epoch microseconds.

        It is the time of the slowest writer; for system metrics the start of the newest file, whose
        predecessor is complete. Writers more than `LATEST_WRITER_US` behind the newest are ignored;
        writers without files are unknown until then. A node whose clock is ahead does not make the
        others late. After the end of the job it is later than all data. It never decreases.
        """
        times = list(self._writer_times())
        if self.is_complete:
            settled = self.newest_us + 1 if times else 0
        else:
            now_us = self._clock.time() * 1_000_000
            plausible = [time for time in times if time <= now_us + LATEST_WRITER_US] or times
            newest = max(plausible, default=0)
            earliest = newest - LATEST_WRITER_US
            slowest = min((time for time in times if time >= earliest), default=0)
            settled = earliest if self.waits_for_unseen else slowest
        self._settled = max(self._settled, settled)
        return self._settled

    @property
    def late(self) -> int:
        """The number of files that arrived with data from before the settled time."""
        first_ends = self.traces.first_ends
        return self._late + sum(
            first_ends.get(file.key, file.end_us) < settled
            for files in self.files.traces.values()
            for file in files
            if (settled := self._settled_before.get(file.key, 0))
        )

    @property
    def latest_us(self) -> int:
        """The time up to which each kind of data exists, by file names; `newest_us` at the end.

        0 while there are none.
        """
        system = max((files[-1].start_us for files in self.files.system.values()), default=0)
        traces = max((files[-1].end_us for files in self.files.traces.values()), default=0)
        return self.newest_us if self.is_over else min(filter(None, (system, traces)), default=0)

    @property
    def nodes(self) -> list[str]:
        """The nodes with system metrics, sorted; if there are none, the nodes of timelines."""
        return sorted(self.files.system or {node for _, node in self.files.traces})

    def _writer_times(self) -> Iterator[int]:
        """Yield the time that each writer has reached."""
        yield from (files[-1].start_us for files in self.files.system.values())
        yield from (files[-1].end_us for files in self.files.traces.values())

    def _find_first(self) -> int:
        """Return the start of the data.

        The name of a timeline contains the end of its last event, so timelines that may begin
        before all others are read. Implausibly early events are ignored. The names of files with
        system metrics have whole seconds, which are too coarse for data that other tools wrote.
        """
        exact = self.files.store.first_us
        if exact is not None:
            return max(exact, self.newest_us - LONGEST_JOB_US)
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
        """Return the first time at or after `time_us` that may have data; None if no data follows.

        Callers that iterate over time can skip the gap. The time comes from file names, and where
        these leave a long gap, as after a jump of a clock, from the files.
        """
        times: list[Number | None] = []
        for files in self.files.system.values():
            index = bisect_right(files, time_us, key=lambda file: file.start_us)
            times += (
                self.system.next_time_us(file, time_us) for file in files[max(index - 1, 0) : index]
            )
            times += (file.start_us for file in files[index : index + 1])
        for traces in self.files.traces.values():
            index = bisect_left(traces, time_us, key=lambda file: file.end_us)
            ends = (self.traces.next_end_us(file, time_us) for file in islice(traces, index, None))
            times.append(next(filter(None, ends), None))
        return min(map(int, filter(None, times)), default=None)

    def silent_nodes(self, start_us: int, end_us: int) -> list[str]:
        """Return the nodes that have samples, but none at ``start_us <= time < end_us``."""
        nodes = []
        for node, files in sorted(self.files.system.items()):
            index = bisect_left(files, end_us, key=lambda file: file.start_us)
            if index and files[index - 1].start_us < start_us:
                next_us = self.system.next_time_us(files[index - 1], start_us)
                if next_us is None or next_us >= end_us:
                    nodes.append(node)
        return nodes

    # -- the data ----------------------------------------------------------------------------

    def system_samples(self, start_us: int, end_us: int) -> SystemSamples:
        """Return the samples of ``start_us <= time < end_us``."""
        self._is_read = True
        return self.system.samples(start_us, end_us)

    def framework_events(self, start_us: int, end_us: int) -> list[TraceEvent]:
        """Return the events that end at ``start_us <= time < end_us``."""
        self._is_read = True
        return self.traces.ending(start_us, end_us)

    def system_columns(self, start_us: int, end_us: int) -> Iterator[SystemColumns]:
        """Yield the samples of ``start_us <= time <= end_us``, file by file."""
        self._is_read = True
        return self.system.columns(start_us, end_us)

    def overlapping_events(self, start_us: int, end_us: int) -> Iterator[TraceEvent]:
        """Yield the events that overlap a time range, kind by kind."""
        self._is_read = True
        return self.traces.overlapping(start_us, end_us)

    @property
    def keys(self) -> tuple[SeriesKey, ...]:
        """The series of system metrics, by number."""
        return self.system.series.keys
