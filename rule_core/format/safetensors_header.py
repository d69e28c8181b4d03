"""Parses the header of a safetensors file: where each tensor is, and its type and shape.

The file is 8 bytes with the length of the header, a header of JSON, and the elements of the tensors
in one gapless sequence. Nothing but the header is needed to find a tensor.
"""

import math
import struct
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import ml_dtypes
import msgspec
import numpy as np

from rule_core.exceptions import CorruptFileError, TruncatedFileError
from rule_core.format.index_file import Entry, Layout, Span, shared_names
from rule_core.format.record_layout import MAX_LAYOUTS, RecordLayout
from rule_core.format.tensor_proto import MAX_RANK

LENGTH: Final = struct.Struct("<Q")
MAX_HEADER: Final = 16 << 20  # bytes; enough for a hundred thousand tensors
MAX_BYTES: Final = 1 << 62  # no file is larger
METADATA: Final = "__metadata__"
DTYPES: Final[Mapping[str, "np.dtype[Any]"]] = {
    "BOOL": np.dtype("?"),
    "U8": np.dtype("u1"),
    "I8": np.dtype("i1"),
    "U16": np.dtype("<u2"),
    "I16": np.dtype("<i2"),
    "F16": np.dtype("<f2"),
    "BF16": np.dtype(ml_dtypes.bfloat16),
    "U32": np.dtype("<u4"),
    "I32": np.dtype("<i4"),
    "F32": np.dtype("<f4"),
    "U64": np.dtype("<u8"),
    "I64": np.dtype("<i8"),
    "F64": np.dtype("<f8"),
    "C64": np.dtype("<c8"),
    "F8_E4M3": np.dtype(ml_dtypes.float8_e4m3fn),
    "F8_E5M2": np.dtype(ml_dtypes.float8_e5m2),
    "F8_E8M0": np.dtype(ml_dtypes.float8_e8m0fnu),
    "F8_E4M3FNUZ": np.dtype(ml_dtypes.float8_e4m3fnuz),
    "F8_E5M2FNUZ": np.dtype(ml_dtypes.float8_e5m2fnuz),
}
_OFFSETS: Final = b'"data_offsets"'
_LFS: Final = b"version "  # the first bytes of a pointer of Git LFS


class _TensorInfo(msgspec.Struct, gc=False):
    """What the header says of one tensor; the metadata have other keys, and texts."""

    dtype: str = ""
    shape: list[int] | str = ""
    data_offsets: tuple[int, int] | str = ""


class _TensorRange(NamedTuple):
    """One tensor; its bytes are counted from the end of the header."""

    start: int
    stop: int
    name: str
    dtype: str
    shape: tuple[int, ...]


_DECODER: Final = msgspec.json.Decoder(dict[str, _TensorInfo])


def is_header(head: bytes) -> bool:
    """Return whether a file may be safetensors, by its first bytes; so may a pointer of Git LFS.

    >>> is_header(bytes([2, 0, 0, 0, 0, 0, 0, 0]) + b"{}"), is_header(b"PK34 and so on")
    (True, False)
    """
    if head.startswith(_LFS):
        return True
    if len(head) <= LENGTH.size:
        return False
    return 0 < LENGTH.unpack_from(head)[0] <= MAX_HEADER and head[LENGTH.size] == ord("{")


def header_end(head: memoryview | bytes, size: int, key: str) -> int:
    """Return the offset at which the header ends.

    Parameters
    ----------
    head
        The first 8 bytes of the file, or more.
    size
        The size of the file in bytes.
    key
        The name of the file, for messages.

    Raises
    ------
    TruncatedFileError
        If the file ends before.
    CorruptFileError
        If the length of the header is none.
    """
    if len(head) < LENGTH.size:
        raise TruncatedFileError(key, f"a header length of {LENGTH.size} bytes", str(len(head)))
    if bytes(head[: len(_LFS)]) == _LFS:
        raise CorruptFileError(
            key, "a safetensors file", "a pointer of Git LFS; run 'git lfs pull' to fetch it"
        )
    (length,) = LENGTH.unpack_from(head)
    if not length:  # a writer that writes its header last
        raise TruncatedFileError(key, "a header", "none")
    if length > MAX_HEADER:
        raise CorruptFileError(key, f"a header of at most {MAX_HEADER} bytes", str(length))
    end = LENGTH.size + int(length)
    if end > size:
        raise TruncatedFileError(key, f"a header of {length} bytes", str(size - LENGTH.size))
    return end


def parse_header(text: memoryview | bytes, size: int, key: str) -> Layout:
    """Return the entries of all tensors.

    Parameters
    ----------
    text
        The JSON of the header.
    size
        The size of the file in bytes.
    key
        The name of the file, for messages.

    Returns
    -------
    Layout
        `damaged` has a sentence for each tensor of an unknown type or impossible shape.

    Raises
    ------
    TruncatedFileError
        If the file is shorter than the header says.
    CorruptFileError
        If the header is not one of safetensors, or the tensors overlap or leave gaps.
    """
    tensors = _decode(text, key)
    start = LENGTH.size + len(text)
    end = start + _check_sequence(tensors, key)
    if end > size:
        raise TruncatedFileError(key, f"{end} bytes", str(size))
    if end < size:
        raise CorruptFileError(key, f"{end} bytes", str(size))
    entries: dict[str, Entry] = {}
    damaged: dict[str, str] = {}
    for tensor in tensors:
        entry = _entry(tensor, start)
        if isinstance(entry, Entry):
            entries[tensor.name] = entry
        else:
            damaged[tensor.name] = entry
    names = shared_names(tuple(sorted(entries)))
    return Layout(entries, names, damaged, has_records=True, first_record=None, end=end)


def _decode(text: memoryview | bytes, key: str) -> list[_TensorRange]:
    try:
        infos = _DECODER.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError) as err:
        raise CorruptFileError(key, "a header of safetensors", str(err).rstrip(".")) from err
    infos.pop(METADATA, None)
    if len(infos) > MAX_LAYOUTS:
        raise CorruptFileError(key, f"at most {MAX_LAYOUTS} tensors", str(len(infos)))
    if bytes(text).count(_OFFSETS) > len(infos) + (_OFFSETS[1:-1].decode() in infos):
        raise CorruptFileError(key, "each tensor once", "a name that occurs twice")
    tensors = []
    for name, info in infos.items():
        if isinstance(info.data_offsets, str) or isinstance(info.shape, str):
            raise CorruptFileError(key, "a shape and offsets of each tensor", repr(name[:100]))
        tensors.append(_TensorRange(*info.data_offsets, name, info.dtype, tuple(info.shape)))
    return tensors


def _check_sequence(tensors: Sequence[_TensorRange], key: str) -> int:
    """Return the number of bytes of all tensors; they must follow each other without gaps."""
    end = 0
    for tensor in sorted(tensors):
        start, stop = tensor.start, tensor.stop
        if start != end or not start <= stop <= MAX_BYTES:
            expected = f"tensor {tensor.name[:100]!r} to start at byte {end}"
            raise CorruptFileError(key, expected, f"{str(start)[:20]} to {str(stop)[:20]}")
        end = stop
    return end


def _entry(tensor: _TensorRange, start: int) -> Entry | str:
    """Return the entry of a tensor, or a sentence on what is wrong with it."""
    dtype = DTYPES.get(tensor.dtype)
    if dtype is None:
        return f"Type {tensor.dtype[:40]!r} is not supported; the tensor is skipped."
    shape = tensor.shape
    if len(shape) > MAX_RANK or any(size < 0 for size in shape):
        return f"A shape of {len(shape)} dimensions cannot be; the tensor is skipped."
    length = tensor.stop - tensor.start
    largest = math.prod(max(size, 1) for size in shape) * dtype.itemsize
    if math.prod(shape) * dtype.itemsize != length or largest > MAX_BYTES:
        return f"It has {length} bytes, which do not fit its shape; the tensor is skipped."
    layout = RecordLayout(length, 0, length, dtype, shape, 0, 0, b"")
    return Entry(Span(start + tensor.start, length), shape=shape, layout=layout)
