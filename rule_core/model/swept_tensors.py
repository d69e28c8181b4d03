"""SweptTensors: statistics of tensors whose pieces the compiled kernel measures in one call."""

from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from typing import Any, Final, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from rule_core.kernels.lanes import lane_sums
from rule_core.kernels.sweep import Sweep, SweepResults
from rule_core.model.reductions import Reduction, extreme, result_type
from rule_core.model.streaming_statistics import (
    KernelStatistic,
    Piece,
    Want,
    measure,
    to_computable,
)

_OF_SQUARES: Final = frozenset({"variance", "std"})  # of the second result
_OF_MEANS: Final = _OF_SQUARES | {"mean"}
_OF_ROOTS: Final = frozenset({"std", "l2"})
# Equal to part of a single piece.
_OF_ROWS: Final[dict[str, Callable[[NDArray[Any]], NDArray[Any]]]] = {
    "min": lambda rows: extreme(np.minimum.reduce(rows, axis=1)),
    "max": lambda rows: extreme(np.maximum.reduce(rows, axis=1)),
    "sum": lane_sums,
    "l1": lane_sums,
    "mean": lane_sums,
    "l2": lambda rows: lane_sums(np.square(rows, dtype=np.float64)),
}
Results = dict[Want, dict[str, Any]]  # by statistic and tensor


class SweptTensor(NamedTuple):
    """A tensor, and which pieces of a `Sweep` are its own.

    Attributes
    ----------
    name, size, dtype
        The tensor, the number of its elements, and their saved type.
    wants
        Its statistics, in the order of the operations of each piece.
    pieces
        The indices of its pieces.
    """

    name: str
    size: int
    dtype: "np.dtype[Any]"
    wants: Sequence[Want]
    pieces: range


class _SameReduction(NamedTuple):
    """Tensors of one piece, size and type with the same reduction.

    Attributes
    ----------
    rows
        The rows of the results.
    dtype
        The type of the reductions.
    """

    want: Want
    names: list[str]
    rows: NDArray[np.intp]
    size: int
    dtype: "np.dtype[Any]"


class SweptTensors:
    """Forms the statistics of tensors from the results of their pieces.

    Reductions of tensors that are alike and of one piece are formed together.

    Parameters
    ----------
    tensors
        The tensors.
    sweep
        What measures their pieces.
    """

    def __init__(self, tensors: Sequence[SweptTensor], sweep: Sweep) -> None:
        self._tensors = tensors
        self._together: list[_SameReduction] = []
        self._apart: list[tuple[SweptTensor, list[int]]] = []
        alike: dict[Any, list[tuple[str, int]]] = {}
        for tensor in tensors:
            apart = []
            for number, want in enumerate(tensor.wants):
                if _is_formed_together(tensor, want):
                    row = sweep.row(tensor.pieces.start, number)
                    alike.setdefault((want, tensor.size, tensor.dtype), []).append(
                        (tensor.name, row)
                    )
                else:
                    apart.append(number)
            if apart:
                self._apart.append((tensor, apart))
        for (want, size, dtype), named_rows in alike.items():
            names, rows = zip(*named_rows, strict=True)
            self._together.append(
                _SameReduction(want, [*names], np.array(rows), size, result_type(dtype))
            )

    def truncated(self, swept: SweepResults) -> set[str]:
        """Return the tensors that were not read because their files ended."""
        if not swept.truncated:
            return set()
        return {each.name for each in self._tensors if not swept.truncated.isdisjoint(each.pieces)}

    def add_to(
        self, results: Results, swept: SweepResults, without: AbstractSet[str] = frozenset()
    ) -> None:
        """Add the statistics of all tensors; one that cannot be formed is left out.

        Parameters
        ----------
        results
            Has a dictionary for each want.
        swept
            The results of the sweep.
        without
            Tensors to leave out.
        """
        with np.errstate(all="ignore"):
            for want, names, rows, size, dtype in self._together:
                operation = cast("Reduction", want[0]).operation
                values = _single_pieces(operation, swept.numbers[rows], size, dtype)
                formed: Iterable[tuple[str, Any]] = zip(names, values, strict=True)
                if without:
                    formed = ((name, value) for name, value in formed if name not in without)
                results[want].update(formed)
            for tensor, numbers in self._apart:
                if tensor.name not in without:
                    for number in numbers:
                        want = tensor.wants[number]
                        with suppress(Exception):  # a statistic may be a user's
                            results[want][tensor.name] = _joined(tensor, number, swept)


def _joined(tensor: SweptTensor, number: int, swept: SweepResults) -> Any:
    """Return a statistic of a tensor."""
    statistic, _ = tensor.wants[number]
    part_of = cast("KernelStatistic", statistic).kernel_part
    parts = [part_of(swept.result(piece, number)) for piece in tensor.pieces]
    return statistic.join(parts, tensor.size, tensor.dtype)


def _is_formed_together(tensor: SweptTensor, want: Want) -> bool:
    is_float = tensor.dtype.kind in "fV"
    return is_float and len(tensor.pieces) == 1 and isinstance(want[0], Reduction)


def of_rows(
    rows: NDArray[Any], reductions: Sequence[Reduction]
) -> dict[Reduction, list[np.generic]]:
    """Return piecewise reductions of each row, equal to the results of `compute`.

    Parameters
    ----------
    rows
        Shape ``(arrays, elements)``, no row longer than a piece.
    """
    elements = to_computable(rows)
    if elements.dtype.kind != "f":
        each = [measure(row, reductions) for row in rows]
        return {reduction: [results[reduction] for results in each] for reduction in reductions}
    with np.errstate(all="ignore"):
        return _of_float_rows(elements, reductions, rows.dtype)


def _of_float_rows(
    elements: NDArray[Any], reductions: Sequence[Reduction], dtype: "np.dtype[Any]"
) -> dict[Reduction, list[np.generic]]:
    """Return reductions of rows that were saved as `dtype`."""
    results: dict[Reduction, list[np.generic]] = {}
    by_absolute = {False: elements}
    for reduction in reductions:
        operation = reduction.operation
        if operation not in _OF_ROWS:
            results[reduction] = [
                reduction.join([reduction.part(Piece(row))], row.size, dtype) for row in elements
            ]
            continue
        absolute = bool(reduction.absolute) or operation == "l1"
        if absolute not in by_absolute:
            by_absolute[True] = np.abs(elements)
        values = _OF_ROWS[operation](by_absolute[absolute])
        results[reduction] = _single_pieces(
            operation, values[:, None], elements.shape[1], result_type(dtype)
        )
    return results


def _single_pieces(
    operation: str, results: NDArray[np.float64], size: int, dtype: "np.dtype[Any]"
) -> list[np.generic]:
    """Return the reductions of floating-point tensors that are one piece each.

    Equal to `Reduction.join` of `kernel_part`; call with numpy warnings off.

    Parameters
    ----------
    results
        The kernel's results, shape ``(tensors, 2)``.
    size, dtype
        The number of elements of each, and the type of the reductions.
    """
    values = results[:, 1 if operation in _OF_SQUARES else 0]
    if operation in _OF_MEANS:
        values = values / size
    return list((np.sqrt(values) if operation in _OF_ROOTS else values).astype(dtype))
