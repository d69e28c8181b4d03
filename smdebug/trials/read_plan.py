"""ReadPlan: which bytes of an event file rules will ask for, learnt from what they asked before."""

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from smdebug.core.ahead_reader import AheadReader
from smdebug.core.event_reader import TIME_BYTES
from smdebug.core.index import IndexFile, Span
from smdebug.storage.protocol import ByteRange

if TYPE_CHECKING:
    from smdebug.core.modes import ModeKeys

AHEAD_STEPS: Final = 8
AHEAD_BYTES: Final = 64 << 20  # on their way or waiting to be used
LONGEST_READ: Final = 32 << 20  # longer ones are several, which come at once
SMALL_FILE: Final = 4 << 20  # read whole while it is not known what is asked for
FORGOTTEN_AFTER: Final = 10  # steps at which it was not asked for

# A tensor's value, or one of its saved reductions.
Want = tuple[str, tuple[str, bool] | None]
WALL_TIME: Final[Want] = ("", None)  # the beginning of the first record
Files = Mapping[int, Mapping[str, IndexFile]]


@dataclass(slots=True)
class _Asked:
    """What rules ask of one worker at the steps of one mode.

    Attributes
    ----------
    step
        The last one.
    steps
        How many there were.
    misses
        How many reads the last one has taken that nobody had planned.
    wants
        What was asked for, and by which of the steps last.
    """

    step: int = -1
    steps: int = 0
    misses: int = 0
    wants: dict[Want, int] = field(default_factory=dict)

    def note(self, step: int, want: Want) -> None:
        """Take note of a question, and forget what nobody asks any more."""
        if step > self.step:
            self.step, self.misses = step, 0
            self.steps += 1
            old = self.steps - FORGOTTEN_AFTER
            self.wants = {one: last for one, last in self.wants.items() if last >= old}
        self.wants[want] = self.steps


class ReadPlan:
    """Has an `AheadReader` read what one step is asked for at once, and the next steps meanwhile.

    Parameters
    ----------
    reader
        Reads and keeps.
    gap
        Bytes that nobody wants and that are read sooner than another request is made.
    files, steps
        The index files and the steps that are known; they grow.
    """

    def __init__(self, reader: AheadReader, gap: int, files: Files, steps: Sequence[int]) -> None:
        self._reader = reader
        self._gap = gap
        self._files = files
        self._steps = steps
        self._asked: dict[tuple[str, ModeKeys], _Asked] = {}
        self._front = -1
        self._ahead: OrderedDict[int, int] = OrderedDict()  # steps read ahead, and their bytes

    def before(self, step: int, worker: str, want: Want, span: Span) -> None:
        """Prepare for a question: read what it and those that will follow need.

        Raises
        ------
        ObjectNotFoundError, StorageUnavailableError
            If what is asked for cannot be read.
        """
        file = self._files[step][worker]
        if step > self._front:
            self._front = step
            self._read_ahead()
        asked = self._asked.setdefault((worker, file.mode), _Asked())
        asked.note(step, want)
        wanted = _range(span)
        if file.event_key is not None and not self._reader.covers(file.event_key, wanted):
            ranges = self._ranges(step, file, asked, wanted)
            self._fetch(file.event_key, ranges, wanted)

    def is_there(self, step: int, worker: str) -> bool:
        """Say whether an event file is known to be there, by what is wanted of it.

        Raises
        ------
        ObjectNotFoundError, StorageUnavailableError
            If it is not, or cannot be read.
        """
        files = self._files[step].items()
        self._begin((one.event_key, self._planned(name, one)) for name, one in files)
        file = self._files[step][worker]
        ranges = self._planned(worker, file)
        if file.event_key is None or not ranges or _size(ranges[0]) > self._reader.bound:
            return False
        self._reader.load(file.event_key, ranges[0])
        return True

    def _ranges(
        self, step: int, file: IndexFile, asked: _Asked, wanted: ByteRange
    ) -> list[ByteRange]:
        """Return what to read of a file because something is wanted that was not planned."""
        if asked.steps == 1 or (file.event_key and self._reader.holds(file.event_key)):
            asked.misses += 1
            return [_window(file, wanted, asked.misses)]
        if step < self._front:  # a look back: the rest of it is had by now, or wanted no more
            return [wanted]
        return self._joined([wanted, *_spans(file, asked.wants)])

    def _fetch(self, key: str, ranges: list[ByteRange], wanted: ByteRange) -> None:
        """Read the range that holds what is wanted, and the others meanwhile."""
        (now,) = (one for one in ranges if one.start <= wanted.start < one.stop)
        for one in ranges:
            if one is not now:
                self._reader.ahead(key, one)
        if _size(now) <= self._reader.bound:  # what cannot be kept is read by whoever needs it
            self._reader.load(key, now)

    def _read_ahead(self) -> None:
        """Begin to read what will be asked for at the next steps."""
        if not self._asked:
            return
        while self._ahead and next(iter(self._ahead)) <= self._front:
            self._ahead.popitem(last=False)
        room = min(AHEAD_BYTES, self._reader.bound // 4) - sum(self._ahead.values())
        last = next(reversed(self._ahead), self._front)
        at = bisect_right(self._steps, last)
        for step in self._steps[at : at + AHEAD_STEPS - len(self._ahead)]:
            files = self._files[step].items()
            planned = [(file.event_key, self._planned(one, file)) for one, file in files]
            size = sum(_size(one) for _, ranges in planned for one in ranges)
            room -= size
            if room < 0:
                return
            self._ahead[step] = size
            self._begin(planned)

    def _begin(self, planned: Iterable[tuple[str | None, list[ByteRange]]]) -> None:
        for key, ranges in planned:
            for one in ranges:
                if key is not None:
                    self._reader.ahead(key, one)

    def _planned(self, worker: str, file: IndexFile) -> list[ByteRange]:
        """Return what will be asked for of a file."""
        asked = self._asked.get((worker, file.mode))
        return self._joined(_spans(file, asked.wants)) if asked is not None else []

    def _joined(self, ranges: Iterable[ByteRange]) -> list[ByteRange]:
        """Return ranges that cover others, ascending: neighbours are one."""
        found: list[ByteRange] = []
        for start, stop in sorted(ranges):
            if found:
                begin, end = found[-1]
                whole = ByteRange(begin, max(end, stop))
                longest = max(LONGEST_READ, end - begin)
                if start <= end + self._gap and _size(whole) <= longest:
                    found[-1] = whole
                    continue
            found.append(ByteRange(start, stop))
        return found


def _size(one: ByteRange) -> int:
    return one.stop - one.start


def _range(span: Span) -> ByteRange:
    return ByteRange(span.start, span.start + span.length)


def beginning(span: Span) -> Span:
    """Return the part of a record that tells its time."""
    return Span(span.start, min(span.length, TIME_BYTES))


def _spans(file: IndexFile, wants: Iterable[Want]) -> Iterator[ByteRange]:
    """Yield where what is wanted lies in a file, of what it has."""
    for name, reduction in wants:
        entry = file.entries.get(name)
        if entry is not None:
            span = entry.raw if reduction is None else entry.reductions.get(reduction)
        else:
            first = file.first_record if (name, reduction) == WALL_TIME else None
            span = None if first is None else beginning(first)
        if span is not None:
            yield _range(span)


def _window(file: IndexFile, wanted: ByteRange, misses: int) -> ByteRange:
    """Return what to read around something while it is not known what comes next.

    Of a large file more at each miss.
    """
    end = file.end
    if end <= SMALL_FILE:
        return ByteRange(0, max(end, wanted.stop))
    size = min(SMALL_FILE << misses - 1, LONGEST_READ)
    return ByteRange(wanted.start, max(wanted.stop, min(wanted.start + size, end)))
