"""The gradients that TensorFlow computes, in `fit` and on the tapes of a script."""

from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf

from rule_core.frameworks.keras import layers
from rule_core.frameworks.keras.collection import variable_name


class HeldGradients:
    """The gradients that a model's optimizer applied last, by the names of their variables.

    `fit` runs compiled code, which calls no Python. So it is compiled again, to keep a copy of the
    gradients in variables. They take the memory of the gradients, and are free after `close`.

    Parameters
    ----------
    model
        A model that is being fitted.
    """

    def __init__(self, model: Any) -> None:
        self._model = model
        self._held: dict[str, Any] = {}
        self._unwatch = layers.watch(model.optimizer, "apply", self._hold)
        self._model.train_function = None
        self._model.make_train_function()

    def get(self, name: str) -> Any:
        """Return the gradient of a variable; None if it has none."""
        return self._held.get(name)

    def close(self) -> None:
        """Stop holding gradients."""
        self._unwatch()
        self._model.train_function = None  # made again by the next `fit`
        self._held.clear()

    def _hold(self, args: Any, kwargs: Any, _: Any) -> None:
        gradients, variables = (*args, *kwargs.values())[:2]
        for gradient, variable in zip(gradients, variables, strict=True):
            if gradient is not None:
                value = tf.convert_to_tensor(gradient)  # some are slices
                self._holder(variable_name(variable), value).assign(value)

    def _holder(self, name: str, value: Any) -> Any:
        """Return the variable that holds a gradient, created outside of compiled code."""
        if name not in self._held:
            with tf.init_scope():
                self._held[name] = tf.Variable(tf.zeros(value.shape, value.dtype), trainable=False)
        return self._held[name]


def watch_tape(
    tape: Any, on_enter: Callable[[], object], on_gradient: Callable[[Any, Any, Any], object]
) -> None:
    """Observe a tape.

    Parameters
    ----------
    tape
        A `tf.GradientTape`.
    on_enter
        Called when its block begins.
    on_gradient
        Called with target, sources and gradients when gradients were computed.
    """
    base: Any = type(tape)

    class Watched(base):
        def __enter__(self) -> Any:
            on_enter()
            return super().__enter__()

        def gradient(self, target: Any, sources: Any, *args: Any, **kwargs: Any) -> Any:
            gradients = super().gradient(target, sources, *args, **kwargs)
            on_gradient(target, sources, gradients)
            return gradients

    tape.__class__ = Watched


def pairs(sources: Any, gradients: Any) -> Iterator[tuple[Any, Any]]:
    """Yield each variable among the sources of a tape with its gradient, which may be None."""
    for source, gradient in zip(tf.nest.flatten(sources), tf.nest.flatten(gradients), strict=True):
        if not isinstance(source, tf.Tensor):
            yield source, None if gradient is None else tf.convert_to_tensor(gradient)


def computes_values() -> bool:
    """Return whether operations compute values now, instead of being compiled."""
    return bool(tf.executing_eagerly())
