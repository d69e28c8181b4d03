"""Automatic hooks for models fitted with Keras."""

import functools
import inspect
import weakref
from typing import Any

import keras

from rule_core.frameworks.keras.hook import KerasHook
from rule_core.saving.auto_hook import AUTO, call_after


def watch() -> None:
    """Patch `keras.Model.fit` to use a hook; fits of the same model are one training."""
    original = keras.Model.fit
    signature = inspect.signature(original)
    fitted: list[Any] = []

    @AUTO.fail_safe
    def add_hook(bound: inspect.BoundArguments) -> None:
        model = bound.args[0]
        continues = bool(fitted) and fitted[0]() is model
        if _add_hook(bound.arguments, continues=continues):
            fitted[:] = [weakref.ref(model)]

    @functools.wraps(original)
    def fit(*args: Any, **kwargs: Any) -> Any:
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError:  # raised by the original method
            return original(*args, **kwargs)
        add_hook(bound)
        return original(*bound.args, **bound.kwargs)

    keras.Model.fit = fit
    call_after(keras.Model, "train_on_batch", _see_loop)


@AUTO.fail_safe
def _see_loop(*_: Any, **__: Any) -> None:
    AUTO.report_unsaved("The script calls train_on_batch, which is not saved; only fit is.")


def _add_hook(arguments: dict[str, Any], *, continues: bool) -> bool:
    """Append a hook to the callbacks of a fit; return whether one was added."""
    argument = arguments.get("callbacks")
    if isinstance(argument, keras.callbacks.CallbackList):
        AUTO.report_unsaved(
            "The script passes a CallbackList, which takes no hook: nothing is saved."
        )
        return False
    callbacks = (
        [*argument] if isinstance(argument, (list, tuple)) else [argument] if argument else []
    )
    if any(isinstance(callback, KerasHook) for callback in callbacks):
        return False
    hook = (AUTO.current(KerasHook) if continues else None) or AUTO.begin(KerasHook)
    if hook is None:
        return False
    arguments["callbacks"] = [*callbacks, hook]
    return True
