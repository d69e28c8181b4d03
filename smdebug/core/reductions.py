"""Reductions: scalars of a tensor, element-wise over every shape, in one pass over its bytes."""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from smdebug.core.measures import Piece, comfortable, measure, sum_of_squares, total
from smdebug.exceptions import SMDebugTypeError, SMDebugValueError

OPERATIONS: Final = (
    *("min", "max", "mean", "std", "variance", "sum", "prod", "median"),
    *("l1", "l2"),
)
NEED_ELEMENTS: Final = frozenset({"min", "max", "mean", "std", "variance", "median"})

Array = NDArray[Any]
Wanted = tuple[str, bool]


class Reduction(NamedTuple):
    """One reduction as a measure: its operation, and whether of the magnitudes.

    A median, and any reduction of complex numbers, needs the whole array: see `is_in_pieces`.
    """

    operation: str
    absolute: bool = False

    def part(self, piece: Piece, before: Piece | None = None) -> Any:
        """Return what a piece gives; see `smdebug.core.measures.Measure`."""
        del before
        return _PART[self.operation](piece, self.absolute)

    def join(self, parts: Sequence[Any], size: int, dtype: "np.dtype[Any]") -> np.generic:
        """Return the reduction of all pieces, of the type that numpy gives; see `Measure`."""
        joined = _JOIN[self.operation](parts, size)
        return _cast(joined, np.dtype(np.float32) if dtype.kind == "V" else dtype, self.operation)


def is_in_pieces(wanted: Wanted, dtype: "np.dtype[Any]", size: int) -> bool:
    """Say whether a reduction of so many elements is there, and is told piece by piece."""
    operation, _ = wanted
    known = operation in _PART and (size > 0 or operation not in NEED_ELEMENTS)
    return known and dtype.kind in "biufV"


def compute(array: Array, operation: str, absolute: bool = False) -> np.generic:
    """Return one reduction of all elements; see `compute_all`.

    >>> float(compute(np.array([[3.0, -4.0]]), "l2")), int(compute(np.array([3, -4]), "max", True))
    (5.0, 4)
    """
    return compute_all(array, [(operation, absolute)])[operation, absolute]


def compute_all(array: Array, wanted: Iterable[Wanted]) -> dict[Wanted, np.generic]:
    """Return several reductions of all elements from one pass over them.

    Parameters
    ----------
    array
        Any shape ``(...)``, including 0-D; numbers or booleans.
    wanted
        Pairs of an operation of `OPERATIONS` and whether to take the magnitudes first. `std` and
        `variance` divide by the number of elements; `l1` is the sum of magnitudes and `l2` the
        Euclidean norm, for every shape (never a matrix norm).

    Returns
    -------
    dict
        Numpy scalars of the type that numpy gives for the operation (float32 for bfloat16).
        NaN anywhere gives NaN. The unit carries through.

    Raises
    ------
    SMDebugValueError
        If an operation is unknown, or the array is empty and the operation has no value for it.
    SMDebugTypeError
        If the elements are no numbers.
    """
    wanted = list(wanted)
    for operation, _ in wanted:
        _check(array, operation)
    in_pieces = [Reduction(*one) for one in wanted if is_in_pieces(one, array.dtype, array.size)]
    told = measure(array, in_pieces) if in_pieces else {}
    found: dict[Wanted, np.generic] = {one: told[one] for one in in_pieces}
    return {one: found[one] if one in found else _of_whole(array, *one) for one in wanted}


def _of_whole(array: Array, operation: str, absolute: bool) -> np.generic:
    """Return a reduction that needs all elements at once."""
    flat = array.reshape(-1)
    flat = flat.astype(np.float32) if flat.dtype.kind == "V" else flat
    # The magnitude of the least integer does not fit its own type.
    wide = flat.astype(np.int64) if flat.dtype.kind == "i" else flat
    with np.errstate(all="ignore"):
        return _WHOLE[operation](np.abs(wide) if absolute else flat)


def of_rows(rows: Array, wanted: Sequence[Reduction]) -> dict[Reduction, list[np.generic]]:
    """Return reductions that are told in pieces, of each row; the same as `compute` gives.

    Parameters
    ----------
    rows
        Shape ``(arrays, elements)``, no row longer than a piece.
    """
    elements = comfortable(rows)
    if elements.dtype.kind != "f":
        each = [measure(row, wanted) for row in rows]
        return {one: [found[one] for found in each] for one in wanted}
    dtype = elements.dtype if rows.dtype.kind == "V" else rows.dtype
    found: dict[Reduction, list[np.generic]] = {}
    with np.errstate(all="ignore"):
        both = {False: elements}
        for one in wanted:
            if one.operation not in _OF_ROWS:
                found[one] = [measure(row, [one])[one] for row in rows]
                continue
            absolute = bool(one.absolute) or one.operation == "l1"
            if absolute not in both:
                both[True] = np.abs(elements)
            values = _OF_ROWS[one.operation](both[absolute])
            found[one] = list(values.astype(dtype))
            for at in (~np.isfinite(values)).nonzero()[0]:
                found[one][at] = measure(rows[at], [one])[one]
    return found


def _check(array: Array, operation: str) -> None:
    if operation not in OPERATIONS:
        msg = f"Reduction {operation!r} is none of {', '.join(OPERATIONS)}."
        raise SMDebugValueError(msg)
    if array.dtype.kind not in "biufcV":
        msg = f"A tensor of type {array.dtype} has no reductions."
        raise SMDebugTypeError(msg)
    if not array.size and operation in NEED_ELEMENTS:
        msg = f"A tensor without elements has no {operation}."
        raise SMDebugValueError(msg)


def _doubles(elements: Array) -> Array:
    return elements if elements.dtype.kind == "f" else elements.astype(np.float64)


def _moments(piece: Piece, absolute: bool) -> tuple[int, float, float]:
    """Return count, mean and sum of squared deviations."""
    numbers = _doubles(_of(piece, absolute))
    mean = _mean_sum(piece, absolute) / numbers.size
    return numbers.size, mean, sum_of_squares(numbers - numbers.dtype.type(mean))


def _mean_sum(piece: Piece, absolute: bool) -> Any:
    """Return the sum that a mean is made of: of integers in double precision."""
    if piece.elements.dtype.kind == "f":
        return piece.total(absolute)
    return total(_of(piece, absolute).astype(np.float64))


def _of(piece: Piece, absolute: bool) -> Array:
    return piece.magnitudes if absolute else piece.elements


def _joined_variance(parts: Sequence[tuple[int, float, float]], size: int) -> float:
    """Join counts, means and squared deviations of parts (Chan, Golub and LeVeque, 1979)."""
    count, mean, squares = parts[0]
    for more, other, deviations in parts[1:]:
        delta, together = other - mean, count + more
        mean += delta * more / together
        squares += deviations + delta * delta * count * more / together
        count = together
    return squares / size


_PART: Final[dict[str, Callable[[Piece, bool], Any]]] = {
    "min": lambda piece, absolute: np.minimum.reduce(_of(piece, absolute)),
    "max": lambda piece, absolute: np.maximum.reduce(_of(piece, absolute)),
    "sum": Piece.total,
    "mean": _mean_sum,
    "prod": lambda piece, absolute: np.prod(_of(piece, absolute)),
    "variance": _moments,
    "std": _moments,
    "l1": lambda piece, _: float(piece.total(absolute=True)),
    "l2": lambda piece, absolute: sum_of_squares(_doubles(_of(piece, absolute))),
}
# Exactly what a part and a join give for a single piece.
_OF_ROWS: Final[dict[str, Callable[[Array], Array]]] = {
    "min": lambda rows: np.minimum.reduce(rows, axis=1),
    "max": lambda rows: np.maximum.reduce(rows, axis=1),
    "sum": lambda rows: np.add.reduce(rows, axis=1),
    "l1": lambda rows: np.add.reduce(rows, axis=1),
    "mean": lambda rows: np.add.reduce(rows, axis=1).astype(np.float64) / rows.shape[1],
}
_JOIN: Final[dict[str, Callable[[Sequence[Any], int], Any]]] = {
    "min": lambda parts, _: np.min(parts),
    "max": lambda parts, _: np.max(parts),
    "sum": lambda parts, _: sum(parts[1:], parts[0]),
    "mean": lambda parts, size: sum(parts) / size,
    "prod": lambda parts, _: np.prod(parts),
    "variance": _joined_variance,
    "std": lambda parts, size: math.sqrt(_joined_variance(parts, size)),
    "l1": lambda parts, _: sum(parts),
    "l2": lambda parts, _: math.sqrt(sum(parts)),
}
_WHOLE: Final[dict[str, Callable[[Array], np.generic]]] = {
    "min": np.min,
    "max": np.max,
    "mean": np.mean,
    "std": np.std,
    "variance": np.var,
    "sum": np.sum,
    "prod": np.prod,
    "median": np.median,
    "l1": lambda whole: np.sum(np.abs(whole)),
    "l2": lambda whole: np.sqrt(np.sum(np.abs(whole) ** 2)),
}


def _cast(value: Any, dtype: "np.dtype[Any]", operation: str) -> np.generic:
    """Return the value as the scalar type that numpy gives for the operation on `dtype`."""
    kind = dtype.kind
    scalar: type[np.generic] = np.float64
    if kind == "f":
        scalar = dtype.type
    elif operation in {"min", "max"}:
        # The magnitude of the least integer does not fit its own type.
        fits = kind != "i" or int(value) <= np.iinfo(dtype).max
        scalar = dtype.type if fits else np.int64
    elif operation in {"sum", "prod"}:
        scalar = np.uint64 if kind == "u" else np.int64
    return scalar(value)
