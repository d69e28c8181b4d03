"""Auto: finds out which model a script trains with PyTorch, and hooks it."""

import functools
import gc
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import torch
from torch import nn
from torch.nn.modules.loss import _Loss

from smdebug.auto import AUTO, after
from smdebug.core.guard import guarded
from smdebug.core.modes import ModeKeys
from smdebug.pytorch import modules
from smdebug.pytorch.callback import Callback
from smdebug.pytorch.hook import Hook

# A step with more of them is no step of the model that counts: another one is being trained.
MOST_LOSSES: Final = 16
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
    """

    def __init__(self, module: Any, entered: Callable[["Root", Any, Any, Any], None]) -> None:
        # A reference of ours must not keep alive what the script has given up.
        self._module = weakref.ref(module)
        self.decided = False
        callback = Callback(AUTO.harmless(functools.partial(entered, self)), _say_one_graph)
        self._handles = {
            id(one): one.register_forward_pre_hook(callback, with_kwargs=True)
            for one in module.modules()
            if not modules.is_script(one)
        }

    @property
    def module(self) -> Any:
        """The model; None if it is gone."""
        return self._module()

    def keep(self, *entrances: Any) -> None:
        """Be told of calls of these modules only."""
        self.decided = True
        for key in self._handles.keys() - {id(one) for one in entrances}:
            self._handles.pop(key).remove()


class Training:
    """What a script trains: the models that it gives to optimizers before the first step.

    The first one that is called to train counts the steps. A script that has no optimizer of
    PyTorch's is looked at when it first calls `backward`.
    """

    def __init__(self) -> None:
        self._roots: list[Root] = []
        self._counting: Root | None = None

    def offer(self, parameters: Iterable[Any]) -> None:
        """Take note of the models that have any of some parameters."""
        wanted = {id(one) for one in parameters}
        known = [root.module for root in self._roots]
        for module in topmost():
            if not any(id(one) in wanted for one in module.parameters()):
                continue
            if any(one is inner for inner in module.modules() for one in known):
                continue
            if self._counting is None:
                self._roots.append(Root(module, self._entered))
            else:
                if isinstance(AUTO.hook, AutoHook):
                    AUTO.hook.leave()
                AUTO.say(
                    f"The script trains a further model, {modules.class_name(module)!r}, which is "
                    "not saved: the trial is that of the first training."
                )

    def _entered(self, root: Root, module: Any, args: Any, kwargs: Any) -> None:
        """Begin a step if the module counts them; the first call that trains decides."""
        if modules.in_backward():
            return
        seen = set(module._forward_pre_hooks)  # noqa: SLF001 - nothing public tells
        if not root.decided and not self._decide(root, module):
            return
        if root is self._counting and isinstance(AUTO.hook, AutoHook):
            AUTO.hook.begin(ModeKeys.TRAIN if module.training else ModeKeys.EVAL)
        # PyTorch does not call in this call what this call has registered.
        for key, hook in list(module._forward_pre_hooks.items()):  # noqa: SLF001
            if key not in seen:
                hook(module, args, kwargs)

    def _decide(self, root: Root, module: Any) -> bool:
        if not (module.training and torch.is_grad_enabled()):
            return False
        root.keep(module)
        hook = AUTO.make(AutoHook)
        if hook is None:
            return False
        hook.register_module(root.module, counts_steps=False)
        if self._counting is None:
            self._counting = root
            for one in of_type(_Loss):
                hook.see_loss(one)
        return True

    def see_loss(self, module: Any, *_: Any, **__: Any) -> None:
        """Have a loss watched that is made after training has begun."""
        if isinstance(AUTO.hook, AutoHook):
            AUTO.hook.see_loss(module)

    def see_backward(self, tensor: Any) -> None:
        """Have a loss saved."""
        if isinstance(AUTO.hook, AutoHook):
            AUTO.hook.see_backward(tensor)
        elif AUTO.hook is None and not self._roots:
            self.offer(
                parameter
                for module in topmost()
                if module.training
                for parameter in module.parameters()
                if parameter.requires_grad
            )


def _say_one_graph() -> None:
    AUTO.say(
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
    see_optimizer = AUTO.harmless(training.offer)
    see_backward = AUTO.harmless(training.see_backward)
    backward = torch.Tensor.backward

    @functools.wraps(backward)
    def seen(tensor: Any, *args: Any, **kwargs: Any) -> Any:
        if not torch.compiler.is_compiling():
            see_backward(tensor)
        return backward(tensor, *args, **kwargs)

    def made(optimizer: Any, *_: Any, **__: Any) -> None:
        see_optimizer(one for group in optimizer.param_groups for one in group["params"])

    torch.Tensor.backward = seen
    after(torch.optim.Optimizer, "__init__", made)
    after(_Loss, "__init__", AUTO.harmless(training.see_loss))
