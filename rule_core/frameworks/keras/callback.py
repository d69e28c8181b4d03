"""DebuggerCallback: saves tensors of Keras 3 trainings as one trial."""

import os
from collections.abc import Callable
from typing import Any

import keras

from rule_core.frameworks.keras.hook import KerasHook
from rule_core.saving.presets import with_frequent_steps


def _passed_on(event: str) -> Callable[..., None]:
    """Return a method that passes an event on to the hook."""

    def pass_on(self: "DebuggerCallback", *args: Any, **options: Any) -> None:
        getattr(self.hook, event)(*args, **options)

    return pass_on


class DebuggerCallback(keras.callbacks.Callback):
    """Save tensors of a Keras 3 model with the names of `KerasHook`.

    Each `fit`, and each `evaluate` and `predict` outside of it, creates a hook, and closes it at
    the end; later ones continue the trial of the first.

    Parameters
    ----------
    out_dir, **options
        Arguments of the hook, see `smdebug.core.hook.Hook`. Without a `save_config`, every tenth
        step and the losses of the first 100 steps are saved.

    Attributes
    ----------
    hook
        The hook; None before it is created.

    Examples
    --------
    >>> callback = DebuggerCallback("runs/mine")  # doctest: +SKIP
    >>> model.fit(points, labels, callbacks=[callback])  # doctest: +SKIP
    """

    def __init__(self, out_dir: str | os.PathLike[str] | None = None, **options: Any) -> None:
        super().__init__()
        self.hook: KerasHook | None = None
        self._options = with_frequent_steps({"out_dir": out_dir, **options})
        self._is_fitting = False

    def _open(self) -> None:
        """Create a hook, which continues the trial of the one before."""
        if self.hook is not None:
            self.hook.close()
            self._options["resume"] = True
        self.hook = KerasHook(**self._options)
        self.hook.set_params(self.params)
        self.hook.set_model(self.model)

    def on_train_begin(self, *_: Any, **__: Any) -> None:
        """Open the trial; evaluations during the fit belong to it."""
        self._open()
        self._is_fitting = True
        _passed_on("on_train_begin")(self)

    def on_test_begin(self, *_: Any, **__: Any) -> None:
        """Open the trial, unless a fit is running."""
        if not self._is_fitting:
            self._open()
        _passed_on("on_test_begin")(self)

    def on_train_end(self, *_: Any, **__: Any) -> None:
        """End the trial."""
        self._is_fitting = False
        _passed_on("close")(self)

    def on_test_end(self, *_: Any, **__: Any) -> None:
        """End the trial, unless a fit is running."""
        if not self._is_fitting:
            _passed_on("close")(self)

    on_predict_begin, on_predict_end = on_test_begin, on_test_end
    on_train_batch_begin = _passed_on("on_train_batch_begin")
    on_train_batch_end = _passed_on("on_train_batch_end")
    on_test_batch_begin = _passed_on("on_test_batch_begin")
    on_test_batch_end = _passed_on("on_test_batch_end")
    on_predict_batch_begin = _passed_on("on_predict_batch_begin")
    on_predict_batch_end = _passed_on("on_predict_batch_end")
    on_epoch_end = _passed_on("on_epoch_end")
