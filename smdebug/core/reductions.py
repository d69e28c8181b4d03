"""Reductions: scalars of a tensor, element-wise over every shape, in one pass over its bytes."""

import math
from collections.abc import Callable, Iterable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from smdebug.exceptions import SMDebugTypeError, SMDebugValueError

OPERATIONS: Final = (
    *("min", "max", "mean", "std", "variance", "sum", "prod", "median"),
    *("l1", "l2"),
)
NEED_ELEMENTS: Final = frozenset({"min", "max", "mean", "std", "variance", "median"})
CHUNK: Final = 1 << 16  # elements: at most half a megabyte, which stays in the cache

Array = NDArray[Any]
Wanted = tuple[str, bool]


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
    flat = array.reshape(-1)
    if array.dtype.kind in "Vc":
        flat = flat.astype(np.float32) if array.dtype.kind == "V" else flat
    result: dict[Wanted, np.generic] = {}
    with np.errstate(all="ignore"):
        chunked = []
        for one in wanted:
            if one[0] == "median" or array.dtype.kind == "c":
                # The magnitude of the least integer does not fit its own type.
                wide = flat.astype(np.int64) if flat.dtype.kind == "i" else flat
                result[one] = _WHOLE[one[0]](np.abs(wide) if one[1] else flat)
            else:
                chunked.append(one)
        for one, value in _in_chunks(flat, chunked).items():
            result[one] = _cast(value, flat.dtype, one[0])
    return result


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


def _in_chunks(flat: Array, wanted: list[Wanted]) -> dict[Wanted, Any]:
    """Take every part of `flat` into the cache once, and join what the parts give."""
    parts: dict[Wanted, list[Any]] = {one: [] for one in wanted}
    if not wanted:
        return {}
    magnitudes = any(absolute for _, absolute in wanted)
    for start in range(0, flat.size, CHUNK):
        chunk = _comfortable(flat[start : start + CHUNK])
        both = (chunk, np.abs(chunk) if magnitudes else chunk)
        for one in wanted:
            parts[one].append(_PART[one[0]](both[one[1]]))
    return {one: _JOIN[one[0]](found, flat.size) for one, found in parts.items()}


def _comfortable(chunk: Array) -> Array:
    """Return the chunk in a type that its sums fit in."""
    if chunk.dtype == np.float16:
        return chunk.astype(np.float32)
    if chunk.dtype.kind == "i":
        return chunk.astype(np.int64, copy=False)
    return chunk


def _sum(chunk: Array) -> Any:
    """Sum in the chunk's own precision, and again in double precision if that overflows."""
    if chunk.dtype.kind != "f":
        return chunk.sum()
    total = chunk.sum()
    return float(total if np.isfinite(total) else chunk.sum(dtype=np.float64))


def _squares(chunk: Array) -> float:
    numbers = chunk if chunk.dtype.kind == "f" else chunk.astype(np.float64)
    total = np.dot(numbers, numbers)
    if np.isfinite(total):
        return float(total)
    return float(np.square(numbers, dtype=np.float64).sum())


def _moments(chunk: Array) -> tuple[int, float, float]:
    """Return count, mean and sum of squared deviations."""
    numbers = chunk if chunk.dtype.kind == "f" else chunk.astype(np.float64)
    mean = _sum(numbers) / numbers.size
    return numbers.size, mean, _squares(numbers - numbers.dtype.type(mean))


def _joined_variance(parts: list[tuple[int, float, float]], size: int) -> float:
    """Join counts, means and squared deviations of parts (Chan, Golub and LeVeque, 1979)."""
    count, mean, squares = parts[0]
    for more, other, deviations in parts[1:]:
        delta, total = other - mean, count + more
        mean += delta * more / total
        squares += deviations + delta * delta * count * more / total
        count = total
    return squares / size


_PART: Final[dict[str, Callable[[Array], Any]]] = {
    "min": np.min,
    "max": np.max,
    "sum": _sum,
    "mean": lambda chunk: _sum(chunk if chunk.dtype.kind == "f" else chunk.astype(np.float64)),
    "prod": np.prod,
    "variance": _moments,
    "std": _moments,
    "l1": lambda chunk: float(_sum(np.abs(chunk))),
    "l2": _squares,
}
_JOIN: Final[dict[str, Callable[[list[Any], int], Any]]] = {
    "min": lambda parts, _: np.min(parts),
    "max": lambda parts, _: np.max(parts),
    "sum": lambda parts, _: sum(parts[1:], parts[0]) if parts else 0,
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
