"""Collection: a collection that variables and layers of Keras can be added to."""

import re
from typing import Any

from rule_core.model.collection import Collection as CoreCollection


class Collection(CoreCollection):
    """A named set of tensors that variables and layers can be added to."""

    def add(self, arg: Any) -> None:
        """Add a variable, or several in a list, a tuple or a set."""
        for variable in arg if isinstance(arg, (list, tuple, set)) else (arg,):
            self.add_tensor_name(variable_name(variable))

    def add_keras_layer(self, layer: Any, inputs: bool = False, outputs: bool = True) -> None:
        """Add the inputs or the outputs of a layer, or both."""
        for side, is_included in (("inputs", inputs), ("outputs", outputs)):
            if is_included:
                self.include(f"^{re.escape(layer.name)}/{side}(_[0-9]+)?$")


def variable_name(variable: Any) -> str:
    """Return the name under which a variable of Keras or TensorFlow is saved."""
    return str(getattr(variable, "path", None) or variable.name.partition(":")[0])
