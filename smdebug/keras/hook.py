"""KerasHook: saves what a Keras 3 model computes while it is fitted, evaluated and asked."""

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, Final

import keras
import numpy as np
from numpy.typing import NDArray

from smdebug.core import current_hook
from smdebug.core.guard import guarded
from smdebug.core.hook import Hook as CoreHook
from smdebug.core.modes import ModeKeys
from smdebug.keras import layers
from smdebug.keras.keras_access import KerasAccess

# Collections that the calls of layers and models fill; the other ones are filled without.
SCALARS_AND_VARIABLES: Final = frozenset(
    {"losses", "metrics", "sm_metrics", "weights", "biases", "gradients", "optimizer_variables"}
)


class KerasHook(CoreHook, keras.callbacks.Callback):
    """Save losses, metrics, variables, gradients and layers of a Keras 3 model, as its callback.

    For ``model.fit(..., callbacks=[hook])``, `evaluate` and `predict`; each batch is a step of mode
    TRAIN, EVAL or PREDICT. Takes the arguments of `smdebug.core.hook.Hook`. `close` ends the trial,
    and is called at exit.

    What is saved, by collection and name:

    - losses ``loss``: of the batch alone, where Keras logs the mean over the epoch so far.
    - metrics ``<metric>``: as Keras logs them. Losses and metrics ``val_<...>``: after an epoch
      with validation, with the next step that is saved.
    - weights and biases ``<path of the variable>``, optimizer_variables likewise: after the step.
    - gradients ``gradients/<path>Grad``, without loss scaling: with the backend torch.
    - layers ``<layer>/inputs`` and ``<layer>/outputs``; relu_output, tanh_output, sigmoid_output
      and the ``..._input`` of pure activations; inputs ``inputs``, outputs ``predictions`` and
      ``labels`` of the model: where Keras runs a model as it is, that is with the backend torch
      unless it is compiled, and with tensorflow if ``run_eagerly`` is set. The second and further
      tensors of such a name in a step end in ``_1, _2, ...``.

    What a backend hides a warning tells.

    Examples
    --------
    >>> hook = KerasHook(out_dir, save_config=SaveConfig(save_interval=100))  # doctest: +SKIP
    >>> model.fit(points, labels, callbacks=[hook])  # doctest: +SKIP
    """

    # Keras tells the variables of each kind apart: no names are searched.
    DEFAULT_COLLECTIONS: ClassVar[Mapping[str, Sequence[str]]] = {
        "all": (),
        "default": (),
        "weights": (),
        "biases": (),
        "gradients": (),
        "losses": (),
        "metrics": (),
        "inputs": (),
        "outputs": (),
        "layers": (),
        "sm_metrics": (),
        "optimizer_variables": (),
    }
    DEFAULT_INCLUDED: ClassVar[Sequence[str]] = ("metrics", "losses", "sm_metrics")
    FILLED_COLLECTIONS: ClassVar[Sequence[str]] = (
        *(f"{kind}_{side}" for kind in layers.KINDS for side in ("input", "output")),
        *("labels", "predictions"),
    )
    access = KerasAccess()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        keras.callbacks.Callback.__init__(self)
        super().__init__(*args, **kwargs)
        self._is_fitting = False
        self._scale = 1.0
        self._loss_before = np.zeros(2)
        self._calls: Counter[str] = Counter()
        self._unwatch: list[Callable[[], None]] = []
        current_hook.set_hook(self)

    def wrap_optimizer(self, optimizer: Any) -> Any:
        """Return the optimizer as it is: this hook needs no other to see gradients."""
        return optimizer

    @guarded
    def on_train_begin(self, *_: Any, **__: Any) -> None:
        """Watch the model; an evaluation in between belongs to the fit."""
        self._is_fitting = True
        self._watch()

    @guarded
    def on_test_begin(self, *_: Any, **__: Any) -> None:
        """Watch the model."""
        self._watch()

    @guarded
    def on_train_end(self, *_: Any, **__: Any) -> None:
        """End the last step, and leave the model as it was."""
        self._is_fitting = False
        self._leave()

    @guarded
    def on_test_end(self, *_: Any, **__: Any) -> None:
        """End the last step, unless the fit goes on."""
        if not self._is_fitting:
            self._leave()

    on_predict_begin = on_test_begin
    on_predict_end = on_test_end

    @guarded
    def on_train_batch_begin(self, *_: Any, **__: Any) -> None:
        """Begin a step of mode TRAIN."""
        self._begin_batch(ModeKeys.TRAIN)
        optimizer = self.model.optimizer
        if self._saving and optimizer is not None:
            # Applying the gradients may change what losses are scaled by.
            self._scale = float(self.access.copy(optimizer.scale_loss(1.0)).item())

    @guarded
    def on_test_batch_begin(self, *_: Any, **__: Any) -> None:
        """Begin a step of mode EVAL."""
        self._begin_batch(ModeKeys.EVAL)

    @guarded
    def on_predict_batch_begin(self, *_: Any, **__: Any) -> None:
        """Begin a step of mode PREDICT."""
        self._begin_batch(ModeKeys.PREDICT)

    @guarded
    def on_train_batch_end(self, _: int, logs: Mapping[str, Any] | None = None) -> None:
        """Save what the step computed and changed."""
        if self._saving:
            self._save_batch(logs or {})
            self._save_gradients()
            for variable in getattr(self.model.optimizer, "variables", ()):
                self._save(variable.path, variable, "optimizer_variables")

    @guarded
    def on_test_batch_end(self, _: int, logs: Mapping[str, Any] | None = None) -> None:
        """Save what the step computed."""
        if self._saving:
            self._save_batch(logs or {})

    on_predict_batch_end = on_test_batch_end

    @guarded
    def on_epoch_end(self, _: int, logs: Mapping[str, Any] | None = None) -> None:
        """Save what the validation gave, with the step in hand or the next that is saved."""
        for name, value in (logs or {}).items():
            if name.startswith("val_"):
                self._place(name, "losses" if name == "val_loss" else "metrics")
                self._scalars[name] = (self.access.copy(value), time.time())

    def close(self) -> None:
        """Write what is outstanding, end the trial, and leave the model as it was."""
        self._end_watching()
        super().close()

    def _begin_batch(self, mode: ModeKeys) -> None:
        self.mode = mode
        self._calls.clear()
        self._begin_step()
        if self._saving:
            self._loss_before = self._summed_loss()

    def _summed_loss(self) -> NDArray[np.float64]:
        """Return the sum of the losses of this epoch so far, and what to divide it by."""
        for one in self.model.metrics:
            if one.name == "loss" and isinstance(one, keras.metrics.Mean):
                return np.array([self.access.copy(part).item() for part in (one.total, one.count)])
        return np.zeros(2)

    def _batch_loss(self, logged: float) -> float:
        """Return the loss of this batch alone; as it is logged if that cannot be told."""
        total, count = self._summed_loss() - self._loss_before
        return float(total / count) if count > 0 else logged

    def _leave(self) -> None:
        self._end_watching()
        self._end_step()

    def _end_watching(self) -> None:
        while self._unwatch:
            self._unwatch.pop()()

    def _watch(self) -> None:
        """Have the calls of the model and its layers seen, if that can be and is asked for."""
        self._end_watching()
        model = self.model
        if not self._wants_calls():
            return
        if not layers.are_seen(model):
            self._warn_once("calls", "What layers take and give is not seen in compiled code.")
            return
        for layer in layers.inside(model):
            self._unwatch.append(layers.watch(layer, "call", partial(self._see_layer, layer)))
        self._unwatch.append(layers.watch(model, "call", self._see_model))
        self._unwatch.append(layers.watch(model, "compute_loss", self._see_loss))

    def _wants_calls(self) -> bool:
        """Say whether something may be saved that only calls of layers and models show."""
        return any(
            name not in SCALARS_AND_VARIABLES or self.get_collection(name).include_regex
            for name in self._decisions.included
        )

    @guarded
    def _see_layer(self, layer: Any, args: Any, kwargs: Any, result: Any) -> None:
        typed = layers.collections_of(layer)
        for side, value in (("inputs", (args, kwargs)), ("outputs", result)):
            self._save_all(f"{layer.name}/{side}", value, "layers", *typed.get(side, []))

    @guarded
    def _see_model(self, args: Any, kwargs: Any, result: Any) -> None:
        self._save_all("inputs", (args, kwargs), "inputs")
        self._save_all("predictions", result, "outputs", "predictions")

    @guarded
    def _see_loss(self, args: Any, kwargs: Any, _: Any) -> None:
        labels = kwargs["y"] if "y" in kwargs else args[1]
        self._save_all("labels", labels, "outputs", "labels")

    def _save_all(self, name: str, value: Any, *collections: str) -> None:
        """Save the tensors in a value under a name, numbered from the second of the step on."""
        if not self._saving:
            return
        for tensor in layers.tensors_in(value):
            count = self._calls[name]
            self._calls[name] += 1
            self._save(f"{name}_{count}" if count else name, tensor, *collections)

    def _save_batch(self, logs: Mapping[str, Any]) -> None:
        """Save what Keras logs of a batch, and the weights as they are after it."""
        for name, value in logs.items():
            if name == "loss":
                self._save(name, self._batch_loss(value), "losses")
            elif name != "outputs":
                self._save(name, value, "metrics")
            elif not self._unwatch:
                self._save_all("predictions", value, "outputs", "predictions")
        for variable in self.model.weights:
            self._save(variable.path, variable, "biases" if "bias" in variable.name else "weights")

    def _save_gradients(self) -> None:
        for variable in self.model.trainable_weights:
            name = f"gradients/{variable.path}Grad"
            self._place(name, "gradients")
            if self._decisions.plan(name, self._saving) is None:
                continue
            if keras.backend.backend() != "torch":
                self._warn_once("gradients", "Gradients are seen with the backend torch only.")
                return
            gradient = variable.value.grad
            if gradient is not None:
                self._record(name, gradient / self._scale)

    def _save(self, name: str, tensor: Any, *collections: str) -> None:
        for collection in collections:
            self._place(name, collection)
        self._record(name, tensor)

    def _place(self, name: str, collection: str) -> None:
        """Make a tensor a member of a collection that there is, or if it is saved anyway."""
        is_there = collection in self.collection_manager
        if not is_there and self._decisions.plan(name, self._saving) is None:
            return
        self._make_member(collection, name)
