"""encode_record: one tensor as a record of an event file, its bytes not copied.

The inverse of `smdebug.core.tensor_proto`. What depends on the tensor's name, type and shape alone
is made once and kept, because a training job saves the same tensors again and again.
"""

import struct
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from smdebug.core import tfrecord
from smdebug.core.modes import ModeKeys
from smdebug.core.tensor_proto import BYTES, FIXED64, MORE, NUMBERS, VARINT
from smdebug.exceptions import SMDebugTypeError

_TIME: Final = struct.Struct("<Bd")
_FOOTER: Final = tfrecord.FOOTER.pack(tfrecord.SMDEBUG_FOOTER)
_TAGS: Final = {"wall_time": 1 << 3 | FIXED64, "summary": b"\x2a", "value": b"\x0a"}
SMALL: Final = 1 << 12  # bytes: joined with what stands around them


def _varint(value: int) -> bytes:
    value &= 0xFFFFFFFFFFFFFFFF
    out = bytearray()
    while value >= MORE:
        out.append(value & 0x7F | MORE)
        value >>= 7
    out.append(value)
    return bytes(out)


def _bytes(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | BYTES) + _varint(len(content)) + content


def _int(number: int, value: int) -> bytes:
    """Return an integer field; zero is left out, as protobuf 3 does."""
    return _varint(number << 3 | VARINT) + _varint(value) if value else b""


def encode_record(
    name: str, array: NDArray[np.generic], *, step: int, mode: ModeKeys, mode_step: int, time: float
) -> tuple[list[bytes | memoryview], int]:
    """Return one whole record of an event file that holds `array` under the tag `name`.

    Parameters
    ----------
    name
        Tensor name.
    array
        Any shape ``(...)`` of a type that the format has, in any byte order; or strings,
        one-dimensional.
    step, mode, mode_step
        Global step, mode and mode step.
    time
        Wall time, seconds since the epoch.

    Returns
    -------
    parts
        The bytes in order; a large array's are a view of it, not a copy.
    length
        Their number.

    Raises
    ------
    SMDebugTypeError
        If the format has no data type for `array`.
    """
    prefix, content = _value(name, array)
    suffix = _metadata(mode, mode_step)
    nbytes = len(content)
    value = len(prefix) + nbytes + len(suffix)
    opening, payload = _opening(step, value)
    head = b"".join(
        (
            *(_header(payload), _TIME.pack(1 << 3 | FIXED64, time)),
            *(opening, prefix),
        )
    )
    length = tfrecord.OVERHEAD + payload
    if nbytes <= SMALL:
        return [b"".join((head, content, suffix, _FOOTER))], length
    return [head, content, suffix + _FOOTER], length


@lru_cache(maxsize=1 << 12)
def _header(payload: int) -> bytes:
    """Return the header of a record of so many bytes."""
    length = struct.pack("<Q", payload)
    return length + tfrecord.FOOTER.pack(tfrecord.masked_crc(length))


@lru_cache(maxsize=1 << 12)
def _opening(step: int, value: int) -> tuple[bytes, int]:
    """Return what stands between the time and a value of `value` bytes, and the payload's size."""
    inner = b"\x0a" + _varint(value)
    opening = _int(2, step) + b"\x2a" + _varint(len(inner) + value) + inner
    return opening, _TIME.size + len(opening) + value


@lru_cache(maxsize=64)
def _metadata(mode: ModeKeys, mode_step: int) -> bytes:
    entries = (("mode_step", str(mode_step)), ("mode", str(mode.value)))
    return _bytes(
        9,
        b"".join(
            _bytes(1, _bytes(1, entry.encode()) + _bytes(2, content.encode()))
            for entry, content in entries
        ),
    )


def _value(name: str, array: NDArray[np.generic]) -> tuple[bytes, memoryview | bytes]:
    """Return tag and tensor up to the tensor's bytes, and those bytes."""
    if array.dtype.kind in "OUS":
        return _strings(name, array), b""
    dtype = array.dtype.newbyteorder("<") if array.dtype.kind in "iufc" else array.dtype
    number = NUMBERS.get(dtype)
    if number is None:
        msg = f"The trial format has no data type for {array.dtype}."
        raise SMDebugTypeError(msg)
    prefix = _prefix(name, number, array.shape, array.nbytes)
    flat = np.ascontiguousarray(array, dtype=dtype).reshape(-1)
    return prefix, flat.view(np.uint8).data if array.size else b""


@lru_cache(maxsize=1 << 14)
def _prefix(name: str, number: int, shape: tuple[int, ...], nbytes: int) -> bytes:
    """Return tag and tensor of a number array, up to its bytes."""
    head = _int(1, number) + _shape(name, shape)
    if nbytes:
        head += b"\x22" + _varint(nbytes)
    return _bytes(1, name.encode()) + b"\x42" + _varint(len(head) + nbytes) + head


def _strings(name: str, array: NDArray[np.generic]) -> bytes:
    if array.ndim != 1:
        msg = f"Strings must be one-dimensional to be saved, got shape {array.shape}."
        raise SMDebugTypeError(msg)
    texts = b"".join(_bytes(8, _utf8(text)) for text in array.tolist())
    return _bytes(1, name.encode()) + _bytes(8, _shape(name, array.shape) + texts)


def _shape(name: str, shape: tuple[int, ...]) -> bytes:
    return _bytes(
        2,
        b"".join(_bytes(2, _int(1, size) + _bytes(2, f"{name}_{size}".encode())) for size in shape),
    )


def _utf8(text: object) -> bytes:
    if isinstance(text, bytes):
        return text
    if isinstance(text, str):
        return text.encode()
    msg = f"A tensor of strings must hold strings only, got {text!r}."
    raise SMDebugTypeError(msg)
