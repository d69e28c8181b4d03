"""The layers of a model, their collections, and watching their calls."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import keras
import numpy as np

OnCall = Callable[[tuple[Any, ...], Mapping[str, Any], Any], None]
KINDS: Final = ("relu", "sigmoid", "tanh")


def inside(model: Any) -> list[Any]:
    """Return all layers of a model, at any depth."""
    # The public `layers` omits nested layers.
    return list(model._flatten_layers(include_self=False))  # noqa: SLF001 - see above


def are_visible(model: Any) -> bool:
    """Return whether calls of layers compute values, instead of tracing code for compilation."""
    backend = keras.backend.backend()
    if backend == "torch":
        return not model.jit_compile
    return backend == "tensorflow" and bool(model.run_eagerly)


def collections_of(layer: Any) -> dict[str, list[str]]:
    """Return the activation collections of a layer, by ``inputs`` and ``outputs``.

    Inputs belong to a collection only if the layer is a pure activation.
    """
    is_pure = isinstance(layer, (keras.layers.Activation, keras.layers.ReLU))
    kind = getattr(getattr(layer, "activation", None), "__name__", None)
    if isinstance(layer, keras.layers.ReLU):
        kind = "relu"
    if kind not in KINDS:
        return {}
    return {"outputs": [f"{kind}_output"], "inputs": [f"{kind}_input"] if is_pure else []}


def watch(owner: Any, method: str, on_call: OnCall) -> Callable[[], None]:
    """Observe each call of a method of a layer or model; return a function that stops it.

    Parameters
    ----------
    owner
        The layer or model.
    method
        Name of the method.
    on_call
        Called after each call with the arguments, by position and by name, and the result.
    """
    original = getattr(owner, method)
    own = vars(owner).get(method)

    def call(*args: Any, **kwargs: Any) -> Any:
        result = original(*args, **kwargs)
        on_call(args, kwargs, result)
        return result

    def end() -> None:
        if own is None:
            object.__delattr__(owner, method)
        else:
            object.__setattr__(owner, method, own)

    # Bypass the attribute tracking of Keras.
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
    if keras.backend.backend() == "tensorflow" and not hasattr(value, "numpy"):
        return isinstance(value, np.ndarray)  # a tensor of the backend is being compiled
    return isinstance(value, np.ndarray) or keras.ops.is_tensor(value)
