"""TraceSource: framework events by range of time, of which only the timelines are read."""

from collections.abc import Iterator
from itertools import islice
from typing import Final

from smdebug.profiler.bounded_cache import BoundedCache
from smdebug.profiler.damages import Damages
from smdebug.profiler.file_names import TraceFile
from smdebug.profiler.packed_events import PackedEvents
from smdebug.profiler.profiler_files import ProfilerFiles, Writer
from smdebug.profiler.trace_assembly import OpenEvents
from smdebug.profiler.trace_event import Number, TraceEvent
from smdebug.profiler.trace_files import FILE_TYPES, events_of

CACHED_BYTES: Final = 32 << 20
NEAR_US: Final = 3_600_000_000
MOST_EVENTS: Final = 1_000_000  # of one range of time; they take 800 bytes each
TOO_MANY: Final = (
    f"More than {MOST_EVENTS:,} events end in one time window: the others are left out. "
    "Make windows shorter: scan_interval_us."
)
_KINDS: Final = tuple(FILE_TYPES)


class TraceSource:
    """Reads what `ProfilerFiles` lists.

    Parameters
    ----------
    files
        What there is.
    damages
        Takes what cannot be read.
    cached_bytes
        How much of what was parsed is kept for the next question.
    """

    def __init__(
        self, files: ProfilerFiles, damages: Damages, cached_bytes: int = CACHED_BYTES
    ) -> None:
        self._files = files
        self._damages = damages
        self._cache = BoundedCache[PackedEvents](cached_bytes, lambda one: one.nbytes)
        self._spans: dict[str, tuple[Number, Number, Number]] = {}
        # What was begun and not ended before a file, and the file that each writer's is known for.
        self._open_before: dict[str, OpenEvents] = {}
        self._open_at: dict[Writer, tuple[str, OpenEvents]] = {}

    def ending(self, start_us: int, end_us: int) -> list[TraceEvent]:
        """Return the events that end at ``start_us <= time < end_us``.

        They are in the order of their ends, then of their starts and nodes. Of more than
        `MOST_EVENTS` the others are left out, which is said among the damages.
        """
        found: list[TraceEvent] = []
        for file in self._files.traces_between(start_us, end_us):
            if self._may_end(file, start_us, end_us):
                events = self._packed(file).ending(start_us, end_us)
                found += islice(events, MOST_EVENTS - len(found))
                if next(events, None) is not None:
                    self._damages.report(f"{file.key} and others", TOO_MANY)
                    break
        found.sort(key=lambda event: (event.end_time, event.start_time, event.node_id or ""))
        return found

    def overlapping(self, start_us: int, end_us: int) -> Iterator[TraceEvent]:
        """Yield the events that overlap a range of time, if only by touching it.

        They come kind by kind, file by file.
        """
        files = self._files.traces_between(start_us, end_us)
        for file in sorted(files, key=lambda one: _KINDS.index(one.kind)):
            yield from self._packed(file).overlapping(start_us, end_us)

    def first_end_us(self, file: TraceFile) -> Number:
        """Return when the first event of a file ends; without events, when its name says."""
        if file.key not in self._spans:
            self._packed(file)
        _, first_end, last_end = self._spans[file.key]
        return first_end if last_end >= first_end else file.end_us

    def next_end_us(self, file: TraceFile, time_us: int) -> Number | None:
        """Return when the first event of a file ends at or after a time; None if none does.

        Shortly before the time in the file's name that is not looked at: it may be at once.
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
        """When the first event ends of each file that was parsed and has any, by key."""
        return {key: first for key, (_, first, last) in self._spans.items() if last >= first}

    def _may_end(self, file: TraceFile, start_us: int, end_us: int) -> bool:
        """Say whether events of a file may end in a range of time: some of many are parsed once."""
        known = self._spans.get(file.key)
        return known is None or (known[1] < end_us and known[2] >= start_us)

    def _packed(self, file: TraceFile) -> PackedEvents:
        """Return the events of a file.

        Raises
        ------
        StorageUnavailableError
            If the store cannot be asked now.
        """
        found = self._cache.get(file.key)
        if found is None:
            problems: list[str] = []
            opened = self._opened_before(file)
            events = events_of(self._files.store, file.key, problems, open_events=opened)
            found = PackedEvents(events, file.key)
            self._open_at[file.kind, file.node] = file.key, opened
            self._spans[file.key] = found.span
            self._cache.put(file.key, found)
            if problems:
                text = " ".join(problems).replace(f"Timeline {file.key!r} ", "It ")
                self._damages.report(file.key, text, len(problems))
        return found

    def _opened_before(self, file: TraceFile) -> OpenEvents:
        """Return what the writer had begun before a file, if the file before was parsed."""
        if file.key not in self._open_before:
            before, opened = self._open_at.get((file.kind, file.node), ("", {}))
            files = self._files.traces[file.kind, file.node]
            at = files.index(file)
            if not opened or at == 0 or files[at - 1].key != before:
                return {}
            self._open_before[file.key] = opened
        return {row: list(begun) for row, begun in self._open_before[file.key].items()}
