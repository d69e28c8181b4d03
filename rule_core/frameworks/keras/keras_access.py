"""KerasAccess: access to tensors and variables of Keras on any backend."""

from typing import Any

import keras

from rule_core.saving.step_writer import to_array
from rule_core.saving.tensor_adapter import Array, NumpyAccess


def _to_array(value: Any) -> Array:
    """Convert a tensor of the backend, or a value that numpy supports, to an array on the host."""
    if keras.ops.is_tensor(value) or isinstance(value, keras.Variable):
        value = keras.ops.convert_to_numpy(value)
    return to_array(value)


class KerasAccess(NumpyAccess):
    """Access to tensors of the backend, and to values that numpy can convert."""

    _array = staticmethod(_to_array)
