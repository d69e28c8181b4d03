"""reduced_on_host: cache-friendly reductions of a tensor in host memory.

All reductions are computed part by part with numpy on a single thread, because the other threads
belong to the training. Small tensors, of which a model has many, take few calls.
"""

import math
import threading
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

import numpy as np
import torch

from rule_core.model.reductions import compute_all
from rule_core.saving.tensor_adapter import Array, ReductionKey

PART: Final = 1 << 16  # elements: a quarter of a megabyte of float32
SMALL: Final = 1 << 12  # elements; for fewer, the overhead of calls dominates
ON_HOST: Final[dict[Any, Any]] = {torch.float32: np.float32, torch.float64: np.float64}  # types
_own = threading.local()
Value = Callable[[dict[str, Any], int], Any]
# The parts that each reduction needs, and its value from these parts and the number of elements.
_FROM: Final[dict[ReductionKey, tuple[tuple[str, ...], Value]]] = {
    ("min", False): (("low",), lambda parts, _: parts["low"]),
    ("max", False): (("high",), lambda parts, _: parts["high"]),
    ("mean", False): (("sum",), lambda parts, size: parts["sum"] / size),
    ("sum", False): (("sum",), lambda parts, _: parts["sum"]),
    ("l1", False): (("magnitudes",), lambda parts, _: parts["magnitudes"]),
    ("l2", False): (("squares",), lambda parts, _: math.sqrt(parts["squares"])),
    # NaN is in both or in neither.
    ("max", True): (("low", "high"), lambda parts, _: max(abs(parts["low"]), abs(parts["high"]))),
    ("mean", True): (("magnitudes",), lambda parts, size: parts["magnitudes"] / size),
    ("sum", True): (("magnitudes",), lambda parts, _: parts["magnitudes"]),
    ("l1", True): (("magnitudes",), lambda parts, _: parts["magnitudes"]),
    ("l2", True): (("squares",), lambda parts, _: math.sqrt(parts["squares"])),
}


def reduced_on_host(tensor: Any, keys: Sequence[ReductionKey]) -> list[tuple[ReductionKey, Array]]:
    """Return reductions of a dense float32 or float64 tensor with at least one element.

    Parameters
    ----------
    tensor
        Any shape and strides, on the CPU, detached.
    keys
        Operation, and whether of the magnitudes.

    Returns
    -------
    list
        Each with a zero-dimensional array of the tensor's type; any NaN gives NaN. Sums within a
        part use the tensor's precision, or double precision if that overflows.
    """
    recipe = _recipe(tuple(keys))
    array = _flat(tensor).numpy()
    size = array.size
    with np.errstate(all="ignore"):
        parts = _compute_parts(array, recipe.needs)
        values = np.array([value(parts, size) for value in recipe.values], array.dtype)
        result = [(key, values[index, ...]) for index, key in enumerate(recipe.keys)]
        if recipe.whole_keys:
            whole = compute_all(array, recipe.whole_keys)
            result += [(key, np.asarray(value)) for key, value in whole.items()]
            result.sort(key=lambda pair: keys.index(pair[0]))
    return result


class _Recipe(NamedTuple):
    """What to compute from parts, and `whole_keys`, which need the whole array."""

    needs: tuple[str, ...]
    keys: tuple[ReductionKey, ...]
    values: tuple[Value, ...]
    whole_keys: tuple[ReductionKey, ...]


@lru_cache(maxsize=256)
def _recipe(keys: tuple[ReductionKey, ...]) -> _Recipe:
    part_keys = tuple(key for key in keys if key in _FROM)
    needs = dict.fromkeys(need for key in part_keys for need in _FROM[key][0])
    whole_keys = tuple(key for key in keys if key not in _FROM)
    values = tuple(_FROM[key][1] for key in part_keys)
    return _Recipe(tuple(needs), part_keys, values, whole_keys)


def _flat(tensor: Any) -> Any:
    """Flatten a tensor, in memory order where that avoids a copy."""
    if not tensor.is_contiguous():
        if tensor.ndim == 4 and tensor.is_contiguous(memory_format=torch.channels_last):  # noqa: PLR2004 - images
            tensor = tensor.permute(0, 2, 3, 1)
        elif tensor.ndim == 2:  # noqa: PLR2004 - transposed matrices
            tensor = tensor.t()
    return tensor.reshape(-1)


def _compute_parts(array: Any, needs: tuple[str, ...]) -> dict[str, Any]:
    """Return the required extremes and sums of an array."""
    if array.size <= PART:
        return {need: _OF_PART[need](array) for need in needs}
    parts = [
        [_OF_PART[need](array[start : start + PART]) for need in needs]
        for start in range(0, array.size, PART)
    ]
    return {
        need: _JOIN[need](values)
        for need, values in zip(needs, zip(*parts, strict=True), strict=True)
    }


def _sum(part: Any) -> Any:
    # einsum is faster, but does not add pairwise; a part is small enough for that.
    total = np.add.reduce(part) if part.size <= SMALL else np.einsum("i->", part)
    return float(total if math.isfinite(total) else np.add.reduce(part, dtype=np.float64))


def _magnitudes(part: Any) -> Any:
    """Return the sum of the magnitudes, computed in a buffer of this thread."""
    try:
        buffer = _own.magnitudes[part.dtype]
    except (AttributeError, KeyError):
        buffers = vars(_own).setdefault("magnitudes", {})
        buffer = buffers[part.dtype] = np.empty(PART, part.dtype)
    return _sum(np.abs(part, out=buffer[: part.size]))


def _squares(part: Any) -> Any:
    total = np.dot(part, part)
    if math.isfinite(total):
        return total
    wide = part.astype(np.float64)
    return np.dot(wide, wide)


def _joined(parts: Sequence[Any]) -> float:
    return math.fsum(parts) if all(map(math.isfinite, parts)) else sum(map(float, parts))


_OF_PART: Final[dict[str, Any]] = {
    "low": np.minimum.reduce,
    "high": np.maximum.reduce,
    "sum": _sum,
    "magnitudes": _magnitudes,
    "squares": _squares,
}
_JOIN: Final[dict[str, Any]] = {
    "low": np.minimum.reduce,
    "high": np.maximum.reduce,
    "sum": _joined,
    "magnitudes": _joined,
    "squares": _joined,
}
