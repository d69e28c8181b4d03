"""Records of TensorBoard's event files: scalars, histograms and texts."""

import struct
from collections.abc import Iterable, Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from rule_core.format import tfrecord
from rule_core.format.event_encoder import encode_bytes, encode_int

_VERSION: Final = b"brain.Event:2"
_DOUBLE: Final = struct.Struct("<Bd")
_FLOAT: Final = struct.Struct("<Bf")
_STRING: Final = 7  # DT_STRING
BUCKETS: Final = 30  # as many as TensorBoard draws


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
    return _summary(step, time, [_scalar(tag, value) for tag, value in values.items()])


def summary_record(
    step: int,
    time: float,
    scalars: Mapping[str, NDArray[Any]],
    histograms: Mapping[str, NDArray[Any]],
) -> bytes:
    """Return a record with scalars and histograms of one step.

    Parameters
    ----------
    scalars
        Arrays of one real number; those beyond the range of 32 bits become infinite.
    histograms
        Arrays of real numbers, of any shape. Values that are not finite are left out, and so are
        histograms without any other.
    """
    with np.errstate(over="ignore"):
        values = [_scalar(tag, array.astype(np.float32).item()) for tag, array in scalars.items()]
    for tag, array in histograms.items():
        flat = array.astype(np.float64).reshape(-1)
        finite = flat[np.isfinite(flat)]
        if finite.size:
            values.append(encode_bytes(1, tag.encode()) + encode_bytes(5, _histogram(finite)))
    return _summary(step, time, values)


def _scalar(tag: str, value: float) -> bytes:
    return encode_bytes(1, tag.encode()) + _FLOAT.pack(2 << 3 | 5, value)


def _histogram(elements: NDArray[np.float64]) -> bytes:
    """Return a HistogramProto of finite numbers."""
    low, high = elements.min(), elements.max()
    with np.errstate(over="ignore", divide="ignore"):
        moments = (low, high, elements.size, elements.sum(), elements @ elements)
        scale = BUCKETS / (high - low)
    if 0 < scale < np.inf:
        buckets = ((elements - low) * scale).astype(np.intp)
        counts = np.bincount(np.minimum(buckets, BUCKETS - 1), minlength=BUCKETS)
        limits = np.linspace(low, high, BUCKETS + 1)[1:]
    else:  # all are equal, or the range overflows
        counts, limits = np.array([elements.size]), np.array([high])
    return b"".join(
        [
            *(_DOUBLE.pack(number << 3 | 1, value) for number, value in enumerate(moments, 1)),
            encode_bytes(6, limits.astype("<f8").tobytes()),
            encode_bytes(7, counts.astype("<f8").tobytes()),
        ]
    )


def text_record(step: int, time: float, tag: str, text: str) -> bytes:
    """Return a record with a text, which TensorBoard shows as Markdown."""
    metadata = encode_bytes(1, encode_bytes(1, b"text"))
    shape = encode_bytes(2, encode_int(1, 1))
    tensor = encode_int(1, _STRING) + encode_bytes(2, shape) + encode_bytes(8, text.encode())
    value = encode_bytes(1, tag.encode()) + encode_bytes(8, tensor) + encode_bytes(9, metadata)
    return _summary(step, time, [value])


def _event(time: float, step: int) -> bytes:
    return _DOUBLE.pack(1 << 3 | 1, time) + encode_int(2, step)


def _summary(step: int, time: float, values: Iterable[bytes]) -> bytes:
    """Return the record of one step with these values."""
    summary = b"".join(encode_bytes(1, value) for value in values)
    return _record(_event(time, step) + encode_bytes(5, summary))


def _record(payload: bytes) -> bytes:
    length = struct.pack("<Q", len(payload))
    crc = tfrecord.FOOTER.pack(tfrecord.masked_crc(payload))
    return b"".join((length, tfrecord.FOOTER.pack(tfrecord.masked_crc(length)), payload, crc))
