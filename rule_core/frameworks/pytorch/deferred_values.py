"""DeferredValues: measurements that stay on their device until a step ends."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from rule_core.frameworks.pytorch.modules import is_transformed
from rule_core.saving.tensor_adapter import Array

_NARROW = {torch.bfloat16: torch.float32, torch.float16: torch.float32, torch.bool: torch.uint8}


class DeferredValues:
    """Collects small tensors and numbers, and copies them to the host in one transfer per device.

    If a name is added twice, the last value counts.

    Examples
    --------
    >>> values = DeferredValues()
    >>> values.add("learning_rates", "optimizer/lr/0", 0.5)
    >>> values.add("optimizer", "optimizer/skipped", torch.tensor(True))
    >>> [(name, value.tolist()) for _, name, value in values.take()]
    [('optimizer/lr/0', 0.5), ('optimizer/skipped', 1)]
    """

    def __init__(self) -> None:
        self._values: dict[str, tuple[str, Any]] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def add(self, collection: str, name: str, value: Any) -> None:
        """Add a tensor, which must not change afterwards, or a number.

        None, for what could not be measured, is ignored, and so are tensors that stand for values
        which are not there: on device `meta`, and inside `torch.func`.
        """
        if isinstance(value, torch.Tensor):
            if value.is_meta or is_transformed(value):
                return
            value = value.detach()
            value = value.to(_NARROW.get(value.dtype, value.dtype))
        elif value is not None:
            value = np.asarray(value)
        if value is not None:
            self._values[name] = collection, value

    def take(self) -> Iterator[tuple[str, str, Array]]:
        """Yield the collection, name and value of all values, and forget them."""
        values, self._values = self._values, {}
        by_device: dict[Any, list[str]] = {}
        for name, (_, value) in values.items():
            if isinstance(value, torch.Tensor):
                by_device.setdefault(value.device, []).append(name)
        arrays: dict[str, Array] = {}
        for names in by_device.values():
            arrays |= zip(names, _on_host([values[name][1] for name in names]), strict=True)
        for name, (collection, value) in values.items():
            yield collection, name, arrays.get(name, value)

    def clear(self) -> None:
        """Forget all values."""
        self._values.clear()


def _on_host(tensors: list[Any]) -> Iterator[Array]:
    """Yield copies of tensors of one device, transferred together as bytes."""
    by_type: dict[Any, list[int]] = {}
    for index, tensor in enumerate(tensors):
        by_type.setdefault(tensor.dtype, []).append(index)
    parts = [
        torch.cat([tensors[index].reshape(-1) for index in indexes]).view(torch.uint8)
        for indexes in by_type.values()
    ]
    content = torch.cat(parts).cpu().numpy().tobytes()
    arrays: list[Any] = [None] * len(tensors)
    start = 0
    for dtype, indexes in by_type.items():
        numpy_type = np.dtype(str(dtype).removeprefix("torch."))
        for index in indexes:
            shape = tensors[index].shape
            arrays[index] = np.ndarray(shape, numpy_type, content, start)
            start += shape.numel() * numpy_type.itemsize
    yield from arrays
