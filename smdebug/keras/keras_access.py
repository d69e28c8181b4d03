"""KerasAccess: how the tensors and variables of Keras, on any backend, answer a hook."""

from collections.abc import Iterable, Sequence
from typing import Any

import keras

from smdebug.core.tensor_access import Array, NumpyAccess, Wanted


class KerasAccess(NumpyAccess):
    """The answers for tensors of the backend, and for all that numpy makes an array of."""

    def shape(self, tensor: Any) -> tuple[int, ...]:
        """Return its shape."""
        return super().shape(_on_host(tensor))

    def nbytes(self, tensor: Any) -> int:
        """Return the bytes that a copy of its elements takes."""
        return super().nbytes(_on_host(tensor))

    def copy(self, tensor: Any) -> Array:
        """Return a copy of its elements on this host."""
        return super().copy(_on_host(tensor))

    def reduce(self, tensor: Any, wanted: Sequence[Wanted]) -> Iterable[tuple[Wanted, Any]]:
        """Yield its reductions, computed on this host."""
        return super().reduce(_on_host(tensor), wanted)


def _on_host(tensor: Any) -> Any:
    if keras.ops.is_tensor(tensor) or isinstance(tensor, keras.Variable):
        return keras.ops.convert_to_numpy(tensor)
    return tensor
