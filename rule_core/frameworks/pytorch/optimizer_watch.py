"""OptimizerWatch: what an optimizer does at a step: rates, norms, loss scale and updates."""

import functools
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

import numpy as np
import torch
from torch.nn.utils import clip_grad
from torch.optim import optimizer as torch_optimizer

from rule_core.frameworks.pytorch.deferred_values import DeferredValues
from rule_core.frameworks.pytorch.loss_scaling import LossScaling
from rule_core.frameworks.pytorch.measures.optimizer_coverage import OptimizerCoverage
from rule_core.frameworks.pytorch.modules import parameters_of, sample
from rule_core.frameworks.pytorch.patches import Patch, Watcher, remove_all
from rule_core.model.collection import CollectionKeys
from rule_core.saving.presets import OPTIMIZER

if TYPE_CHECKING:
    from rule_core.frameworks.pytorch.hook import Hook

SAMPLE: Final = 1 << 16  # elements of a parameter whose update is measured
_foreach_norm, _foreach_sub = torch._foreach_norm, torch._foreach_sub  # noqa: SLF001 - torch.nn.utils and torch.optim use them too
_HALF: Final = frozenset({torch.float16, torch.bfloat16})


class Seen(NamedTuple):
    """An optimizer, its number, and the number of its first parameter group."""

    optimizer: "weakref.ref[Any]"
    number: int
    first_group: int

    def name(self, what: str) -> str:
        """Return the name of a measurement; that of the first optimizer has no number."""
        return f"optimizer/{self.number}/{what}" if self.number else f"optimizer/{what}"


class Totals(NamedTuple):
    """The norm of all gradients before clipping and after it, and whether they were clipped."""

    before: Any
    after: Any
    is_clipped: bool


class StaleGradients:
    """Measures what an update has left in `.grad` when the next backward adds to it.

    A tensor hook would run before that, but `torch.autograd.grad` calls it too, perhaps before
    `zero_grad`. So the parameter that gets its gradient first is left out. Several optimizers may
    clear their gradients only before their own backward, as in adversarial training; nothing is
    measured then, nor for parameters on several devices, whose gradients arrive in any order.

    Parameters
    ----------
    owner
        The hook.
    """

    def __init__(self, owner: "Hook") -> None:
        self._owner = owner
        self._updating: weakref.WeakSet[Any] = weakref.WeakSet()
        self._is_due = False
        self._handles: list[Any] = []
        self._attached: list[int] = []  # the parameters' ids, which `measure` keeps alive

    def record_update(self, optimizer: Any) -> None:
        """Record that an optimizer of the process, watched or not, has made an update."""
        self._updating.add(optimizer)
        self._is_due = True

    def optimizer(self) -> Any:
        """Return the optimizer whose gradients are due at the step that begins, or None."""
        if not torch.is_grad_enabled():
            return None
        # The backward of a step that is not saved would not be seen.
        self._is_due = self._is_due and self._owner.wants(OPTIMIZER)
        if self._is_due and len(self._updating) == 1:
            return next(iter(self._updating))
        self.detach()
        return None

    def attach(self, optimizer: Any, add: Callable[[Any], None]) -> None:
        """Let the first gradient that arrives measure the others that are still there."""
        parameters = [item for item in parameters_of(optimizer) if item.requires_grad]
        ids = [id(item) for item in parameters]
        if self._attached == ids:
            return
        self.detach()
        is_sharded = any(hasattr(item, "to_local") for item in parameters)
        if is_sharded or len({item.device for item in parameters}) > 1 or len(parameters) == 1:
            return
        self._attached = ids

        def measure(first: Any) -> None:
            others = [item.grad for item in parameters if item is not first]
            stale = [gradient for gradient in others if gradient is not None]
            add(_total(_norms(stale)) if stale else np.float32(0))

        def on_gradient(first: Any) -> None:
            if self._is_due:
                self._is_due = False
                if len(self._updating) == 1:
                    self._owner.run_guarded(measure, first)

        self._handles = [
            item.register_post_accumulate_grad_hook(on_gradient) for item in parameters
        ]

    def detach(self) -> None:
        """Remove all callbacks from parameters."""
        self._attached = []
        remove_all(self._handles)


class OptimizerWatch(Watcher):
    """Measures each update of the optimizers that train a hook's models.

    It uses the global step hooks of `torch.optim`, and patches the clipping functions of
    `torch.nn.utils`.

    Parameters
    ----------
    owner
        The hook.
    scaling
        The loss scaling of the hook.

    Attributes
    ----------
    l2_total
        Returns the latest l2 norm that `torch.nn.utils` computed of sharded gradients.
    owner
        The hook.
    values
        The measurements of the latest update.
    has_updated
        Whether there was an update since the hook's last step began.
    measures_updates
        Whether to measure the norms of each parameter's update, and which are in no optimizer.
    """

    l2_total: ClassVar[Callable[[], Any]] = lambda: None

    def __init__(self, owner: "Hook", scaling: LossScaling) -> None:
        self.values = DeferredValues()
        self.has_updated = False
        self.measures_updates = False
        self.owner = owner
        self._scaling = scaling
        self._stale = StaleGradients(owner)
        self._coverage = OptimizerCoverage()
        self._seen: dict[int, Seen] = {}
        self._groups = 0
        self._handles: list[Any] = []
        self._current: int | None = None
        # Gradient accumulation: an update belongs to the next saved step.
        self._lacks_update = False
        self._owes_update_norms = False
        self._norms_before_clipping: dict[int, Any] = {}
        self._totals_of_shards: dict[frozenset[int], Totals] = {}  # by the parameters' ids
        # The names of parameters, these, and samples of their elements before the update.
        self._snapshots: list[tuple[str, Any, Any]] = []

    @classmethod
    def patched(cls) -> Iterator[Patch]:
        """Patch what clips gradients, wherever `torch.nn.utils` has it.

        These are the functions that others call, whatever name a script has imported.
        """
        wrappers = {
            "_clip_grads_with_norm_": _measuring_norm,
            "_get_total_norm": _remembering_norm,
            "clip_grad_value_": _measuring_first,
        }
        for function in wrappers.keys() & vars(clip_grad).keys():  # some are private in PyTorch
            original = getattr(clip_grad, function)
            for module in (clip_grad, torch.nn.utils):
                for name in [name for name, value in vars(module).items() if value is original]:
                    yield Patch(module, name, wrappers[function])

    def watch(self) -> None:
        """Start watching every optimizer of the process."""
        super().watch()
        if not self._handles:
            self._handles = [
                torch_optimizer.register_optimizer_step_pre_hook(self._before_step),
                torch_optimizer.register_optimizer_step_post_hook(self._after_step),
            ]

    def unwatch(self) -> None:
        """Stop watching, and restore what was patched."""
        super().unwatch()
        remove_all(self._handles)
        self._stale.detach()
        self.values.clear()
        self._forget_clipping()
        self._snapshots.clear()

    def add(self, optimizer: Any) -> None:
        """Watch an optimizer, whatever its parameters belong to."""
        seen = self._seen.get(id(optimizer))
        if seen is None or seen.optimizer() is not optimizer:
            self._seen[id(optimizer)] = Seen(weakref.ref(optimizer), len(self._seen), self._groups)
            self._groups += len(optimizer.param_groups)

    def begin_step(self) -> None:
        """Forget what an interrupted update has left, and await the next backward."""
        self.has_updated = False
        self._current = None
        self._forget_clipping()
        self._snapshots.clear()
        optimizer = self._stale.optimizer()
        seen = None if optimizer is None else self._seen.get(id(optimizer))
        if seen is not None and seen.optimizer() is optimizer and not self.owner.has_flat_shards():
            name = seen.name("stale_grad_norm")
            self._stale.attach(optimizer, functools.partial(self.values.add, OPTIMIZER, name))
        else:
            self._stale.detach()

    def _forget_clipping(self) -> None:
        self._norms_before_clipping.clear()
        self._totals_of_shards.clear()

    def end_saved_step(self) -> None:
        """Record whether a saved step had an update; without one, updates in between count."""
        if self._seen and not self.has_updated:
            self._lacks_update = self._owes_update_norms = True

    def _wants(self, collection: str) -> bool:
        return self._lacks_update or self.owner.wants(collection)

    def _seen_as(self, optimizer: Any) -> Seen | None:
        """Return an optimizer that is watched; one of other models is not."""
        seen = self._seen.get(id(optimizer))
        if seen is not None and seen.optimizer() is optimizer:
            return seen
        names = self._names()
        if any(id(parameter) in names for parameter in parameters_of(optimizer)):
            self.add(optimizer)
            return self._seen[id(optimizer)]
        return None

    def _before_step(self, optimizer: Any, args: Any, kwargs: Any) -> Any:
        """Measure before an update, or in its closure, which computes the gradients."""
        if torch.compiler.is_compiling():
            return None
        closure = kwargs.get("closure") if len(args) == 1 else args[1]
        if not callable(closure):
            self.owner.run_guarded(self._measure, optimizer)
            return None
        is_first = True

        @functools.wraps(closure)
        def measured() -> Any:
            nonlocal is_first
            result = closure()
            if is_first:
                is_first = False
                self.owner.run_guarded(self._measure, optimizer)
            return result

        if len(args) == 1:
            return args, {**kwargs, "closure": measured}
        return (args[0], measured, *args[2:]), kwargs

    def _after_step(self, optimizer: Any, *_: Any) -> None:
        if torch.compiler.is_compiling():
            return
        self._stale.record_update(optimizer)
        if self._current == id(optimizer):
            self.owner.run_guarded(self._measure_updates)
        if self._norms_before_clipping:
            for parameter in parameters_of(optimizer):
                self._norms_before_clipping.pop(id(parameter), None)

    def _names(self) -> dict[int, str]:
        """Return the names of the models' parameters, by their ids."""
        return {id(item): name for name, item in self.owner.parameters_by_name().items()}

    def _totals(self, parameters: Sequence[Any]) -> Totals:
        norms = _norms([parameter.grad for parameter in parameters])
        early = self._norms_before_clipping
        before = [early.get(id(item), norm) for item, norm in zip(parameters, norms, strict=True)]
        is_clipped = any(id(item) in early for item in parameters)
        return Totals(_total(before), _total(norms), is_clipped)

    def _measure(self, optimizer: Any) -> None:
        if self._current is not None:  # another one steps on its behalf
            return
        if self.measures_updates and self._wants(OPTIMIZER):
            self._measure_coverage(optimizer)
        seen = self._seen_as(optimizer)
        if seen is None:
            return
        self._current, self.has_updated = id(optimizer), True
        self._measure_rates(optimizer, seen)
        self._measure_scale()
        if self._wants(CollectionKeys.GRADIENT_NORMS):
            self._measure_norms(optimizer, seen)
        if self.measures_updates and (self.owner.wants(OPTIMIZER) or self._owes_update_norms):
            names = self._names()
            self._snapshots = [
                (names[id(parameter)], parameter, sample(parameter, SAMPLE).clone())
                for parameter in parameters_of(optimizer)
                if id(parameter) in names and parameter.grad is not None and parameter.numel()
            ]

    def _measure_coverage(self, optimizer: Any) -> None:
        if not self.owner.has_flat_shards():
            parameters = self.owner.parameters_by_name()
            for name, value in self._coverage.measure(optimizer, parameters):
                self.values.add(OPTIMIZER, name, value)

    def _measure_rates(self, optimizer: Any, seen: Seen) -> None:
        if not self._wants(CollectionKeys.LEARNING_RATES):
            return
        for index, group in enumerate(optimizer.param_groups, seen.first_group):
            rate = group.get("lr")
            if isinstance(rate, torch.Tensor):
                rate = rate.clone().reshape(())
            self.values.add(CollectionKeys.LEARNING_RATES, f"optimizer/lr/{index}", rate)

    def _measure_scale(self) -> None:
        if self._wants(CollectionKeys.LOSS_SCALES):
            scale = self._scaling.scale()
            self.values.add(CollectionKeys.LOSS_SCALES, "optimizer/loss_scale", scale)

    def _measure_norms(self, optimizer: Any, seen: Seen) -> None:
        """Record the norm of all gradients, and the one after clipping if that was seen."""
        parameters = [item for item in parameters_of(optimizer) if item.grad is not None]
        if not parameters:
            return
        if _are_sharded(parameters):
            totals = self._totals_of_shards.pop(frozenset(map(id, parameters)), None)
        else:
            totals = None if self.owner.has_flat_shards() else self._totals(parameters)
        if totals is None:
            self.owner.warn_once(
                "sharded norm",
                "The gradient norm is not saved: the gradients are sharded, and are summed only "
                "where clip_grad_norm_ clips all gradients of a model sharded by fully_shard.",
            )
            return
        # Fused optimizers unscale the gradients themselves.
        scale = getattr(optimizer, "grad_scale", None)
        factor = 1.0 if scale is None else 1.0 / scale
        norm, clipped = seen.name("grad_norm"), seen.name("grad_norm_clipped")
        self.values.add(CollectionKeys.GRADIENT_NORMS, norm, totals.before * factor)
        if totals.is_clipped:
            self.values.add(OPTIMIZER, clipped, totals.after * factor)

    def _measure_updates(self) -> None:
        """Measure how far the update has moved each parameter."""
        snapshots, self._snapshots = self._snapshots, []
        self._current = None
        if not snapshots:
            return
        names, parameters, samples = zip(*snapshots, strict=True)
        before = [elements.float() for elements in samples]
        after = [sample(parameter, SAMPLE).float() for parameter in parameters]
        updates = _foreach_sub(after, before)
        for name, update, old in zip(names, _norms(updates), _norms(before), strict=True):
            value = torch.stack((update, old))
            self.values.add(OPTIMIZER, f"optimizer/update_norm/{name}", value)
        for name, parameter, update in zip(names, parameters, updates, strict=True):
            gradient = parameter.grad
            if parameter.dtype in _HALF and gradient is not None and not gradient.is_sparse:
                has_gradient = sample(gradient, SAMPLE) != 0
                unchanged = (has_gradient & (update == 0)).sum()
                share = unchanged / has_gradient.sum().clamp(min=1)
                self.values.add(OPTIMIZER, f"optimizer/unchanged_share/{name}", share)
        self._owes_update_norms = False

    def before_clipping(self, parameters: Sequence[Any]) -> None:
        """Measure the norms of gradients that are about to be clipped."""
        if not self._wants(CollectionKeys.GRADIENT_NORMS):
            return
        if self.owner.has_flat_shards() or _are_sharded(parameters):
            return
        new = [
            item
            for item in parameters
            if item.grad is not None and id(item) not in self._norms_before_clipping
        ]
        if new:
            norms = _norms([item.grad for item in new])
            if self._is_scaled():
                norms = [norm * self._scaling.inverse() for norm in norms]
            self._norms_before_clipping |= zip(map(id, new), norms, strict=True)

    def before_clipping_shards(
        self, parameters: Sequence[Any], max_norm: float, total: Any
    ) -> None:
        """Record the norm by which sharded gradients are about to be clipped.

        Parameters
        ----------
        parameters, max_norm
            As `torch.nn.utils.clip_grad_norm_` takes them.
        total
            The norm of all workers' shards.
        """
        if not self._wants(CollectionKeys.GRADIENT_NORMS):
            return
        ids = frozenset(id(item) for item in parameters if item.grad is not None)
        norm, max_norm = total.to_local(), float(max_norm)
        if self._is_scaled():
            factor = self._scaling.inverse()
            norm, max_norm = norm * factor, max_norm * factor
        earlier = self._totals_of_shards.get(ids)
        before = norm if earlier is None else earlier.before
        self._totals_of_shards[ids] = Totals(before, norm.clamp(max=max_norm), is_clipped=True)

    def _is_scaled(self) -> bool:
        """Return whether gradients have not been unscaled since the backward."""
        states = getattr(self._scaling.scaler, "_per_optimizer_states", None)
        if states is None:
            return False
        return all(state["stage"].name == "READY" for state in states.values())

    def before_scale_update(self, scaler: Any) -> None:
        """Measure the loss scale, and whether it made the scaler skip an update."""
        if not self._handles:
            return
        states = getattr(scaler, "_per_optimizer_states", {})
        # The scaler identifies optimizers by `id`.
        own = [self._seen[key] for key in states if key in self._seen]
        self._measure_scale()
        for seen in own:
            optimizer = seen.optimizer()
            if optimizer is not None and not self.has_updated:
                self._measure_rates(optimizer, seen)
            flags = [*states[id(optimizer)].get("found_inf_per_device", {}).values()]
            if flags and self._wants(OPTIMIZER):
                skipped = sum(flag.to(flags[0].device) for flag in flags) > 0
                self.values.add(OPTIMIZER, seen.name("skipped"), skipped.reshape(()))
        self._forget_clipping()

    @classmethod
    def all_before_clipping(cls, measure: Callable[..., None], *args: Any) -> None:
        """Let all watches measure gradients, by one of their methods, before they are clipped."""
        for watch in [*cls._watching]:
            watch.owner.run_guarded(measure, watch, *args)


def _norms(tensors: list[Any]) -> list[Any]:
    """Return the l2 norms of tensors, computed together where PyTorch can."""
    dense: list[Any] = []
    for tensor in tensors:
        plain = tensor.detach()
        if plain.layout is torch.sparse_coo:
            plain = plain.coalesce().values()
        dense.append(plain.abs() if plain.is_complex() else plain)
    norms: list[Any] = [None] * len(dense)
    groups: dict[Any, list[int]] = {}
    for index, plain in enumerate(dense):
        groups.setdefault((plain.device, plain.dtype), []).append(index)
    for (_, dtype), indexes in groups.items():
        # A sum of squares overflows half precision.
        options = {"dtype": torch.float32} if dtype in _HALF else {}
        results = _foreach_norm([dense[index] for index in indexes], 2.0, **options)
        for index, norm in zip(indexes, results, strict=True):
            norms[index] = norm
    return norms


def _total(norms: list[Any]) -> Any:
    """Return the norm of norms."""
    return torch.linalg.vector_norm(torch.stack([norm.to(norms[0].device) for norm in norms]))


def _are_sharded(parameters: Iterable[Any]) -> bool:
    """Return whether a worker cannot compute the norm of gradients by itself."""
    return any(hasattr(item, "to_local") for item in parameters)


def _measuring_first(original: Any) -> Any:
    def clip(parameters: Any, *args: Any, **kwargs: Any) -> Any:
        if not torch.compiler.is_compiling():
            parameters = _listed(parameters)
            OptimizerWatch.all_before_clipping(OptimizerWatch.before_clipping, parameters)
        return original(parameters, *args, **kwargs)

    return clip


def _is_of_all_workers(total: Any) -> bool:
    return all(placement.is_replicate() for placement in total.placements)


def _measuring_norm(original: Any) -> Any:
    def clip(parameters: Any, max_norm: Any, total_norm: Any, *args: Any, **kwargs: Any) -> Any:
        if not torch.compiler.is_compiling():
            parameters = _listed(parameters)
            watch = OptimizerWatch
            if not hasattr(total_norm, "placements"):
                watch.all_before_clipping(watch.before_clipping, parameters)
            elif _is_of_all_workers(total_norm) and total_norm is watch.l2_total():
                shards = parameters, max_norm, total_norm
                watch.all_before_clipping(watch.before_clipping_shards, *shards)
        return original(parameters, max_norm, total_norm, *args, **kwargs)

    return clip


def _remembering_norm(original: Any) -> Any:
    def total_norm(tensors: Any, norm_type: float = 2.0, *args: Any, **kwargs: Any) -> Any:
        total = original(tensors, norm_type, *args, **kwargs)
        if not torch.compiler.is_compiling() and hasattr(total, "placements"):
            is_l2 = float(norm_type) == 2  # noqa: PLR2004 - as in "l2"
            OptimizerWatch.l2_total = weakref.ref(total) if is_l2 else lambda: None
        return total

    return total_norm


def _listed(parameters: Any) -> list[Any]:
    """Return parameters, of which there may be one, as a list that can be read twice."""
    return [parameters] if isinstance(parameters, torch.Tensor) else list(parameters)
