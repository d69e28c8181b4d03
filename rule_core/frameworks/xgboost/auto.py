"""Automatic hooks for trainings with XGBoost."""

import functools
import inspect
import threading
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

import xgboost
import xgboost.sklearn

from rule_core.frameworks.xgboost.hook import Hook
from rule_core.saving.auto_hook import AUTO, call_after

CALLBACKS: Final = "callbacks"
_training: Final = threading.local()  # its `hooked`: whether a function of XGBoost trains


def watch() -> None:
    """Patch `xgboost.train`, `xgboost.cv` and the `fit` of estimators to use hooks."""
    for name in ("train", "cv"):
        original = getattr(xgboost.training, name)
        hooked = _hooked(original)
        for module in (xgboost, xgboost.training, xgboost.sklearn):
            if getattr(module, name, None) is original:
                setattr(module, name, hooked)
    for method in ("update", "boost"):
        call_after(xgboost.Booster, method, _see_loop)


def _hooked(original: Callable[..., Any]) -> Callable[..., Any]:
    """Return a training function of XGBoost that gives each call a hook."""
    signature = inspect.signature(original)
    # XGBoost accepts its keyword-only arguments by position too, with a warning.
    by_position = inspect.Parameter.POSITIONAL_OR_KEYWORD
    signature = signature.replace(
        parameters=[
            parameter.replace(kind=by_position) for parameter in signature.parameters.values()
        ]
    )
    index = [*signature.parameters].index(CALLBACKS)

    @AUTO.fail_safe
    def begin(bound: inspect.BoundArguments, hooks: list[Hook]) -> None:
        hook = _hook(bound.arguments, signature.parameters)
        if hook is not None:
            hooks.append(hook)

    @functools.wraps(original)
    def train(*args: Any, **kwargs: Any) -> Any:
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError:  # raised by the original function
            return original(*args, **kwargs)
        hooks: list[Hook] = []
        begin(bound, hooks)
        callbacks = [*hooks, *(bound.arguments.get(CALLBACKS) or ())]
        if index < len(args):
            args = (*args[:index], callbacks, *args[index + 1 :])
        elif hooks:
            kwargs[CALLBACKS] = callbacks
        outside = getattr(_training, "hooked", False)
        _training.hooked = True
        try:
            return original(*args, **kwargs)
        finally:
            _training.hooked = outside
            for hook in hooks:
                AUTO.end(hook)

    return train


def _hook(arguments: Mapping[str, Any], parameters: Collection[str]) -> Hook | None:
    """Return the hook of a training; None if the script passes one."""
    if any(isinstance(callback, Hook) for callback in arguments.get(CALLBACKS) or ()):
        return None
    latest = AUTO.current(Hook)
    if latest is not None and _continues(arguments.get("xgb_model"), latest):
        return latest
    data = arguments["dtrain"]
    evals = list(arguments.get("evals") or ())
    hook = AUTO.begin(
        Hook,
        runs=True,
        hyperparameters=dict(arguments["params"]),
        train_data=data,
        validation_data=evals[-1][0] if evals else data,
    )
    if "evals" in parameters and not evals and AUTO.saves:
        AUTO.print_once(
            "XGBoost computes no metrics without evals (estimators: eval_set): none are saved."
        )
    return hook


def _continues(model: Any, hook: Hook) -> bool:
    """Return whether a training continues the model of the latest training."""
    if model is None:
        return False
    booster = model if isinstance(model, xgboost.Booster) else xgboost.Booster(model_file=model)
    return bool(booster.num_boosted_rounds() == hook.global_step + 1)


@AUTO.fail_safe
def _see_loop(*_: Any, **__: Any) -> None:
    if not getattr(_training, "hooked", False):
        AUTO.report_unsaved(
            "The script calls Booster.update or Booster.boost itself, which is not saved; only "
            "xgboost.train, xgboost.cv and the estimators are."
        )
