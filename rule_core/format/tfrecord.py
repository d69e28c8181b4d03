"""TFRecord framing of event files: header, payload and footer, with checksums."""

import struct
from typing import TypeVar

import google_crc32c
import numpy as np
from numpy.typing import NDArray

from rule_core.exceptions import CorruptFileError, TruncatedFileError

crc32c = google_crc32c.value  # of `bytes`, without the mask
Checksums = TypeVar("Checksums", int, NDArray[np.int64])

HEADER = struct.Struct("<QI")
FOOTER = struct.Struct("<I")
OVERHEAD = HEADER.size + FOOTER.size
CHUNK = 1 << 20  # the checksum library requires `bytes`: copy in chunks

# smdebug ends every record with the masked checksum of the ten ASCII bytes 0x12345678 instead of
# the payload's checksum; readers of smdebug 1.0.x accept nothing else.
SMDEBUG_FOOTER = 0x062DC0B3


def masked_crc(data: bytes | memoryview) -> int:
    """Return TensorFlow's masked CRC-32C of `data`: rotated right by 15 bits plus a constant.

    >>> hex(masked_crc(b"0x12345678"))
    '0x62dc0b3'
    """
    crc = 0
    for start in range(0, len(data), CHUNK):
        crc = google_crc32c.extend(crc, bytes(data[start : start + CHUNK]))
    return masked(crc)


def masked(crc: Checksums) -> Checksums:
    """Return TensorFlow's mask of a CRC-32C, or of several in an array of 64-bit integers."""
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF


def payload_length(head: memoryview, key: str) -> int:
    """Return the length of the payload from a record's first `HEADER.size` bytes.

    Raises
    ------
    TruncatedFileError
        If `head` is shorter than that.
    CorruptFileError
        If the header's checksum is wrong.
    """
    if len(head) < HEADER.size:
        raise TruncatedFileError(key, f"a header of {HEADER.size} bytes", str(len(head)))
    length, crc = HEADER.unpack_from(head)
    if masked_crc(head[:8]) != crc:
        raise CorruptFileError(key, "a record header with its checksum", f"{crc:#010x}")
    return int(length)


def unframe(record: memoryview, key: str) -> memoryview:
    """Return a view of the payload of one `record`.

    Parameters
    ----------
    record
        The bytes of the span in the index: header (12), payload, footer (4).
    key
        The name of the event file, for messages.

    Raises
    ------
    TruncatedFileError
        If `record` is shorter than its header states.
    CorruptFileError
        If the header's checksum is wrong, the length disagrees with the index, or the footer is
        neither smdebug's constant nor the checksum of the payload.
    """
    if len(record) < OVERHEAD:
        raise TruncatedFileError(key, f"a record of at least {OVERHEAD} bytes", str(len(record)))
    length = payload_length(record, key)
    if length + OVERHEAD > len(record):
        raise TruncatedFileError(key, f"a record of {length + OVERHEAD} bytes", str(len(record)))
    if length + OVERHEAD < len(record):
        raise CorruptFileError(key, f"a record of {len(record)} bytes", str(length + OVERHEAD))
    payload = record[HEADER.size : HEADER.size + length]
    (footer,) = FOOTER.unpack_from(record, HEADER.size + length)
    if footer != SMDEBUG_FOOTER and footer != masked_crc(payload):
        raise CorruptFileError(key, "a record footer", f"{footer:#010x}")
    return payload
