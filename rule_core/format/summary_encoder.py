"""Records of TensorBoard's event files: scalars and texts, as its own writers encode them."""

import struct
from collections.abc import Mapping
from typing import Final

from rule_core.format import tfrecord
from rule_core.format.event_encoder import encode_bytes, encode_int

_VERSION: Final = b"brain.Event:2"
_DOUBLE: Final = struct.Struct("<Bd")
_FLOAT: Final = struct.Struct("<Bf")
_STRING: Final = 7  # DT_STRING


def version_record(time: float) -> bytes:
    """Return the first record of a file."""
    return _record(_event(time, 0) + encode_bytes(3, _VERSION))


def scalars_record(step: int, time: float, values: Mapping[str, float]) -> bytes:
    """Return a record with scalars of one step, which are rounded to 32 bits.

    Raises
    ------
    OverflowError
        If a finite value is beyond the range of 32 bits.
    """
    summary = b"".join(
        encode_bytes(1, encode_bytes(1, tag.encode()) + _FLOAT.pack(2 << 3 | 5, value))
        for tag, value in values.items()
    )
    return _record(_event(time, step) + encode_bytes(5, summary))


def text_record(step: int, time: float, tag: str, text: str) -> bytes:
    """Return a record with a text, which TensorBoard shows as Markdown."""
    metadata = encode_bytes(1, encode_bytes(1, b"text"))
    shape = encode_bytes(2, encode_int(1, 1))
    tensor = encode_int(1, _STRING) + encode_bytes(2, shape) + encode_bytes(8, text.encode())
    value = encode_bytes(1, tag.encode()) + encode_bytes(8, tensor) + encode_bytes(9, metadata)
    return _record(_event(time, step) + encode_bytes(5, encode_bytes(1, value)))


def _event(time: float, step: int) -> bytes:
    return _DOUBLE.pack(1 << 3 | 1, time) + encode_int(2, step)


def _record(payload: bytes) -> bytes:
    length = struct.pack("<Q", len(payload))
    crc = tfrecord.FOOTER.pack(tfrecord.masked_crc(payload))
    return b"".join((length, tfrecord.FOOTER.pack(tfrecord.masked_crc(length)), payload, crc))
