"""Hook: saves tensors of a PyTorch training job, with the names of smdebug."""

import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, Final

import numpy as np
import torch
from torch import distributed

from rule_core.exceptions import SMDebugTypeError
from rule_core.frameworks.pytorch import modules
from rule_core.frameworks.pytorch.callback import Callback
from rule_core.frameworks.pytorch.collection import Collection
from rule_core.frameworks.pytorch.deferred_values import DeferredValues
from rule_core.frameworks.pytorch.loss_scaling import LossScaling
from rule_core.frameworks.pytorch.measures import fingerprints
from rule_core.frameworks.pytorch.measures.module_probes import (
    ModuleProbes,
    Probed,
    has_attention_or_router,
)
from rule_core.frameworks.pytorch.optimizer_watch import OptimizerWatch
from rule_core.frameworks.pytorch.patches import remove_all
from rule_core.frameworks.pytorch.profiling.training_profile import TrainingProfile
from rule_core.frameworks.pytorch.torch_access import TorchAccess
from rule_core.model.collection import CollectionKeys
from rule_core.model.patterns import search
from rule_core.modes import ModeKeys
from rule_core.saving import current_hook
from rule_core.saving.hook import Hook as CoreHook
from rule_core.saving.presets import (
    ATTENTION,
    FINGERPRINTS,
    LATENT_MEANS,
    MEASURED,
    MODEL,
    OF_MODULES,
    OF_OPTIMIZER,
    OPTIMIZER,
    PARAMETERS,
    PRESETS,
)

INPUT_HASHES: Final = "fingerprints/inputs"
LABEL_HASHES: Final = "fingerprints/labels"


class Hook(CoreHook):
    """Save inputs and outputs of modules, weights, biases, gradients and losses of a training job.

    A step is one forward call of the first registered module, or of a registered loss if there is
    no module. Weights are those before the step, gradients those of each backward (not accumulated,
    and without the scale of mixed precision). It takes the arguments of `smdebug.core.hook.Hook`.

    A subclass may override `forward_hook` to decide what to save of a module, as in smdebug.

    Attributes
    ----------
    module_maps
        The names of the modules that `forward_hook` is called for, if a subclass overrides it.

    Examples
    --------
    >>> hook = Hook(out_dir, save_config=SaveConfig(save_interval=100))  # doctest: +SKIP
    >>> hook.register_module(model)  # doctest: +SKIP
    >>> hook.register_loss(criterion)  # doctest: +SKIP
    """

    GUARDED: ClassVar[Sequence[str]] = (
        *("record_tensor_value", "_call_forward_hook", "begin_step", "run_guarded"),
        *("record_batch", "_begin_without_model", "_record_call", "_record_gradient"),
    )

    STEPS_JOIN = False
    DEFAULT_COLLECTIONS: ClassVar[Mapping[str, Sequence[str]]] = {
        **CoreHook.DEFAULT_COLLECTIONS,
        "losses": ("[Ll]oss_(?!input).*output",),
    }
    FILLED_COLLECTIONS: ClassVar[Sequence[str]] = (
        *(f"{kind}_{side}" for _, kind in modules.KINDS for side in ("input", "output")),
        *("input_image", "input_sequence", "labels", "predictions", LATENT_MEANS),
        *MEASURED,
    )
    COLLECTION = Collection
    access = TorchAccess()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._scaling = LossScaling(
            lambda scaler: self.run_guarded(self._optimizers.before_scale_update, scaler)
        )
        self._optimizers = OptimizerWatch(self, self._scaling)
        self._measured = DeferredValues()
        self._probes = ModuleProbes(self._measured.add, self.run_guarded)
        self._probed: list[Probed] = []
        self._has_order = False
        self._measured_names: set[str] = set()
        self._required_gradients: dict[str, bool] = {}
        self._saves_parameters = self._policy.names(PARAMETERS)
        self._optimizers.measures_updates = self._policy.names(OPTIMIZER)
        self._choose(self.preset)
        self._models: list[tuple[str, Any]] = []
        self._losses: list[Any] = []
        self.module_maps: dict[Any, str] = {}
        self._handles: list[Any] = []
        # By id while the parameter lives, because some trainings replace parameters in each step.
        self._with_gradient: dict[int, tuple[Any, Any]] = {}
        self._without_parameters: set[frozenset[str]] = set()
        self._calls: dict[str, int] = {}
        self._placed: set[str] = set()
        self._profile = None if self.profiler is None else TrainingProfile(self.profiler)
        current_hook.set_hook(self)

    def register_module(
        self, module: Any, *, counts_steps: bool = True, times_forward: bool = True
    ) -> None:
        """Watch a model; the first one counts the steps.

        Parameters
        ----------
        module
            A `torch.nn.Module`, plain or wrapped for several devices or for compilation. Wrappers
            do not change the names of tensors.
        counts_steps
            Whether calling the first model begins a step; otherwise call `begin_step`.
        times_forward
            Whether calls of the first model are the forward in a profile; otherwise tell
            `profiler` when the forward and the backward begin and end.

        Raises
        ------
        SMDebugTypeError
            If it is not a module.
        """
        modules.check(module, "A model must be a torch.nn.Module")
        model = modules.unwrapped(module)
        name = modules.class_name(model)
        same = sum(other.partition(":")[0] == name for other, _ in self._models)
        name = f"{name}:{same}" if same else name
        if counts_steps and not self._models:
            begin = Callback(lambda *_: self._begin_forward(), self._warn_of_whole_graph)
            self._handles.append(module.register_forward_pre_hook(begin, prepend=True))
        if self._profile is not None and not self._models:
            self._profile.watch(module, has_phases=times_forward)
        self._models.append((name, module))
        self._probed.clear()
        self._scaling.watch()
        if self.preset == "auto" or any(map(self._policy.names, OF_OPTIMIZER)):
            self._optimizers.watch()
        self._watch(modules.Named(name, module, "model"))
        if self._has_started:
            self._watch_inside(name, module)

    register_hook = register_module

    def register_loss(self, loss_module: Any) -> None:
        """Watch a loss: a module that is called with predictions and labels.

        Raises
        ------
        SMDebugTypeError
            If it is not a module; use `record_tensor_value` for losses that are functions.
        """
        modules.check(loss_module, "A loss must be a torch.nn.Module")
        if any(loss is loss_module for loss in self._losses):
            return
        self._losses.append(loss_module)
        name = modules.class_name(modules.unwrapped(loss_module))
        begin = Callback(lambda *_: self._begin_without_model(), self._warn_of_whole_graph)
        self._handles.append(loss_module.register_forward_pre_hook(begin, prepend=True))
        self._watch(modules.Named(name, loss_module, "loss"))

    def register_optimizer(self, optimizer: Any) -> None:
        """Save the learning rates, gradient norm and loss scale of an optimizer.

        Optimizers of registered models are found at their first update if the preset or a
        collection selects them; this selects them, and names one of parameters that are not in a
        registered model.

        Parameters
        ----------
        optimizer
            A `torch.optim.Optimizer`.

        Raises
        ------
        SMDebugTypeError
            If it is not an optimizer.
        """
        if not isinstance(optimizer, torch.optim.Optimizer):
            raise SMDebugTypeError(
                f"An optimizer must be a torch.optim.Optimizer, got {optimizer!r}."
            )
        self.watch_optimizers()
        self._optimizers.add(optimizer)

    def watch_optimizers(self) -> None:
        """Save the learning rates, gradient norm and loss scale of all optimizers of the models."""
        for name in OF_OPTIMIZER:
            if not self._policy.names(name):
                self.add_collection(name)
        self._scaling.watch()
        self._optimizers.watch()

    def register_scaler(self, scaler: Any) -> None:
        """Register a gradient scaler that is not a `torch.amp.GradScaler`."""
        self._scaling.use(scaler)

    def record_tensor_value(self, tensor_name: str, tensor_value: Any) -> None:
        """Save the result of a function, such as a loss, as ``<tensor_name>_output_0``."""
        self._begin_without_model()
        self._ensure_step()
        self._write_outputs(tensor_name, tensor_value)

    def forward_hook(self, module: Any, inputs: Any, outputs: Any) -> None:
        """Save the inputs and outputs of a module.

        If a subclass overrides it, it is called after each call of a registered model, of the
        modules inside, and of a registered loss. Its errors do not break the training.
        """
        name = self.module_maps[module]
        self._write_inputs(name, inputs)
        self._write_outputs(name, outputs)

    @property
    def _overrides_forward_hook(self) -> bool:
        return type(self).forward_hook is not Hook.forward_hook

    def _call_forward_hook(self, module: Any, inputs: Any, outputs: Any) -> None:
        self.forward_hook(module, inputs, outputs)

    def backward_hook(self, tname: str) -> Callable[[Any], None]:
        """Return a hook of a tensor that saves its gradient as ``gradient/<tname>``."""
        return partial(self._record_gradient, f"gradient/{tname}")

    def _write_inputs(self, name: str, inputs: Any) -> None:
        self._record_all(f"{name}_input", inputs, "recorded input")

    def _write_outputs(self, name: str, outputs: Any) -> None:
        self._record_all(f"{name}_output", outputs, "recorded output")

    def close(self) -> None:
        """Write all pending steps, end the trial, and let go of the models and their callbacks."""
        remove_all(self._handles)
        remove_all([handle for _, handle in self._with_gradient.values()])
        self._with_gradient.clear()
        self._scaling.unwatch()
        self._probes.detach()
        self._probes.attention_calls.unwatch()
        if self._profile is not None:
            self._profile.close()
        super().close()
        self._optimizers.unwatch()
        for held in (self._measured, self._models, self._losses, self._probed, self.module_maps):
            held.clear()

    def _begin_forward(self) -> None:
        if not modules.in_backward():
            self.begin_step()

    def begin_step(self) -> None:
        """Begin a step, and save the weights before it.

        Called whenever the first model is called, unless it was registered not to count steps.
        """
        self._calls.clear()
        self._scaling.begin_step()
        self._begin_step()
        self._optimizers.begin_step()
        self._measure_models()
        saving = self._saving
        if not saving or saving in self._without_parameters:
            return
        is_any_saved = self._saves_parameters and PARAMETERS in saving
        for name, module in self._models:
            for inner_name, parameter in modules.unwrapped(module).named_parameters():
                names = full_name, gradient_name = modules.parameter_names(name, inner_name)
                is_any_saved = is_any_saved or any(
                    self._policy.plan(tensor_name, saving) for tensor_name in names
                )
                if not modules.is_placeholder(parameter):
                    self._watch_gradient(gradient_name, parameter)
                    if self._saves_parameters and full_name not in self._measured_names:
                        self._measured_names.add(full_name)
                        self._add_member(PARAMETERS, full_name)
                    self._record(full_name, parameter)
        if not is_any_saved:
            self._without_parameters.add(saving)

    def _choose_by_models(self) -> None:
        """Choose a preset that fits the models."""
        is_llm = any(has_attention_or_router(module) for _, module in self._models)
        self._choose("llm" if is_llm else "none")
        if is_llm:
            self._announce(
                "The model has attention or router modules: preset 'llm' measures them as well."
            )
        elif not any(map(self._policy.names, OF_OPTIMIZER)):
            self._optimizers.unwatch()

    def _announce(self, text: str) -> None:
        self.logger.info(text)

    def _choose(self, preset: str) -> None:
        """Include the collections of a preset."""
        self.preset = preset
        for name in PRESETS[preset]:
            if not self._policy.names(name):
                self._policy.include(name)
        if PRESETS[preset]:
            self._optimizers.measures_updates = True
        norms = CollectionKeys.GRADIENT_NORMS
        if preset == "none" and self._policy.names(norms) and not self._policy.names(OPTIMIZER):
            # Whether an update was clipped or skipped is known at the steps of its norm.
            collection = self.get_collection(OPTIMIZER)
            if collection.save_config is None:
                collection.save_config = self.get_collection(norms).save_config
            self._policy.include(OPTIMIZER)

    def wants(self, collection: str) -> bool:
        """Return whether a collection is saved by its own name at the current training step."""
        return self._is_training_step and self._measures(collection)

    def _measures(self, collection: str) -> bool:
        return collection in self._saving and self._policy.names(collection)

    @property
    def _is_training_step(self) -> bool:
        return self._step_mode in (ModeKeys.TRAIN, ModeKeys.GLOBAL)

    def run_guarded(self, call: Callable[..., Any], *args: Any) -> Any:
        """Return what a function returns, which must not break the training or join its graph."""
        with torch.no_grad():
            return call(*args)

    def warn_once(self, subject: str, text: str) -> None:
        """Log a warning once per subject."""
        self._warn_once(subject, text)

    def has_flat_shards(self) -> bool:
        """Return whether a model is sharded by the older `FullyShardedDataParallel`."""
        return any(modules.is_flat_sharded(module) for _, module in self._models)

    def parameters_by_name(self) -> dict[str, Any]:
        """Return the models' parameters by their names."""
        return {
            modules.parameter_names(name, inner_name)[0]: parameter
            for name, module in self._models
            for inner_name, parameter in modules.unwrapped(module).named_parameters()
        }

    def _measure_models(self) -> None:
        """Measure what is known about the models when a step begins."""
        if self._measures(MODEL) and self._models:
            share = modules.training_share(self._models[0][1])
            self._measured.add(MODEL, "model/training_mode", share)
        flags = PARAMETERS if self.wants(PARAMETERS) else MODEL
        if self.wants(flags):
            for name, parameter in self.parameters_by_name().items():
                flag = bool(parameter.requires_grad)
                if hasattr(parameter, "to_local") and name not in self._required_gradients:
                    self._measured.add(flags, f"parameters/is_sharded/{name}", np.uint8(1))
                if self._required_gradients.get(name) is not flag:
                    self._required_gradients[name] = flag
                    self._measured.add(flags, f"parameters/requires_grad/{name}", np.uint8(flag))

        wanted = frozenset(name for name in (*OF_MODULES, MODEL) if self.wants(name))
        is_due = wanted - {MODEL} or (wanted and not self._has_order)
        if is_due and self._models and self._models[0][1].training:
            self._probes.attach(self._probed_modules(), wanted, self._selects)
            self._has_order = self._has_order or MODEL in wanted
        else:
            self._probes.detach()

    def _selects(self, collection: str, name: str) -> bool:
        """Return whether the user's patterns of a collection select a measurement."""
        patterns = self.get_collection(collection).include_regex
        return any(search(pattern, name) for pattern in patterns)

    def _probed_modules(self) -> list[Probed]:
        """Return the modules that can be measured, each with the module around it."""
        if self._probed:
            return self._probed
        for name, model in self._models:
            root = modules.unwrapped(model)
            inside = list(self._inside(name, model))
            parents = {
                id(child): module for module in root.modules() for child in module.children()
            }
            visible = [inner for inner, is_visible in inside if is_visible]
            self._probed += [
                Probed(inner.name, inner.module, parents.get(id(inner.module), root))
                for inner in visible
            ]
            if len(visible) < len(inside):
                self._warn_once(
                    f"measured {name}",
                    f"{len(inside) - len(visible)} modules of {name} are not measured, since they "
                    "run in compiled code.",
                )
            if not modules.is_compiled(model):
                self._probed.append(Probed(name, root, None))
        return self._probed

    def record_batch(self, batch: Any) -> None:
        """Save fingerprints of a batch's inputs and labels, as a data loader returns it."""
        inputs, labels = fingerprints.split_batch(batch)
        self._measure_batch(inputs)
        self._measure_labels(labels)

    def _measure_batch(self, arguments: Any) -> None:
        if self._measures(FINGERPRINTS) and INPUT_HASHES not in self._measured:
            inputs, labels = fingerprints.batch_hashes(arguments)
            self._measured.add(FINGERPRINTS, INPUT_HASHES, inputs)
            self._measured.add(FINGERPRINTS, LABEL_HASHES, labels)

    def _measure_labels(self, labels: Any) -> None:
        if self._measures(FINGERPRINTS) and LABEL_HASHES not in self._measured:
            hashes, _ = fingerprints.batch_hashes(labels)
            self._measured.add(FINGERPRINTS, LABEL_HASHES, hashes)

    def _end_step(self) -> None:
        """Save the measurements of the step, and queue it for writing."""
        self._probes.pause()
        if self._in_step and self._saving and self._recorder is not None:
            if self._is_training_step:
                self._save_measured(self._optimizers.values)
                self._optimizers.end_saved_step()
            self._save_measured(self._measured)
        self._measured.clear()
        super()._end_step()

    def _save_measured(self, values: DeferredValues) -> None:
        recorder = self._recorder
        for collection, name, value in values.take():
            if recorder is not None and self._measures(collection):
                if name not in self._measured_names:
                    self._measured_names.add(name)
                    self._add_member(collection, name)
                recorder.add_array(name, value)
                self._record_membership(name, recorder)

    def _begin_without_model(self) -> None:
        """Begin a step if no model counts steps."""
        if not self._models:
            self._calls.clear()
            self._begin_step()

    @classmethod
    def rank_and_size(cls) -> tuple[int, int]:
        """Return them from PyTorch's process group, as not every launcher sets the environment."""
        if distributed.is_available() and distributed.is_initialized():
            return distributed.get_rank(), distributed.get_world_size()
        return super().rank_and_size()

    def _prepare(self) -> None:
        """Convert modules in collections to patterns, and watch modules that may be saved."""
        if self.preset == "auto":
            self._choose_by_models()
        inside = [modules.Named(name, modules.unwrapped(model), "") for name, model in self._models]
        inside += [inner for name, model in self._models for inner, _ in self._inside(name, model)]
        for collection in self.get_collections().values():
            if isinstance(collection, Collection):
                collection.include_modules(inside)
        super()._prepare()
        if self._recorder is not None:
            for name, module in self._models:
                self._watch_inside(name, module)
            if self._policy.names(ATTENTION):
                self._probes.attention_calls.watch()

    def _watch_inside(self, name: str, model: Any) -> None:
        """Watch the modules inside a model whose inputs or outputs may be saved."""
        hidden = []
        for inner, is_visible in self._inside(name, model):
            if self._overrides_forward_hook or self._may_be_saved(inner):
                if is_visible:
                    self._watch(inner)
                else:
                    hidden.append(inner.name)
        if hidden:
            self._warn_once(
                f"compiled {name}",
                f"Inputs and outputs of {len(hidden)} of its modules are not seen, since they run "
                f"in compiled code; the first of them is {hidden[0]!r}.",
            )

    def _inside(self, name: str, model: Any) -> Iterator[tuple[modules.Named, bool]]:
        """Yield the modules inside a model by full name, and whether hooks can observe them."""
        prefix = "" if name == self._models[0][0] else f"{name}."
        hidden = modules.is_compiled(model)
        for inner, is_visible in modules.submodules(modules.unwrapped(model), hidden=hidden):
            yield inner._replace(name=prefix + inner.name), is_visible

    def _may_be_saved(self, named: modules.Named) -> bool:
        """Return whether a tensor of a module may belong to a saved collection."""
        saved = self._policy.included
        if LATENT_MEANS in saved and named.kind == modules.LATENT:
            return True
        for collection_name in saved - {LATENT_MEANS}:
            collection = self.get_collection(collection_name)
            defaults = self.DEFAULT_COLLECTIONS.get(collection_name, ())
            if set(collection.include_regex).difference(defaults) or collection.tensor_names:
                return True
            if collection_name in self.FILLED_COLLECTIONS and collection_name not in MEASURED:
                return True
        sides = (f"{named.name}_input_0", f"{named.name}_output_0")
        return any(self._policy.plan(side, saved) is not None for side in sides)

    def _watch(self, named: modules.Named) -> None:
        """Watch the outputs of a module, and its inputs before it can overwrite them."""
        if self._overrides_forward_hook:
            self.module_maps[named.module] = named.name
            vars(named.module)["_module_name"] = named.name  # read by overridden hooks
            after_call = Callback(self._call_forward_hook)
            self._handles.append(named.module.register_forward_hook(after_call))
            return

        # `kwargs` is missing if the hook is closed during the call of the module.
        def before(_: Any, args: Any, kwargs: Any = None) -> None:
            if self._saving:
                self._record_call(named, "input", (*args, kwargs))

        def after(_: Any, __: Any, ___: Any, output: Any) -> None:
            if self._saving:
                self._record_call(named, "output", output)

        self._handles += [
            named.module.register_forward_pre_hook(
                Callback(before, self._warn_of_whole_graph), with_kwargs=True
            ),
            named.module.register_forward_hook(Callback(after), with_kwargs=True),
        ]

    def _record_call(self, named: modules.Named, side: str, value: Any) -> None:
        if not modules.in_backward():
            if side == "input":
                self._measure_inputs(named, value)
            self._record_all(f"{named.name}_{side}", value, f"{named.kind} {side}")

    def _measure_inputs(self, named: modules.Named, arguments: Any) -> None:
        """Measure the batch that the first model or a loss is called with."""
        if named.kind == "model" and named.module is self._models[0][1]:
            self._measure_batch(arguments)
        elif named.kind == "loss":
            *positional, keywords = arguments
            labels = (keywords or {}).get("target", positional[1] if len(positional) > 1 else None)
            self._measure_labels(labels)

    def _warn_of_whole_graph(self) -> None:
        self._warn_once(
            "one graph",
            "A model is compiled as one whole graph, in which nothing can be seen. Compile it "
            "first, and register what torch.compile returned.",
        )

    def _record_all(self, prefix: str, value: Any, place: str) -> None:
        """Save every tensor in an input or output of a module, numbered within the step."""
        for position, (key, tensor) in enumerate(modules.tensors_in(value)):
            name = f"{prefix}_{key}" if key else prefix
            count = self._calls.get(name, 0)
            self._calls[name] = count + 1
            if count or not key:
                name = f"{name}_{count}"
            self._place(name, tensor, place, key or position)
            self._record(name, tensor)

    def _place(self, name: str, tensor: Any, place: str, argument: str | int) -> None:
        """Add a tensor once to the collection of its module's class or its role."""
        if name in self._placed or self._recorder is None:
            return
        collection = modules.collection_of(tensor, place, argument)
        is_saved = self._policy.plan(name, self._saving) is not None
        if collection and (is_saved or collection in self._policy.included):
            self._placed.add(name)
            self._add_member(collection, name)

    def _watch_gradient(self, name: str, parameter: Any) -> None:
        """Watch the gradient of a parameter in each backward, if it may be saved."""
        key = id(parameter)
        if not parameter.requires_grad or key in self._with_gradient:
            return
        if self._policy.plan(name, self._policy.included) is None:
            return

        def on_gradient(gradient: Any) -> None:
            if self._saving:
                self._record_gradient(name, gradient)

        if hasattr(parameter, "to_local"):
            # A shard gets its gradient from a collective operation, not from the backward.
            handle = parameter.register_post_accumulate_grad_hook(
                lambda owner: on_gradient(owner.grad)
            )
        else:
            handle = parameter.register_hook(on_gradient)
        reference = weakref.ref(parameter, lambda _: self._with_gradient.pop(key, None))
        self._with_gradient[key] = reference, handle

    def _record_gradient(self, name: str, gradient: Any) -> None:
        if gradient is not None and self._policy.plan(name, self._saving):
            factor = self._scaling.inverse()
            self._record(name, gradient if factor == 1.0 else gradient.detach() * factor)


# ``get_hook(json_config_path=None, create_if_not_exists=False)``: the latest hook, or a new one
# from the JSON file.
get_hook = partial(current_hook.get_hook_of, Hook)
