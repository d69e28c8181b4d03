"""ModuleProbes: what modules compute at a saved step, measured without saving it."""

import threading
from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

import torch
from torch import nn

from rule_core.frameworks.pytorch import attention, modules, routers
from rule_core.frameworks.pytorch.callback import Callback
from rule_core.saving.presets import ACTIVATION_STATISTICS, ATTENTION, MODEL, ROUTER

SAMPLE: Final = 1 << 16  # elements of an output
_SILENT: Final = (nn.Identity, nn.Dropout)


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
        Called with a collection, a name and a tensor.
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
        self._stack: list[Probed] = []
        self._names: set[str] = set()
        self._wanted: frozenset[str] = frozenset()
        self._is_ordered = False
        self._order = 0
        self._thread = 0
        self._is_causal = False

    def attach(
        self,
        probed: Iterable[Probed],
        wanted: frozenset[str],
        is_selected: Callable[[str, str], bool],
    ) -> None:
        """Add callbacks to modules.

        Parameters
        ----------
        probed
            The modules.
        wanted
            Collections to measure.
        is_selected
            Whether the user's patterns of a collection select a module's name.
        """
        self.detach()
        self._wanted = wanted
        self._thread = threading.get_ident()
        self._order = 0
        for item in probed:
            if item.parent is None:
                self._is_causal = self._says_causal(item.module)
            is_router = ROUTER in wanted and (
                is_selected(ROUTER, f"router/{item.name}/load")
                or routers.is_router(item.name, item.module, item.parent)
            )
            before = Probe(lambda _, args, kwargs=None, item=item: self._before(item, args, kwargs))
            after = Probe(
                lambda _, __, output, item=item, is_router=is_router: self._after(
                    item, output, is_router=is_router
                )
            )
            self._handles += [
                item.module.register_forward_pre_hook(before, with_kwargs=True),
                item.module.register_forward_hook(after),
            ]
        self.attention_calls.is_active = ATTENTION in wanted

    def detach(self) -> None:
        """Remove all callbacks."""
        for handle in self._handles:
            handle.remove()
        self._is_ordered = self._is_ordered or bool(self._order)
        self._handles.clear()
        self._stack.clear()
        self._names.clear()
        self.attention_calls.is_active = False

    @staticmethod
    def _says_causal(module: Any) -> bool:
        return bool(attention.CAUSAL_CLASS.search(type(module).__name__))

    def _is_seen(self) -> bool:
        return threading.get_ident() == self._thread and not modules.in_backward()

    def _before(self, item: Probed, args: Any, kwargs: Any) -> None:
        if not self._is_seen():
            return
        self._stack.append(item)
        if ATTENTION in self._wanted and attention.is_multihead(item.module):
            self._run_guarded(self._measure_multihead, item, args, kwargs)

    def _measure_multihead(self, item: Probed, args: Any, kwargs: Any) -> None:
        self._add_attention(item, attention.of_multihead(item.module, args, kwargs))

    def _after(self, item: Probed, output: Any, *, is_router: bool) -> None:
        if not self._is_seen():
            return
        if self._stack and self._stack[-1] is item:
            self._stack.pop()
        self._run_guarded(self._measure, item, output, is_router)

    def _measure(self, item: Probed, output: Any, is_router: bool) -> None:
        if not self._is_ordered and MODEL in self._wanted and self._is_new(f"order {item.name}"):
            self._add(MODEL, f"model/execution_order/{item.name}", self._order)
            self._order += 1
        if ACTIVATION_STATISTICS in self._wanted:
            self._measure_activation(item, output)
        if is_router and self._is_new(f"router {item.name}"):
            loads = routers.expert_loads(output, item.module, item.parent)
            if loads is not None:
                self._add(ROUTER, f"router/{item.name}/load", loads)
        if ATTENTION in self._wanted and attention.ATTENTION_CLASS.search(
            type(item.module).__name__
        ):
            self._add_attention(
                item, attention.of_output(output, is_meant_causal=self._is_meant_causal(item))
            )

    def _measure_activation(self, item: Probed, output: Any) -> None:
        """Measure the first tensor of the output of a module without modules inside."""
        if isinstance(item.module, _SILENT) or next(item.module.children(), None) is not None:
            return
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
        if hasattr(query, "to_local"):  # sharded: other workers would have to take part
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
        """Return whether a module or the model says that its attention is causal."""
        is_causal = getattr(item.module, "is_causal", None)
        if isinstance(is_causal, bool):
            return is_causal
        return self._is_causal or self._says_causal(item.module)

    def _add_attention(self, item: Probed, values: attention.AttentionValues | None) -> None:
        if values is None or not self._is_new(f"attention {item.name}"):
            return
        self._add(ATTENTION, f"attention/{item.name}/entropy", values.entropy)
        if values.future_mass is not None:
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
        or any(routers.is_router(name, child, module) for name, child in module.named_children())
        for module in model.modules()
    )


def _is_measurable(tensor: Any) -> bool:
    is_plain = tensor.layout is torch.strided and not tensor.is_nested
    return bool(is_plain and tensor.is_floating_point() and tensor.numel())


def activation_statistics(tensor: Any) -> Any:
    """Return mean, standard deviation, largest magnitude and share of zeros as one tensor.

    The largest magnitude is that of all elements, the others are of at most `SAMPLE` of them,
    evenly spaced.
    """
    tensor = tensor.to_local() if hasattr(tensor, "to_local") else tensor
    flat = tensor.reshape(-1)
    sample = flat[:: max(1, -(-flat.numel() // SAMPLE))].float()
    largest = torch.linalg.vector_norm(flat, torch.inf).float()
    variance, mean = torch.var_mean(sample, correction=0)
    return torch.stack((mean, variance.sqrt(), largest, (sample == 0).float().mean()))
