"""Measures: what can be told of a tensor from pieces that fit the cache, several in one pass."""

import math
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

PIECE_BYTES: Final = 1 << 18  # with what is computed from it, it stays in a core's own cache

LEAST_SQUARES: Final = 1e-30  # what single precision loses of a piece is nothing beside it

Array = NDArray[Any]


class Piece:
    """Some elements of a tensor in a row, and what several measures need of them, computed once.

    Attributes
    ----------
    elements
        Shape ``(n,)``, aligned: float16 and bfloat16 as float32, signed integers as int64.

    Parameters
    ----------
    spare
        Memory like the elements for their magnitudes; otherwise it is taken anew.
    """

    __slots__ = ("_doubles", "_magnitudes", "_spare", "_totals", "elements")

    def __init__(self, elements: Array, spare: Array | None = None) -> None:
        self.elements = elements
        self._spare = spare
        self._magnitudes: Array | None = None
        self._doubles: Array | None = None
        self._totals: dict[bool, Any] = {}

    @property
    def magnitudes(self) -> Array:
        """The absolute values."""
        if self._magnitudes is None:
            self._magnitudes = np.abs(self.elements, out=self._spare)
        return self._magnitudes

    @property
    def doubles(self) -> Array:
        """The elements in double precision."""
        if self._doubles is None:
            self._doubles = self.elements.astype(np.float64, copy=False)
        return self._doubles

    def total(self, absolute: bool) -> Any:
        """Return the sum of the elements, or of their magnitudes.

        In the elements' own precision, and again in double precision if that overflows.
        """
        if absolute not in self._totals:
            self._totals[absolute] = total(self.magnitudes if absolute else self.elements)
        return self._totals[absolute]


def total(elements: Array) -> Any:
    """Return a sum; see `Piece.total`."""
    found = np.add.reduce(elements)
    if elements.dtype.kind != "f":
        return found
    return float(found if math.isfinite(found) else elements.sum(dtype=np.float64))


def sum_of_squares(elements: Array) -> float:
    """Return the sum of the squares of floating-point numbers.

    In their own precision, and again in double precision if squares are too large or too small for
    it. Not by a dot product: BLAS takes threads of its own for it, and adds up in an order that
    depends on the machine.
    """
    found = np.add.reduce(np.square(elements))
    if LEAST_SQUARES < found < np.inf:
        return float(found)
    return float(np.add.reduce(np.square(elements, dtype=np.float64)))


class Measure(Hashable, Protocol):
    """Something to be told of a tensor, or of a tensor and an earlier value of it.

    Equal measures give equal answers: what one rule has asked for is kept for the others. A tuple
    makes a poor measure: without fields it equals any other.
    """

    def part(self, piece: Piece, before: Piece | None = None) -> Any:
        """Return what a piece tells, and the same piece of the earlier value if there is one.

        Nothing of it may lie in the pieces: their memory is used again for the next ones.
        """
        ...

    def join(self, parts: Sequence[Any], size: int, dtype: "np.dtype[Any]") -> Any:
        """Return what all pieces tell of `size` elements that were saved as `dtype`."""
        ...


# A measure, and how many steps back the value lies that it compares with: 0 is none.
Want = tuple[Measure, int]


def piece_length(dtype: "np.dtype[Any]") -> int:
    """Return how many elements of a type one piece holds."""
    return PIECE_BYTES // dtype.itemsize


def comfortable(elements: Array) -> Array:
    """Return elements in a type in which sums fit and numpy computes, aligned."""
    dtype = elements.dtype
    if dtype.kind == "V" or dtype == np.float16:
        return elements.astype(np.float32)
    if dtype.kind == "i":
        return elements.astype(np.int64, copy=not elements.flags.aligned)
    return elements if elements.flags.aligned else elements.copy()


def measure(
    array: Array, measures: Iterable[Measure], before: Array | None = None
) -> dict[Measure, Any]:
    """Return what several measures tell of an array in memory, taking each piece once.

    Parameters
    ----------
    array, before
        Real numbers or booleans, of one shape ``(...)``.
    """
    distance = 0 if before is None else 1
    flats = (
        {0: array.reshape(-1)} if before is None else {0: array.reshape(-1), 1: before.reshape(-1)}
    )
    wants = [(one, distance) for one in measures]
    with np.errstate(all="ignore"):
        found = measure_pieces(_pieces(flats), wants, array.size, array.dtype)
    return {one: value for (one, _), value in found.items()}


def _pieces(flats: Mapping[int, Array]) -> Iterator[dict[int, Piece]]:
    """Yield the pieces of flat arrays that belong together, at least once."""
    length = min(piece_length(flat.dtype) for flat in flats.values())
    for start in range(0, max(flats[0].size, 1), length):
        part = slice(start, start + length)
        yield {one: Piece(comfortable(flat[part])) for one, flat in flats.items()}


def measure_pieces(
    found: Iterable[Mapping[int, Piece]],
    wants: Iterable[Want],
    size: int,
    dtype: "np.dtype[Any]",
) -> dict[Want, Any]:
    """Return what is wanted of a tensor that comes piece by piece; numpy is to warn of nothing.

    Parameters
    ----------
    found
        Pieces that belong together, by how far back the value that they are of was saved: 0 is
        the value itself.
    wants
        Measures, and how far back the value is that each compares with: 0 is none.
    size, dtype
        How many elements there are, and as what they were saved.
    """
    parts: dict[Want, list[Any]] = {want: [] for want in wants}
    for together in found:
        for (one, distance), told in parts.items():
            before = together[distance] if distance else None
            told.append(one.part(together[0], before))
    return {want: want[0].join(told, size, dtype) for want, told in parts.items()}
