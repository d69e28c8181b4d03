"""KerasHook: saves tensors of a Keras 3 model during fit, evaluate and predict."""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, Final

import keras
import numpy as np
from numpy.typing import NDArray

from rule_core.frameworks.keras import layers
from rule_core.frameworks.keras.collection import Collection, variable_name
from rule_core.modes import ModeKeys
from rule_core.saving import current_hook
from rule_core.saving.hook import Hook as CoreHook
from rule_core.saving.step_writer import to_array
from rule_core.saving.tensor_adapter import NumpyAccess

# Collections filled without watching the calls of layers and models.
SCALARS_AND_VARIABLES: Final = frozenset(
    {
        *("losses", "metrics", "sm_metrics", "weights", "biases", "gradients"),
        *("optimizer_variables", "learning_rates"),
    }
)


def _to_array(value: Any) -> NDArray[Any]:
    """Convert a tensor of the backend, or a value that numpy supports, to an array on the host."""
    if keras.ops.is_tensor(value) or isinstance(value, keras.Variable):
        value = keras.ops.convert_to_numpy(value)
    return to_array(value)


class KerasAccess(NumpyAccess):
    """Access to tensors of the backend, and to values that numpy can convert."""

    _array = staticmethod(_to_array)


class KerasHook(CoreHook, keras.callbacks.Callback):
    """Save losses, metrics, variables, gradients and layers of a Keras 3 model, as its callback.

    Pass it to ``model.fit(..., callbacks=[hook])``, `evaluate` and `predict`; each batch is a step
    of mode TRAIN, EVAL or PREDICT. It takes the arguments of `smdebug.core.hook.Hook`. `close` ends
    the trial, and is called at exit.

    Saved tensors by collection and name:

    - losses ``loss``: of the batch alone, whereas Keras logs the mean over the epoch so far.
    - metrics ``<metric>``: as Keras logs them. Losses and metrics ``val_<...>``: after an epoch
      with validation, with the next step that is saved.
    - weights and biases ``<path of the variable>``, optimizer_variables likewise: after the step.
    - learning_rates ``optimizer/lr/0``: if included, the rate of the step.
    - gradients ``gradients/<path>Grad``, without loss scaling: with the backends torch and
      tensorflow.
    - layers ``<layer>/inputs`` and ``<layer>/outputs``; relu_output, tanh_output, sigmoid_output
      and the ``..._input`` of pure activations; inputs ``inputs``, outputs ``predictions`` and
      ``labels`` of the model: only in uncompiled models, that is with the backend torch unless
      ``jit_compile`` is set, and with tensorflow if ``run_eagerly`` is set. Further tensors of the
      same name in a step end in ``_1, _2, ...``.

    In a loop of your own with the backend tensorflow, pass each tape to `wrap_tape`: its block
    begins a step of mode TRAIN, and ``gradient`` saves loss, gradients and variables. With
    `register_model`, layers are saved, too. `record_tensor_value` saves metrics.

    A warning names tensors that the backend does not expose.

    Examples
    --------
    >>> hook = KerasHook(out_dir, save_config=SaveConfig(save_interval=100))  # doctest: +SKIP
    >>> model.fit(points, labels, callbacks=[hook])  # doctest: +SKIP
    """

    GUARDED: ClassVar[Sequence[str]] = (
        *("register_model", "_enter_tape", "_record_tape", "record_tensor_value"),
        *("on_train_begin", "on_test_begin", "on_train_end", "on_test_end"),
        *("on_train_batch_begin", "on_test_batch_begin", "on_predict_batch_begin"),
        *("on_train_batch_end", "on_test_batch_end", "on_epoch_end", "_record_layer"),
        *("_record_model", "_record_loss"),
    )

    STEPS_JOIN = False
    FRAMEWORK = "tensorflow"
    # Keras distinguishes the kinds of variables, so no patterns are needed.
    DEFAULT_COLLECTIONS: ClassVar[Mapping[str, Sequence[str]]] = dict.fromkeys(
        (
            *("all", "default", "weights", "biases", "gradients", "losses", "metrics"),
            *("inputs", "outputs", "layers", "sm_metrics", "optimizer_variables"),
        ),
        (),
    )
    DEFAULT_INCLUDED: ClassVar[Sequence[str]] = ("metrics", "losses", "sm_metrics")
    FILLED_COLLECTIONS: ClassVar[Sequence[str]] = (
        *(f"{kind}_{side}" for kind in layers.KINDS for side in ("input", "output")),
        *("labels", "predictions", "learning_rates"),
    )
    COLLECTION = Collection
    access = KerasAccess()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        keras.callbacks.Callback.__init__(self)
        super().__init__(*args, **kwargs)
        self._is_fitting = False
        self._scale = 1.0
        self._loss_before = np.zeros(2)
        self._calls: Counter[str] = Counter()
        self._unwatch: list[Callable[[], None]] = []
        self._optimizer: Any = None
        self._held: Any = None
        current_hook.set_hook(self)

    def wrap_optimizer(self, optimizer: Any) -> Any:
        """Save the variables of an optimizer in a loop of your own; return it unchanged."""
        self._optimizer = optimizer
        return optimizer

    def add_to_collection(self, collection_name: str, variable: Any) -> None:
        """Add a variable, or several in a list, to a collection."""
        collection: Any = self.get_collection(collection_name)
        collection.add(variable)

    def register_model(self, model: Any) -> None:
        """Watch the layers of a model that a loop of your own trains."""
        self.set_model(model)
        self._watch(always=True)

    def wrap_tape(self, tape: Any) -> Any:
        """Watch a tape of TensorFlow, and return it.

        Its block begins a step of mode TRAIN. When its gradients are computed, they are saved with
        their variables and the loss.

        Parameters
        ----------
        tape
            A `tf.GradientTape`.
        """
        from rule_core.frameworks.keras.tensorflow_gradients import watch_tape

        watch_tape(tape, self._enter_tape, self._record_tape)
        return tape

    def _enter_tape(self) -> None:
        from rule_core.frameworks.keras.tensorflow_gradients import computes_values

        if computes_values():
            self.mode = ModeKeys.TRAIN
            self._calls.clear()
            self._begin_step()
        else:
            self._warn_once("tape", "Inside tf.function, what a tape records cannot be saved.")

    def _record_tape(self, target: Any, sources: Any, gradients: Any) -> None:
        from rule_core.frameworks.keras.tensorflow_gradients import computes_values, pairs

        if not self._saving or not computes_values():
            return
        self._save_all("loss", target, "losses")
        for variable, gradient in pairs(sources, gradients):
            if gradient is not None:
                self._save(_gradient_name(variable), gradient, "gradients")
            self._save_variable(variable)
        self._save_optimizer(self._optimizer)

    def record_tensor_value(self, tensor_name: str, tensor_value: Any) -> None:
        """Save a value as a metric of the current step."""
        self._ensure_step()
        self._save(tensor_name, tensor_value, "metrics")

    def on_train_begin(self, *_: Any, **__: Any) -> None:
        """Watch the model; evaluations during the fit belong to it."""
        self._is_fitting = True
        self._watch()

    def on_test_begin(self, *_: Any, **__: Any) -> None:
        """Watch the model."""
        self._watch()

    def on_train_end(self, *_: Any, **__: Any) -> None:
        """End the last step, and stop watching the model."""
        self._is_fitting = False
        self._end_run()

    def on_test_end(self, *_: Any, **__: Any) -> None:
        """End the last step, unless a fit is running."""
        if not self._is_fitting:
            self._end_run()

    on_predict_begin = on_test_begin
    on_predict_end = on_test_end

    def on_train_batch_begin(self, *_: Any, **__: Any) -> None:
        """Begin a step of mode TRAIN."""
        self._begin_batch(ModeKeys.TRAIN)
        self._hold_gradients()
        optimizer = self.model.optimizer
        if self._saving and optimizer is not None:
            # Applying the gradients may change the loss scale.
            self._scale = float(self.access.copy(optimizer.scale_loss(1.0)).item())
        if "learning_rates" in self._saving and optimizer is not None:
            rate = self.access.copy(optimizer.learning_rate)  # a schedule's, before the step
            self._save("optimizer/lr/0", rate, "learning_rates")

    def on_test_batch_begin(self, *_: Any, **__: Any) -> None:
        """Begin a step of mode EVAL."""
        self._begin_batch(ModeKeys.EVAL)

    def on_predict_batch_begin(self, *_: Any, **__: Any) -> None:
        """Begin a step of mode PREDICT."""
        self._begin_batch(ModeKeys.PREDICT)

    def on_train_batch_end(self, _: int, logs: Mapping[str, Any] | None = None) -> None:
        """Save the results, gradients and variables of the step."""
        self._end_profiled_step()
        if self._saving:
            self._save_batch(logs or {})
            self._save_gradients()
            self._save_optimizer(self.model.optimizer)

    def on_test_batch_end(self, _: int, logs: Mapping[str, Any] | None = None) -> None:
        """Save the results of the step."""
        self._end_profiled_step()
        if self._saving:
            self._save_batch(logs or {})

    on_predict_batch_end = on_test_batch_end

    def on_epoch_end(self, _: int, logs: Mapping[str, Any] | None = None) -> None:
        """Save the results of the validation with the current or the next saved step."""
        for name, value in (logs or {}).items():
            if name.startswith("val_"):
                self._assign(name, "losses" if name == "val_loss" else "metrics")
                self._scalars[name] = (self.access.copy(value), time.time())

    def close(self) -> None:
        """Write all pending steps, end the trial, and let go of the model."""
        self._end_watching()
        super().close()
        self.set_model(None)

    def _end_profiled_step(self) -> None:
        """End the step in a profile, which has no time between batches."""
        if self.profiler is not None:
            self.profiler.end_step()

    def _begin_batch(self, mode: ModeKeys) -> None:
        self.mode = mode
        self._calls.clear()
        self._begin_step()
        if self._saving:
            self._loss_before = self._summed_loss()

    def _summed_loss(self) -> NDArray[np.float64]:
        """Return the sum and the count of the losses of this epoch so far."""
        for metric in self.model.metrics:
            if metric.name == "loss" and isinstance(metric, keras.metrics.Mean):
                parts = metric.total, metric.count
                return np.array([self.access.copy(part).item() for part in parts])
        return np.zeros(2)

    def _batch_loss(self, logged: float) -> float:
        """Return the loss of this batch alone, or the logged loss if it is unknown."""
        total, count = self._summed_loss() - self._loss_before
        return float(total / count) if count > 0 else logged

    def _end_run(self) -> None:
        self._end_watching()
        self._end_step()

    def _end_watching(self) -> None:
        while self._unwatch:
            self._unwatch.pop()()
        if self._held is not None:
            self._held.close()
            self._held = None

    def _watch(self, *, always: bool = False) -> None:
        """Watch the calls of the model and its layers, if possible and configured.

        `always` watches them though the model would compile a `fit`.
        """
        self._end_watching()
        model = self.model
        if not self._needs_calls():
            return
        if not always and not layers.are_visible(model):
            self._warn_once(
                "calls", "Inputs and outputs of layers cannot be saved in compiled code."
            )
            return
        for layer in layers.inside(model):
            self._unwatch.append(layers.watch(layer, "call", partial(self._record_layer, layer)))
        self._unwatch.append(layers.watch(model, "call", self._record_model))
        self._unwatch.append(layers.watch(model, "compute_loss", self._record_loss))

    def _needs_calls(self) -> bool:
        """Return whether anything may be saved that requires watching calls."""
        return any(
            name not in SCALARS_AND_VARIABLES or self.get_collection(name).include_regex
            for name in self._policy.included
        )

    def _record_layer(self, layer: Any, args: Any, kwargs: Any, result: Any) -> None:
        typed = layers.collections_of(layer)
        for side, value in (("inputs", (args, kwargs)), ("outputs", result)):
            self._save_all(f"{layer.name}/{side}", value, "layers", *typed.get(side, []))

    def _record_model(self, args: Any, kwargs: Any, result: Any) -> None:
        self._save_all("inputs", (args, kwargs), "inputs")
        self._save_all("predictions", result, "outputs", "predictions")

    def _record_loss(self, args: Any, kwargs: Any, _: Any) -> None:
        labels = kwargs["y"] if "y" in kwargs else args[1]
        self._save_all("labels", labels, "outputs", "labels")

    def _save_all(self, name: str, value: Any, *collections: str) -> None:
        """Save the tensors in a value under one name, numbered from the second one in a step."""
        if not self._saving:
            return
        for tensor in layers.tensors_in(value):
            count = self._calls[name]
            self._calls[name] += 1
            self._save(f"{name}_{count}" if count else name, tensor, *collections)

    def _save_batch(self, logs: Mapping[str, Any]) -> None:
        """Save the logs of a batch, and the weights after it."""
        for name, value in logs.items():
            if name == "loss":
                self._save(name, self._batch_loss(value), "losses")
            elif name != "outputs":
                self._save(name, value, "metrics")
            elif not self._unwatch:
                self._save_all("predictions", value, "outputs", "predictions")
        for variable in self.model.weights:
            self._save_variable(variable)

    def _save_variable(self, variable: Any) -> None:
        collection = "biases" if "bias" in variable.name else "weights"
        self._save(variable_name(variable), variable, collection)

    def _save_optimizer(self, optimizer: Any) -> None:
        for variable in getattr(optimizer, "variables", ()):
            self._save(variable_name(variable), variable, "optimizer_variables")

    def _selected_gradients(self, saving: frozenset[str]) -> Iterator[tuple[str, Any]]:
        """Yield the names of the gradients that collections select, with their variables."""
        for variable in self.model.trainable_weights:
            name = _gradient_name(variable)
            self._assign(name, "gradients")
            if self._policy.plan(name, saving) is not None:
                yield name, variable

    def _hold_gradients(self) -> None:
        """Have TensorFlow keep the gradients of the fit, if any is saved at any step."""
        if self._held is not None or keras.backend.backend() != "tensorflow":
            return
        if any(True for _ in self._selected_gradients(self._policy.included)):
            from rule_core.frameworks.keras.tensorflow_gradients import HeldGradients

            self._held = HeldGradients(self.model)

    def _save_gradients(self) -> None:
        for name, variable in self._selected_gradients(self._saving):
            if self._held is not None:
                gradient = self._held.get(variable_name(variable))
            elif keras.backend.backend() == "torch":
                gradient = variable.value.grad
            else:
                self._warn_once(
                    "gradients", "Gradients can be saved with the backends torch and tensorflow."
                )
                return
            if gradient is not None:
                self._record(name, gradient / self._scale)

    def _save(self, name: str, tensor: Any, *collections: str) -> None:
        for collection in collections:
            self._assign(name, collection)
        self._record(name, tensor)

    def _assign(self, name: str, collection: str) -> None:
        """Add a tensor to a collection if the collection exists or the tensor is saved anyway."""
        exists = collection in self.collection_manager
        if not exists and self._policy.plan(name, self._saving) is None:
            return
        self._add_member(collection, name)


def _gradient_name(variable: Any) -> str:
    return f"gradients/{variable_name(variable)}Grad"


def get_hook(
    hook_type: str | None = None,
    json_config_path: str | None = None,
    create_if_not_exists: bool = False,
) -> KerasHook | None:
    """Return the latest hook, or a new one from the JSON file."""
    del hook_type  # there is one type; smdebug has several
    return current_hook.get_hook_of(KerasHook, json_config_path, create_if_not_exists)
