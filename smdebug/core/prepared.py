"""Prepared: large tensors of a step, read and measured piece by piece as was laid out once.

Steps whose records lie in the same places are read by the same calls into the same memory: all that
these need is made once, so that Python has little to do for each piece.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from smdebug.core.loads import Bytes, Part, Reading, Unit, needed, room
from smdebug.core.measures import PIECE_BYTES, Piece, Want, comfortable, measure_pieces
from smdebug.core.record_layout import FOOTER, ORDER
from smdebug.storage.protocol import OpenFile

# A call that reads: of how many steps back, from where, into what, and how many bytes that are.
_Read = tuple[int, int, list[memoryview], int]
# What it brings: of how many steps back, the elements, and memory for what is computed from them.
_Value = tuple[int, Any, Bytes]


class _Tensor(NamedTuple):
    """How the pieces of a tensor are read, and where what stands around its parts comes to lie."""

    reading: Reading
    pieces: list[tuple[list[_Read], list[_Value]]]
    frames: slice


class Prepared:
    """Reads and measures tensors in memory of its own: for one thread at a time.

    Parameters
    ----------
    readings
        How they are read at one of the steps; each unit is a piece.
    """

    def __init__(self, readings: Sequence[Reading]) -> None:
        units = [unit for one in readings for unit in one.units]
        framed = [_frame(part) for unit in units for part in unit]
        self._mask, self._head = (
            np.frombuffer(b"".join(one[side] for one in framed), np.uint8) for side in (0, 1)
        )
        self._frames = bytearray(len(self._head))
        self._memory = np.empty(max(map(needed, units), default=0), np.uint8)
        self._spares: dict[int, Bytes] = {}
        self._lying: dict[Any, tuple[memoryview, Any]] = {}
        self._tensors: list[_Tensor] = []
        at = 0
        for one in readings:
            start, pieces = at, []
            for unit in one.units:
                pieces.append(self._piece(one, unit, at))
                at += sum(part.head + part.tail for part in unit)
            self._tensors.append(_Tensor(one, pieces, slice(start, at)))

    def measure(self, opened: Mapping[int, OpenFile]) -> Iterator[tuple[str, dict[Want, Any]]]:
        """Yield what is told of each tensor that lies where it should; numpy is to warn of nothing.

        Parameters
        ----------
        opened
            The event files, by how many steps back they are.
        """
        found: list[tuple[_Tensor, dict[Want, Any]]] = []
        for one in self._tensors:
            _, wants, layout, _, _ = one.reading
            try:
                told = measure_pieces(_pieces(one, opened), wants, layout.size, layout.dtype)
            except _CutOffError:
                continue
            found.append((one, told))
        fits = (np.frombuffer(self._frames, np.uint8) & self._mask) == self._head
        all_fit = fits.all()
        for one, told in found:
            if all_fit or fits[one.frames].all():
                yield one.reading.name, told

    def _piece(self, reading: Reading, unit: Unit, frame: int) -> tuple[list[_Read], list[_Value]]:
        """Prepare the reading of a piece, and of those that it is compared with."""
        reads: list[_Read] = []
        values: list[_Value] = []
        frames = memoryview(self._frames)
        at = 0
        for back, part in zip(reading.backs, unit, strict=True):
            content, elements = self._lie(at, part.size, reading.layout.dtype)
            end = frame + part.head + part.tail
            around = frames[frame : frame + part.head], content, frames[frame + part.head : end]
            buffers = [one for one in around if len(one)]
            reads.append((back, part.start, buffers, sum(map(len, buffers))))
            if back not in self._spares:
                self._spares[back] = np.empty(PIECE_BYTES, np.uint8)
            values.append((back, elements, self._spares[back]))
            at, frame = at + room(part), end
        return reads, values

    def _lie(self, at: int, size: int, dtype: "np.dtype[Any]") -> tuple[memoryview, Any]:
        """Return memory to read into, and the elements that come to lie there, read-only."""
        key = at, size, dtype
        if key not in self._lying:
            content = self._memory[at : at + size]
            elements = content.view(dtype)
            elements.flags.writeable = False
            self._lying[key] = content.data, elements
        return self._lying[key]


class _CutOffError(Exception):
    """A file ends before a part does."""


def _pieces(one: _Tensor, opened: Mapping[int, OpenFile]) -> Iterator[Mapping[int, Piece]]:
    """Yield the pieces of several values of a tensor that belong together."""
    for reads, values in one.pieces:
        for back, start, buffers, nbytes in reads:
            if opened[back].read_into(start, buffers) != nbytes:
                raise _CutOffError
        yield {back: Piece(comfortable(elements), spare) for back, elements, spare in values}


def _frame(part: Part) -> tuple[bytes, bytes]:
    """Return which bits of what stands around a part are known, and these bits."""
    mask = part.layout.mask.to_bytes(part.head, ORDER) if part.head else b""
    head = part.layout.head.to_bytes(part.head, ORDER) if part.head else b""
    if part.tail:
        mask += bytes([0xFF] * len(FOOTER)).rjust(part.tail, b"\0")
        head += FOOTER.rjust(part.tail, b"\0")
    return mask, head
