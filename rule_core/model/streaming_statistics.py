"""Streaming statistics: computed piece by piece in the CPU cache, several in one pass."""

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from rule_core.kernels.lanes import lane_sum
from rule_core.kernels.operations import KernelOperation, KernelResult
from rule_core.kernels.sweep import can_compute, is_supported, sweep_arrays

PIECE_BYTES: Final = 1 << 18  # with its intermediate results, fits a core's cache

Array = NDArray[Any]


class Piece:
    """Consecutive elements of a tensor, with intermediate results that statistics share.

    Attributes
    ----------
    elements
        Shape ``(n,)``, aligned; float16 and smaller as float32, signed integers as int64.

    Parameters
    ----------
    spare
        Memory of the same shape and type for the magnitudes; allocated if None.
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

        Floating-point numbers are added in double precision; see `lane_sums`.
        """
        if absolute not in self._totals:
            self._totals[absolute] = total(self.magnitudes if absolute else self.elements)
        return self._totals[absolute]


def total(elements: Array) -> Any:
    """Return a sum; see `Piece.total`."""
    return lane_sum(elements) if elements.dtype.kind == "f" else np.add.reduce(elements)


def sum_of_squares(elements: Array) -> float:
    """Return the sum of squares of floating-point numbers, in double precision.

    Does not use a dot product: BLAS starts threads and sums in an order that depends on the
    machine.
    """
    return lane_sum(np.square(elements, dtype=np.float64))


class StreamingStatistic(Hashable, Protocol):
    """A statistic of a tensor, or of a tensor and an earlier value of it.

    Equal statistics must give equal results, because results are cached and shared between rules.
    Avoid tuples: tuples of different classes are equal if their fields are.
    """

    def part(self, piece: Piece, before: Piece | None = None, /) -> Any:
        """Return the partial result of a piece and, if given, the same piece of the earlier value.

        The result must not reference the pieces, whose memory is reused.
        """
        ...

    def join(self, parts: Sequence[Any], size: int, dtype: "np.dtype[Any]", /) -> Any:
        """Combine the partial results of `size` elements that were saved as `dtype`."""
        ...


class KernelStatistic(Protocol):
    """A streaming statistic whose partial results the compiled kernel can compute as well."""

    @property
    def kernel_operation(self) -> KernelOperation | None:
        """Return the operation of the kernel; None without one."""
        ...

    def kernel_part(self, result: KernelResult) -> Any:
        """Return what `StreamingStatistic.part` returns, to the last bit, from a result."""
        ...


def kernel_operation(statistic: StreamingStatistic, back: int) -> KernelOperation | None:
    """Return the operation that computes a statistic, if there is one.

    Parameters
    ----------
    back
        How many steps back the value that it compares with is; 0 means none.
    """
    operation = getattr(statistic, "kernel_operation", None)
    return operation if can_compute(operation, back) else None


# A statistic, and how many steps back the value that it compares with is; 0 means none.
Want = tuple[StreamingStatistic, int]


def piece_length(dtype: "np.dtype[Any]") -> int:
    """Return the number of elements of a type in one piece."""
    return PIECE_BYTES // dtype.itemsize


def to_computable(elements: Array) -> Array:
    """Convert elements to an aligned array of a type with native arithmetic and large range."""
    dtype = elements.dtype
    if dtype.kind == "V" or (dtype.kind == "f" and dtype.itemsize <= np.dtype(np.float16).itemsize):
        return elements.astype(np.float32)
    if dtype.kind == "i":
        return elements.astype(np.int64, copy=not elements.flags.aligned)
    return elements if elements.flags.aligned else elements.copy()


def measure(
    array: Array, statistics: Iterable[StreamingStatistic], before: Array | None = None
) -> dict[StreamingStatistic, Any]:
    """Return several statistics of an array in memory, computed in one pass.

    Parameters
    ----------
    array, before
        Real numbers or booleans, of one shape ``(...)``.
    """
    distance = 0 if before is None else 1
    flats = (
        {0: array.reshape(-1)} if before is None else {0: array.reshape(-1), 1: before.reshape(-1)}
    )
    wants = [(statistic, distance) for statistic in statistics]
    with np.errstate(all="ignore"):
        results = measure_pieces(_pieces(flats), wants, array.size, array.dtype)
    return {statistic: value for (statistic, _), value in results.items()}


def _pieces(flats: Mapping[int, Array]) -> Iterator[dict[int, Piece]]:
    """Yield the corresponding pieces of flat arrays, at least once."""
    length = min(piece_length(flat.dtype) for flat in flats.values())
    for start in range(0, max(flats[0].size, 1), length):
        part = slice(start, start + length)
        yield {back: Piece(to_computable(flat[part])) for back, flat in flats.items()}


def measure_pieces(
    pieces: Iterable[Mapping[int, Piece]],
    wants: Iterable[Want],
    size: int,
    dtype: "np.dtype[Any]",
) -> dict[Want, Any]:
    """Return statistics of a tensor given piece by piece; call with numpy warnings off.

    Parameters
    ----------
    pieces
        Corresponding pieces, by steps back; 0 is the value itself.
    wants
        Statistics, and how many steps back the value that each compares with is; 0 means none.
    size, dtype
        The number of elements and their saved type.
    """
    parts: dict[Want, list[Any]] = {want: [] for want in wants}
    for corresponding in pieces:
        for want, part in parts_of(corresponding, tuple(parts)).items():
            parts[want].append(part)
    return {want: want[0].join(partials, size, dtype) for want, partials in parts.items()}


def parts_of(pieces: Mapping[int, Piece], wants: Sequence[Want]) -> dict[Want, Any]:
    """Return the partial results of corresponding pieces, by the kernel as far as it can.

    Parameters
    ----------
    pieces, wants
        As in `measure_pieces`.
    """
    parts = _kernel_parts(pieces, wants)
    for want in wants:
        if want not in parts:
            statistic, distance = want
            before = pieces[distance] if distance else None
            parts[want] = statistic.part(pieces[0], before)
    return parts


def _kernel_parts(pieces: Mapping[int, Piece], wants: Sequence[Want]) -> dict[Want, Any]:
    """Return the partial results that the kernel can compute."""
    elements = pieces[0].elements
    if not is_supported(elements.dtype) or not elements.size:
        return {}
    backs = [
        back
        for back, piece in sorted(pieces.items())
        if piece.elements.dtype == elements.dtype and piece.elements.flags.c_contiguous
    ]
    operations = [
        (want, operation)
        for want in wants
        if {0, want[1]} <= {*backs} and (operation := kernel_operation(*want)) is not None
    ]
    if not operations:
        return {}
    results = sweep_arrays(
        [pieces[back].elements for back in backs],
        tuple((operation, backs.index(back)) for (_, back), operation in operations),
    )
    return {
        want: cast("KernelStatistic", want[0]).kernel_part(result)
        for (want, _), result in zip(operations, results, strict=True)
    }
