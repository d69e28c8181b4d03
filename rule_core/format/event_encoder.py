"""RecordEncoder: encodes tensors as records of an event file, without copying their bytes.

The inverse of `rule_core.format.tensor_proto`. Everything that depends only on a tensor's name,
type and shape is cached, because a training job saves the same tensors repeatedly.
"""

import struct
from collections.abc import Sequence
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rule_core.exceptions import SMDebugTypeError
from rule_core.format import tfrecord
from rule_core.format.tensor_proto import BYTES, FIXED64, MORE, NUMBERS, VARINT
from rule_core.modes import ModeKeys

Offsets = NDArray[np.int32]
_TIME: Final = struct.Struct("<Bd")
_FOOTER: Final = tfrecord.FOOTER.pack(tfrecord.SMDEBUG_FOOTER)
_MODE_STEP: Final = b"mode_step"
SMALL: Final = 1 << 12  # bytes up to which a tensor is joined with its frame


def varint(value: int) -> bytes:
    r"""Return an integer of 64 bits as protobuf writes it.

    >>> varint(5), varint(300)
    (b'\x05', b'\xac\x02')
    """
    value &= 0xFFFFFFFFFFFFFFFF
    out = bytearray()
    while value >= MORE:
        out.append(value & 0x7F | MORE)
        value >>= 7
    out.append(value)
    return bytes(out)


def encode_bytes(number: int, content: bytes) -> bytes:
    """Return a protobuf field of bytes, text or a message."""
    return varint(number << 3 | BYTES) + varint(len(content)) + content


def encode_int(number: int, value: int) -> bytes:
    """Return an integer field; zero is omitted, as in protobuf 3."""
    return varint(number << 3 | VARINT) + varint(value) if value else b""


class RecordEncoder:
    """Encodes the records of one step.

    Parameters
    ----------
    step, mode, mode_step
        The global step, mode and mode step.
    """

    def __init__(self, step: int, mode: ModeKeys, mode_step: int) -> None:
        self._mode = mode
        self._digits = str(mode_step).encode()
        entries = ((_MODE_STEP, self._digits), (b"mode", str(mode.value).encode()))
        self._suffix = encode_bytes(
            9,
            b"".join(
                encode_bytes(1, encode_bytes(1, entry) + encode_bytes(2, content))
                for entry, content in entries
            ),
        )
        self._step = encode_int(2, step)
        self._frames: dict[int, tuple[bytes, bytes, int]] = {}

    def encode(
        self, name: str, array: NDArray[np.generic], time: float
    ) -> tuple[list[bytes | memoryview], int]:
        """Return one record that contains `array` under the tag `name`.

        Parameters
        ----------
        name
            The tensor name.
        array
            An array of any shape ``(...)`` and byte order whose type the format supports, or a
            one-dimensional array of strings.
        time
            The wall time in seconds since the epoch.

        Returns
        -------
        parts
            The bytes in order; those of a large array are a view, not a copy.
        length
            The number of bytes.

        Raises
        ------
        SMDebugTypeError
            If the format does not support the type of `array`.
        """
        prefix, content = _value(name, array)
        nbytes = len(content)
        size = len(prefix) + nbytes + len(self._suffix)
        header, opening, length = self._frames.get(size) or self._frame(size)
        head = (header, _TIME.pack(1 << 3 | FIXED64, time), opening, prefix)
        if nbytes <= SMALL:
            return [b"".join((*head, content, self._suffix, _FOOTER))], length
        return [b"".join(head), content, self._suffix + _FOOTER], length

    def encode_alike(
        self, names: tuple[str, ...], arrays: Sequence[NDArray[np.generic]], time: float
    ) -> tuple[bytes, tuple[int, ...]]:
        """Return the records of small number arrays of one type and shape, and their lengths.

        The constant bytes are cached, because a training job saves the same reductions repeatedly.
        """
        first = arrays[0]
        number = self._step[1:]
        same_length = (1 << 7 * (len(number) - 1)) if number else 0
        template = _template(
            names, first.dtype, first.shape, self._mode, same_length, 10 ** (len(self._digits) - 1)
        )
        blob = template.blob.copy()
        content = b"".join([array.tobytes() for array in arrays])
        for offsets, new in (
            (template.times, struct.pack("<d", time)),
            (template.steps, number),
            (template.digits, self._digits),
            (template.contents, content),
        ):
            if new:
                patch = np.frombuffer(new, np.uint8)
                blob[offsets] = patch.reshape(-1, offsets.shape[1])
        return blob.tobytes(), template.lengths

    def _frame(self, value: int) -> tuple[bytes, bytes, int]:
        """Return the bytes before and after the time of a record, and the record's length.

        They depend only on the size of the value.
        """
        inner = b"\x0a" + varint(value)
        opening = self._step + b"\x2a" + varint(len(inner) + value) + inner
        payload = _TIME.size + len(opening) + value
        length = struct.pack("<Q", payload)
        header = length + tfrecord.FOOTER.pack(tfrecord.masked_crc(length))
        self._frames[value] = header, opening, tfrecord.OVERHEAD + payload
        return self._frames[value]


class _Template(NamedTuple):
    """Records, and the offsets of the bytes to replace, one row for each record."""

    blob: NDArray[np.uint8]
    lengths: tuple[int, ...]
    times: Offsets
    steps: Offsets
    digits: Offsets
    contents: Offsets


@lru_cache(maxsize=4)
def _template(
    names: tuple[str, ...],
    dtype: "np.dtype[np.generic]",
    shape: tuple[int, ...],
    mode: ModeKeys,
    step: int,
    mode_step: int,
) -> _Template:
    encoder = RecordEncoder(step, mode, mode_step)
    zero = np.zeros(shape, dtype)
    records = [encoder.encode(name, zero, 0.0)[0][0] for name in names]
    lengths = tuple(map(len, records))
    ends = np.cumsum(lengths, dtype=np.intp)
    starts = ends - lengths
    step_offset = tfrecord.HEADER.size + _TIME.size + 1  # after the tag of the field
    suffix = encoder._suffix  # noqa: SLF001 - same module
    suffixes = ends - len(_FOOTER) - len(suffix)
    digits_offset = suffix.index(_MODE_STEP) + len(_MODE_STEP) + 2  # tag and length of the digits

    def offsets(begin: NDArray[np.intp], width: int) -> Offsets:
        return (begin[:, None] + np.arange(width)).astype(np.int32)

    return _Template(
        np.frombuffer(b"".join(records), np.uint8),
        lengths,
        offsets(starts + tfrecord.HEADER.size + 1, struct.calcsize("<d")),
        offsets(starts + step_offset, max(len(encoder._step) - 1, 0)),  # noqa: SLF001 - same module
        offsets(suffixes + digits_offset, len(encoder._digits)),  # noqa: SLF001 - same module
        offsets(suffixes - zero.nbytes, zero.nbytes),
    )


def _value(name: str, array: NDArray[np.generic]) -> tuple[bytes, memoryview | bytes]:
    """Return the encoded tag and tensor before the elements, and the bytes of the elements."""
    if array.dtype.kind in "OUS":
        return _strings(name, array), b""
    number, dtype = _type(array.dtype)
    prefix = _prefix(name, number, array.shape, array.nbytes)
    if array.nbytes <= SMALL:
        return prefix, (array if array.dtype == dtype else array.astype(dtype)).tobytes()
    flat = np.ascontiguousarray(array, dtype=dtype).reshape(-1)
    return prefix, flat.view(np.uint8).data


@lru_cache(maxsize=64)
def _type(dtype: "np.dtype[np.generic]") -> tuple[int, "np.dtype[np.generic]"]:
    """Return the format's number for a type, and the type in the byte order of the format."""
    written = dtype.newbyteorder("<") if dtype.kind in "iufc" else dtype
    number = NUMBERS.get(written)
    if number is None:
        raise SMDebugTypeError(f"The trial format has no data type for {dtype}.")
    return number, written


@lru_cache(maxsize=1 << 17)
def _prefix(name: str, number: int, shape: tuple[int, ...], nbytes: int) -> bytes:
    """Return the encoded tag and tensor of a number array, before its bytes."""
    head = encode_int(1, number) + _shape(name, shape)
    if nbytes:
        head += b"\x22" + varint(nbytes)
    return encode_bytes(1, name.encode()) + b"\x42" + varint(len(head) + nbytes) + head


def _strings(name: str, array: NDArray[np.generic]) -> bytes:
    if array.ndim != 1:
        raise SMDebugTypeError(
            f"Strings must be one-dimensional to be saved, got shape {array.shape}."
        )
    texts = b"".join(encode_bytes(8, _utf8(text)) for text in array.tolist())
    return encode_bytes(1, name.encode()) + encode_bytes(8, _shape(name, array.shape) + texts)


def _shape(name: str, shape: tuple[int, ...]) -> bytes:
    return encode_bytes(
        2,
        b"".join(
            encode_bytes(2, encode_int(1, size) + encode_bytes(2, f"{name}_{size}".encode()))
            for size in shape
        ),
    )


def _utf8(text: object) -> bytes:
    if isinstance(text, bytes):
        return text
    if isinstance(text, str):
        return text.encode()
    raise SMDebugTypeError(f"A tensor of strings must hold strings only, got {text!r}.")
