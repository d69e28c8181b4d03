"""reduced_on_host: reductions of a tensor in this host's memory, in one pass that stays in cache.

PyTorch's own operations take a pass each, and its norms are slow on a CPU; what is asked together
is computed part by part. Small tensors are left to numpy, whose calls cost less.
"""

import math
from collections.abc import Iterable
from typing import Any, Final

import numpy as np
import torch

from smdebug.core.reductions import compute_all
from smdebug.core.tensor_access import Wanted

CHUNK: Final = 1 << 18  # elements, shared by the threads of an operation: a megabyte of float32
SMALL: Final = 1 << 14  # elements
ON_HOST: Final = {torch.float32: np.float32, torch.float64: np.float64}  # types
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
    flat = _flat(tensor)
    needs = {need for one in wanted for need in _NEEDS.get(one, ())}
    with np.errstate(all="ignore"):
        found = (_by_numpy if flat.numel() <= SMALL else _by_torch)(flat, needs)
        others = [one for one in wanted if one not in _NEEDS]
        if others:
            yield from compute_all(flat.numpy(), others).items()
        scalar = ON_HOST[flat.dtype]
        for one in wanted:
            if one in _NEEDS:
                yield one, scalar(_value(one, found, flat.numel()))


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


def _by_numpy(flat: Any, needs: set[str]) -> dict[str, Any]:
    array = flat.numpy()
    found: dict[str, Any] = {}
    if "low" in needs:
        found["low"] = np.minimum.reduce(array)
    if "high" in needs:
        found["high"] = np.maximum.reduce(array)
    if "sum" in needs:
        found["sum"] = _finite(np.add.reduce(array), array)
    if "magnitudes" in needs:
        magnitudes = np.abs(array)
        found["magnitudes"] = _finite(np.add.reduce(magnitudes), magnitudes)
    if "squares" in needs:
        squares = np.dot(array, array)
        found["squares"] = squares if np.isfinite(squares) else _squares(array)
    return found


def _finite(total: Any, array: Any) -> Any:
    """Return a sum, taken again in double precision if it overflowed."""
    return total if np.isfinite(total) else np.add.reduce(array, dtype=np.float64)


def _squares(array: Any) -> Any:
    wide = array.astype(np.float64)
    return np.dot(wide, wide)


def _by_torch(flat: Any, needs: set[str]) -> dict[str, Any]:
    parts: dict[str, list[float]] = {need: [] for need in needs}
    buffer = torch.empty(CHUNK, dtype=flat.dtype) if "magnitudes" in needs else None
    for chunk in flat.split(CHUNK):
        if "low" in needs:
            parts["low"].append(chunk.amin().item())
        if "high" in needs:
            parts["high"].append(chunk.amax().item())
        if "sum" in needs:
            parts["sum"].append(_sum(chunk))
        if buffer is not None:
            parts["magnitudes"].append(_sum(torch.abs(chunk, out=buffer[: chunk.numel()])))
        if "squares" in needs:
            squares = torch.dot(chunk, chunk).item()
            wide = squares if math.isfinite(squares) else _squares(chunk.numpy())
            parts["squares"].append(wide)
    joins = {"low": np.min, "high": np.max}
    return {need: joins.get(need, sum)(found) for need, found in parts.items()}


def _sum(chunk: Any) -> float:
    total: float = chunk.sum().item()
    return total if math.isfinite(total) else float(chunk.sum(dtype=torch.float64).item())
