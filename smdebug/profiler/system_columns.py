"""SystemColumns: one file of system metrics, from lines of JSON into columns."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from smdebug.profiler.system_samples import SeriesTable
from smdebug.storage.protocol import ByteRange, TrialStore

CHUNK: Final = 1 << 22  # bytes that are parsed at once: some 30,000 lines
LONGEST_LINE: Final = 1 << 20  # bytes; what is longer is no sample
MOST_BAD_LINES: Final = 1000  # without a good one: then the file is none of system metrics
_LATEST_S: Final = 9.2e12  # seconds whose microseconds still fit into 64 bits
_BAD: Final = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


class Line(msgspec.Struct, gc=False):
    """A line of a file of system metrics; its fields are named as in the file."""

    Type: str
    Dimension: str
    Value: float
    NodeId: str
    Timestamp: float
    Name: str | None = None


_LINES: Final = msgspec.json.Decoder(Line)
_series_of = attrgetter("NodeId", "Type", "Dimension", "Name")


@dataclass(slots=True)
class SystemColumns:
    """The samples of one file, ascending in time.

    Attributes
    ----------
    time_s, value, series
        Seconds since the epoch as written, value, and number of the series; each of shape ``(n,)``.
    lines
        How many lines were looked at.
    bad_lines
        How many of them are no samples.
    first_bad
        Number of the first of them, from 1, and what is wrong with it.
    cut_off
        Whether the file ends within a line.
    """

    time_s: NDArray[np.float64]
    value: NDArray[np.float64]
    series: NDArray[np.int32]
    lines: int = 0
    bad_lines: int = 0
    first_bad: tuple[int, str] = (0, "")
    cut_off: bool = False

    @property
    def nbytes(self) -> int:
        """How much memory they take."""
        return self.time_s.nbytes + self.value.nbytes + self.series.nbytes

    @property
    def time_us(self) -> NDArray[np.int64]:
        """Microseconds since the epoch, cut off to whole ones as `TimeUnits` conversions do."""
        return (self.time_s * 1000 * 1000).astype(np.int64)

    def problem(self) -> str:
        """Return what is wrong with the file, in words; "" if nothing is."""
        if not self.bad_lines:
            return "It is cut off within its last line." if self.cut_off else ""
        number, reason = self.first_bad
        return (
            f"{self.bad_lines} of {self.lines} lines are no system metrics; "
            f"line {number}: {reason.rstrip('.')}."
        )


class _Builder:
    """Puts the columns of one file together."""

    def __init__(self, series: SeriesTable) -> None:
        self._series = series
        self._parts: list[tuple[NDArray[Any], ...]] = []
        self.good = 0
        self.bad = 0
        self.first_bad = (0, "")

    def note_bad(self, reason: str, count: int = 1, number: int | None = None) -> None:
        """Count bad lines; the next one by default."""
        if not self.bad:
            self.first_bad = (self.good + 1 if number is None else number, reason)
        self.bad += count

    def add(self, text: bytes) -> None:
        """Take in whole lines."""
        try:
            lines = _LINES.decode_lines(text)
        except _BAD:
            lines = list(self._each(text))
        keys = list(map(_series_of, lines))
        time_s = np.fromiter([one.Timestamp for one in lines], np.float64, len(lines))
        value = np.fromiter([one.Value for one in lines], np.float64, len(lines))
        series = self._series.numbers(keys)
        right = (time_s >= 0) & (time_s < _LATEST_S) & (series >= 0)
        if not right.all():
            at = int(np.argmin(right))
            text_of = f"a Timestamp or a series that cannot be, got {lines[at]!r}"
            self.note_bad(text_of, len(lines) - int(right.sum()), self.good + self.bad + at + 1)
            time_s, value, series = time_s[right], value[right], series[right]
        self.good += len(time_s)
        self._parts.append((time_s, value, series))

    def _each(self, text: bytes) -> Iterator[Line]:
        """Yield the good ones of lines, one by one."""
        good = 0
        for line in text.split(b"\n"):
            if self.is_hopeless:
                return
            if not line.strip():
                continue
            try:
                yield _LINES.decode(line)
                good += 1
            except _BAD as err:
                self.note_bad(str(err), number=self.good + self.bad + good + 1)

    @property
    def is_hopeless(self) -> bool:
        """Whether so much is wrong that the rest is not worth a look."""
        return not self.good and self.bad >= MOST_BAD_LINES

    def built(self, *, cut_off: bool) -> SystemColumns:
        """Return the columns, in the order of time."""
        columns = [np.concatenate(column) for column in zip(*self._parts, strict=True)]
        time_s, value, series = columns or (np.empty(0), np.empty(0), np.empty(0, np.int32))
        if (np.diff(time_s) < 0).any():
            order = np.argsort(time_s, kind="stable")
            time_s, value, series = time_s[order], value[order], series[order]
        lines = self.good + self.bad
        return SystemColumns(time_s, value, series, lines, self.bad, self.first_bad, cut_off)


def parse_system_metrics(
    pieces: Iterable[bytes | memoryview], series: SeriesTable
) -> SystemColumns:
    """Return the samples of one file.

    Parameters
    ----------
    pieces
        Its bytes, cut anywhere.
    series
        Numbers the series; it grows.

    Returns
    -------
    SystemColumns
        Lines that are no samples are counted. A last line without its end counts if it is whole;
        otherwise it may still be growing, and the file is `cut_off`.
    """
    builder = _Builder(series)
    rest, skipping = b"", False
    for piece in pieces:
        data = rest + piece
        if skipping:
            end = data.find(b"\n")
            skipping, data = end < 0, data[end + 1 :] if end >= 0 else b""
        cut = data.rfind(b"\n") + 1
        if cut:
            builder.add(data[:cut])
        rest = data[cut:]
        if len(rest) > LONGEST_LINE:
            builder.note_bad(f"it is longer than {LONGEST_LINE} bytes")
            rest, skipping = b"", True
        if builder.is_hopeless:
            return builder.built(cut_off=False)
    try:
        if rest.strip():
            _LINES.decode(rest)
            builder.add(rest)
    except _BAD:
        return builder.built(cut_off=True)
    return builder.built(cut_off=skipping)


def pieces_of(
    store: TrialStore, key: str, first: Callable[[], memoryview] | None = None
) -> Iterator[memoryview]:
    """Yield the bytes of a file, `CHUNK` at a time; raises what the store's `read` does.

    Parameters
    ----------
    first
        Gives the first of them, if somebody is reading it already.
    """
    piece = store.read(key, ByteRange(0, CHUNK)) if first is None else first()
    start = len(piece)
    yield piece
    while len(piece) == CHUNK:
        piece = store.read(key, ByteRange(start, start + CHUNK))
        start += len(piece)
        yield piece
