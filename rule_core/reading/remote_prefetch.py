"""RemotePrefetch: reads in advance what rules will query, based on their earlier queries."""

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from rule_core.format.index_file import Files, IndexFile, Span
from rule_core.reading.event_reader import TIME_BYTES
from rule_core.reading.prefetching_reader import PrefetchingReader
from rule_core.storage.base import ByteRange

if TYPE_CHECKING:
    from rule_core.modes import ModeKeys

AHEAD_STEPS: Final = 8
AHEAD_BYTES: Final = 64 << 20  # running reads and unused results
LONGEST_READ: Final = 32 << 20  # longer reads are split and run in parallel
SMALL_FILE: Final = 4 << 20  # read whole until the queries are known
FORGOTTEN_AFTER: Final = 10  # steps without a query

# A tensor's value, or one of its saved reductions.
Want = tuple[str, tuple[str, bool] | None]
WALL_TIME: Final[Want] = ("", None)  # the beginning of the first record


@dataclass(slots=True)
class _AccessHistory:
    """The queries of rules about one worker at the steps of one mode.

    Attributes
    ----------
    step
        The last step.
    steps
        The number of steps.
    misses
        The number of unplanned reads at the last step.
    wants
        What was queried, and the number of the step that queried it last.
    """

    step: int = -1
    steps: int = 0
    misses: int = 0
    wants: dict[Want, int] = field(default_factory=dict)

    def note(self, step: int, want: Want) -> None:
        """Record a query, and forget old ones."""
        if step > self.step:
            self.step, self.misses = step, 0
            self.steps += 1
            old = self.steps - FORGOTTEN_AFTER
            self.wants = {key: last for key, last in self.wants.items() if last >= old}
        self.wants[want] = self.steps


class RemotePrefetch:
    """Lets a `PrefetchingReader` read a step in few requests, and the next steps in the background.

    Parameters
    ----------
    reader
        The reader with the cache.
    gap
        The number of unused bytes that cost less than another request.
    files, steps
        The growing collections of known index files and steps.
    """

    def __init__(
        self, reader: PrefetchingReader, gap: int, files: Files, steps: Sequence[int]
    ) -> None:
        self._reader = reader
        self._gap = gap
        self._files = files
        self._steps = steps
        self._histories: dict[tuple[str, ModeKeys], _AccessHistory] = {}
        self._front = -1
        self._ahead: OrderedDict[int, int] = OrderedDict()  # steps read ahead, and their bytes

    def before(self, step: int, worker: str, want: Want, span: Span) -> None:
        """Prepare for a query: read what it and the following queries need.

        Raises
        ------
        ObjectNotFoundError, StorageUnavailableError
            If the queried bytes cannot be read.
        """
        file = self._files[step][worker]
        if step > self._front:
            self._front = step
            self._read_ahead()
        history = self._histories.setdefault((worker, file.mode), _AccessHistory())
        history.note(step, want)
        byte_range = _range(span)
        if file.event_key is not None and not self._reader.covers(file.event_key, byte_range):
            ranges = self._ranges(step, file, history, byte_range)
            self._fetch(file.event_key, ranges, byte_range)

    def load(self, key: str, span: Span) -> None:
        """Wait for the bytes of a record that can be cached; raises what the store raises."""
        if span.length <= self._reader.bound:
            self._reader.load(key, _range(span))

    def exists(self, step: int, worker: str) -> bool:
        """Return whether an event file is known to exist, by reading what is planned.

        Raises
        ------
        ObjectNotFoundError, StorageUnavailableError
            If it does not exist, or cannot be read.
        """
        files = self._files[step].items()
        self._begin((file.event_key, self._planned(name, file)) for name, file in files)
        file = self._files[step][worker]
        ranges = self._planned(worker, file)
        if file.event_key is None or not ranges or _size(ranges[0]) > self._reader.bound:
            return False
        self._reader.load(file.event_key, ranges[0])
        return True

    def _ranges(
        self, step: int, file: IndexFile, history: _AccessHistory, byte_range: ByteRange
    ) -> list[ByteRange]:
        """Return the ranges to read of a file for a query that was not planned."""
        if history.steps == 1 or (file.event_key and self._reader.holds(file.event_key)):
            history.misses += 1
            return [_window(file, byte_range, history.misses)]
        if step < self._front:  # an earlier step: the rest was read before, or is not needed
            return [byte_range]
        return self._merge([byte_range, *_spans(file, history.wants)])

    def _fetch(self, key: str, ranges: list[ByteRange], byte_range: ByteRange) -> None:
        """Read the range that contains the queried bytes, and the others in the background."""
        (now,) = (each for each in ranges if each.start <= byte_range.start < each.stop)
        for candidate in ranges:
            if candidate is not now:
                self._reader.read_ahead(key, candidate)
        if _size(now) <= self._reader.bound:  # what cannot be cached is read on use
            self._reader.load(key, now)

    def _read_ahead(self) -> None:
        """Start to read what will be queried at the next steps."""
        if not self._histories:
            return
        while self._ahead and next(iter(self._ahead)) <= self._front:
            self._ahead.popitem(last=False)
        room = min(AHEAD_BYTES, self._reader.bound // 4) - sum(self._ahead.values())
        last = next(reversed(self._ahead), self._front)
        position = bisect_right(self._steps, last)
        for step in self._steps[position : position + AHEAD_STEPS - len(self._ahead)]:
            files = self._files[step].items()
            planned = [(file.event_key, self._planned(worker, file)) for worker, file in files]
            size = sum(_size(byte_range) for _, ranges in planned for byte_range in ranges)
            room -= size
            if room < 0:
                return
            self._ahead[step] = size
            self._begin(planned)

    def _begin(self, planned: Iterable[tuple[str | None, list[ByteRange]]]) -> None:
        for key, ranges in planned:
            for byte_range in ranges:
                if key is not None:
                    self._reader.read_ahead(key, byte_range)

    def _planned(self, worker: str, file: IndexFile) -> list[ByteRange]:
        """Return the ranges of a file that will be queried."""
        history = self._histories.get((worker, file.mode))
        return self._merge(_spans(file, history.wants)) if history is not None else []

    def _merge(self, ranges: Iterable[ByteRange]) -> list[ByteRange]:
        """Merge neighbouring ranges, and return them in ascending order."""
        merged: list[ByteRange] = []
        for start, stop in sorted(ranges):
            if merged:
                begin, end = merged[-1]
                combined = ByteRange(begin, max(end, stop))
                longest = max(LONGEST_READ, end - begin)
                if start <= end + self._gap and _size(combined) <= longest:
                    merged[-1] = combined
                    continue
            merged.append(ByteRange(start, stop))
        return merged


def _size(byte_range: ByteRange) -> int:
    return byte_range.stop - byte_range.start


def _range(span: Span) -> ByteRange:
    return ByteRange(span.start, span.start + span.length)


def beginning(span: Span) -> Span:
    """Return the beginning of a record, which contains its time."""
    return Span(span.start, min(span.length, TIME_BYTES))


def _spans(file: IndexFile, wants: Iterable[Want]) -> Iterator[ByteRange]:
    """Yield the ranges of the wanted values that a file has."""
    for name, reduction in wants:
        entry = file.entries.get(name)
        if entry is not None:
            span = entry.raw if reduction is None else entry.reductions.get(reduction)
        else:
            first = file.first_record if (name, reduction) == WALL_TIME else None
            span = None if first is None else beginning(first)
        if span is not None:
            yield _range(span)


def _window(file: IndexFile, byte_range: ByteRange, misses: int) -> ByteRange:
    """Return the range to read for a query while the following queries are unknown.

    In a large file the range grows with each miss.
    """
    end = file.end
    if end <= SMALL_FILE:
        return ByteRange(0, max(end, byte_range.stop))
    size = min(SMALL_FILE << misses - 1, LONGEST_READ)
    return ByteRange(byte_range.start, max(byte_range.stop, min(byte_range.start + size, end)))
