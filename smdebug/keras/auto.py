"""Auto: hands a hook to the first model that a script fits with Keras."""

import functools
import inspect
import weakref
from typing import Any

import keras

from smdebug.auto import AUTO
from smdebug.keras.hook import KerasHook


def watch() -> None:
    """Have `keras.Model.fit` call a hook from now on."""
    original = keras.Model.fit
    signature = inspect.signature(original)
    fitted: list[Any] = []

    @AUTO.harmless
    def add_hook(bound: inspect.BoundArguments) -> None:
        model = bound.args[0]
        if AUTO.hook is not None and (not fitted or fitted[0]() is not model):
            AUTO.say("The script fits a further model, which is not saved: the trial is the first.")
            return
        if _add_hook(bound.arguments):
            fitted[:] = [weakref.ref(model)]

    @functools.wraps(original)
    def fit(*args: Any, **kwargs: Any) -> Any:
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError:  # for the method itself to say
            return original(*args, **kwargs)
        add_hook(bound)
        return original(*bound.args, **bound.kwargs)

    keras.Model.fit = fit


def _add_hook(arguments: dict[str, Any]) -> bool:
    """Put the hook behind the callbacks of a fit; say whether it is there."""
    given = arguments.get("callbacks")
    if isinstance(given, keras.callbacks.CallbackList):
        AUTO.say("A list of callbacks that is made already takes no hook: nothing is saved.")
        return False
    callbacks = list(given) if isinstance(given, (list, tuple)) else [given] if given else []
    if any(isinstance(one, KerasHook) for one in callbacks):
        return False
    hook = AUTO.make(KerasHook)
    if hook is None:
        return False
    arguments["callbacks"] = [*callbacks, hook]
    return True
