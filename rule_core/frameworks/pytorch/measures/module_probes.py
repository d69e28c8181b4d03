"""ModuleProbes: what modules compute at a saved step, measured without saving it; routers."""

import functools
import math
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import torch
from torch import nn

from rule_core.frameworks.pytorch import modules
from rule_core.frameworks.pytorch.callback import Callback
from rule_core.frameworks.pytorch.measures import attention
from rule_core.frameworks.pytorch.patches import remove_all
from rule_core.saving.presets import ACTIVATION_STATISTICS, ATTENTION, MODEL, ROUTER

SAMPLE: Final = 1 << 16  # elements of an output
_SILENT: Final = (nn.Identity, nn.Dropout)
# Of routers of mixtures of experts, and of what says how many experts a token has.
ROUTER_NAME: Final = re.compile(
    r"(?:^|[._])(?:gate|gating|router|switch)$|(?:gate|router)_network$"
)
ROUTER_CLASS: Final = re.compile(r"Router|Gat(?:e|ing)")
EXPERTS: Final = re.compile(r"experts?(?:_|$)")
CHOICES: Final = ("top_k", "topk", "num_experts_per_tok", "num_selected_experts", "k")
MOST_EXPERTS: Final = 4096


class Probed(NamedTuple):
    """A module, its name and the module around it."""

    name: str
    module: Any
    parent: Any


class Probe(Callback):
    """A callback that is not called in compiled code, and does not break it up."""

    def __call__(self, *args: Any) -> None:
        """Call the function unless the module is compiled or traced."""
        if not torch.compiler.is_compiling():
            super().__call__(*args)


class ModuleProbes:
    """Measures outputs of modules between `attach` and `detach`, in the forward of one step.

    Parameters
    ----------
    add
        Called with a collection, a name and a tensor, or None for what cannot be measured.
    run_guarded
        Calls a function, and keeps its errors away from the training.
    """

    def __init__(
        self, add: Callable[[str, str, Any], None], run_guarded: Callable[..., None]
    ) -> None:
        self.attention_calls = attention.AttentionCalls(self._on_attention)
        self._add = add
        self._run_guarded = run_guarded
        self._handles: list[Any] = []
        self._callbacks: list[tuple[Any, Probe | None, Probe]] = []
        self._plan: tuple[Any, ...] = ()
        self._stack: list[Probed] = []
        self._names: set[str] = set()
        self._wanted: frozenset[str] = frozenset()
        self._is_active = self._is_ordered = False
        self._order = 0
        self._thread = 0
        self._is_causal = False

    def attach(
        self,
        probed: Sequence[Probed],
        wanted: frozenset[str],
        is_selected: Callable[[str, str], bool],
    ) -> None:
        """Measure the forward that begins, with callbacks at modules.

        Parameters
        ----------
        probed
            The modules.
        wanted
            Collections to measure.
        is_selected
            Whether the user's patterns of a collection select a module's name.
        """
        self.pause()
        plan = (tuple(probed), wanted, self._is_ordered)
        if self._plan != plan:
            self.detach()
            self._plan, self._wanted = plan, wanted
            self._callbacks = [*self._planned(probed, is_selected)]
        self._thread = threading.get_ident()
        self._order = 0
        if not self._handles:
            for module, before, after in self._callbacks:
                if before is not None:
                    self._handles.append(module.register_forward_pre_hook(before, with_kwargs=True))
                self._handles.append(module.register_forward_hook(after))
        self._is_active = True
        self.attention_calls.is_active = ATTENTION in wanted

    def _planned(
        self, probed: Sequence[Probed], is_selected: Callable[[str, str], bool]
    ) -> Iterator[tuple[Any, Probe | None, Probe]]:
        """Yield the modules that need callbacks, with these."""
        is_ordering = MODEL in self._wanted and not self._is_ordered
        for item in probed:
            if item.parent is None:
                self._is_causal = self._says_causal(item.module)
            routes = ROUTER in self._wanted and (
                is_selected(ROUTER, f"router/{item.name}/load")
                or is_router(item.name, item.module, item.parent)
            )
            is_leaf = next(item.module.children(), None) is None
            has_statistics = (
                ACTIVATION_STATISTICS in self._wanted
                and is_leaf
                and not isinstance(item.module, _SILENT)
            )
            # Layers of PyTorch without modules inside do not call attention functions.
            is_layer = is_leaf and type(item.module).__module__.startswith("torch.nn.")
            may_attend = ATTENTION in self._wanted and not is_layer
            if not (is_ordering or routes or has_statistics or may_attend):
                continue
            yield (
                item.module,
                Probe(functools.partial(self._before, item)) if may_attend else None,
                Probe(functools.partial(self._after, item, has_statistics, routes)),
            )

    def pause(self) -> None:
        """Measure nothing until `attach`."""
        self._is_ordered = self._is_ordered or bool(self._order)
        self._is_active = self.attention_calls.is_active = False
        self._stack.clear()
        self._names.clear()

    def detach(self) -> None:
        """Remove all callbacks."""
        self.pause()
        remove_all(self._handles)

    @staticmethod
    def _says_causal(module: Any) -> bool:
        return bool(attention.CAUSAL_CLASS.search(type(module).__name__))

    def _is_seen(self) -> bool:
        return (
            self._is_active and threading.get_ident() == self._thread and not modules.in_backward()
        )

    # `kwargs` is missing if the hook is closed during the call of the module.
    def _before(self, item: Probed, _: Any, args: Any, kwargs: Any = None) -> None:
        if not self._is_seen():
            return
        self._stack.append(item)
        if isinstance(item.module, nn.MultiheadAttention) and not _is_transformed((args, kwargs)):
            self._run_guarded(self._measure_multihead, item, args, kwargs)

    def _measure_multihead(self, item: Probed, args: Any, kwargs: Any) -> None:
        is_causal = self._is_meant_causal(item)
        values = attention.of_multihead(item.module, args, kwargs, is_meant_causal=is_causal)
        self._add_attention(item, values)

    def _after(
        self, item: Probed, has_statistics: bool, routes: bool, _: Any, __: Any, output: Any
    ) -> None:
        if not self._is_seen():
            return
        # Modules that raised an error are still above it.
        for index in reversed(range(len(self._stack))):
            if self._stack[index] is item:
                del self._stack[index:]
                break
        if not _is_transformed(output):
            self._run_guarded(self._measure, item, has_statistics, routes, output)

    def _measure(self, item: Probed, has_statistics: bool, routes: bool, output: Any) -> None:
        if not self._is_ordered and MODEL in self._wanted and self._is_new(f"order {item.name}"):
            self._add(MODEL, f"model/execution_order/{item.name}", self._order)
            self._order += 1
        if has_statistics:
            self._measure_activation(item, output)
        if routes and self._is_new(f"router {item.name}"):
            loads = expert_loads(output, item.module, item.parent)
            self._add(ROUTER, f"router/{item.name}/load", loads)
        if ATTENTION in self._wanted and attention.ATTENTION_CLASS.search(
            type(item.module).__name__
        ):
            self._add_attention(
                item, attention.of_output(output, is_meant_causal=self._is_meant_causal(item))
            )

    def _measure_activation(self, item: Probed, output: Any) -> None:
        """Measure the first tensor of an output."""
        tensor = next((tensor for _, tensor in modules.tensors_in(output)), None)
        if tensor is None or not _is_measurable(tensor):
            return
        if self._is_new(f"activation {item.name}"):
            value = activation_statistics(tensor.detach())
            self._add(ACTIVATION_STATISTICS, f"activation_statistics/{item.name}", value)

    def _on_attention(self, query: Any, key: Any, *args: Any, **kwargs: Any) -> None:
        """Measure a call of `scaled_dot_product_attention` in the innermost module."""
        item = self._stack[-1] if self._stack else None
        if item is None or not self._is_seen() or f"attention {item.name}" in self._names:
            return
        # Of a sharded one, other workers would have to take part.
        if hasattr(query, "to_local") or modules.is_transformed(query):
            return
        self._run_guarded(self._measure_scores, item, query, key, args, kwargs)

    def _measure_scores(self, item: Probed, query: Any, key: Any, args: Any, kwargs: Any) -> None:
        names = ("value", "attn_mask", "dropout_p", "is_causal")
        options = {**dict(zip(names, args, strict=False)), **kwargs}
        values = attention.of_scores(
            query,
            key,
            options.get("attn_mask"),
            is_causal=bool(options.get("is_causal")),
            scale=options.get("scale"),
            is_meant_causal=self._is_meant_causal(item),
        )
        self._add_attention(item, values)

    def _is_meant_causal(self, item: Probed) -> bool:
        """Return whether a module, attention around it or the model says that it is causal."""
        is_causal = getattr(item.module, "is_causal", None)
        if isinstance(is_causal, bool):
            return is_causal
        if isinstance(
            item.module, nn.MultiheadAttention
        ):  # which models also have in encoders of images
            around = self._stack[-2].module if len(self._stack) > 1 else None
            is_attention = attention.ATTENTION_CLASS.search(type(around).__name__)
            return bool(is_attention and self._says_causal(around))
        return self._is_causal or self._says_causal(item.module)

    def _add_attention(self, item: Probed, values: attention.AttentionValues | None) -> None:
        if values is None or not self._is_new(f"attention {item.name}"):
            return
        self._add(ATTENTION, f"attention/{item.name}/entropy", values.entropy)
        self._add(ATTENTION, f"attention/{item.name}/future_mass", values.future_mass)

    def _is_new(self, name: str) -> bool:
        """Return whether something is measured for the first time in the step."""
        is_new = name not in self._names
        self._names.add(name)
        return is_new


def has_attention_or_router(model: Any) -> bool:
    """Return whether a model has attention modules or routers of experts."""
    return any(
        attention.ATTENTION_CLASS.search(type(module).__name__)
        or any(is_router(name, child, module) for name, child in module.named_children())
        for module in model.modules()
    )


def _is_transformed(value: Any) -> bool:
    """Return whether a call is inside `torch.func`, where results may not decide anything."""
    tensor = next((tensor for _, tensor in modules.tensors_in(value)), None)
    return tensor is not None and modules.is_transformed(tensor)


def _is_measurable(tensor: Any) -> bool:
    is_plain = tensor.layout is torch.strided and not tensor.is_nested
    return bool(is_plain and tensor.is_floating_point() and tensor.numel())


def activation_statistics(tensor: Any) -> Any:
    """Return mean, standard deviation, largest magnitude and share of zeros as one tensor.

    The largest magnitude is that of all elements, the others are of at most `SAMPLE` of them,
    evenly spaced.
    """
    tensor = tensor.to_local() if hasattr(tensor, "to_local") else tensor
    low, high = tensor.aminmax()  # several times as fast as the norm of infinite order
    flat = tensor.reshape(-1)
    sample = flat[:: max(1, -(-flat.numel() // SAMPLE))].float().contiguous()
    size = sample.numel()
    mean = sample.mean()
    deviation = torch.linalg.vector_norm(sample - mean) / math.sqrt(size)
    zeros = (size - sample.count_nonzero()) / size
    return torch.stack((mean, deviation, torch.maximum(high, -low).float(), zeros))


def is_router(name: str, module: Any, parent: Any) -> bool:
    """Return whether a module routes tokens to experts, by its name or class and its siblings.

    The whole model, whose `parent` is None, is no router.
    """
    if parent is None:
        return False
    if not ROUTER_NAME.search(name) and not ROUTER_CLASS.search(type(module).__name__):
        return False
    return any(EXPERTS.search(child) for child, _ in parent.named_children())


def expert_loads(output: Any, *owners: Any) -> Any:
    """Return the share of choices of each expert; None if the output has no scores of experts.

    Parameters
    ----------
    output
        Of a router: scores ``(..., experts)``, or a tuple with scores, and the chosen indices if
        the router chooses.
    owners
        The router and the modules around it, one of which says how many experts a token has.
    """
    parts = output if isinstance(output, (tuple, list)) else (output,)
    if any(hasattr(part, "to_local") for part in parts):
        return None
    tensors = [part.detach() for part in parts if isinstance(part, torch.Tensor) and part.ndim > 1]
    scores = [part for part in tensors if part.is_floating_point()]
    if not scores:
        return None
    experts = max(part.shape[-1] for part in scores)
    if not 1 < experts <= MOST_EXPERTS:
        return None
    widest = next(part for part in scores if part.shape[-1] == experts)
    chosen = [part for part in tensors if part.dtype in (torch.int32, torch.int64)]
    count = _choices(owners)
    if chosen and chosen[0].shape[-1] < experts:
        indices = chosen[0]
    elif count is not None and count <= experts:
        indices = widest.topk(count, -1).indices
    else:
        return None
    if not indices.numel():
        return None
    # Comparing is deterministic, unlike counting by scattering on some devices.
    numbers = torch.arange(experts, device=indices.device)
    loads = torch.stack([(indices == number).sum() for number in numbers]).float()
    return loads / indices.numel()


def _choices(owners: tuple[Any, ...]) -> int | None:
    """Return how many experts a token is sent to, as a module or its configuration says."""
    for owner in owners:
        for source in (owner, getattr(owner, "config", None)):
            for name in CHOICES:
                value = getattr(source, name, None)
                if isinstance(value, int) and not isinstance(value, bool) and value > 0:
                    return value
    return None
