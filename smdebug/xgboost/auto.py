"""Auto: hands a hook to the first training that a script does with XGBoost."""

import functools
import inspect
from typing import Any

import xgboost
import xgboost.sklearn

from smdebug.auto import AUTO
from smdebug.xgboost.hook import Hook


def watch() -> None:
    """Have `xgboost.train`, and the `fit` of estimators, call a hook from now on."""
    original = xgboost.training.train
    signature = inspect.signature(original)

    @AUTO.harmless
    def add_hook(bound: inspect.BoundArguments) -> None:
        _add_hook(bound.arguments)

    @functools.wraps(original)
    def train(*args: Any, **kwargs: Any) -> Any:
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError:  # for the function itself to say
            return original(*args, **kwargs)
        add_hook(bound)
        return original(*bound.args, **bound.kwargs)

    for module in (xgboost, xgboost.training, xgboost.sklearn):
        if module.train is original:
            module.train = train


def _add_hook(arguments: dict[str, Any]) -> None:
    """Put the hook before the callbacks of a training, if it is the first, or goes on with it."""
    callbacks = list(arguments.get("callbacks") or ())
    if any(isinstance(one, Hook) for one in callbacks):
        return
    if AUTO.hook is not None and arguments.get("xgb_model") is None:
        AUTO.say("The script trains again, which is not saved: the trial is the first training's.")
        return
    data = arguments["dtrain"]
    evals = list(arguments.get("evals") or ())
    hook = AUTO.make(
        Hook,
        hyperparameters=dict(arguments["params"]),
        train_data=data,
        validation_data=evals[-1][0] if evals else data,
    )
    if hook is not None:
        arguments["callbacks"] = [hook, *callbacks]
