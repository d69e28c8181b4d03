"""Hook: saves what a PyTorch training job computes, by names and collections of smdebug's."""

import weakref
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from torch import distributed

from smdebug.core import current_hook
from smdebug.core.guard import guarded
from smdebug.core.hook import Hook as CoreHook
from smdebug.pytorch import modules
from smdebug.pytorch.callback import Callback
from smdebug.pytorch.collection import Collection
from smdebug.pytorch.loss_scaling import LossScaling
from smdebug.pytorch.torch_access import TorchAccess


class Hook(CoreHook):
    """Save inputs and outputs of modules, weights, biases, gradients and losses of a training job.

    A step is one forward call of the model: of the first registered module, or if there is none of
    a registered loss. Weights are those before the step, gradients those of each backward (not
    accumulated, and without the scale of mixed precision). Takes the arguments of
    `smdebug.core.hook.Hook`.

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
        # By id, for as long as the parameter lives: some trainings replace theirs in each step.
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
            A `torch.nn.Module`, plain or wrapped for several devices or for compilation: its
            tensors have the names of the plain one.
        counts_steps
            Whether calling the first model begins a step; otherwise call `begin_step`.

        Raises
        ------
        SMDebugTypeError
            If it is no module.
        """
        modules.check(module, "A model must be a torch.nn.Module")
        model = modules.unwrapped(module)
        name = modules.class_name(model)
        same = sum(one.partition(":")[0] == name for one, _ in self._models)
        name = f"{name}:{same}" if same else name
        if counts_steps and not self._models:
            begin = Callback(lambda *_: self._begin_forward(), self._say_that_nothing_is_seen)
            self._handles.append(module.register_forward_pre_hook(begin, prepend=True))
        self._models.append((name, module))
        self._scaling.watch()
        self._watch(modules.Named(name, module, "model"))
        if self._began:
            self._watch_inside(name, module)

    register_hook = register_module

    def register_loss(self, loss_module: Any) -> None:
        """Watch a loss: a module that is called with predictions and labels.

        Raises
        ------
        SMDebugTypeError
            If it is no module; use `record_tensor_value` for losses that are functions.
        """
        modules.check(loss_module, "A loss must be a torch.nn.Module")
        if any(one is loss_module for one in self._losses):
            return
        self._losses.append(loss_module)
        name = modules.class_name(modules.unwrapped(loss_module))
        begin = Callback(lambda *_: self._begin_without_model(), self._say_that_nothing_is_seen)
        self._handles.append(loss_module.register_forward_pre_hook(begin, prepend=True))
        self._watch(modules.Named(name, loss_module, "loss"))

    def register_scaler(self, scaler: Any) -> None:
        """Name the gradient scaler, if it is none of PyTorch's own `torch.amp.GradScaler`."""
        self._scaling.use(scaler)

    @guarded
    def record_tensor_value(self, tensor_name: str, tensor_value: Any) -> None:
        """Save what a function returned, such as a loss, as ``<tensor_name>_output_0``."""
        self._begin_without_model()
        self._need_step()
        self._record_all(f"{tensor_name}_output", tensor_value, "")

    def close(self) -> None:
        """Write what is outstanding, end the trial, and leave the model as it was."""
        for handle in (*self._handles, *(one for _, one in self._with_gradient.values())):
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
        """Begin a step, and save the weights that it begins with.

        Done whenever the first model is called, unless that was registered not to count steps.
        """
        self._calls.clear()
        self._scaling.begin_step()
        self._begin_step()
        saving = self._saving
        if not saving or saving in self._without_parameters:
            return
        wanted = False
        for name, module in self._models:
            for inner_name, parameter in modules.unwrapped(module).named_parameters():
                names = full_name, gradient_name = modules.parameter_names(name, inner_name)
                wanted = wanted or any(self._decisions.plan(one, saving) for one in names)
                if not modules.is_placeholder(parameter):
                    self._see_gradient(gradient_name, parameter)
                    self._record(full_name, parameter)
        if not wanted:
            self._without_parameters.add(saving)

    @guarded
    def _begin_without_model(self) -> None:
        """Begin a step where no model counts them."""
        if not self._models:
            self._calls.clear()
            self._begin_step()

    def _rank_and_size(self) -> tuple[int, int]:
        """Ask PyTorch's process group if there is one: not every launcher sets the environment."""
        if distributed.is_available() and distributed.is_initialized():
            return distributed.get_rank(), distributed.get_world_size()
        return super()._rank_and_size()

    def _prepare(self) -> None:
        """Resolve modules in collections to patterns; then watch what may be saved."""
        inside = [modules.Named(name, modules.unwrapped(one), "") for name, one in self._models]
        inside += [one for name, model in self._models for one, _ in self._inside(name, model)]
        for collection in self.get_collections().values():
            if isinstance(collection, Collection):
                collection.include_modules(inside)
        super()._prepare()
        if self._recording is not None:
            for name, module in self._models:
                self._watch_inside(name, module)

    def _watch_inside(self, name: str, model: Any) -> None:
        """Watch those modules inside a model whose inputs or outputs may be saved."""
        unseen = []
        for one, visible in self._inside(name, model):
            if self._may_be_saved(one.name):
                if visible:
                    self._watch(one)
                else:
                    unseen.append(one.name)
        if unseen:
            self._warn_once(
                f"compiled {name}",
                f"Inputs and outputs of {len(unseen)} of its modules are not seen, since they run "
                f"in compiled code; the first of them is {unseen[0]!r}.",
            )

    def _inside(self, name: str, model: Any) -> Iterator[tuple[modules.Named, bool]]:
        """Yield the modules inside a model by full name, and whether hooks can see them."""
        prefix = "" if name == self._models[0][0] else f"{name}."
        hidden = modules.is_compiled(model)
        for one, visible in modules.submodules(modules.unwrapped(model), hidden=hidden):
            yield one._replace(name=prefix + one.name), visible

    def _may_be_saved(self, name: str) -> bool:
        """Say whether a tensor of a module could belong to a saved collection."""
        saved = self._decisions.included
        for one in saved:
            collection = self.get_collection(one)
            usual = self.DEFAULT_COLLECTIONS.get(one, ())
            if set(collection.include_regex).difference(usual) or collection.tensor_names:
                return True
            if one in self.FILLED_COLLECTIONS:
                return True
        sides = (f"{name}_input_0", f"{name}_output_0")
        return any(self._decisions.plan(side, saved) is not None for side in sides)

    def _watch(self, named: modules.Named) -> None:
        """Have the inputs of a module seen before it may overwrite them, and its outputs."""

        def before(_: Any, args: Any, kwargs: Any) -> None:
            if self._saving:
                self._see_call(named, "input", (*args, kwargs))

        def after(_: Any, __: Any, ___: Any, output: Any) -> None:
            if self._saving:
                self._see_call(named, "output", output)

        self._handles += [
            named.module.register_forward_pre_hook(
                Callback(before, self._say_that_nothing_is_seen), with_kwargs=True
            ),
            named.module.register_forward_hook(Callback(after), with_kwargs=True),
        ]

    @guarded
    def _see_call(self, named: modules.Named, side: str, value: Any) -> None:
        if not modules.in_backward():
            self._record_all(f"{named.name}_{side}", value, f"{named.kind} {side}")

    def _say_that_nothing_is_seen(self) -> None:
        self._warn_once(
            "one graph",
            "A model is compiled as one whole graph, in which nothing can be seen. Compile it "
            "first, and register what torch.compile returned.",
        )

    def _record_all(self, prefix: str, value: Any, place: str) -> None:
        """Save every tensor in what a module took or gave, numbered on through the step."""
        for position, (key, tensor) in enumerate(modules.tensors_in(value)):
            name = f"{prefix}_{key}" if key else prefix
            count = self._calls.get(name, 0)
            self._calls[name] = count + 1
            if count or not key:
                name = f"{name}_{count}"
            self._place(name, tensor, place, key or position)
            self._record(name, tensor)

    def _place(self, name: str, tensor: Any, place: str, argument: str | int) -> None:
        """Put a tensor, once, into the collection that its module's class or its role tells."""
        if name in self._placed or self._recording is None:
            return
        match place:
            case "model input":
                collection = modules.input_collection(tensor, argument)
            case "loss input":
                collection = modules.LOSS_INPUTS.get(argument, "")
            case "model output":
                collection = modules.MODEL_OUTPUTS.get(argument, "")
            case _:
                kind, _, side = place.partition(" ")
                collection = f"{kind}_{side}" if f"{kind}_{side}" in self.FILLED_COLLECTIONS else ""
        is_saved = self._decisions.plan(name, self._saving) is not None
        if collection and (is_saved or collection in self._decisions.included):
            self._placed.add(name)
            self._make_member(collection, name)

    def _see_gradient(self, name: str, parameter: Any) -> None:
        """Have the gradient of a parameter seen in each backward, if it may be saved."""
        key = id(parameter)
        if not parameter.requires_grad or key in self._with_gradient:
            return
        if self._decisions.plan(name, self._decisions.included) is None:
            return

        def seen(gradient: Any) -> None:
            if self._saving:
                self._record_gradient(name, gradient)

        if hasattr(parameter, "to_local"):
            # A shard gets its gradient from the collective, not from the backward itself.
            handle = parameter.register_post_accumulate_grad_hook(lambda one: seen(one.grad))
        else:
            handle = parameter.register_hook(seen)
        forget = weakref.ref(parameter, lambda _: self._with_gradient.pop(key, None))
        self._with_gradient[key] = forget, handle

    @guarded
    def _record_gradient(self, name: str, gradient: Any) -> None:
        if gradient is not None and self._decisions.plan(name, self._saving):
            factor = self._scaling.inverse()
            self._record(name, gradient if factor == 1.0 else gradient.detach() * factor)
