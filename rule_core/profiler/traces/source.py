"""TraceSource: framework events by time range, read from the timelines that overlap it."""

from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from typing import Final

from cachetools import LRUCache

from rule_core.profiler.files.file_names import TraceFile
from rule_core.profiler.files.profiler_files import ProfilerFiles, Writer
from rule_core.profiler.traces.assembler import OpenEvents, copy_open_events
from rule_core.profiler.traces.event import Number, TraceEvent
from rule_core.profiler.traces.files import by_kind, events_of
from rule_core.profiler.traces.packed_events import PackedEvents

CACHED_BYTES: Final = 32 << 20
NEAR_US: Final = 3_600_000_000
MOST_EVENTS: Final = 1_000_000  # of one time range, at 800 bytes each
TOO_MANY: Final = (
    f"More than {MOST_EVENTS:,} events end in one time window: the rest is ignored. "
    "Set a smaller scan_interval_us."
)


class TraceSource:
    """Reads framework events from the timelines of a training job.

    Parameters
    ----------
    files
        The files, as last listed; they collect the problems of those that cannot be read.
    cached_bytes
        Size in bytes of the cache of parsed files.
    """

    def __init__(self, files: ProfilerFiles, cached_bytes: int = CACHED_BYTES) -> None:
        self._files = files
        self._cache: LRUCache[str, PackedEvents] = LRUCache(
            cached_bytes, lambda events: events.nbytes
        )
        self._spans: dict[str, tuple[Number, Number, Number]] = {}
        # Events still open at the start of a file, and after the last parsed file of each writer.
        self._open_before: dict[str, OpenEvents] = {}
        self._open_after: dict[Writer, tuple[str, OpenEvents]] = {}

    def ending(self, start_us: int, end_us: int) -> list[TraceEvent]:
        """Return the events that end at ``start_us <= time < end_us``.

        They are sorted by end, then by start and node. Events beyond `MOST_EVENTS` are ignored and
        reported as a problem.
        """
        events: list[TraceEvent] = []
        for file in self._files.traces_between(start_us, end_us):
            if self._may_end(file, start_us, end_us):
                ending = self._packed(file).ending(start_us, end_us)
                events += islice(ending, MOST_EVENTS - len(events))
                if next(ending, None) is not None:
                    self._files.problems.report(f"{file.key} and others", TOO_MANY)
                    break
        events.sort(key=lambda event: (event.end_time, event.start_time, event.node_id or ""))
        return events

    def overlapping(self, start_us: int, end_us: int) -> Iterator[TraceEvent]:
        """Yield the events that overlap or touch a time range, by kind and file."""
        for file in by_kind(self._files.traces_between(start_us, end_us)):
            yield from self._packed(file).overlapping(start_us, end_us)

    def first_end_us(self, file: TraceFile) -> Number:
        """Return the end of the first event to end in a file; of an empty file its name's time."""
        if file.key not in self._spans:
            self._packed(file)
        _, first_end, last_end = self._spans[file.key]
        return first_end if last_end >= first_end else file.end_us

    def next_end_us(self, file: TraceFile, time_us: int) -> Number | None:
        """Return the first end of an event at or after `time_us` in a file; None if none follows.

        Less than `NEAR_US` before the time in the file's name the events are not searched, and the
        result may be `time_us` itself.
        """
        if file.key not in self._spans:
            self._packed(file)
        _, first_end, last_end = self._spans[file.key]
        if max(first_end, time_us) > last_end:
            return None
        if first_end >= time_us or file.end_us - time_us <= NEAR_US:
            return max(first_end, time_us)
        return self._packed(file).next_end(time_us)

    @property
    def first_ends(self) -> dict[str, Number]:
        """The end of the first event of each parsed file with events, by key."""
        return {key: first for key, (_, first, last) in self._spans.items() if last >= first}

    def _may_end(self, file: TraceFile, start_us: int, end_us: int) -> bool:
        """Return whether events of a file may end in a time range; unparsed files may."""
        span = self._spans.get(file.key)
        return span is None or (span[1] < end_us and span[2] >= start_us)

    def _packed(self, file: TraceFile) -> PackedEvents:
        """Return the events of a file.

        Raises
        ------
        StorageUnavailableError
            If the store is temporarily unavailable.
        """
        packed = self._cache.get(file.key)
        if packed is None:
            problems: list[str] = []
            open_events = self._open_events_before(file)
            events = events_of(self._files.store, file.key, problems, open_events=open_events)
            packed = PackedEvents(events, file.key)
            self._open_after[file.kind, file.node] = file.key, open_events
            self._spans[file.key] = packed.span
            with suppress(ValueError):  # larger than the whole cache
                self._cache[file.key] = packed
            if problems:
                text = " ".join(problems).replace(f"Timeline {file.key!r} ", "It ")
                self._files.problems.report(file.key, text, len(problems))
        return packed

    def _open_events_before(self, file: TraceFile) -> OpenEvents:
        """Return the writer's events still open at the start of a file.

        They are known only if the file before was the last one parsed.
        """
        if file.key not in self._open_before:
            parsed_key, open_events = self._open_after.get((file.kind, file.node), ("", {}))
            files = self._files.traces[file.kind, file.node]
            index = files.index(file)
            if not open_events or index == 0 or files[index - 1].key != parsed_key:
                return {}
            self._open_before[file.key] = open_events
        return copy_open_events(self._open_before[file.key])
