"""RecordLayout: the position of the elements in a record, learned at one step and then reused.

The records of a tensor differ between steps only in time, step and elements. A record that matches
the layout of an earlier one is not parsed field by field again. Files of other formats may store
elements alone; their layouts are known beforehand.
"""

from collections.abc import MutableMapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rule_core.exceptions import CorruptFileError, TruncatedFileError
from rule_core.format import tensor_proto, tfrecord
from rule_core.format.index_file import Span
from rule_core.storage.base import OpenFile

_TIME_TAG: Final = 0x09
_STEP_TAG: Final = 0x10
_TIME_OFFSET: Final = tfrecord.HEADER.size + 1
_STEP_OFFSET: Final = _TIME_OFFSET + 8 + 1
MAX_LAYOUTS: Final = 1 << 17  # one for each tensor, mode and number of digits of a step
BEGINNING: Final = 1 << 12  # bytes; the elements of usual records start within them
ORDER: Final = "little"
FOOTER: Final = tfrecord.FOOTER.pack(tfrecord.SMDEBUG_FOOTER)

Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class RecordLayout:
    """The position of the elements in the records of one tensor.

    Attributes
    ----------
    length
        The length of a record in bytes.
    start, stop
        The range of the elements in the record. The bytes between them and the footer are ignored.
    dtype, shape
        The type and shape of the elements.
    mask, head
        A mask of the constant bits before the elements, and these bits, as little-endian integers
        of `start` bytes.
    footer
        The last bytes of a record; none if elements are stored without a frame.
    """

    length: int
    start: int
    stop: int
    dtype: "np.dtype[Any]"
    shape: tuple[int, ...]
    mask: int
    head: int
    footer: bytes = FOOTER

    @property
    def size(self) -> int:
        """The number of elements."""
        return (self.stop - self.start) // self.dtype.itemsize

    def matches_head(self, head: bytes | bytearray | memoryview) -> bool:
        """Return whether the bytes before the elements of a record match the layout."""
        return int.from_bytes(head, ORDER) & self.mask == self.head

    def view(self, record: memoryview) -> Array | None:
        """Return a read-only view of a record's tensor, or None if the record does not match."""
        footer = record[len(record) - len(self.footer) :]
        is_complete = len(record) == self.length and footer == self.footer
        if not is_complete or not self.matches_head(record[: self.start]):
            return None
        flat = np.frombuffer(record, self.dtype, self.size, self.start)
        return flat.reshape(self.shape)


class RecordLocation(NamedTuple):
    """The span and layout of a record."""

    span: Span
    layout: RecordLayout


def learn(record: memoryview, key: str) -> tuple[Array, RecordLayout | None]:
    """Return the tensor of a record, and the record's layout if other records may share it.

    Raises
    ------
    TruncatedFileError, CorruptFileError
        If the record is truncated or corrupt.
    """
    message = tensor_proto.find_tensor(tfrecord.unframe(record, key), key)
    array = tensor_proto.decode_tensor(message, key)
    fixed = _fixed_bits(record)
    if fixed is None or array.dtype.kind in "UO" or not array.size:
        return array, None
    start = _address(array) - _address(np.frombuffer(record, np.uint8))
    stop = start + array.nbytes
    end = _address(np.frombuffer(message, np.uint8)) + len(message)
    # Some writers store a checksum of the elements in the footer, which differs between records.
    if (
        start < len(fixed)
        or end != _address(array) + array.nbytes
        or record[-len(FOOTER) :] != FOOTER
    ):
        return array, None
    mask = int.from_bytes(fixed + b"\xff" * (start - len(fixed)), ORDER)
    head = int.from_bytes(record[:start], ORDER) & mask
    return array, RecordLayout(len(record), start, stop, array.dtype, array.shape, mask, head)


def learn_layout(opened: OpenFile, span: Span, key: str) -> RecordLayout | None:
    """Return the layout of a record without reading its elements, only its start and end.

    Returns None if they are not sufficient.

    Raises
    ------
    StorageUnavailableError
        If the file cannot be read.
    """
    if span.start + span.length > opened.size:
        return None
    record = np.zeros(span.length, np.uint8)  # untouched pages take no memory
    head, tail = record.data[:BEGINNING], record.data[-len(FOOTER) :]
    read = opened.read_into(span.start, [head])
    read += opened.read_into(span.start + span.length - len(tail), [tail])
    try:
        _, layout = learn(record.data.toreadonly(), key)
    except (TruncatedFileError, CorruptFileError):
        return None
    is_known = read == len(head) + len(tail) and layout is not None and layout.start <= len(head)
    return layout if is_known else None


def store_layout(
    layouts: MutableMapping[Any, RecordLayout], key: Any, layout: RecordLayout
) -> None:
    """Store a layout; clear the others first if there are too many."""
    if len(layouts) >= MAX_LAYOUTS:
        layouts.clear()
    layouts[key] = layout


def _address(array: Array) -> int:
    return int(array.__array_interface__["data"][0])


def _fixed_bits(record: memoryview) -> bytearray | None:
    """Return a mask of the constant bits in a record's first bytes, or None if it is unusual.

    The time and the digits of the step vary.
    """
    if len(record) <= _STEP_OFFSET or record[tfrecord.HEADER.size] != _TIME_TAG:
        return None
    fixed = bytearray(b"\xff" * _STEP_OFFSET)
    fixed[_TIME_OFFSET : _TIME_OFFSET + 8] = bytes(8)
    if record[_STEP_OFFSET - 1] != _STEP_TAG:  # step 0 is omitted
        return fixed
    offset = _STEP_OFFSET
    while offset < len(record) and record[offset] >= tensor_proto.MORE:
        offset += 1
    return fixed + bytes([tensor_proto.MORE]) * (offset + 1 - _STEP_OFFSET)
