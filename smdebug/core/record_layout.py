"""RecordLayout: where the elements lie in a record, learnt from one step and checked at the next.

A training job saves a tensor at every step in a record that differs from the one before in its
time, its step and its elements only. A record that fits the layout of an earlier one is not
walked field by field again.
"""

from collections.abc import MutableMapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from smdebug.core import tensor_proto, tfrecord
from smdebug.core.index import Span
from smdebug.exceptions import CorruptFileError, TruncatedFileError
from smdebug.storage.protocol import OpenFile

_TIME_TAG: Final = 0x09
_STEP_TAG: Final = 0x10
_TIME_AT: Final = tfrecord.HEADER.size + 1
_STEP_AT: Final = _TIME_AT + 8 + 1
KEPT: Final = 1 << 17  # there is one for each tensor, mode and number of digits of a step
BEGINNING: Final = 1 << 12  # bytes in which the elements of any usual record begin
ORDER: Final = "little"
FOOTER: Final = tfrecord.FOOTER.pack(tfrecord.SMDEBUG_FOOTER)

Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class RecordLayout:
    """Where the elements lie in the records of one tensor.

    Attributes
    ----------
    length
        Bytes of a whole record.
    start, stop
        Where the elements lie in it. Behind them and before the footer stands nothing that is
        looked at.
    dtype, shape
        Of the elements.
    mask, head
        Which bits before the elements are the same in every record, and these bits, as numbers of
        `start` bytes with the first byte lowest.
    """

    length: int
    start: int
    stop: int
    dtype: "np.dtype[Any]"
    shape: tuple[int, ...]
    mask: int
    head: int

    @property
    def size(self) -> int:
        """The number of elements."""
        return (self.stop - self.start) // self.dtype.itemsize

    def begins(self, head: bytes | bytearray | memoryview) -> bool:
        """Say whether what stands before the elements of a record is as it must be."""
        return int.from_bytes(head, ORDER) & self.mask == self.head

    def view(self, record: memoryview) -> Array | None:
        """Return the tensor of a record, read-only, in place; None if the record does not fit."""
        whole = len(record) == self.length and record[-len(FOOTER) :] == FOOTER
        if not whole or not self.begins(record[: self.start]):
            return None
        flat = np.frombuffer(record, self.dtype, self.size, self.start)
        return flat.reshape(self.shape)


class Place(NamedTuple):
    """Where a record lies, and its elements in it."""

    span: Span
    layout: RecordLayout


def learnt(record: memoryview, key: str) -> tuple[Array, RecordLayout | None]:
    """Return the tensor of a whole record, and the record's layout if others may be like it.

    Raises
    ------
    TruncatedFileError, CorruptFileError
        If the record is cut off or makes no sense.
    """
    message = tensor_proto.find_tensor(tfrecord.unframe(record, key), key)
    array = tensor_proto.decode_tensor(message, key)
    fixed = _fixed_bits(record)
    if fixed is None or array.dtype.kind in "UO" or not array.size:
        return array, None
    start = _address(array) - _address(np.frombuffer(record, np.uint8))
    stop = start + array.nbytes
    end = _address(np.frombuffer(message, np.uint8)) + len(message)
    # A checksum of the elements, which some writers leave in the footer, fits no other record.
    if (
        start < len(fixed)
        or end != _address(array) + array.nbytes
        or record[-len(FOOTER) :] != FOOTER
    ):
        return array, None
    mask = int.from_bytes(fixed + b"\xff" * (start - len(fixed)), ORDER)
    head = int.from_bytes(record[:start], ORDER) & mask
    return array, RecordLayout(len(record), start, stop, array.dtype, array.shape, mask, head)


def learnt_from(opened: OpenFile, span: Span, key: str) -> RecordLayout | None:
    """Return the layout of a record of which its beginning and its end are read, not the elements.

    None if it cannot be told from them.

    Raises
    ------
    StorageUnavailableError
        If the file cannot be read.
    """
    if span.start + span.length > opened.size:
        return None
    record = np.zeros(span.length, np.uint8)  # what is not written to takes no memory
    head, tail = record.data[:BEGINNING], record.data[-len(FOOTER) :]
    read = opened.read_into(span.start, [head])
    read += opened.read_into(span.start + span.length - len(tail), [tail])
    try:
        _, layout = learnt(record.data.toreadonly(), key)
    except (TruncatedFileError, CorruptFileError):
        return None
    whole = read == len(head) + len(tail) and layout is not None and layout.start <= len(head)
    return layout if whole else None


def keep(layouts: MutableMapping[Any, RecordLayout], key: Any, layout: RecordLayout) -> None:
    """Keep a layout; if there are too many, forget the others."""
    if len(layouts) >= KEPT:
        layouts.clear()
    layouts[key] = layout


def _address(array: Array) -> int:
    return int(array.__array_interface__["data"][0])


def _fixed_bits(record: memoryview) -> bytearray | None:
    """Return which bits of a record's first bytes are the same at each step; None if unusual.

    Those of the time, and the digits of the step, are not.
    """
    if len(record) <= _STEP_AT or record[tfrecord.HEADER.size] != _TIME_TAG:
        return None
    fixed = bytearray(b"\xff" * _STEP_AT)
    fixed[_TIME_AT : _TIME_AT + 8] = bytes(8)
    if record[_STEP_AT - 1] != _STEP_TAG:  # step 0 is left out
        return fixed
    at = _STEP_AT
    while at < len(record) and record[at] >= tensor_proto.MORE:
        at += 1
    return fixed + bytes([tensor_proto.MORE]) * (at + 1 - _STEP_AT)
