"""SystemColumns: the JSON lines of one file of system metrics, parsed into columns."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from rule_core.profiler.system.samples import SeriesTable
from rule_core.storage.base import ByteRange, TrialStore

CHUNK: Final = 1 << 22  # bytes parsed at once, about 30,000 lines
LONGEST_LINE: Final = 1 << 20  # bytes; longer lines are not samples
MOST_BAD_LINES: Final = 1000  # without a valid one; then the rest of the file is ignored
_LATEST_S: Final = 9.2e12  # in microseconds, larger times exceed 64 bits
_BAD: Final = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


class SampleLine(msgspec.Struct, gc=False):
    """One line of a file of system metrics, with the field names of the file."""

    Type: str
    Dimension: str
    Value: float
    NodeId: str
    Timestamp: float
    Name: str | None = None


_LINES: Final = msgspec.json.Decoder(SampleLine)
_series_of = attrgetter("NodeId", "Type", "Dimension", "Name")


@dataclass(slots=True)
class SystemColumns:
    """The samples of one file, ascending in time.

    Attributes
    ----------
    time_s, value, series
        Seconds since the epoch as written, value, and number of the series; each of shape ``(n,)``.
    lines
        The number of parsed lines.
    bad_lines
        The number of invalid lines.
    first_bad
        Number of the first invalid line, from 1, and its error.
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
        """The size of the columns in bytes."""
        return self.time_s.nbytes + self.value.nbytes + self.series.nbytes

    @property
    def time_us(self) -> NDArray[np.int64]:
        """Whole microseconds since the epoch, rounded down like `TimeUnits` conversions."""
        return (self.time_s * 1000 * 1000).astype(np.int64)

    def where(self, chosen: slice | NDArray[np.bool_]) -> "SystemColumns":
        """Return the chosen samples, without what is known about the file."""
        return SystemColumns(self.time_s[chosen], self.value[chosen], self.series[chosen])

    def problem(self) -> str:
        """Describe the problem of the file; "" if it has none."""
        if not self.bad_lines:
            return "It is cut off within its last line." if self.cut_off else ""
        number, reason = self.first_bad
        return (
            f"{self.bad_lines} of {self.lines} lines are no system metrics; "
            f"line {number}: {reason.rstrip('.')}."
        )


class _Builder:
    """Builds the columns of one file."""

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
        """Add complete lines."""
        try:
            lines = _LINES.decode_lines(text)
        except _BAD:
            lines = list(self._each(text))
        keys = list(map(_series_of, lines))
        time_s = np.fromiter([line.Timestamp for line in lines], np.float64, len(lines))
        value = np.fromiter([line.Value for line in lines], np.float64, len(lines))
        series = self._series.numbers(keys)
        is_valid = (time_s >= 0) & (time_s < _LATEST_S) & (series >= 0)
        if not is_valid.all():
            index = int(np.argmin(is_valid))
            reason = f"a Timestamp or a series that cannot be, got {lines[index]!r}"
            number = self.good + self.bad + index + 1
            self.note_bad(reason, len(lines) - int(is_valid.sum()), number)
            time_s, value, series = time_s[is_valid], value[is_valid], series[is_valid]
        self.good += len(time_s)
        self._parts.append((time_s, value, series))

    def _each(self, text: bytes) -> Iterator[SampleLine]:
        """Yield the valid lines, decoded one by one."""
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
        """Whether too many lines are invalid, so that the remainder is ignored."""
        return not self.good and self.bad >= MOST_BAD_LINES

    def build(self, *, cut_off: bool) -> SystemColumns:
        """Return the columns, sorted by time."""
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
    """Parse the samples of one file.

    Parameters
    ----------
    pieces
        The bytes of the file, in pieces of any size.
    series
        Assigns numbers to series; new ones are added.

    Returns
    -------
    SystemColumns
        Invalid lines are counted. A last line without a newline is parsed if it is complete;
        otherwise the file may still be growing, and is `cut_off`.
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
            return builder.build(cut_off=False)
    try:
        if rest.strip():
            _LINES.decode(rest)
            builder.add(rest)
    except _BAD:
        return builder.build(cut_off=True)
    return builder.build(cut_off=skipping)


def pieces_of(
    store: TrialStore, key: str, first: Callable[[], memoryview] | None = None
) -> Iterator[memoryview]:
    """Yield the bytes of a file in pieces of `CHUNK`, with the errors of the store's `read`.

    Parameters
    ----------
    first
        Returns the first piece, if it is already being read.
    """
    piece = store.read(key, ByteRange(0, CHUNK)) if first is None else first()
    start = len(piece)
    yield piece
    while len(piece) == CHUNK:
        piece = store.read(key, ByteRange(start, start + CHUNK))
        start += len(piece)
        yield piece
