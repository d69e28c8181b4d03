"""Hook: saves tensors of a PyTorch training job, with the names of smdebug."""

import weakref
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

from torch import distributed

from rule_core.frameworks.pytorch import modules
from rule_core.frameworks.pytorch.callback import Callback
from rule_core.frameworks.pytorch.collection import Collection
from rule_core.frameworks.pytorch.loss_scaling import LossScaling
from rule_core.frameworks.pytorch.torch_access import TorchAccess
from rule_core.saving import current_hook
from rule_core.saving.error_guard import guarded
from rule_core.saving.hook import Hook as CoreHook


class Hook(CoreHook):
    """Save inputs and outputs of modules, weights, biases, gradients and losses of a training job.

    A step is one forward call of the first registered module, or of a registered loss if there is
    no module. Weights are those before the step, gradients those of each backward (not accumulated,
    and without the scale of mixed precision). It takes the arguments of `smdebug.core.hook.Hook`.

    Examples
    --------
    >>> hook = Hook(out_dir, save_config=SaveConfig(save_interval=100))  # doctest: +SKIP
    >>> hook.register_module(model)  # doctest: +SKIP
    >>> hook.register_loss(criterion)  # doctest: +SKIP
    """

    DEFAULT_COLLECTIONS: ClassVar[Mapping[str, Sequence[str]]] = {
        **CoreHook.DEFAULT_COLLECTIONS,
        "losses": ("[Ll]oss_(?!input).*output",),
    }
    FILLED_COLLECTIONS: ClassVar[Sequence[str]] = (
        *(f"{kind}_{side}" for _, kind in modules.KINDS for side in ("input", "output")),
        *("input_image", "input_sequence", "labels", "predictions"),
    )
    COLLECTION = Collection
    access = TorchAccess()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._scaling = LossScaling()
        self._models: list[tuple[str, Any]] = []
        self._losses: list[Any] = []
        self._handles: list[Any] = []
        # By id while the parameter lives, because some trainings replace parameters in each step.
        self._with_gradient: dict[int, tuple[Any, Any]] = {}
        self._without_parameters: set[frozenset[str]] = set()
        self._calls: dict[str, int] = {}
        self._placed: set[str] = set()
        current_hook.set_hook(self)

    def register_module(self, module: Any, *, counts_steps: bool = True) -> None:
        """Watch a model; the first one counts the steps.

        Parameters
        ----------
        module
            A `torch.nn.Module`, plain or wrapped for several devices or for compilation. Wrappers
            do not change the names of tensors.
        counts_steps
            Whether calling the first model begins a step; otherwise call `begin_step`.

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
        self._models.append((name, module))
        self._scaling.watch()
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

    def register_scaler(self, scaler: Any) -> None:
        """Register a gradient scaler that is not a `torch.amp.GradScaler`."""
        self._scaling.use(scaler)

    @guarded
    def record_tensor_value(self, tensor_name: str, tensor_value: Any) -> None:
        """Save the result of a function, such as a loss, as ``<tensor_name>_output_0``."""
        self._begin_without_model()
        self._ensure_step()
        self._record_all(f"{tensor_name}_output", tensor_value, "recorded output")

    def close(self) -> None:
        """Write all pending steps, end the trial and remove all callbacks from the model."""
        for handle in (*self._handles, *(handle for _, handle in self._with_gradient.values())):
            handle.remove()
        self._handles.clear()
        self._with_gradient.clear()
        self._scaling.unwatch()
        super().close()

    def _begin_forward(self) -> None:
        if not modules.in_backward():
            self.begin_step()

    @guarded
    def begin_step(self) -> None:
        """Begin a step, and save the weights before it.

        Called whenever the first model is called, unless it was registered not to count steps.
        """
        self._calls.clear()
        self._scaling.begin_step()
        self._begin_step()
        saving = self._saving
        if not saving or saving in self._without_parameters:
            return
        is_any_saved = False
        for name, module in self._models:
            for inner_name, parameter in modules.unwrapped(module).named_parameters():
                names = full_name, gradient_name = modules.parameter_names(name, inner_name)
                is_any_saved = is_any_saved or any(
                    self._policy.plan(tensor_name, saving) for tensor_name in names
                )
                if not modules.is_placeholder(parameter):
                    self._watch_gradient(gradient_name, parameter)
                    self._record(full_name, parameter)
        if not is_any_saved:
            self._without_parameters.add(saving)

    @guarded
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
        inside = [modules.Named(name, modules.unwrapped(model), "") for name, model in self._models]
        inside += [inner for name, model in self._models for inner, _ in self._inside(name, model)]
        for collection in self.get_collections().values():
            if isinstance(collection, Collection):
                collection.include_modules(inside)
        super()._prepare()
        if self._recorder is not None:
            for name, module in self._models:
                self._watch_inside(name, module)

    def _watch_inside(self, name: str, model: Any) -> None:
        """Watch the modules inside a model whose inputs or outputs may be saved."""
        hidden = []
        for inner, is_visible in self._inside(name, model):
            if self._may_be_saved(inner.name):
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

    def _may_be_saved(self, name: str) -> bool:
        """Return whether a tensor of a module may belong to a saved collection."""
        saved = self._policy.included
        for collection_name in saved:
            collection = self.get_collection(collection_name)
            defaults = self.DEFAULT_COLLECTIONS.get(collection_name, ())
            if set(collection.include_regex).difference(defaults) or collection.tensor_names:
                return True
            if collection_name in self.FILLED_COLLECTIONS:
                return True
        sides = (f"{name}_input_0", f"{name}_output_0")
        return any(self._policy.plan(side, saved) is not None for side in sides)

    def _watch(self, named: modules.Named) -> None:
        """Watch the outputs of a module, and its inputs before it can overwrite them."""

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

    @guarded
    def _record_call(self, named: modules.Named, side: str, value: Any) -> None:
        if not modules.in_backward():
            self._record_all(f"{named.name}_{side}", value, f"{named.kind} {side}")

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

    @guarded
    def _record_gradient(self, name: str, gradient: Any) -> None:
        if gradient is not None and self._policy.plan(name, self._saving):
            factor = self._scaling.inverse()
            self._record(name, gradient if factor == 1.0 else gradient.detach() * factor)


# ``get_hook(create_if_not_exists=False)``: the latest hook, or a new one from the JSON file.
get_hook = partial(current_hook.get_hook_of, Hook)
