"""Reads the numbers in TensorBoard event files: TFRecord frames that hold Event messages.

Most events hold one scalar, and those of one tag differ in time, step and value only. The bytes
between the step and the value, the *layout*, are therefore looked up in a table. Times, steps and
values are then taken from thousands of events at once. An event whose layout is new is parsed field
by field, as are histograms. Images, texts, graphs and the like are passed over.
"""

import struct
from array import array
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rule_core.exceptions import CorruptFileError, TruncatedFileError
from rule_core.format.event_encoder import varint
from rule_core.format.tensor_proto import MORE
from rule_core.format.tfrecord import (
    FOOTER,
    HEADER,
    OVERHEAD,
    crc32c,
    masked,
    masked_crc,
    payload_length,
)
from rule_core.reading.source_record import SourceRecord, is_step
from rule_core.sources.names import titled
from rule_core.sources.tensorboard_values import (
    EVENT,
    Event,
    Histogram,
    Scalar,
    parse_event,
    values_of,
)

MAX_CACHED: Final = 1 << 17  # record headers, and layouts
TIME, STEP, SUMMARY = 0x09, 0x10, 0x2A  # the bytes before time, step and summary of an event
TIME_END: Final = 9  # offset in an event
SHORTEST: Final = 20  # bytes of an event with a scalar
HOLES: Final = ("<f", "<d", "<e")  # types of numbers that layouts may surround
PROBES: Final = (-1.1015625, 36.28125)  # exact in all of them, and no byte of one is in the other
MAX_HOLES: Final = 16
MAX_SEARCHES: Final = 3  # for the place of the number in events of a tag
LONGEST_STEP: Final = 6  # bytes of a step that a layout may follow: below 2**42
WRONG_CHECKSUM: Final = "a record has a wrong checksum; such records are skipped"
NO_EVENT: Final = "a record is no event; such records are skipped"
NO_STEP: Final = "a step is negative or too large; such events are skipped"

Report = Callable[[str, int], None]


class RecordHeaderError(Exception):
    """The header of a record is wrong, so that the rest of the file cannot be read.

    Attributes
    ----------
    position
        The offset of the record in the bytes that were decoded.
    """

    def __init__(self, position: int) -> None:
        super().__init__(position)
        self.position = position


class Hole(NamedTuple):
    """Where the number of a scalar is stored in an event.

    Attributes
    ----------
    back
        The offset from the end of the event.
    width, code
        The number of bytes, and the code of the type for `struct`.
    """

    back: int
    width: int
    code: str


LAST_FLOAT: Final = Hole(4, 4, "<f")  # in most events


class EventDecoder:
    """Passes the numbers in records to a `SourceRecord`; its tables serve all files of a folder.

    Parameters
    ----------
    title
        What a series is called whose tag says less; see `titled`.
    """

    def __init__(self, title: str = "") -> None:
        self._title = title
        self._names: list[str] = []  # of the tags
        self._lengths: dict[bytes, int] = {}  # of payloads, by the header before them
        self._layouts: dict[bytes, int] = {}  # the number of a tag
        self._numbers: dict[str, int] = {}
        self._plugins: dict[str, str] = {}  # of tags; some writers name it once
        self._holes: dict[Hole, dict[bytes, int]] = {}  # the tags of layouts around a number
        self._searches: dict[int, int] = {}  # for the hole of a tag, without success

    def decode(self, data: bytes, record: SourceRecord, report: Report) -> int:
        """Pass on the numbers in complete records, in order.

        Parameters
        ----------
        data
            Bytes of a file, from the start of a record.
        report
            Called with what is wrong with a record, and its offset in `data`.

        Returns
        -------
        int
            The number of bytes that were decoded; a partial record follows, or nothing.

        Raises
        ------
        RecordHeaderError
            If a header is wrong; what stands before it has been passed on.
        """
        events = _ScalarEvents(data, self._names, record, report)
        try:
            return self._decode(data, events)
        finally:
            events.flush()

    def _decode(self, data: bytes, events: "_ScalarEvents") -> int:  # noqa: C901 - per event
        lengths, layouts = self._lengths, self._layouts
        add_number, add_start = events.numbers.append, events.starts.append
        add_end, add_after = events.ends.append, events.afters.append
        add_checksum, checksum = events.checksums.append, crc32c
        position, size = 0, len(data)
        while True:
            start = position + 12
            length = lengths.get(data[position:start])
            if length is None:
                length = self._length(data, position)
                if length < 0:
                    return position
            end = start + length
            if end + 4 > size:
                return position
            payload = data[start:end]
            number, after = None, 0
            if length >= SHORTEST and payload[0] == TIME:
                if payload[9] != STEP:
                    after = 9
                elif payload[10] < MORE:
                    after = 11
                elif payload[11] < MORE:
                    after = 12
                elif payload[12] < MORE:
                    after = 13
                else:
                    after = _step_end(payload)
                number = layouts.get(payload[after:-4])
            if number is None:
                self._decode_other(payload, after, end, events)
            else:
                add_number(number)
                add_start(start)
                add_after(after)
                add_end(end)
                add_checksum(checksum(payload))
            position = end + 4

    def missing(self, data: bytes, position: int) -> int:
        """Return how many bytes the record at a position lacks; 0 if its length is unknown."""
        length = self._lengths.get(data[position : position + HEADER.size])
        return 0 if length is None else position + OVERHEAD + length - len(data)

    def _length(self, data: bytes, position: int) -> int:
        """Return the length of the payload of a record; -1 if its header is incomplete."""
        header = data[position : position + HEADER.size]
        try:
            length = payload_length(memoryview(header), EVENT)
        except TruncatedFileError:
            return -1
        except CorruptFileError as err:
            raise RecordHeaderError(position) from err
        if len(self._lengths) >= MAX_CACHED:
            self._lengths.clear()
        self._lengths[header] = length
        return length

    def _decode_other(self, payload: bytes, after: int, end: int, events: "_ScalarEvents") -> None:
        """Pass on the numbers of an event that does not end in a float of a known tag."""
        if after and self._add_known(payload, after, end, events):
            return
        problem = self._add_parsed(payload, after, end, events)
        if problem:
            events.report(problem, end - len(payload) - HEADER.size)

    def _add_parsed(self, payload: bytes, after: int, end: int, events: "_ScalarEvents") -> str:
        """Parse an event and pass on its numbers; return what is wrong with it, or ""."""
        if FOOTER.unpack_from(events.data, end)[0] != masked_crc(payload):
            return WRONG_CHECKSUM
        try:
            event, values = self._parse(payload)
        except (CorruptFileError, TruncatedFileError):
            return NO_EVENT
        if values and not is_step(event.step):
            return NO_STEP
        for value in values:
            if isinstance(value, Histogram):
                events.flush()
                events.record.summary(value.tag, event.step, value.reductions, event.time)
            else:
                events.add(self._number(value.tag), value.number, event=event)
        if len(values) == 1 and isinstance(values[0], Scalar):
            self._learn(payload, after, event, values[0])
        return ""

    def _add_known(self, payload: bytes, after: int, end: int, events: "_ScalarEvents") -> bool:
        """Add a scalar whose layout surrounds its number; return whether it is one."""
        for hole, layouts in self._holes.items():
            place = len(payload) - hole.back
            number = layouts.get(payload[after:place] + payload[place + hole.width :])
            if number is not None and place >= after:
                (value,) = struct.unpack_from(hole.code, payload, place)
                events.add(number, float(value), payload, after, end)
                return True
        return False

    def _parse(self, payload: bytes) -> tuple[Event, list[Scalar | Histogram]]:
        event = parse_event(memoryview(payload))
        return event, [*values_of(event, self._plugins)]

    def _learn(self, payload: bytes, after: int, event: Event, scalar: Scalar) -> None:
        """Remember the layout of an event with one scalar."""
        number = self._number(scalar.tag)
        searches = self._searches.get(number, 0)
        if searches >= MAX_SEARCHES or not has_usual_head(payload, after, event):
            return
        self._searches[number] = searches + 1
        hole = self._hole(payload, after, event, scalar)
        if hole is None or (hole not in self._holes and len(self._holes) >= MAX_HOLES):
            return
        layouts = self._layouts if hole == LAST_FLOAT else self._holes.setdefault(hole, {})
        if len(layouts) >= MAX_CACHED:
            layouts.clear()
        place = len(payload) - hole.back
        layouts[payload[after:place] + payload[place + hole.width :]] = number

    def _hole(self, payload: bytes, after: int, event: Event, scalar: Scalar) -> Hole | None:
        """Return where the number of a scalar is stored; None if that is not known for sure.

        Other numbers are written there, and must be read, with all else unchanged.
        """
        for code in HOLES:
            try:
                raw = struct.pack(code, scalar.number)
            except OverflowError:
                continue
            place = payload.rfind(raw, after)
            if place < 0:
                continue
            hole = Hole(len(payload) - place, len(raw), code)
            if all(self._is_in(hole, payload, probe, event, scalar.tag) for probe in PROBES):
                return hole
        return None

    def _is_in(self, hole: Hole, payload: bytes, probe: float, event: Event, tag: str) -> bool:
        place = len(payload) - hole.back
        raw = struct.pack(hole.code, probe)
        changed = payload[:place] + raw + payload[place + hole.width :]
        try:
            other, values = self._parse(changed)
        except (CorruptFileError, TruncatedFileError):
            return False
        return values == [Scalar(tag, probe)] and other[:2] == event[:2]

    def _number(self, tag: str) -> int:
        number = self._numbers.get(tag)
        if number is None:
            number = self._numbers[tag] = len(self._names)
            name = titled(tag, self._title)
            self._names.append(tag if name != tag and name in self._names else name)
        return number


class _ScalarEvents:
    """Consecutive events that hold a scalar, as positions in the bytes of a file.

    Attributes
    ----------
    numbers
        The tag of each, as a position in `tags`.
    starts, ends
        Where its payload is in `data`.
    afters
        The offset in its payload of what follows the step.
    checksums
        That of its payload, which is compared later.
    """

    def __init__(
        self, data: bytes, tags: Iterable[str], record: SourceRecord, report: Report
    ) -> None:
        self.data = data
        self.record = record
        self.report = report
        self._columns = tuple(array("q") for _ in range(5))
        self.numbers, self.starts, self.ends, self.afters, self.checksums = self._columns
        self._tags = tags
        self._known: list[tuple[int, float, Event | None]] = []

    def add(
        self,
        number: int,
        value: float,
        payload: bytes = b"",
        after: int = TIME_END,
        end: int = FOOTER.size,
        event: Event | None = None,
    ) -> None:
        """Add a scalar of which the value is known; all else is in the data, or in `event`."""
        self._known.append((len(self.numbers), value, event))
        self.numbers.append(number)
        self.starts.append(end - len(payload))
        self.ends.append(end)
        self.afters.append(after)
        self.checksums.append(crc32c(payload))

    def flush(self) -> None:
        """Pass the events on, and forget them."""
        if not self.numbers:
            return
        # Copies: a view forbids to clear what it shows, and profilers may keep it for a while.
        numbers, starts, ends, afters, checksums = (
            np.array(column, np.int64) for column in self._columns
        )
        is_right = self._at(ends, "<u4") == masked(checksums)
        times = self._at(starts + 1, "<f8")
        steps = _varints(self._at(starts + TIME_END + 1, "<u8"), afters - TIME_END - 1)
        with np.errstate(invalid="ignore"):  # signalling NaNs
            values = self._at(ends - FOOTER.size, "<f4").astype(np.float64)
        for position, value, event in self._known:
            values[position] = value
            if event is not None:
                is_right[position] = True
                times[position], steps[position] = event.time, event.step
        if not is_right.all():
            first = int(starts[np.argmin(is_right)])
            self.report(WRONG_CHECKSUM, first - HEADER.size)
            numbers, steps, values, times = (
                each[is_right] for each in (numbers, steps, values, times)
            )
        self.record.points([*self._tags], numbers, steps, values, times)
        for column in self._columns:
            del column[:]
        self._known.clear()

    def _at(self, offsets: NDArray[np.int64], dtype: str) -> NDArray[Any]:
        """Return the numbers at offsets in the data."""
        size = np.dtype(dtype).itemsize
        everywhere: NDArray[Any] = np.ndarray(
            (len(self.data) - size + 1,), dtype, self.data, strides=(1,)
        )
        return everywhere[offsets]


def has_usual_head(payload: bytes, after: int, event: Event) -> bool:
    """Return whether an event consists of its time, its step and one summary, in this order."""
    step = bytes([STEP]) + varint(event.step) if event.step else b""
    if not after or len(event.summaries) != 1:
        return False
    summary = event.summaries[0]
    rest = bytes([SUMMARY]) + varint(len(summary))
    return payload[TIME_END:] == step + rest + bytes(summary) and after == TIME_END + len(step)


def first_tag(head: bytes) -> str | None:
    """Return the first tag of a number or histogram in the first bytes of a file; None if none."""
    rest = memoryview(head)
    with suppress(TruncatedFileError, CorruptFileError):
        while True:
            end = HEADER.size + payload_length(rest, EVENT)
            for value in values_of(parse_event(rest[HEADER.size : end]), {}):
                return value.tag
            rest = rest[end + FOOTER.size :]
    return None


def _step_end(payload: bytes) -> int:
    """Return the offset after the step of an event; 9, before it, if it is too long."""
    for offset in range(TIME_END + 1, TIME_END + 1 + LONGEST_STEP):
        if payload[offset] < MORE:
            return offset + 1
    return TIME_END


def _varints(words: NDArray[np.uint64], lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return varints, given eight bytes from the start of each, and their lengths up to 7.

    A length below 1 means 0.

    >>> _varints(np.array([0xFF_01_AC, 5], np.uint64), np.array([2, 1])).tolist()
    [172, 5]
    """
    bits = (8 * np.maximum(lengths, 0)).astype(np.uint64)
    words = words & ((np.uint64(1) << bits) - np.uint64(1))
    result = np.zeros(len(words), np.uint64)
    for place in range(int(max(lengths.max(), 0))):
        group = words >> np.uint64(8 * place) & np.uint64(MORE - 1)
        result |= group << np.uint64(7 * place)
    return result.astype(np.int64)
