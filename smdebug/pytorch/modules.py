"""Names and kinds of a model's modules and parameters, whatever it is wrapped in."""

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple

import torch
from torch import nn

from smdebug.exceptions import SMDebugTypeError

# What wrappers call the module inside them, in the names of parameters and modules.
INSIDE: Final = ("_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module")
# Collections that are filled by the class of a module, whatever the module is called.
KINDS: Final[tuple[tuple[type, str], ...]] = (
    (nn.ReLU, "relu"),
    (nn.ReLU6, "relu"),
    (nn.Tanh, "tanh"),
    (nn.Sigmoid, "sigmoid"),
)
# Collections of what a loss is called with, by position and by keyword.
LOSS_INPUTS: Final[Mapping[str | int, str]] = {
    0: "predictions",
    1: "labels",
    "input": "predictions",
    "target": "labels",
}
# Collections of what a model takes and gives by name, as Hugging Face's models do; "" for none.
MODEL_INPUTS: Final[Mapping[str | int, str]] = {
    "labels": "labels",
    "attention_mask": "",
    "position_ids": "",
    "token_type_ids": "",
}
MODEL_OUTPUTS: Final[Mapping[str | int, str]] = {"loss": "losses", "logits": "predictions"}
IMAGE_CHANNELS: Final = frozenset({1, 3, 4})
# Private in PyTorch, but the only thing that tells a forward which the backward computes again.
_graph_task: Callable[[], int] = getattr(torch._C, "_current_graph_task_id", lambda: -1)  # noqa: SLF001


class Named(NamedTuple):
    """A module with the name that its tensors get; `kind` is that of an activation, or empty."""

    name: str
    module: Any
    kind: str


def unwrapped(module: Any) -> Any:
    """Return the model inside wrappers for several devices and for compilation."""
    while True:
        if isinstance(module, (nn.parallel.DistributedDataParallel, nn.DataParallel)):
            module = module.module
            continue
        inner = _inside(module)
        if inner is None:
            return module
        module = inner


def _has(module: Any, name: str) -> bool:
    return name in module._modules  # noqa: SLF001 - attributes of wrappers lead inside


def is_script(module: Any) -> bool:
    """Say whether it is a module of TorchScript, which takes no hooks from Python."""
    return isinstance(module, torch.jit.ScriptModule)


def is_compiled(module: Any) -> bool:
    """Say whether calling the module runs compiled code, inside which no hook sees anything."""
    return (
        is_script(module)
        or _has(module, "_orig_mod")
        or getattr(module, "_compiled_call_impl", None) is not None
    )


def plain_name(name: str) -> str:
    """Return a parameter's or module's name without what wrappers put into it."""
    return ".".join(part for part in name.split(".") if part not in INSIDE)


@lru_cache(maxsize=1 << 16)
def parameter_names(model: str, parameter: str) -> tuple[str, str]:
    """Return the names of a parameter and of its gradient.

    >>> parameter_names("Net", "_orig_mod.conv.weight")
    ('Net_conv.weight', 'gradient/Net_conv.weight')
    """
    name = f"{model}_{plain_name(parameter)}"
    return name, f"gradient/{name}"


def is_placeholder(parameter: Any) -> bool:
    """Say whether there are no values to be had: not yet made, or those of a transformation."""
    return bool(nn.parameter.is_lazy(parameter)) or is_transformed(parameter)


def is_transformed(tensor: Any) -> bool:
    """Say whether a tensor stands for values inside `torch.func`, such as a batch in `vmap`."""
    return bool(torch._C._functorch.is_functorch_wrapped_tensor(tensor))  # noqa: SLF001 - nothing public tells


def class_name(module: Any) -> str:
    """Return the name of a model's class, without what sharding puts before it."""
    cls = type(module)
    sharded = any(base.__name__ == "FSDPModule" for base in cls.__mro__[1:2])
    return cls.__mro__[2].__name__ if sharded else str(module._get_name())  # noqa: SLF001 - how PyTorch itself names a module


def kind_of(module: Any) -> str:
    """Return which activation a module is, or an empty text."""
    return next((kind for cls, kind in KINDS if isinstance(module, cls)), "")


def submodules(
    module: Any, path: str = "", *, hidden: bool = False, seen: set[int] | None = None
) -> Iterator[tuple[Named, bool]]:
    """Yield the modules inside an unwrapped model, each once, and whether hooks can see it.

    Wrappers are passed over; what is inside a compiled module is hidden.
    """
    seen = {id(module)} if seen is None else seen
    hidden = hidden or is_compiled(module)
    for name, child in module.named_children():
        inner = child
        while not is_compiled(inner) and (found := _inside(inner)) is not None:
            inner = found
        if id(inner) in seen:
            continue
        seen.add(id(inner))
        full = plain_name(f"{path}.{name}" if path else name)
        yield Named(full, inner, kind_of(unwrapped(inner))), not (hidden or is_script(inner))
        inside = hidden or is_compiled(inner)
        yield from submodules(unwrapped(inner), full, hidden=inside, seen=seen)


def _inside(module: Any) -> Any | None:
    """Return what a wrapper of one module holds, or None if the module is no such wrapper."""
    return next((getattr(module, one) for one in INSIDE if _has(module, one)), None)


def input_collection(tensor: Any, argument: str | int = 0) -> str:
    """Return the collection of a model's input if its name, or its type and shape tell."""
    if not isinstance(tensor, torch.Tensor):
        return ""
    if argument in MODEL_INPUTS:
        return MODEL_INPUTS[argument]
    if tensor.ndim == 4 and {tensor.shape[1], tensor.shape[3]} & IMAGE_CHANNELS:  # noqa: PLR2004 - batch, two sides, channels
        return "input_image"
    is_token = not tensor.is_floating_point() and not tensor.is_complex()
    if tensor.ndim == 2 and is_token and tensor.dtype is not torch.bool:  # noqa: PLR2004 - batch, positions
        return "input_sequence"
    return ""


def tensors_in(value: Any, key: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the tensors inside sequences, mappings and dataclasses, with the keys to them."""
    if isinstance(value, torch.Tensor):
        yield key, value
    elif isinstance(value, Mapping):
        for name, part in value.items():
            yield from tensors_in(part, f"{key}_{name}" if key else str(name))
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from tensors_in(part, key)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        yield from tensors_in(
            {one.name: getattr(value, one.name) for one in dataclasses.fields(value)}, key
        )


def check(module: Any, rule: str) -> None:
    """Raise `SMDebugTypeError` if it is no module that hooks can be attached to."""
    if not isinstance(module, nn.Module) or is_script(module):
        script = " TorchScript takes no hooks: train the plain one." * isinstance(module, nn.Module)
        msg = f"{rule}, got {module!r}.{script}"
        raise SMDebugTypeError(msg)


def in_backward() -> bool:
    """Say whether this is a forward that is computed again, to save memory."""
    return _graph_task() != -1
