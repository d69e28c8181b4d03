"""Parses the Event and Summary messages of TensorBoard: scalars, and what histograms tell."""

import math
import struct
from collections.abc import Iterator, MutableMapping
from contextlib import suppress
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rule_core.exceptions import CorruptFileError, TruncatedFileError
from rule_core.format.tensor_proto import DTYPES, decode_shape, fields, read_varint
from rule_core.reading.source_record import Reductions

EVENT: Final = "event"  # what messages call it
SIMPLE_VALUE, HISTOGRAM, TENSOR = 2, 5, 8  # fields of a Summary.Value
MAX_TAG: Final = 4096  # bytes of a name
SCALARS, HISTOGRAMS = "scalars", "histograms"  # plugins
ONE_BUCKET: Final = 1.0  # the width that TensorFlow gives to the only bucket of equal numbers
_FLOAT: Final = struct.Struct("<f")
_DOUBLE: Final = struct.Struct("<d")
MAX_PACKED: Final = 64  # bytes of integers that are read: tensors of one number are looked for
# The fields of a TensorProto with values of a data type: how its numbers are stored there.
_VALUES: Final = {5: "<f4", 6: "<f8", 7: "", 10: "", 11: "", 13: "", 16: "", 17: ""}

_STATISTICS: Final = range(1, 6)  # fields of a HistogramProto: min, max, num, sum, sum_squares

Field = int | memoryview


class Scalar(NamedTuple):
    """A number in an event."""

    tag: str
    number: float


class Histogram(NamedTuple):
    """What is known of a tensor of which an event holds a histogram."""

    tag: str
    reductions: Reductions


class Event(NamedTuple):
    """The time in seconds since the epoch, the step, and the summaries of an event."""

    time: float
    step: int
    summaries: list[memoryview]


def parse_event(payload: memoryview) -> Event:
    """Return what an Event message says.

    Raises
    ------
    TruncatedFileError, CorruptFileError
        If it is no such message.
    """
    time, step = 0.0, 0
    summaries = []
    for number, value in fields(payload, EVENT):
        if number == 1:
            time = _float(value, _DOUBLE)
        elif number == 2 and isinstance(value, int):  # noqa: PLR2004 - field numbers of Event
            step = signed(value)
        elif number == 5:  # noqa: PLR2004 - likewise
            summaries.append(_bytes(value))
    return Event(time, step, summaries)


def values_of(event: Event, plugins: MutableMapping[str, str]) -> Iterator[Scalar | Histogram]:
    """Yield the numbers and histograms of an event; see `parse_value`."""
    for summary in event.summaries:
        for number, content in fields(summary, EVENT):
            value = parse_value(content, plugins) if number == 1 else None
            if value is not None:
                yield value


def parse_value(message: Field, plugins: MutableMapping[str, str]) -> Scalar | Histogram | None:
    """Return the number or histogram of a Summary.Value message; None for anything else.

    Parameters
    ----------
    plugins
        The plugin of each tag, which an earlier event may have named.

    Raises
    ------
    TruncatedFileError, CorruptFileError
        If it is no such message.
    """
    tag = plugin = ""
    kind, content = 0, message
    for number, value in fields(_bytes(message), EVENT):
        if number == 1:
            tag = _text(value)
        elif number in {SIMPLE_VALUE, HISTOGRAM, TENSOR}:
            kind, content = number, value
        elif number == 9:  # noqa: PLR2004 - the field `metadata`
            plugin = _plugin(value)
    if not kind or not tag:
        return None
    if plugin:
        plugins[tag] = plugin
    if kind == SIMPLE_VALUE:
        return Scalar(tag, _float(content, _FLOAT))
    if kind == HISTOGRAM:
        return _histogram(tag, content)
    return _tensor(tag, content, plugin or plugins.get(tag, ""))


def _histogram(tag: str, content: Field) -> Histogram | None:
    """Return what a HistogramProto tells; None if it is one of no numbers."""
    statistics = dict.fromkeys(_STATISTICS, 0.0)  # protobuf leaves out those of 0
    for number, value in fields(_bytes(content), EVENT):
        if number in _STATISTICS:
            statistics[number] = _float(value, _DOUBLE)
    low, high, count, total, squares = statistics.values()
    if not count > 0:
        return None
    mean = total / count
    reductions = {
        ("min", False): low,
        ("max", False): high,
        ("mean", False): mean,
        ("std", False): _root(squares / count - mean * mean),
        ("sum", False): total,
        ("l2", False): _root(squares),
    }
    return Histogram(tag, reductions)


def _tensor(tag: str, content: Field, plugin: str) -> Scalar | Histogram | None:
    """Return the number in a tensor, or what a tensor of buckets tells."""
    if plugin not in {"", SCALARS, HISTOGRAMS}:
        return None
    numbers = parse_tensor(_bytes(content))
    if numbers is None:
        return None
    if plugin == HISTOGRAMS:
        return _buckets(tag, numbers)
    return Scalar(tag, float(numbers.flat[0])) if numbers.size == 1 else None


def _buckets(tag: str, buckets: NDArray[Any]) -> Histogram | None:
    """Return the extremes of buckets, rows of left edge, right edge and count."""
    if buckets.shape[1:] != (3,) or not buckets[:, 2].any():
        return None
    low, high = float(buckets[0, 0]), float(buckets[-1, 1])
    if len(buckets) == 1 and high - low == ONE_BUCKET:
        low = high = (low + high) / 2
    return Histogram(tag, {("min", False): low, ("max", False): high})


def parse_tensor(message: memoryview) -> NDArray[Any] | None:
    """Return the numbers of a TensorProto message; None if it has others than real ones, or none.

    Raises
    ------
    TruncatedFileError, CorruptFileError
        If it is no such message.
    """
    dtype: np.dtype[Any] | None = None
    shape: tuple[int, ...] = ()
    numbers: NDArray[Any] | None = None
    values: list[NDArray[Any]] = []
    for number, value in fields(message, EVENT):
        if number == 1:
            dtype = DTYPES.get(value) if isinstance(value, int) else None
            if dtype is None or dtype.kind == "c":
                return None
        elif number == 2:  # noqa: PLR2004 - field numbers of TensorProto
            shape = decode_shape(_bytes(value), EVENT)
        elif number == 4 and dtype is not None and len(_bytes(value)):  # noqa: PLR2004 - likewise
            numbers = _from_bytes(_bytes(value), dtype)
        elif number in _VALUES and dtype is not None:
            values.append(_from_values(value, _VALUES[number], dtype))
    if numbers is None:
        numbers = np.concatenate(values) if values else None
    if numbers is None or math.prod(shape) != len(numbers):
        return None
    return numbers.reshape(shape)


def _from_bytes(content: memoryview, dtype: "np.dtype[Any]") -> NDArray[Any]:
    if len(content) % dtype.itemsize:
        raise CorruptFileError(EVENT, f"whole numbers of {dtype.itemsize} bytes", str(len(content)))
    return np.frombuffer(content, dtype)


def _from_values(value: Field, stored: str, dtype: "np.dtype[Any]") -> NDArray[Any]:
    """Return numbers that have a field of their own, or are packed in one."""
    if stored:
        return _from_bytes(_bytes(value), np.dtype(stored))
    integers = [value] if isinstance(value, int) else _packed(value[:MAX_PACKED])
    if dtype.kind in "fV" and dtype.itemsize == 2:  # noqa: PLR2004 - half precision, as its bits
        return np.array([bits & 0xFFFF for bits in integers], np.uint16).view(dtype)
    if dtype.kind == "u":
        return np.array(integers, np.uint64)
    return np.array([*map(signed, integers)], np.int64)


def _packed(content: memoryview) -> list[int]:
    """Return the varints in a packed field."""
    integers = []
    offset = 0
    with suppress(TruncatedFileError):  # the last one may be cut off
        while offset < len(content):
            value, offset = read_varint(content, offset, EVENT)
            integers.append(value)
    return integers


def _plugin(metadata: Field) -> str:
    """Return the name of the plugin in a SummaryMetadata message."""
    for number, value in fields(_bytes(metadata), EVENT):
        if number == 1:
            for part, name in fields(_bytes(value), EVENT):
                if part == 1:
                    return _text(name)
    return ""


def signed(number: int) -> int:
    """Return the integer that 64 bits stand for.

    >>> signed(5), signed(2**64 - 1)
    (5, -1)
    """
    return number - (1 << 64) if number >> 63 else number


def _root(square: float) -> float:
    """Return the square root; of a number below 0, which rounding leaves, 0."""
    return math.sqrt(square) if square > 0 or math.isnan(square) else 0.0


def _float(value: Field, layout: struct.Struct) -> float:
    if isinstance(value, int) or len(value) != layout.size:
        raise CorruptFileError(EVENT, f"a number of {layout.size} bytes", "another field")
    (number,) = layout.unpack(value)
    return float(number)


def _bytes(value: Field) -> memoryview:
    if isinstance(value, int):
        raise CorruptFileError(EVENT, "a message", "a number")
    return value


def _text(value: Field) -> str:
    content = bytes(_bytes(value))
    if len(content) > MAX_TAG:
        raise CorruptFileError(EVENT, f"a name of at most {MAX_TAG} bytes", str(len(content)))
    return content.decode("utf-8", "replace")
