"""Decodes the protobuf messages in event files into numpy views.

Parses only the fields that event files contain, without copying tensor bytes and without a protobuf
library.
"""

import math
import struct
from collections.abc import Iterator
from typing import Final

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from rule_core.exceptions import CorruptFileError, TruncatedFileError

# TensorFlow's DataType numbers. Quantized types are read as integers.
DTYPES: Final[dict[int, np.dtype]] = {
    1: np.dtype("<f4"),
    2: np.dtype("<f8"),
    3: np.dtype("<i4"),
    4: np.dtype("u1"),
    5: np.dtype("<i2"),
    6: np.dtype("i1"),
    8: np.dtype("<c8"),
    9: np.dtype("<i8"),
    10: np.dtype("?"),
    11: np.dtype("i1"),
    12: np.dtype("u1"),
    13: np.dtype("<i4"),
    14: np.dtype(ml_dtypes.bfloat16),
    15: np.dtype("<i2"),
    16: np.dtype("<u2"),
    17: np.dtype("<u2"),
    18: np.dtype("<c16"),
    19: np.dtype("<f2"),
    22: np.dtype("<u4"),
    23: np.dtype("<u8"),
}
NUMBERS: Final[dict[np.dtype, int]] = {
    dtype: number
    for number, dtype in reversed(DTYPES.items())
    if number not in {11, 12, 13, 15, 16}
}
STRING = 0  # smdebug leaves the data type of string tensors unset
TF_STRING = 7  # TensorFlow's data type of strings
MAX_RANK = 64  # numpy's limit
VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5  # wire types of protobuf
_DOUBLE: Final = struct.Struct("<d")
MORE = 0x80  # the continuation bit of a varint


def read_varint(buffer: memoryview, offset: int, key: str) -> tuple[int, int]:
    """Return the varint at `offset`, and the offset after it."""
    value = shift = 0
    while offset < len(buffer):
        byte = buffer[offset]
        offset += 1
        value |= (byte & 0x7F) << shift
        if byte < MORE:
            return value & 0xFFFFFFFFFFFFFFFF, offset
        shift += 7
        if shift >= 70:  # noqa: PLR2004 - ten groups of seven bits hold 64
            raise CorruptFileError(key, "a varint of at most 10 bytes", "a longer one")
    raise TruncatedFileError(key, "the rest of a varint", "the end of the message")


def fields(buffer: memoryview, key: str) -> Iterator[tuple[int, int | memoryview]]:
    """Yield the fields of one message: number, and value (an integer or a view of the bytes).

    Raises
    ------
    TruncatedFileError
        If a field extends beyond the end of the message.
    CorruptFileError
        If a field has a wire type that protobuf 3 does not use.
    """
    offset, end = 0, len(buffer)
    while offset < end:
        # Almost all numbers fit in one byte.
        tag, offset = (
            (buffer[offset], offset + 1)
            if buffer[offset] < MORE
            else read_varint(buffer, offset, key)
        )
        wire = tag & 7
        if wire in {VARINT, BYTES}:
            single = offset < end and buffer[offset] < MORE
            value, offset = (
                (buffer[offset], offset + 1) if single else read_varint(buffer, offset, key)
            )
            if wire == VARINT:
                yield tag >> 3, value
                continue
        elif wire in {FIXED64, FIXED32}:
            value = 8 if wire == FIXED64 else 4
        else:
            raise CorruptFileError(key, "a protobuf wire type", str(wire))
        if value > end - offset:
            raise TruncatedFileError(key, f"a field of {value} bytes", str(end - offset))
        yield tag >> 3, buffer[offset : offset + value]
        offset += value


def _message(number: int, value: int | memoryview, key: str) -> memoryview:
    """Return the bytes of a length-delimited field."""
    if isinstance(value, int):
        raise CorruptFileError(key, f"field {number} as bytes", "a number")
    return value


def _first(buffer: memoryview, field_number: int, name: str, key: str) -> memoryview:
    """Return the first field `field_number` of a message."""
    for number, value in fields(buffer, key):
        if number == field_number:
            return _message(number, value, key)
    raise CorruptFileError(key, f"a field {name!r}", "none")


def find_tensor(payload: memoryview, key: str) -> memoryview:
    """Return a view of the TensorProto message of an Event, in its first summary value.

    The bytes after it are ignored.

    Parameters
    ----------
    payload
        One Event message.
    key
        The name of the event file, for messages.

    Raises
    ------
    TruncatedFileError, CorruptFileError
        If the message is truncated or lacks a tensor.
    """
    summary = _first(payload, 5, "summary", key)
    value = _first(summary, 1, "value", key)
    return _first(value, 8, "tensor", key)


def decode_wall_time(head: memoryview, key: str) -> float:
    """Return the wall time of an Event message, in seconds since the epoch.

    Parameters
    ----------
    head
        The message or its beginning; writers put the time first.
    key
        The name of the event file, for messages.

    Returns
    -------
    float
        NaN if the message has no time.

    Raises
    ------
    TruncatedFileError, CorruptFileError
        If the first field is truncated or invalid.
    """
    number, value = next(fields(head, key), (0, 0))
    if number != 1 or isinstance(value, int) or len(value) != _DOUBLE.size:
        return math.nan
    (seconds,) = _DOUBLE.unpack(value)
    return float(seconds)


def decode_tensor(message: memoryview, key: str) -> NDArray[np.generic]:
    """Return the array of one TensorProto message, as a read-only view into it.

    Parameters
    ----------
    message
        The message.
    key
        The name of the event file, for messages.

    Returns
    -------
    ndarray
        A read-only view of the saved shape and type. Strings are copied to an array of numpy's
        kind U.

    Raises
    ------
    TruncatedFileError, CorruptFileError
        If the message is truncated, or its shape, type and bytes are inconsistent.
    """
    number = STRING
    shape: tuple[int, ...] = ()
    content: memoryview | None = None
    texts: list[str] = []
    for field, value in fields(message, key):
        if field == 1:
            number = value if isinstance(value, int) else -1
        elif field == 2:  # noqa: PLR2004 - field numbers of TensorProto
            shape = decode_shape(_message(field, value, key), key)
        elif field == 4:  # noqa: PLR2004 - likewise
            content = _message(field, value, key)
        elif field == 8:  # noqa: PLR2004 - likewise
            texts.append(_text(_message(field, value, key), key))
    if number in {STRING, TF_STRING}:
        return _decode_strings(texts, shape, key)
    dtype = DTYPES.get(number)
    if dtype is None:
        raise CorruptFileError(key, "a known data type", f"number {number}")
    content = memoryview(b"") if content is None else content
    expected = math.prod(shape) * dtype.itemsize
    if expected != len(content):
        raise CorruptFileError(
            key, f"{expected} bytes for {dtype} of shape {_brief(shape)}", f"{len(content)}"
        )
    return _shaped(np.frombuffer(content, dtype=dtype), shape, key)


def _shaped(flat: NDArray[np.generic], shape: tuple[int, ...], key: str) -> NDArray[np.generic]:
    """Return the array in its shape, read-only."""
    try:
        array = flat.reshape(shape)
    except ValueError as err:  # a size of 0 beside sizes that are too large
        raise CorruptFileError(key, "a shape that an array can have", _brief(shape)) from err
    array.flags.writeable = False
    return array


def decode_shape(message: memoryview, key: str) -> tuple[int, ...]:
    """Return the shape of one TensorShapeProto message."""
    shape: list[int] = []
    for number, dim in fields(message, key):
        if number != 2:  # noqa: PLR2004 - field number of `dim`
            continue
        size = 0
        for part, value in fields(_message(number, dim, key), key):
            if part == 1 and isinstance(value, int):
                size = value
        if size >= 1 << 63:
            raise CorruptFileError(key, "a size >= 0", str(size - (1 << 64)))
        shape.append(size)
        if len(shape) > MAX_RANK:
            raise CorruptFileError(key, f"at most {MAX_RANK} dimensions", "more")
    return tuple(shape)


def _text(content: memoryview, key: str) -> str:
    try:
        return str(content, "utf-8")
    except UnicodeDecodeError as err:
        raise CorruptFileError(key, "UTF-8 strings", err.reason) from err


def _decode_strings(texts: list[str], shape: tuple[int, ...], key: str) -> NDArray[np.generic]:
    """Return the string array, of objects if the strings differ much in length.

    Numpy's kind U takes four bytes for every character of the longest string: one long string among
    many short ones would need much more memory than the file has.
    """
    if math.prod(shape) != len(texts):
        raise CorruptFileError(key, f"{math.prod(shape)} strings", str(len(texts)))
    longest = max(map(len, texts), default=0)
    is_compact = longest * len(texts) <= 4 * sum(map(len, texts)) + 65536
    flat = np.array(texts, dtype=f"U{max(longest, 1)}" if is_compact else object)
    return _shaped(flat, shape, key)


def _brief(shape: tuple[int, ...]) -> str:
    return str(shape)[:100]
