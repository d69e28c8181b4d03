"""reduced_on_host: reductions of a tensor in this host's memory, in one pass that stays in cache.

What is asked together is computed part by part with numpy, which takes no second thread for it:
the threads are the training's. Small tensors, of which a model has many, take few calls.
"""

import math
import threading
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

import numpy as np
import torch

from smdebug.core.reductions import compute_all
from smdebug.core.tensor_access import Array, Wanted

PART: Final = 1 << 16  # elements: a quarter of a megabyte of float32
SMALL: Final = 1 << 12  # elements, for which it is the call that costs
ON_HOST: Final[dict[Any, Any]] = {torch.float32: np.float32, torch.float64: np.float64}  # types
_own = threading.local()
Value = Callable[[dict[str, Any], int], Any]
# What of an array each reduction needs, and what it makes of that and the number of elements.
_FROM: Final[dict[Wanted, tuple[tuple[str, ...], Value]]] = {
    ("min", False): (("low",), lambda found, _: found["low"]),
    ("max", False): (("high",), lambda found, _: found["high"]),
    ("mean", False): (("sum",), lambda found, size: found["sum"] / size),
    ("sum", False): (("sum",), lambda found, _: found["sum"]),
    ("l1", False): (("magnitudes",), lambda found, _: found["magnitudes"]),
    ("l2", False): (("squares",), lambda found, _: math.sqrt(found["squares"])),
    # NaN is in both or in none.
    ("max", True): (("low", "high"), lambda found, _: max(abs(found["low"]), abs(found["high"]))),
    ("mean", True): (("magnitudes",), lambda found, size: found["magnitudes"] / size),
    ("sum", True): (("magnitudes",), lambda found, _: found["magnitudes"]),
    ("l1", True): (("magnitudes",), lambda found, _: found["magnitudes"]),
    ("l2", True): (("squares",), lambda found, _: math.sqrt(found["squares"])),
}


def reduced_on_host(tensor: Any, wanted: Sequence[Wanted]) -> list[tuple[Wanted, Array]]:
    """Return reductions of a dense float32 or float64 tensor with at least one element.

    Parameters
    ----------
    tensor
        Any shape and strides, on the CPU, detached.
    wanted
        Operation and whether of the magnitudes.

    Returns
    -------
    list
        Each with an array of no dimension, of the tensor's type; NaN anywhere gives NaN. Sums are
        in the tensor's own precision within a part, in double precision where that overflows.
    """
    recipe = _recipe(tuple(wanted))
    array = _flat(tensor).numpy()
    size = array.size
    with np.errstate(all="ignore"):
        found = _found(array, recipe.needs)
        values = np.array([value(found, size) for value in recipe.values], array.dtype)
        result = [(one, values[at, ...]) for at, one in enumerate(recipe.wanted)]
        if recipe.others:
            others = compute_all(array, recipe.others)
            result += [(one, np.asarray(value)) for one, value in others.items()]
            result.sort(key=lambda pair: wanted.index(pair[0]))
    return result


class _Recipe(NamedTuple):
    needs: tuple[str, ...]
    wanted: tuple[Wanted, ...]
    values: tuple[Value, ...]
    others: tuple[Wanted, ...]


@lru_cache(maxsize=256)
def _recipe(wanted: tuple[Wanted, ...]) -> _Recipe:
    ours = tuple(one for one in wanted if one in _FROM)
    needs = dict.fromkeys(need for one in ours for need in _FROM[one][0])
    others = tuple(one for one in wanted if one not in _FROM)
    return _Recipe(tuple(needs), ours, tuple(_FROM[one][1] for one in ours), others)


def _flat(tensor: Any) -> Any:
    """Return all elements in one dimension, in the order of memory where that saves a copy."""
    if not tensor.is_contiguous():
        if tensor.ndim == 4 and tensor.is_contiguous(memory_format=torch.channels_last):  # noqa: PLR2004 - images
            tensor = tensor.permute(0, 2, 3, 1)
        elif tensor.ndim == 2:  # noqa: PLR2004 - transposed matrices
            tensor = tensor.t()
    return tensor.reshape(-1)


def _found(array: Any, needs: tuple[str, ...]) -> dict[str, Any]:
    """Return the extremes and sums of an array that are needed."""
    if array.size <= PART:
        return {need: _OF_PART[need](array) for need in needs}
    parts = [
        [_OF_PART[need](array[start : start + PART]) for need in needs]
        for start in range(0, array.size, PART)
    ]
    return {
        need: _JOIN[need](found)
        for need, found in zip(needs, zip(*parts, strict=True), strict=True)
    }


def _sum(part: Any) -> Any:
    # The faster one does not add pairwise, which a part of this size can do without.
    total = np.add.reduce(part) if part.size <= SMALL else np.einsum("i->", part)
    return float(total if math.isfinite(total) else np.add.reduce(part, dtype=np.float64))


def _magnitudes(part: Any) -> Any:
    """Return the sum of the magnitudes, which are put into memory that this thread keeps."""
    try:
        buffer = _own.magnitudes[part.dtype]
    except (AttributeError, KeyError):
        kept = vars(_own).setdefault("magnitudes", {})
        buffer = kept[part.dtype] = np.empty(PART, part.dtype)
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
