"""Automatic hooks for models trained with PyTorch."""

import functools
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Final

import numpy as np
import torch
from torch.nn.modules.loss import _Loss

from rule_core.frameworks.pytorch import modules
from rule_core.frameworks.pytorch.callback import Callback
from rule_core.frameworks.pytorch.hook import Hook
from rule_core.frameworks.pytorch.measures import loss_graph
from rule_core.frameworks.pytorch.measures.targets import TargetCounts
from rule_core.modes import ModeKeys
from rule_core.saving.auto_hook import AUTO, call_after
from rule_core.saving.presets import CLASSES, EMBEDDINGS, LOSS_INPUTS, OF_LOSS, TARGETS

# With more losses in a step, another model than the one that counts the steps is being trained.
MOST_LOSSES: Final = 16
# After this many calls of other models, the model that counts the steps is no longer being trained.
MOST_CALLS: Final = 16
LOSS: Final = "loss"
LARGEST_LOSS_INPUT: Final = 1 << 20  # bytes
# Nodes that scale a loss, such as by a gradient scaler or by the number of batches.
_SCALING: Final = frozenset({"MulBackward0", "DivBackward0"})
_DEEPEST: Final = 4
IDLE_MODELS: Final = "model/idle_models"


class AutoHook(Hook):
    """A hook that the script did not create.

    In addition to the outputs of loss modules, it saves the scalars on which `backward` is called
    as ``loss_output_<n>``, unless they are such an output or a multiple of one. Its collection
    `loss_inputs` has the predictions that loss modules get, if they are small. At a training step
    without a call of some model, as in a GAN, ``model/idle_models`` is the number of such models:
    rules cannot judge what they did not see.
    """

    GUARDED: ClassVar[Sequence[str]] = ("begin", "watch_loss", "save_loss")

    DEFAULT_COLLECTIONS: ClassVar[Mapping[str, Sequence[str]]] = {
        **Hook.DEFAULT_COLLECTIONS,
        LOSS_INPUTS: (r"(?i)(cross_?entropy|nll_?|bce_?with_?logits_?)(loss)?\d*_input_0$",),
    }

    FILLED_COLLECTIONS: ClassVar[Sequence[str]] = (*Hook.FILLED_COLLECTIONS, *OF_LOSS)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._nodes: list[Any] = []
        self._losses_of_step = 0
        self._targets = TargetCounts()
        self._called: set[int] = set()  # ids of the models that were called in this step

    def register_module(
        self, module: Any, *, counts_steps: bool = True, times_forward: bool = True
    ) -> None:
        """Watch a model unless the script has registered it with `get_hook`."""
        if all(model is not module for _, model in self._models):
            super().register_module(module, counts_steps=counts_steps, times_forward=times_forward)

    register_hook = register_module

    def _announce(self, text: str) -> None:
        AUTO.print_once(text)

    def begin(self, mode: ModeKeys) -> None:
        """Begin a step in a mode."""
        self._nodes.clear()
        self._losses_of_step = 0
        self._targets.begin_step()
        self.set_mode(mode)
        self.begin_step()

    def note_call(self, module: Any) -> None:
        """Note that a model was called."""
        self._called.add(id(module))

    def _end_step(self) -> None:
        idle = sum(id(module) not in self._called for _, module in self._models)
        is_saved = self._in_step and self._saving and self._is_training_step
        if idle and is_saved and self._recorder is not None:
            self._recorder.add_array(IDLE_MODELS, np.array([idle], np.uint8))
        self._called.clear()
        super()._end_step()

    def watch_loss(self, module: Any) -> None:
        """Watch a loss module as long as it exists: some scripts create one in each step."""
        count = len(self._handles)
        self._watch(modules.Named(modules.class_name(module), module, "loss"))
        del self._handles[count:]

    def save_loss(self, tensor: Any) -> None:
        """Save the tensor of a `backward` call if it is a loss that no module returned.

        Also measure the classes and targets that it compares, and embeddings that it normalises.
        """
        self.run_guarded(self._measure_loss, tensor)
        if self._saving and tensor.numel() == 1 and not self._is_saved(tensor.grad_fn):
            loss = tensor.detach() * self._scaling.inverse()
            self._record_all(f"{LOSS}_output", loss, "backward")
            self._count_loss()
        self._nodes.clear()

    def _measure_loss(self, loss: Any) -> None:
        if self.wants(CLASSES):
            classes = loss_graph.compared_classes(loss)
            if classes is not None:
                self._measured.add(CLASSES, "classes/labels", classes.labels)
                self._measured.add(CLASSES, "classes/predictions", classes.predictions)
        if self.wants(TARGETS):
            self._targets.count(loss)
            for name, count in self._targets.counts.items():
                self._measured.add(TARGETS, name, count)
        if self.wants(EMBEDDINGS):
            for index, spread in enumerate(loss_graph.spreads(loss)):
                self._measured.add(EMBEDDINGS, f"embeddings/{index}/spread", spread)

    def _measure_inputs(self, named: modules.Named, arguments: Any) -> None:
        super()._measure_inputs(named, arguments)
        if named.kind == "model" and self.wants(TARGETS):
            self._targets.note_inputs(arguments)

    def _record_all(self, prefix: str, value: Any, place: str) -> None:
        if place == "loss input" and self._is_too_large(f"{prefix}_0", value):
            return
        for key, tensor in modules.tensors_in(value):
            is_loss = place == "loss output" or (place == "model output" and key == LOSS)
            if is_loss and tensor.grad_fn is not None:
                self._nodes.append(tensor.grad_fn)
        super()._record_all(prefix, value, place)
        if place == "loss output":
            self._count_loss()

    def _is_too_large(self, name: str, value: Any) -> bool:
        """Return whether predictions would be saved for `loss_inputs` only, and are large."""
        plan = self._policy.plan(name, self._saving)
        if plan is None or plan.collections != (LOSS_INPUTS,):
            return False
        sizes = (tensor.nbytes for _, tensor in modules.tensors_in(value))
        return next(sizes, 0) > LARGEST_LOSS_INPUT

    def _count_loss(self) -> None:
        """End the step after too many losses."""
        self._losses_of_step += 1
        if self._losses_of_step > MOST_LOSSES:
            self._nodes.clear()
            self._end_step()

    def _is_saved(self, node: Any) -> bool:
        """Return whether a node of the graph computes a saved loss or scales one."""
        for _ in range(_DEEPEST):
            if node is None or any(saved is node for saved in self._nodes):
                return node is not None
            inputs = [source for source, _ in node.next_functions if source is not None]
            if type(node).__name__ not in _SCALING or len(inputs) != 1:
                return False
            node = inputs[0]
        return False


class Root:
    """A module that no other module contains, and that the script may train.

    Its entrance is the module whose calls count: the first one that is called in training mode,
    either the root or, if the script never calls the root itself, a module inside it.

    Attributes
    ----------
    module
        Returns the module, or None once the script has discarded it.
    starts_training
        Whether its next call in training mode starts a new training.
    has_counted
        Whether it has counted the steps of a training.
    hook
        The latest hook that watched it.
    """

    def __init__(
        self,
        module: Any,
        before_call: Callable[["Root", Any, Any, Any], None],
        *,
        starts_training: bool,
    ) -> None:
        self.module = weakref.ref(module)  # must not keep alive what the script discards
        self.starts_training = starts_training
        self.has_counted = False
        self.hook: AutoHook | None = None
        call = AUTO.fail_safe(functools.partial(before_call, self))
        callback = Callback(call, _report_one_graph)
        self._handles = {
            id(part): part.register_forward_pre_hook(callback, with_kwargs=True)
            for part in module.modules()
            if not modules.is_script(part)
        }

    def watch_only(self, *entrances: Any) -> None:
        """Stop watching the calls of all other modules."""
        for key in self._handles.keys() - {id(module) for module in entrances}:
            self._handles.pop(key).remove()

    def parameters(self) -> set[int]:
        """Return the ids of its parameters."""
        module = self.module()
        return set() if module is None else {id(parameter) for parameter in module.parameters()}


class ModelWatcher:
    """Finds the models that a script trains, and creates a hook for each training.

    A model is trained if an optimizer has its parameters. A training has the models that exist when
    it starts, such as the two of a GAN; the first of them that is called in training mode counts
    the steps. A model starts a new training if it gets an optimizer later, or, once, if it is
    called repeatedly without the model that counts the steps. If a script uses no optimizer of
    `torch.optim`, all models with trainable parameters are added at its first `backward`, and again
    after repeated ones without a step, as when the optimizer has another model's parameters.
    """

    def __init__(self) -> None:
        self._roots: list[Root] = []
        self._counting: Root | None = None
        self._other_calls = 0
        self._backward_calls = 0

    def add_models(self, parameters: Iterable[Any], *, may_join: bool = True) -> None:
        """Add the models that have any of these parameters.

        Parameters
        ----------
        parameters
            The parameters of an optimizer, for example.
        may_join
            Whether the models may belong to the current training.
        """
        trained = {id(parameter) for parameter in parameters}
        self._roots = [root for root in self._roots if root.module() is not None]
        current = [root for root in self._roots if root.hook is AUTO.hook]
        shares_model = may_join and any(root.parameters() & trained for root in current)
        joins = self._counting is None or shares_model
        for module in topmost():
            own = {id(parameter) for parameter in module.parameters()}
            inside = set(map(id, module.modules()))
            parts = [root for root in self._roots if id(root.module()) in inside]
            if not own & trained or any(own <= root.parameters() for root in parts):
                continue
            for root in parts:
                root.watch_only()
                self._roots.remove(root)
            starts_training = not joins or any(root.hook is not None for root in parts)
            self._roots.append(Root(module, self._before_call, starts_training=starts_training))

    def _before_call(self, root: Root, module: Any, args: Any, kwargs: Any) -> None:
        """Begin a step if the module counts them."""
        trains = module.training and torch.is_grad_enabled()
        if modules.in_backward() or not (trains or root.hook):
            return
        callbacks = module._forward_pre_hooks  # noqa: SLF001 - PyTorch has no public access to it
        before = set(callbacks)
        if trains:
            self._watch(root, module)
        hook = AUTO.current(AutoHook)
        if hook is not None and root is self._counting:
            self._other_calls = self._backward_calls = 0
            # The called module may be a frozen part.
            parameters = (root.module() or module).parameters()
            learns = trains and any(value.requires_grad for value in parameters)
            hook.begin(ModeKeys.TRAIN if learns else ModeKeys.EVAL)
        if hook is not None:
            hook.note_call(root.module())
        # PyTorch runs callbacks registered during a call from the next call on.
        for key, callback in list(callbacks.items()):
            if key not in before:
                callback(module, args, kwargs)

    def _watch(self, root: Root, module: Any) -> None:
        """Save a model called in training mode, in the current training or in a new one."""
        hook = AUTO.current(AutoHook)
        if hook is not None and root is self._counting:
            return
        self._other_calls += 1
        has_replaced = self._other_calls > MOST_CALLS
        if hook is None or root.starts_training or (has_replaced and not root.has_counted):
            hook = self._start_training(root)
        elif has_replaced:
            self._counting = root
        if root.hook is None:
            root.watch_only(module)
        if hook is not None and root.hook is not hook:
            hook.register_module(root.module(), counts_steps=False)
            root.hook = hook

    def _start_training(self, root: Root) -> AutoHook | None:
        """Start a training whose steps a model counts, and return its hook."""
        hook = AUTO.begin(AutoHook)
        self._counting, root.starts_training, root.has_counted = root, False, True
        if hook is not None:
            for loss in modules.of_type(_Loss):
                hook.watch_loss(loss)
        return hook

    def watch_loss(self, module: Any, *_: Any, **__: Any) -> None:
        """Watch a loss module that is created after the training started."""
        hook = AUTO.current(AutoHook)
        if hook is not None:
            hook.watch_loss(module)

    def save_loss(self, tensor: Any) -> None:
        """Save the tensor of a `backward` call, and look for models if none counts steps."""
        hook = AUTO.current(AutoHook)
        if hook is not None:
            hook.save_loss(tensor)
        elif AUTO.hook is not None:
            return
        self._backward_calls += 1
        if self._backward_calls == MOST_CALLS or not (hook or self._roots):
            self._add_trainable()

    def _add_trainable(self) -> None:
        """Add every model that may be trained without an optimizer of PyTorch."""
        self.add_models(
            (
                parameter
                for module in topmost()
                if module.training
                for parameter in module.parameters()
                if parameter.requires_grad
            ),
            may_join=False,
        )


def _report_one_graph() -> None:
    AUTO.report_unsaved(
        "A model is compiled as one whole graph, in which nothing can be seen. Compile it before "
        "the optimizer is made, or without fullgraph=True."
    )


def topmost() -> list[Any]:
    """Return the modules that no other module contains."""
    existing = modules.existing_modules()
    inside = {id(child) for module in existing for child in vars(module)["_modules"].values()}
    return [
        module for module in existing if id(module) not in inside and not modules.is_script(module)
    ]


def watch() -> None:
    """Patch optimizers, losses and `Tensor.backward` to watch what the script trains."""
    watcher = ModelWatcher()
    add_models = AUTO.fail_safe(watcher.add_models)
    save_loss = AUTO.fail_safe(watcher.save_loss)
    original = torch.Tensor.backward

    @functools.wraps(original)
    def backward(tensor: Any, *args: Any, **kwargs: Any) -> Any:
        if not torch.compiler.is_compiling():
            save_loss(tensor)
        return original(tensor, *args, **kwargs)

    def add_optimized(optimizer: Any, *_: Any, **__: Any) -> None:
        add_models(parameter for group in optimizer.param_groups for parameter in group["params"])

    torch.Tensor.backward = backward
    call_after(torch.optim.Optimizer, "__init__", add_optimized)
    call_after(_Loss, "__init__", AUTO.fail_safe(watcher.watch_loss))
