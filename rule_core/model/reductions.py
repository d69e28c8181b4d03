"""Reductions: scalars of a tensor of any shape, in one pass over its elements."""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from rule_core.exceptions import SMDebugTypeError, SMDebugValueError
from rule_core.kernels.operations import KernelCode, KernelOperation, KernelResult
from rule_core.model.reduction_config import NORMS, REDUCTIONS
from rule_core.model.streaming_statistics import Array, Piece, measure, sum_of_squares, total

OPERATIONS: Final = (*REDUCTIONS, *NORMS)
NEED_ELEMENTS: Final = frozenset({"min", "max", "mean", "std", "variance", "median"})

ReductionKey = tuple[str, bool]


class Reduction(NamedTuple):
    """One reduction as a streaming statistic: the operation, and whether of the magnitudes.

    Medians and all reductions of complex numbers need the whole array; see `is_in_pieces`.
    """

    operation: str
    absolute: bool = False

    def part(self, piece: Piece, _: Piece | None = None) -> Any:
        """Return the partial result of a piece; see `StreamingStatistic`."""
        return _PART[self.operation](piece, self.absolute)

    @property
    def kernel_operation(self) -> KernelOperation | None:
        """Return the operation of the kernel; see `KernelStatistic`."""
        operations = _OPERATIONS.get(self.operation)
        return None if operations is None else operations[bool(self.absolute)]

    def kernel_part(self, result: KernelResult) -> Any:
        """Return the partial result of a piece; see `KernelStatistic`."""
        if self.operation in {"variance", "std"}:
            return result.size, result.first, result.second
        return float(result.first) if self.operation == "l1" else result.first

    def join(self, parts: Sequence[Any], size: int, dtype: "np.dtype[Any]") -> np.generic:
        """Return the reduction of all pieces with numpy's result type; see `StreamingStatistic`."""
        return _cast(_JOIN[self.operation](parts, size), result_type(dtype), self.operation)


def is_in_pieces(reduction: ReductionKey, dtype: "np.dtype[Any]", size: int) -> bool:
    """Return whether a reduction of `size` elements exists and can be computed piece by piece."""
    operation, _ = reduction
    is_defined = operation in _PART and (size > 0 or operation not in NEED_ELEMENTS)
    return is_defined and dtype.kind in "biufV"


def result_type(dtype: "np.dtype[Any]") -> "np.dtype[Any]":
    """Return the type of most reductions of elements that were saved as `dtype`."""
    return np.dtype(np.float32) if _is_extension(dtype) else dtype


def _is_extension(dtype: "np.dtype[Any]") -> bool:
    """Return whether numpy itself lacks a type: bfloat16 and those of 8 bits."""
    return dtype.kind == "V" or (dtype.kind == "f" and dtype.itemsize == 1)


def compute(array: Array, operation: str, absolute: bool = False) -> np.generic:
    """Return one reduction of all elements; see `compute_all`.

    >>> float(compute(np.array([[3.0, -4.0]]), "l2")), int(compute(np.array([3, -4]), "max", True))
    (5.0, 4)
    """
    return compute_all(array, [(operation, absolute)])[operation, absolute]


def compute_all(array: Array, reductions: Iterable[ReductionKey]) -> dict[ReductionKey, np.generic]:
    """Return several reductions of all elements, computed in one pass.

    Parameters
    ----------
    array
        Numbers or booleans of any shape ``(...)``, including 0-D.
    reductions
        Pairs of an operation of `OPERATIONS` and whether to use the magnitudes. `std` and
        `variance` divide by the number of elements; `l1` is the sum of magnitudes and `l2` the
        Euclidean norm, for every shape (never a matrix norm).

    Returns
    -------
    dict
        Numpy scalars of numpy's result type for the operation (float32 for bfloat16), in the unit
        of the elements. Any NaN gives NaN.

    Raises
    ------
    SMDebugValueError
        If an operation is unknown, or the array is empty and the operation has no value for it.
    SMDebugTypeError
        If the elements are not numbers.
    """
    keys = list(reductions)
    for operation, _ in keys:
        _check(array, operation)
    in_pieces = [Reduction(*key) for key in keys if is_in_pieces(key, array.dtype, array.size)]
    measured = measure(array, in_pieces) if in_pieces else {}
    results: dict[ReductionKey, np.generic] = {key: measured[key] for key in in_pieces}
    return {key: results[key] if key in results else _of_whole(array, *key) for key in keys}


def _of_whole(array: Array, operation: str, absolute: bool) -> np.generic:
    """Return a reduction of the whole array at once."""
    flat = array.reshape(-1)
    flat = flat.astype(np.float32) if _is_extension(flat.dtype) else flat
    # The magnitude of the smallest integer does not fit its type.
    wide = flat.astype(np.int64) if flat.dtype.kind == "i" else flat
    with np.errstate(all="ignore"):
        return _WHOLE[operation](np.abs(wide) if absolute else flat)


def _check(array: Array, operation: str) -> None:
    if operation not in OPERATIONS:
        raise SMDebugValueError(f"Reduction {operation!r} must be one of {', '.join(OPERATIONS)}.")
    if array.dtype.kind not in "biufcV":
        raise SMDebugTypeError(f"A tensor of type {array.dtype} has no reductions.")
    if not array.size and operation in NEED_ELEMENTS:
        raise SMDebugValueError(f"A tensor without elements has no {operation}.")


def _moments(piece: Piece, absolute: bool) -> tuple[int, float, float]:
    """Return count, mean and sum of squared deviations."""
    numbers = _of(piece, absolute).astype(np.float64, copy=False)
    mean = _mean_sum(piece, absolute) / numbers.size
    return numbers.size, mean, sum_of_squares(numbers - mean)


def _mean_sum(piece: Piece, absolute: bool) -> Any:
    """Return the sum for a mean, for integers in double precision."""
    if piece.elements.dtype.kind == "f":
        return piece.total(absolute)
    return total(_of(piece, absolute).astype(np.float64))


def extreme(value: Any) -> Any:
    """Return a value without a negative zero, which would depend on the order of elements."""
    return value + value.dtype.type(0)


def _of(piece: Piece, absolute: bool) -> Array:
    return piece.magnitudes if absolute else piece.elements


def _join_variance(parts: Sequence[tuple[int, float, float]], size: int) -> float:
    """Combine counts, means and squared deviations of parts (Chan, Golub and LeVeque, 1979)."""
    count, mean, squares = parts[0]
    for part_count, part_mean, deviations in parts[1:]:
        delta, total_count = part_mean - mean, count + part_count
        mean += delta * part_count / total_count
        squares += deviations + delta * delta * count * part_count / total_count
        count = total_count
    return squares / size


_PART: Final[dict[str, Callable[[Piece, bool], Any]]] = {
    "min": lambda piece, absolute: extreme(np.minimum.reduce(_of(piece, absolute))),
    "max": lambda piece, absolute: extreme(np.maximum.reduce(_of(piece, absolute))),
    "sum": Piece.total,
    "mean": _mean_sum,
    "prod": lambda piece, absolute: np.prod(_of(piece, absolute)),
    "variance": _moments,
    "std": _moments,
    "l1": lambda piece, _: float(piece.total(absolute=True)),
    "l2": lambda piece, absolute: sum_of_squares(_of(piece, absolute)),
}
# By the operation; the second one is of the magnitudes.
_OPERATIONS: Final = {
    name: (KernelOperation(code), KernelOperation(code_of_magnitudes))
    for name, code, code_of_magnitudes in (
        ("min", KernelCode.MINIMUM, KernelCode.MINIMUM_MAGNITUDE),
        ("max", KernelCode.MAXIMUM, KernelCode.MAXIMUM_MAGNITUDE),
        ("sum", KernelCode.TOTAL, KernelCode.TOTAL_MAGNITUDE),
        ("mean", KernelCode.SUM, KernelCode.SUM_MAGNITUDE),
        ("variance", KernelCode.MOMENTS, KernelCode.MOMENTS_MAGNITUDE),
        ("std", KernelCode.MOMENTS, KernelCode.MOMENTS_MAGNITUDE),
        ("l1", KernelCode.TOTAL_MAGNITUDE, KernelCode.TOTAL_MAGNITUDE),
        ("l2", KernelCode.SQUARES, KernelCode.SQUARES),
    )
}
_JOIN: Final[dict[str, Callable[[Sequence[Any], int], Any]]] = {
    "min": lambda parts, _: np.min(parts),
    "max": lambda parts, _: np.max(parts),
    "sum": lambda parts, _: sum(parts[1:], parts[0]),
    "mean": lambda parts, size: sum(parts) / size,
    "prod": lambda parts, _: np.prod(parts),
    "variance": _join_variance,
    "std": lambda parts, size: math.sqrt(_join_variance(parts, size)),
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
    """Convert the value to numpy's result type of the operation on `dtype`."""
    kind = dtype.kind
    scalar: type[np.generic] = np.float64
    if kind == "f":
        scalar = dtype.type
    elif operation in {"min", "max"}:
        # The magnitude of the smallest integer does not fit its type.
        fits = kind != "i" or int(value) <= np.iinfo(dtype).max
        scalar = dtype.type if fits else np.int64
    elif operation in {"sum", "prod"}:
        scalar = np.uint64 if kind == "u" else np.int64
    return scalar(value)


def reduced_value(value: Array | np.generic) -> Any:
    """Return a computed scalar, or a saved array of one element, as one kind of scalar.

    It is a numpy scalar: it can be hashed, formatted and compared. Its only element has index 0, as
    documented. Values of other types, such as booleans, are plain numpy scalars.

    >>> mean = reduced_value(np.array([2.5], np.float32))
    >>> float(mean), float(mean[0]), f"{mean:.2f}", bool(mean < 3), np.array([mean, mean]).shape
    (2.5, 2.5, '2.50', True, (2,))
    """
    if value.size != 1:  # a damaged trial
        return value
    scalar = value if isinstance(value, np.generic) else value.reshape(())[()]
    indexed_type = _INDEXED_TYPES.get(type(scalar))
    return scalar if indexed_type is None else indexed_type(scalar)


def _element(scalar: Any, index: Any) -> Any:
    """Return the scalar for its only element, otherwise what an array of shape (1,) returns."""
    return scalar if index in (0, -1) else np.asarray(scalar).reshape(1)[index]


_INDEXED: Final = (
    *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64", "complex64", "complex128"),
)
# numpy finds the data type of a scalar by its first base class: a second one would break it.
_INDEXED_TYPES: Final[dict[type, type]] = {
    getattr(np, name): type(name, (getattr(np, name),), {"__slots__": (), "__getitem__": _element})
    for name in _INDEXED
}
