"""Event files of TensorBoard, byte by byte, as its writers leave them."""

import struct
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from rule_core.format.event_encoder import varint
from rule_core.format.tensor_proto import NUMBERS
from rule_core.format.tfrecord import FOOTER, masked_crc

NAME = "events.out.tfevents.1700000000.host.1.0"
LATER = "events.out.tfevents.1700000100.host.2.0"
VERSION = b"\x1a\x0dbrain.Event:2"


def field(number: int, content: bytes) -> bytes:
    """Return a field of bytes."""
    return varint(number << 3 | 2) + varint(len(content)) + content


def doubles(**numbers: float) -> bytes:
    """Return fields of doubles, in the order of a HistogramProto; those of 0 are left out."""
    return b"".join(
        varint(place << 3 | 1) + struct.pack("<d", number)
        for place, number in enumerate(numbers.values(), 1)
        if number
    )


def framed(payload: bytes) -> bytes:
    """Return a record."""
    length = struct.pack("<Q", len(payload))
    return b"".join(
        (length, FOOTER.pack(masked_crc(length)), payload, FOOTER.pack(masked_crc(payload)))
    )


def event(step: int, *values: bytes, time: float = 1000.0) -> bytes:
    """Return the record of an event with a summary."""
    head = b"\x09" + struct.pack("<d", time)
    if step:
        head += b"\x10" + varint(step % (1 << 64))
    return framed(head + field(5, b"".join(field(1, value) for value in values)))


def simple(tag: str, number: float) -> bytes:
    """Return a value as torch writes a scalar."""
    return field(1, tag.encode()) + b"\x15" + struct.pack("<f", number)


def plugin(name: str) -> bytes:
    """Return the metadata of a value."""
    return field(9, field(1, field(1, name.encode())))


def tensor(tag: str, array: NDArray[np.generic], name: str = "scalars") -> bytes:
    """Return a value as TensorFlow writes a scalar, or the buckets of a histogram."""
    sizes = b"".join(field(2, b"\x08" + varint(size)) for size in array.shape)
    message = b"\x08" + varint(NUMBERS[array.dtype]) + field(2, sizes) + field(4, array.tobytes())
    return field(1, tag.encode()) + field(8, message) + (plugin(name) if name else b"")


def tensor_of(tag: str, dtype: int, values: bytes, name: str = "scalars") -> bytes:
    """Return a value with a tensor whose number has a field of its own."""
    message = b"\x08" + varint(dtype) + field(2, b"") + values
    return field(1, tag.encode()) + field(8, message) + (plugin(name) if name else b"")


def histogram(tag: str, numbers: Iterable[float]) -> bytes:
    """Return a value as torch writes a histogram, without its buckets."""
    array = np.array([*numbers])
    content = doubles(
        min=array.min(), max=array.max(), num=len(array), sum=array.sum(), squares=array @ array
    )
    return field(1, tag.encode()) + field(5, content + field(6, bytes(8)) + field(7, bytes(8)))


def event_file(*records: bytes) -> bytes:
    """Return a file with records behind that of the version."""
    return framed(b"\x09" + struct.pack("<d", 1000.0) + VERSION) + b"".join(records)


def losses(steps: Iterable[int], tag: str = "loss") -> list[bytes]:
    """Return events of a scalar."""
    return [event(step, simple(tag, 1 / (step + 1)), time=1000.0 + step) for step in steps]
