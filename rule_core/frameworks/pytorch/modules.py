"""Names and kinds of the modules and parameters of a model, independent of wrappers."""

import dataclasses
import gc
import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple

import torch
from torch import nn

from rule_core.exceptions import SMDebugTypeError
from rule_core.model.collection import CollectionKeys
from rule_core.saving.presets import LATENT_MEANS

# Attributes of wrappers for the wrapped module, which appear in names.
INSIDE: Final = ("_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module")
# Collections that are filled by the class of a module.
KINDS: Final[tuple[tuple[type, str], ...]] = (
    (nn.ReLU, "relu"),
    (nn.ReLU6, "relu"),
    (nn.Tanh, "tanh"),
    (nn.Sigmoid, "sigmoid"),
)
# The kind of a layer that computes the means of a variational code, known by its name and by that
# of a layer of variances beside it: a policy may have a layer called `mu`, too.
LATENT: Final = "latent"
_MEANS: Final = re.compile(r"(?i)^([a-z]+_?)?(mu|means?)(_[a-z]+)?$")
_VARIANCES: Final = re.compile(r"(?i)var(iances?)?(?![a-z])")
# Collections of the arguments of a loss, by position or keyword.
LOSS_INPUTS: Final[Mapping[str | int, str]] = {
    0: "predictions",
    1: "labels",
    "input": "predictions",
    "target": "labels",
}
# Collections of named inputs and outputs of Hugging Face models; "" for none.
MODEL_INPUTS: Final[Mapping[str | int, str]] = {
    "labels": "labels",
    "attention_mask": "",
    "position_ids": "",
    "token_type_ids": "",
}
MODEL_OUTPUTS: Final[Mapping[str | int, str]] = {"loss": "losses", "logits": "predictions"}
IMAGE_CHANNELS: Final = frozenset({1, 3, 4})
# Classes of modules that work differently in training.
_WITH_MODES: Final = re.compile(r"Dropout|(?<!Layer)(?<!RMS)(?<!Group)Norm|DropPath")
# A private function of PyTorch, the only way to detect a forward recomputed by the backward.
_graph_task: Callable[[], int] = getattr(torch._C, "_current_graph_task_id", lambda: -1)  # noqa: SLF001 - see above


class Named(NamedTuple):
    """A module, the name of its tensors, and its kind: an activation, `LATENT` or an empty text."""

    name: str
    module: Any
    kind: str


def unwrapped(module: Any) -> Any:
    """Return the model inside wrappers for several devices and for compilation."""
    while True:
        is_parallel = isinstance(module, (nn.parallel.DistributedDataParallel, nn.DataParallel))
        inner = module.module if is_parallel else _inside(module)
        if inner is None:
            return module
        module = inner


def _has(module: Any, name: str) -> bool:
    return name in module._modules  # noqa: SLF001 - attributes of wrappers lead inside


def is_script(module: Any) -> bool:
    """Return whether a module is TorchScript, which does not support Python hooks."""
    return isinstance(module, torch.jit.ScriptModule)


def is_compiled(module: Any) -> bool:
    """Return whether calling the module runs compiled code, where hooks do not run."""
    return (
        is_script(module)
        or _has(module, "_orig_mod")
        or getattr(module, "_compiled_call_impl", None) is not None
    )


def plain_name(name: str) -> str:
    """Remove the parts of wrappers from the name of a parameter or module."""
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
    """Return whether a parameter has no values: lazy, or inside a transformation."""
    return bool(nn.parameter.is_lazy(parameter)) or is_transformed(parameter)


def is_transformed(tensor: Any) -> bool:
    """Return whether a tensor represents values inside `torch.func`, such as a batch in `vmap`."""
    return bool(torch._C._functorch.is_functorch_wrapped_tensor(tensor))  # noqa: SLF001 - there is no public function


def class_name(module: Any) -> str:
    """Return the name of a model's class, without the prefix of sharding."""
    cls = type(module)
    sharded = any(base.__name__ == "FSDPModule" for base in cls.__mro__[1:2])
    return cls.__mro__[2].__name__ if sharded else str(module._get_name())  # noqa: SLF001 - how PyTorch itself names a module


def kind_of(module: Any) -> str:
    """Return which activation a module is, or an empty text."""
    return next((kind for cls, kind in KINDS if isinstance(module, cls)), "")


def training_share(model: Any) -> float | None:
    """Return the share in training mode of dropout and normalization modules and the model itself.

    It is None without such modules, and dropout of nothing is none. Those of a frozen part may be
    in evaluation mode on purpose, while the model itself is not.
    """
    modes = [
        module.training
        for module in model.modules()
        if not next(module.children(), None) and _WITH_MODES.search(type(module).__name__)
        if getattr(module, "p", None) != 0
    ]
    return (sum(modes) + model.training) / (len(modes) + 1) if modes else None


def of_type(kind: type) -> Iterator[Any]:
    """Yield every existing object of a class, by its type because proxies fake `__class__`."""
    return (item for item in gc.get_objects() if issubclass(type(item), kind))


def existing_modules() -> list[Any]:
    """Return every existing module whose constructor has begun."""
    return [module for module in of_type(nn.Module) if "_modules" in vars(module)]


def parameters_of(optimizer: Any) -> Iterator[Any]:
    """Yield the parameters of an optimizer, each once."""
    visited: set[int] = set()
    for group in getattr(optimizer, "param_groups", ()):  # missing before its constructor has run
        for parameter in group["params"]:
            if id(parameter) not in visited:
                visited.add(id(parameter))
                yield parameter


def sample(parameter: Any, most: int) -> Any:
    """Return at most so many evenly spaced elements of a parameter, or of this worker's shard."""
    plain = parameter.detach()
    plain = plain.to_local() if hasattr(plain, "to_local") else plain
    plain = torch.view_as_real(plain) if plain.is_complex() else plain
    flat = plain.reshape(-1)
    return flat[:: max(1, -(-flat.numel() // most))]


def is_flat_sharded(model: Any) -> bool:
    """Return whether the older `FullyShardedDataParallel` shards a part of the model."""
    return any(_has(module, "_fsdp_wrapped_module") for module in model.modules())


def submodules(
    module: Any, path: str = "", *, hidden: bool = False, visited: set[int] | None = None
) -> Iterator[tuple[Named, bool]]:
    """Yield each module inside an unwrapped model, and whether hooks can observe it.

    Wrappers are skipped, and modules inside a compiled module are hidden.
    """
    visited = {id(module)} if visited is None else visited
    hidden = hidden or is_compiled(module)
    for name, child in module.named_children():
        inner = child
        while not is_compiled(inner) and (wrapped := _inside(inner)) is not None:
            inner = wrapped
        if id(inner) in visited:
            continue
        visited.add(id(inner))
        full = plain_name(f"{path}.{name}" if path else name)
        kind = kind_of(unwrapped(inner)) or (LATENT if _has_latent_means(module, name) else "")
        yield Named(full, inner, kind), not (hidden or is_script(inner))
        inside = hidden or is_compiled(inner)
        yield from submodules(unwrapped(inner), full, hidden=inside, visited=visited)


def _has_latent_means(module: Any, name: str) -> bool:
    """Return whether a module inside another computes latent means, by its name.

    >>> _has_latent_means(nn.ModuleDict({"fc_mu": nn.Linear(2, 1), "fc_logvar": nn.Linear(2, 1)}),
    ...                   "fc_mu")
    True
    """
    others = (other for other, _ in module.named_children() if other != name)
    return bool(_MEANS.match(name)) and any(map(_VARIANCES.search, others))


def _inside(module: Any) -> Any | None:
    """Return the module inside a wrapper, or None if it is not a wrapper."""
    return next((getattr(module, name) for name in INSIDE if _has(module, name)), None)


def collection_of(tensor: Any, place: str, argument: str | int) -> str:
    """Return the collection that a tensor belongs to by its role; an empty text for none.

    Parameters
    ----------
    tensor
        An input or output of a module.
    place
        ``<kind of the module> input`` or ``... output``; `recorded output` comes from the script.
    argument
        Its key, or its position.
    """
    match place:
        case "model input":
            return input_collection(tensor, argument)
        case "loss input":
            return LOSS_INPUTS.get(argument, "")
        case "model output":
            return MODEL_OUTPUTS.get(argument, "")
        case "latent output":
            return LATENT_MEANS
        case "loss output" | "recorded output":
            return CollectionKeys.LOSSES if may_be_loss(tensor, argument) else ""
        case _:
            kind, _, side = place.partition(" ")
            return f"{kind}_{side}" if any(kind == name for _, name in KINDS) else ""


def may_be_loss(tensor: Any, argument: str | int) -> bool:
    """Return whether a tensor is a number, or the first output, that a backward can start from.

    Without gradients, as in an evaluation, any such tensor qualifies.
    """
    differentiable = tensor.requires_grad or not torch.is_grad_enabled()
    return bool(differentiable and (argument == 0 or tensor.numel() == 1))


def input_collection(tensor: Any, argument: str | int = 0) -> str:
    """Return the collection of a model's input, by its name or its type and shape."""
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
        for name, item in value.items():
            yield from tensors_in(item, f"{key}_{name}" if key else str(name))
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from tensors_in(item, key)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        yield from tensors_in(
            {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}, key
        )


def check(module: Any, rule: str) -> None:
    """Raise `SMDebugTypeError` if hooks cannot be attached to a module."""
    if not isinstance(module, nn.Module) or is_script(module):
        script = " TorchScript takes no hooks: train the plain one." * isinstance(module, nn.Module)
        raise SMDebugTypeError(f"{rule}, got {module!r}.{script}")


def in_backward() -> bool:
    """Return whether this forward is recomputed by the backward, to save memory."""
    return _graph_task() != -1
