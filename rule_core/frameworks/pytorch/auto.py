"""Auto: finds out which model a script trains with PyTorch, and hooks it."""

import functools
import gc
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import torch
from torch import nn
from torch.nn.modules.loss import _Loss

from rule_core.frameworks.pytorch import modules
from rule_core.frameworks.pytorch.callback import Callback
from rule_core.frameworks.pytorch.hook import Hook
from rule_core.modes import ModeKeys
from rule_core.saving.auto_hook import AUTO, call_after
from rule_core.saving.error_guard import guarded

# A step with more losses is no step of the counting model: another model is being trained.
MOST_LOSSES: Final = 16
# After so many calls of other models, the counting model is no longer being trained.
MOST_CALLS: Final = 16
LOSS: Final = "loss"
# Nodes that only scale a loss: by a scaler of mixed precision, by the number of batches.
_SCALING: Final = frozenset({"MulBackward0", "DivBackward0"})
_DEEPEST: Final = 4


class AutoHook(Hook):
    """A hook that is made behind the script's back.

    Besides what the script's loss modules return, it saves as ``loss_output_<n>`` the scalars that
    `backward` is called for, unless they are one of those, or a multiple of it.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._nodes: list[Any] = []
        self._losses_of_step = 0

    def register_module(self, module: Any, *, counts_steps: bool = True) -> None:
        """Watch a model, unless it is watched: the script may have asked for the current hook."""
        if all(one is not module for _, one in self._models):
            super().register_module(module, counts_steps=counts_steps)

    register_hook = register_module

    @guarded
    def begin(self, mode: ModeKeys) -> None:
        """Begin a step of a mode."""
        self._nodes.clear()
        self._losses_of_step = 0
        self.set_mode(mode)
        self.begin_step()

    @guarded
    def leave(self) -> None:
        """End the step in hand: what follows belongs to another training."""
        self._nodes.clear()
        self._end_step()

    @guarded
    def see_loss(self, module: Any) -> None:
        """Watch a loss for as long as it lives: some scripts make one in each step."""
        count = len(self._handles)
        self._watch(modules.Named(modules.class_name(module), module, "loss"))
        del self._handles[count:]

    @guarded
    def see_backward(self, tensor: Any) -> None:
        """Save a loss that no module has returned."""
        if self._saving and tensor.numel() == 1 and not self._is_known(tensor.grad_fn):
            loss = tensor.detach() * self._scaling.inverse()
            self._record_all(f"{LOSS}_output", loss, "backward")
            self._bound()
        self._nodes.clear()

    def _record_all(self, prefix: str, value: Any, place: str) -> None:
        for key, tensor in modules.tensors_in(value):
            is_loss = place == "loss output" or (place == "model output" and key == LOSS)
            if is_loss and tensor.grad_fn is not None:
                self._nodes.append(tensor.grad_fn)
        super()._record_all(prefix, value, place)
        if place == "loss output":
            self._bound()

    def _bound(self) -> None:
        """End a step that goes on and on."""
        self._losses_of_step += 1
        if self._losses_of_step > MOST_LOSSES:
            self.leave()

    def _is_known(self, node: Any) -> bool:
        """Say whether a node of the graph is that of a saved loss, or scales it."""
        for _ in range(_DEEPEST):
            if node is None or any(one is node for one in self._nodes):
                return node is not None
            before = [one for one, _ in node.next_functions if one is not None]
            if type(node).__name__ not in _SCALING or len(before) != 1:
                return False
            node = before[0]
        return False


class Root:
    """A model that is in no other, which the script may train.

    It is decided when the model, or a part of it if the model itself is never called, is first
    called to train; that call, and those of the same module that follow, are the steps.

    Attributes
    ----------
    is_further
        Whether its next call in training mode begins a training of its own.
    has_counted
        Whether it has begun a training and counted its steps.
    hook
        The last hook that saved it.
    """

    def __init__(
        self, module: Any, entered: Callable[["Root", Any, Any, Any], None], *, is_further: bool
    ) -> None:
        # A reference of ours must not keep alive what the script has given up.
        self._module = weakref.ref(module)
        self.is_further = is_further
        self.has_counted = False
        self.hook: AutoHook | None = None
        callback = Callback(AUTO.fail_safe(functools.partial(entered, self)), _say_one_graph)
        self._handles = {
            id(part): part.register_forward_pre_hook(callback, with_kwargs=True)
            for part in module.modules()
            if not modules.is_script(part)
        }

    @property
    def module(self) -> Any:
        """The model; None if it is gone."""
        return self._module()

    def keep(self, *entrances: Any) -> None:
        """Watch the calls of these modules only."""
        for key in self._handles.keys() - {id(module) for module in entrances}:
            self._handles.pop(key).remove()

    def parameters(self) -> set[int]:
        """Return the ids of its parameters."""
        module = self.module
        return set() if module is None else {id(parameter) for parameter in module.parameters()}


class Training:
    """The models that a script gives to optimizers, one training after the other.

    A training has the models that exist when it begins, such as the two of a GAN. The first of them
    that is called in training mode counts the steps. A model that gets an optimizer later, or is
    called repeatedly without the counting model, begins a training of its own, once. If a script
    uses no optimizer of `torch.optim`, its models are looked for at its first call of `backward`,
    and again after repeated calls in which no model counts.
    """

    def __init__(self) -> None:
        self._roots: list[Root] = []
        self._counting: Root | None = None
        self._calls_of_others = 0
        self._backwards = 0

    def offer(self, parameters: Iterable[Any], *, joins: bool = True) -> None:
        """Record the models that have any of these parameters.

        Parameters
        ----------
        parameters
            The parameters of an optimizer, for example.
        joins
            Whether the models may belong to the current training.
        """
        wanted = {id(parameter) for parameter in parameters}
        self._roots = [root for root in self._roots if root.module is not None]
        in_hand = [root for root in self._roots if root.hook is AUTO.hook]
        together = joins and any(root.parameters() & wanted for root in in_hand)
        joins = self._counting is None or together
        for module in topmost():
            own = {id(parameter) for parameter in module.parameters()}
            inside = set(map(id, module.modules()))
            within = [root for root in self._roots if id(root.module) in inside]
            if not own & wanted or any(own <= root.parameters() for root in within):
                continue
            for root in within:  # it is a part of the new model
                root.keep()
                self._roots.remove(root)
            further = not joins or any(root.hook is not None for root in within)
            self._roots.append(Root(module, self._entered, is_further=further))

    def _entered(self, root: Root, module: Any, args: Any, kwargs: Any) -> None:
        """Begin a step if the module counts them."""
        trains = module.training and torch.is_grad_enabled()
        if modules.in_backward() or not (trains or root.hook):
            return
        seen = set(module._forward_pre_hooks)  # noqa: SLF001 - nothing public tells
        if trains:
            self._take_part(root, module)
        hook = AUTO.current(AutoHook)
        if hook is not None and root is self._counting:
            self._calls_of_others = self._backwards = 0
            hook.begin(ModeKeys.TRAIN if module.training else ModeKeys.EVAL)
        # PyTorch does not call in this call what this call has registered.
        for key, callback in list(module._forward_pre_hooks.items()):  # noqa: SLF001
            if key not in seen:
                callback(module, args, kwargs)

    def _take_part(self, root: Root, module: Any) -> None:
        """Save a model called in training mode, in the current training or one of its own."""
        hook = AUTO.current(AutoHook)
        if hook is not None and root is self._counting:
            return
        self._calls_of_others += 1
        is_left = self._calls_of_others > MOST_CALLS
        if hook is None or root.is_further or (is_left and not root.has_counted):
            hook = self._begin(root)
        elif is_left:
            self._counting = root
        if root.hook is None:
            root.keep(module)
        if hook is not None and root.hook is not hook:
            hook.register_module(root.module, counts_steps=False)
            root.hook = hook

    def _begin(self, root: Root) -> AutoHook | None:
        """Begin a training whose steps a model counts."""
        hook = AUTO.begin(AutoHook)
        self._counting, root.is_further, root.has_counted = root, False, True
        if hook is not None:
            for loss in of_type(_Loss):
                hook.see_loss(loss)
        return hook

    def see_loss(self, module: Any, *_: Any, **__: Any) -> None:
        """Watch a loss module that is created after training has begun."""
        hook = AUTO.current(AutoHook)
        if hook is not None:
            hook.see_loss(module)

    def see_backward(self, tensor: Any) -> None:
        """Save a loss."""
        hook = AUTO.current(AutoHook)
        if hook is not None:
            hook.see_backward(tensor)
            self._backwards += 1
            if self._backwards == MOST_CALLS:
                self._offer_all()
        elif AUTO.hook is None and not self._roots:
            self._offer_all()

    def _offer_all(self) -> None:
        """Record every model that may be trained without an optimizer of PyTorch's."""
        self.offer(
            (
                parameter
                for module in topmost()
                if module.training
                for parameter in module.parameters()
                if parameter.requires_grad
            ),
            joins=False,
        )


def _say_one_graph() -> None:
    AUTO.report_unsaved(
        "A model is compiled as one whole graph, in which nothing can be seen. Compile it before "
        "the optimizer is made, or without fullgraph=True."
    )


def of_type(kind: type) -> Iterator[Any]:
    """Yield every object of a class that there is; asked by the type, since proxies lie."""
    return (one for one in gc.get_objects() if issubclass(type(one), kind))


def topmost() -> list[Any]:
    """Return the modules that are in no other one."""
    found = [one for one in of_type(nn.Module) if "_modules" in vars(one)]
    inside = {id(child) for one in found for child in vars(one)["_modules"].values()}
    return [one for one in found if id(one) not in inside and not modules.is_script(one)]


def watch() -> None:
    """Notice what the script trains from now on."""
    training = Training()
    see_optimizer = AUTO.fail_safe(training.offer)
    see_backward = AUTO.fail_safe(training.see_backward)
    backward = torch.Tensor.backward

    @functools.wraps(backward)
    def seen(tensor: Any, *args: Any, **kwargs: Any) -> Any:
        if not torch.compiler.is_compiling():
            see_backward(tensor)
        return backward(tensor, *args, **kwargs)

    def made(optimizer: Any, *_: Any, **__: Any) -> None:
        see_optimizer(one for group in optimizer.param_groups for one in group["params"])

    torch.Tensor.backward = seen
    call_after(torch.optim.Optimizer, "__init__", made)
    call_after(_Loss, "__init__", AUTO.fail_safe(training.see_loss))
