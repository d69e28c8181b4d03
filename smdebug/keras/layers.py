"""Layers: which a model has, of what kind they are, and how their calls are watched."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import keras
import numpy as np

Seen = Callable[[tuple[Any, ...], Mapping[str, Any], Any], None]
KINDS: Final = ("relu", "sigmoid", "tanh")


def inside(model: Any) -> list[Any]:
    """Return all layers of a model, at any depth."""
    # Private in Keras, whose public `layers` leaves out those inside of layers.
    return list(model._flatten_layers(include_self=False))  # noqa: SLF001 - see above


def are_seen(model: Any) -> bool:
    """Say whether calls of layers compute values, rather than trace code that is then compiled."""
    backend = keras.backend.backend()
    if backend == "torch":
        return not model.jit_compile
    return backend == "tensorflow" and bool(model.run_eagerly)


def collections_of(layer: Any) -> dict[str, list[str]]:
    """Return the typed collections of what a layer takes and gives, by ``inputs``, ``outputs``.

    What a layer takes is that of its activation only if it is nothing but an activation.
    """
    only = isinstance(layer, (keras.layers.Activation, keras.layers.ReLU))
    kind = getattr(getattr(layer, "activation", None), "__name__", None)
    if isinstance(layer, keras.layers.ReLU):
        kind = "relu"
    if kind not in KINDS:
        return {}
    return {"outputs": [f"{kind}_output"], "inputs": [f"{kind}_input"] if only else []}


def watch(owner: Any, method: str, seen: Seen) -> Callable[[], None]:
    """Have each call of a method of a layer or model seen; return what ends that.

    Parameters
    ----------
    owner
        The layer or model.
    method
        Name of the method.
    seen
        Called after each call with the arguments, by position and by name, and the result.
    """
    original = getattr(owner, method)
    own = vars(owner).get(method)

    def call(*args: Any, **kwargs: Any) -> Any:
        result = original(*args, **kwargs)
        seen(args, kwargs, result)
        return result

    def end() -> None:
        if own is None:
            object.__delattr__(owner, method)
        else:
            object.__setattr__(owner, method, own)

    # Keras is not to keep track of it.
    object.__setattr__(owner, method, call)
    return end


def tensors_in(value: Any) -> Iterator[Any]:
    """Yield the tensors with values inside lists, tuples and mappings."""
    if isinstance(value, Mapping):
        for part in value.values():
            yield from tensors_in(part)
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from tensors_in(part)
    elif _has_value(value):
        yield value


def _has_value(value: Any) -> bool:
    if isinstance(value, keras.KerasTensor) or getattr(value, "is_meta", False):
        return False  # the model is being built
    return isinstance(value, np.ndarray) or keras.ops.is_tensor(value)
