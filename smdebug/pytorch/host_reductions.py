"""reduced_on_host: reductions of a tensor in this host's memory, in one pass that stays in cache.

What is asked together is computed part by part, each with the operation that is fastest: numpy's
minimum, maximum and magnitudes, PyTorch's sum. A part is small enough that PyTorch takes no second
thread for it: threads are the training's.
"""

import math
import threading
from collections.abc import Iterable
from typing import Any, Final

import numpy as np
import torch

from smdebug.core.reductions import compute_all
from smdebug.core.tensor_access import Wanted

PART: Final = 1 << 15  # elements: PyTorch shares larger ones among its threads
SMALL: Final = 1 << 12  # elements, of which numpy's sum is faster
_own = threading.local()
ON_HOST: Final[dict[Any, Any]] = {torch.float32: np.float32, torch.float64: np.float64}  # types
_NEEDS: Final[dict[Wanted, tuple[str, ...]]] = {
    ("min", False): ("low",),
    ("max", False): ("high",),
    ("mean", False): ("sum",),
    ("sum", False): ("sum",),
    ("l1", False): ("magnitudes",),
    ("l2", False): ("squares",),
    ("max", True): ("low", "high"),
    ("mean", True): ("magnitudes",),
    ("sum", True): ("magnitudes",),
    ("l1", True): ("magnitudes",),
    ("l2", True): ("squares",),
}


def reduced_on_host(tensor: Any, wanted: Iterable[Wanted]) -> Iterable[tuple[Wanted, np.generic]]:
    """Yield reductions of a dense float32 or float64 tensor with at least one element.

    Parameters
    ----------
    tensor
        Any shape and strides, on the CPU.
    wanted
        Operation and whether of the magnitudes.

    Returns
    -------
    iterable
        Each with a scalar of the tensor's type; NaN anywhere gives NaN.
    """
    array = _flat(tensor).numpy()
    needs = {need for one in wanted for need in _NEEDS.get(one, ())}
    scalar = ON_HOST[tensor.dtype]
    with np.errstate(all="ignore"):
        found = _found(array, needs)
        others = [one for one in wanted if one not in _NEEDS]
        if others:
            yield from compute_all(array, others).items()
        for one in wanted:
            if one in _NEEDS:
                value: np.generic = scalar(_value(one, found, array.size))
                yield one, value


def _value(one: Wanted, found: dict[str, Any], size: int) -> Any:
    match one:
        case ("max", True):
            # NaN in both or in none.
            return max(abs(found["low"]), abs(found["high"]))
        case ("mean", _):
            return found[_NEEDS[one][0]] / size
        case ("l2", _):
            return math.sqrt(found["squares"])
        case _:
            return found[_NEEDS[one][0]]


def _flat(tensor: Any) -> Any:
    """Return all elements in one dimension, in the order of memory where that saves a copy."""
    if tensor.ndim == 4 and tensor.is_contiguous(memory_format=torch.channels_last):  # noqa: PLR2004 - images
        tensor = tensor.permute(0, 2, 3, 1)
    elif tensor.ndim == 2 and not tensor.is_contiguous():  # noqa: PLR2004 - transposed matrices
        tensor = tensor.t()
    return tensor.reshape(-1)


def _found(array: Any, needs: set[str]) -> dict[str, Any]:
    """Return the extremes and sums of an array that are needed."""
    parts: dict[str, list[Any]] = {need: [] for need in needs}
    todo = [(_OF_PART[need], found) for need, found in parts.items()]
    for start in range(0, array.size, PART):
        part = array[start : start + PART]
        for of_part, found in todo:
            found.append(of_part(part))
    return {need: _JOIN[need](found) for need, found in parts.items()}


def _sum(part: Any) -> Any:
    """Return a sum, taken again in double precision if it overflowed."""
    total = np.add.reduce(part) if part.size <= SMALL else torch.from_numpy(part).sum().item()
    return total if math.isfinite(total) else np.add.reduce(part, dtype=np.float64)


def _magnitudes(part: Any) -> Any:
    """Return the sum of the magnitudes, which are put into memory that this thread keeps."""
    if not hasattr(_own, "magnitudes"):
        _own.magnitudes = {one: np.empty(PART, one) for one in ON_HOST.values()}
    buffer = _own.magnitudes[part.dtype.type][: part.size]
    return _sum(np.abs(part, out=buffer))


def _squares(part: Any) -> Any:
    total = np.dot(part, part)
    if math.isfinite(total):
        return total
    wide = part.astype(np.float64)
    return np.dot(wide, wide)


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
    "sum": sum,
    "magnitudes": sum,
    "squares": sum,
}
