"""KerasAccess: access to tensors and variables of Keras on any backend."""

from collections.abc import Iterable, Sequence
from typing import Any

import keras

from rule_core.saving.tensor_adapter import Array, NumpyAccess, ReductionKey


class KerasAccess(NumpyAccess):
    """Access to tensors of the backend, and to values that numpy can convert."""

    def shape(self, tensor: Any) -> tuple[int, ...]:
        """Return the shape of a tensor."""
        return super().shape(_on_host(tensor))

    def nbytes(self, tensor: Any) -> int:
        """Return the size in bytes of a copy of the elements."""
        return super().nbytes(_on_host(tensor))

    def copy(self, tensor: Any) -> Array:
        """Return a copy of the elements in host memory."""
        return super().copy(_on_host(tensor))

    def reduce(
        self, tensor: Any, keys: Sequence[ReductionKey]
    ) -> Iterable[tuple[ReductionKey, Any]]:
        """Yield the reductions, computed on the host."""
        return super().reduce(_on_host(tensor), keys)


def _on_host(tensor: Any) -> Any:
    if keras.ops.is_tensor(tensor) or isinstance(tensor, keras.Variable):
        return keras.ops.convert_to_numpy(tensor)
    return tensor
