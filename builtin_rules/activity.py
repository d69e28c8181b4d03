"""Activity: which elements of an array are active, told piece by piece."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from smdebug.core.measures import Piece

Array = NDArray[Any]


class Bits(NamedTuple):
    """Flags of the elements of a piece, eight to a byte; None where none is set."""

    size: int
    packed: Array | None

    @classmethod
    def of(cls, flags: Array) -> "Bits":
        """Return flags, packed."""
        return cls(flags.size, np.packbits(flags))

    def flags(self) -> Array:
        """Return the flags, of shape ``(size,)``."""
        if self.packed is None:
            return np.zeros(self.size, np.bool_)
        return np.unpackbits(self.packed, count=self.size).view(np.bool_)


class Flags(NamedTuple):
    """Which elements of an array are active, and which are NaN, piece by piece."""

    pieces: tuple[tuple[Bits, Bits], ...]

    def active(self, shape: tuple[int, ...]) -> Array:
        """Return whether each element is active, in the shape of the array."""
        return _whole([active for active, _ in self.pieces], shape)

    def nan(self, shape: tuple[int, ...]) -> Array | None:
        """Return whether each element is NaN, in the shape of the array; None if none is."""
        found = [nan for _, nan in self.pieces]
        return None if all(one.packed is None for one in found) else _whole(found, shape)


def _whole(pieces: Sequence[Bits], shape: tuple[int, ...]) -> Array:
    flags = [one.flags() for one in pieces]
    return (flags[0] if len(flags) == 1 else np.concatenate(flags)).reshape(shape)


@dataclass(frozen=True, slots=True)
class Activity:
    """Measures which elements are larger than `low`, and smaller than `high` if that is given."""

    low: float
    high: float | None = None

    def part(self, piece: Piece, before: Piece | None = None) -> tuple[Bits, Bits]:
        """Return which are active and which are NaN; see `smdebug.core.measures.Measure`.

        A look for NaN is due where the sum shows NaN or infinity only.
        """
        del before
        elements = piece.elements
        active = elements > self.low
        if self.high is not None:
            active &= elements < self.high
        nan = Bits(elements.size, None)
        if elements.dtype.kind == "f" and not np.isfinite(piece.total(absolute=False)):
            nan = Bits.of(np.isnan(elements))
        return Bits.of(active), nan

    def join(self, parts: Sequence[tuple[Bits, Bits]], size: int, dtype: "np.dtype[Any]") -> Flags:
        """Return which of all elements are."""
        del size, dtype
        return Flags(tuple(parts))
