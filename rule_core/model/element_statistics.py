"""Statistics of the elements of one tensor, computed piece by piece."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from rule_core.kernels.operations import KernelCode, KernelOperation, KernelResult
from rule_core.model.streaming_statistics import Array, Piece


class PackedFlags(NamedTuple):
    """The flags of a piece, packed into bits; None if no flag is set."""

    size: int
    packed: Array | None

    @classmethod
    def of(cls, flags: Array) -> "PackedFlags":
        """Pack flags into bits."""
        return cls(flags.size, np.packbits(flags))

    def flags(self) -> Array:
        """Return the flags, of shape ``(size,)``."""
        if self.packed is None:
            return np.zeros(self.size, np.bool_)
        return np.unpackbits(self.packed, count=self.size).view(np.bool_)


class ActivityFlags(NamedTuple):
    """The active and the NaN elements of an array, by piece."""

    pieces: tuple[tuple[PackedFlags, PackedFlags], ...]

    def active(self, shape: tuple[int, ...]) -> Array:
        """Return whether each element is active, in the shape of the array."""
        return _whole([active for active, _ in self.pieces], shape)

    def nan(self, shape: tuple[int, ...]) -> Array | None:
        """Return whether each element is NaN, in the shape of the array; None if none is."""
        pieces = [nan for _, nan in self.pieces]
        return None if all(piece.packed is None for piece in pieces) else _whole(pieces, shape)


def _whole(pieces: Sequence[PackedFlags], shape: tuple[int, ...]) -> Array:
    flags = [piece.flags() for piece in pieces]
    return (flags[0] if len(flags) == 1 else np.concatenate(flags)).reshape(shape)


@dataclass(frozen=True, slots=True)
class Activity:
    """Finds the elements above `low`, and below `high` if given."""

    low: float
    high: float | None = None

    def part(self, piece: Piece, _: Piece | None = None) -> tuple[PackedFlags, PackedFlags]:
        """Return which are active and which are NaN; see `StreamingStatistic`.

        NaN is searched for only if the sum is NaN or infinite.
        """
        elements = piece.elements
        active = elements > self.low
        if self.high is not None:
            active &= elements < self.high
        nan = PackedFlags(elements.size, None)
        if elements.dtype.kind == "f" and not np.isfinite(piece.total(absolute=False)):
            flags = np.isnan(elements)
            nan = PackedFlags.of(flags) if flags.any() else nan
        return PackedFlags.of(active), nan

    @property
    def kernel_operation(self) -> KernelOperation:
        """Return the operation of the kernel; see `KernelStatistic`."""
        high = 0.0 if self.high is None else self.high
        return KernelOperation(KernelCode.ACTIVITY, self.low, high, flag=self.high is None)

    def kernel_part(self, result: KernelResult) -> tuple[PackedFlags, PackedFlags]:
        """Return which elements are active and which are NaN; see `KernelStatistic`."""
        active, nan = (None, None) if result.packed is None else result.packed
        return (
            PackedFlags(result.size, active),
            PackedFlags(result.size, nan if result.first else None),
        )

    def join(self, parts: Sequence[tuple[PackedFlags, PackedFlags]], *_: object) -> ActivityFlags:
        """Return the flags of all elements."""
        return ActivityFlags(tuple(parts))


@dataclass(frozen=True, slots=True)
class SingleNumber:
    """Tells the element of a tensor that has only one; otherwise, and of booleans, NaN.

    A zero has no sign.
    """

    kernel_operation: ClassVar = KernelOperation(KernelCode.SUM)

    def part(self, piece: Piece, _: Piece | None = None) -> float:
        """Return the element of a piece; see `StreamingStatistic`."""
        return float(piece.elements[0]) + 0.0 if piece.elements.size == 1 else math.nan

    def kernel_part(self, result: KernelResult) -> float:
        """Return the element of a piece; see `KernelStatistic`."""
        return float(result.first) + 0.0 if result.size == 1 else math.nan

    def join(self, parts: Sequence[float], size: int, dtype: "np.dtype[Any]") -> float:
        """Return the element of the tensor."""
        return parts[0] if size == 1 and dtype.kind != "b" else math.nan


@dataclass(frozen=True, slots=True)
class ZeroCount:
    """Counts zeros and elements."""

    kernel_operation: ClassVar = KernelOperation(KernelCode.ZEROS)

    def part(self, piece: Piece, _: Piece | None = None) -> int:
        """Return the number of zeros in a piece; see `StreamingStatistic`."""
        return int(np.count_nonzero(piece.elements == 0))

    def kernel_part(self, result: KernelResult) -> int:
        """Return the number of zeros in a piece; see `KernelStatistic`."""
        return int(result.first)

    def join(self, parts: Sequence[int], size: int, _: object) -> tuple[int, int]:
        """Return the number of zeros and of elements."""
        return sum(parts), size


class NonFiniteCounts(NamedTuple):
    """The numbers of NaN and infinite elements, the size, and the kind of the data type."""

    nan: int
    infinite: int
    size: int
    kind: str


@dataclass(frozen=True, slots=True)
class NonFiniteCount:
    """Measures how many elements are not finite."""

    kernel_operation: ClassVar = KernelOperation(KernelCode.NOT_FINITE)

    def part(self, piece: Piece, _: Piece | None = None) -> tuple[int, int]:
        """Return how many are NaN and infinite; see `StreamingStatistic`.

        Elements are examined one by one only if their sum is NaN or infinite.
        """
        elements = piece.elements
        if elements.dtype.kind != "f" or np.isfinite(piece.total(absolute=False)):
            return 0, 0
        nan, infinite = np.isnan(elements), np.isinf(elements)
        return int(np.count_nonzero(nan)), int(np.count_nonzero(infinite))

    def kernel_part(self, result: KernelResult) -> tuple[int, int]:
        """Return how many are NaN and infinite; see `KernelStatistic`."""
        return int(result.first), int(result.second)

    def join(
        self, parts: Sequence[tuple[int, int]], size: int, dtype: "np.dtype[Any]"
    ) -> NonFiniteCounts:
        """Return the counts over all elements."""
        nan, infinite = (sum(counts) for counts in zip(*parts, strict=True))
        return NonFiniteCounts(nan, infinite, size, dtype.kind)
