"""Prepared: large tensors of a step, read and measured piece by piece as was laid out once.

Steps whose records lie in the same places are read by the same calls into the same memory: all that
these need is made once, so that Python has little to do for each piece.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from smdebug.core.gathered import Told
from smdebug.core.measures import PIECE_BYTES, Measure, Piece, Want, comfortable
from smdebug.core.record_layout import FOOTER, ORDER, RecordLayout
from smdebug.core.reductions import Reduction
from smdebug.storage.protocol import OpenFile

_ALIGNED: Final = 64

Bytes = NDArray[np.uint8]
# A call that reads: of how many steps back, from where, into what, and how many bytes that are.
_Read = tuple[int, int, list[memoryview], int]
# What it brings: of how many steps back, the elements, and memory for their magnitudes; none if
# the elements must be converted first.
_Value = tuple[int, Any, Any]


class Part(NamedTuple):
    """Some elements of a record that are read together, and what stands around them there.

    Attributes
    ----------
    opened
        The event file.
    start
        Where in it the part begins: with what stands before the elements, if `head` is not 0.
    head, size, tail
        Bytes before the elements, of the elements, and behind them up to the end of the record; 0
        if they are not the first or the last of the record.
    layout
        Of the record.
    """

    opened: OpenFile
    start: int
    head: int
    size: int
    tail: int
    layout: RecordLayout


# Parts that are used together: of a value, and of the earlier ones that it is compared with.
Unit = tuple[Part, ...]


class Reading(NamedTuple):
    """How a tensor is read: part by part, each with those of earlier values.

    Attributes
    ----------
    name, wants, layout
        The tensor, what is wanted of it, and where its elements lie in the record.
    backs
        How many steps back the values are of which each unit has a part.
    """

    name: str
    wants: Sequence[Want]
    layout: RecordLayout
    backs: list[int]
    units: list[Unit]


class _Tensor(NamedTuple):
    """How the pieces of a tensor are read, and where what stands around its parts comes to lie."""

    reading: Reading
    size: int
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
        self._memory = np.empty(max(map(_needed, units), default=0), np.uint8)
        self._spares: dict[int, Bytes] = {}
        self._lying: dict[Any, tuple[memoryview, Any]] = {}
        self._tensors: list[_Tensor] = []
        at = 0
        for one in readings:
            start, pieces = at, []
            for unit in one.units:
                pieces.append(self._piece(one, unit, at))
                at += sum(part.head + part.tail for part in unit)
            frames = slice(start, at)
            # Without its units, which hold on to the files of the step.
            self._tensors.append(_Tensor(one._replace(units=[]), one.layout.size, pieces, frames))

    def carry_out(self, opened: Mapping[int, OpenFile], told: Told) -> None:
        """Read and measure all tensors that lie where they should; numpy is to warn of nothing.

        Parameters
        ----------
        opened
            The event files, by how many steps back they are.
        told
            Gets what is told.
        """
        # All reading first: what it needs of Python then stays in the processor's cache.
        found = [(one, parts) for one in self._tensors if (parts := _parts(one, opened))]
        fits = (np.frombuffer(self._frames, np.uint8) & self._mask) == self._head
        all_fit = fits.all()
        for (reading, size, _, frames), each in found:
            if all_fit or fits[frames].all():
                for want, parts in zip(reading.wants, each, strict=True):
                    told[want][reading.name] = want[0].join(parts, size, reading.layout.dtype)

    def _piece(self, reading: Reading, unit: Unit, frame: int) -> tuple[list[_Read], list[_Value]]:
        """Prepare the reading of a piece, and of those that it is compared with."""
        reads: list[_Read] = []
        values: list[_Value] = []
        frames = memoryview(self._frames)
        at = 0
        in_place = all(_is_of_magnitudes(one) for one, _ in reading.wants)
        for back, part in zip(reading.backs, unit, strict=True):
            content, elements = self._lie(at, part.size, reading.layout.dtype)
            end = frame + part.head + part.tail
            around = frames[frame : frame + part.head], content, frames[frame + part.head : end]
            buffers = [one for one in around if len(one)]
            reads.append((back, part.start, buffers, sum(map(len, buffers))))
            values.append((back, elements, self._spare(back, content, elements, in_place)))
            at, frame = at + _room(part), end
        return reads, values

    def _spare(self, back: int, content: memoryview, elements: Any, in_place: bool) -> Any:
        """Return memory for the magnitudes of elements; None if these must be converted first."""
        if comfortable(elements) is not elements:
            return None
        if in_place:
            return np.frombuffer(content, elements.dtype)
        if back not in self._spares:
            self._spares[back] = np.empty(PIECE_BYTES, np.uint8)
        return self._spares[back][: elements.nbytes].view(elements.dtype)

    def _lie(self, at: int, size: int, dtype: "np.dtype[Any]") -> tuple[memoryview, Any]:
        """Return memory to read into, and the elements that come to lie there, read-only."""
        key = at, size, dtype
        if key not in self._lying:
            content = self._memory[at : at + size]
            elements = content.view(dtype)
            elements.flags.writeable = False
            self._lying[key] = content.data, elements
        return self._lying[key]


def _needed(parts: Iterable[Part]) -> int:
    """Return how much memory the elements of parts need."""
    return sum(map(_room, parts))


def _room(part: Part) -> int:
    """Return how much memory the elements of one part need."""
    return -(-part.size // _ALIGNED) * _ALIGNED


def _parts(tensor: _Tensor, opened: Mapping[int, OpenFile]) -> list[list[Any]] | None:
    """Return for each want what the pieces of a tensor tell; None if a file is cut off."""
    told: list[tuple[Callable[..., Any], int, list[Any]]] = [
        (one.part, back, []) for one, back in tensor.reading.wants
    ]
    together = {}
    for reads, values in tensor.pieces:
        for back, start, buffers, nbytes in reads:
            if opened[back].read_into(start, buffers) != nbytes:
                return None
        for back, elements, spare in values:
            ready = comfortable(elements) if spare is None else elements
            together[back] = Piece(ready, spare)
        piece = together[0]
        for part, back, parts in told:
            parts.append(part(piece, together[back]) if back else part(piece))
    return [parts for _, _, parts in told]


def _is_of_magnitudes(one: Measure) -> bool:
    """Say whether a measure looks at nothing but magnitudes, which may then replace elements."""
    return isinstance(one, Reduction) and (bool(one.absolute) or one.operation == "l1")


def _frame(part: Part) -> tuple[bytes, bytes]:
    """Return which bits of what stands around a part are known, and these bits."""
    mask = part.layout.mask.to_bytes(part.head, ORDER) if part.head else b""
    head = part.layout.head.to_bytes(part.head, ORDER) if part.head else b""
    if part.tail:
        mask += bytes([0xFF] * len(FOOTER)).rjust(part.tail, b"\0")
        head += FOOTER.rjust(part.tail, b"\0")
    return mask, head
