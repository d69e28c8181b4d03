"""Workers: copies of a model, each on rows of its own, that average what their backward gives."""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn
from training.torch_loop import hook

from runs_tuned.fifth_held_out.losses_and_optimizers.shared.loops import served, set_rates
from smdebug.core.modes import ModeKeys

# Gradients by the name of their parameter, one for each worker.
Gradients = dict[str, list[Any]]
# What workers get of their gradients, by step.
Exchange = Callable[[int, Gradients], Gradients]


def averaged(_: int, gradients: Gradients) -> Gradients:
    """Return the mean of each parameter's gradients for all workers."""
    return {name: [sum(each) / len(each)] * len(each) for name, each in gradients.items()}


def in_parallel(
    root: Path,
    model: Any,
    objective: Callable[[Any, Any], Any],
    data: tuple[Any, ...],
    optimizer: Callable[[Any], Any],
    *,
    workers: int = 2,
    steps: int = 100,
    save_every: int = 2,
    size: int = 12,
    clip: float = 0.0,
    half: Any = None,
    exchange: Exchange = averaged,
    schedule: Callable[[int], float] = lambda _: 1.0,
    changed: Callable[[int, list[Any]], object] = lambda *_: None,
    has_row: Callable[[int, int], bool] = lambda *_: True,
    fault_at: int = 0,
) -> int:
    """Train copies of a model side by side; return the global step of step `fault_at`.

    Parameters
    ----------
    objective
        Returns the loss of a model on a batch.
    changed
        What happens to the models after each step.
    has_row
        Whether a worker saves a step, by step and rank.
    """
    torch.set_num_threads(1)
    models = [model, *(copy.deepcopy(model) for _ in range(workers - 1))]
    optimizers = [optimizer(each.parameters()) for each in models]
    rates = [group["lr"] for group in optimizers[0].param_groups]
    hooks = [_hook(root, each, rank, workers, save_every) for rank, each in enumerate(models)]
    rows = [
        served(*(part[rank::workers] for part in data), size=size, seed=rank)
        for rank in range(workers)
    ]
    onset = 0
    for step in range(steps):
        ranks = [rank for rank in range(workers) if has_row(step, rank)]
        for rank in ranks:
            hooks[rank].begin_step()
        onset = hooks[0].global_step if fault_at and step == fault_at else onset
        for rank in ranks:
            with torch.autocast("cpu", half, enabled=half is not None):
                value = objective(models[rank], next(rows[rank])).float()
            hooks[rank].record_tensor_value("loss", value)
            value.backward()
        _shared(step, [models[rank] for rank in ranks], exchange)
        for rank in ranks:
            set_rates(optimizers[rank], rates, schedule(step))
            if clip:
                nn.utils.clip_grad_norm_(models[rank].parameters(), clip)
            optimizers[rank].step()
            optimizers[rank].zero_grad()
        changed(step, models)
        for rank in ranks:
            hooks[rank].step()
    for each in hooks:
        each.close()
    return onset


def _hook(root: Path, model: Any, rank: int, workers: int, save_every: int) -> Any:
    watching = hook(root, save_every, include_workers="all", rank=rank, world_size=workers)
    watching.register_module(model, counts_steps=False)
    watching.set_mode(ModeKeys.TRAIN)
    return watching


def _shared(step: int, models: list[Any], exchange: Exchange) -> None:
    named = [dict(each.named_parameters()) for each in models]
    gradients = {name: [each[name].grad.clone() for each in named] for name in named[0]}
    for name, mine in exchange(step, gradients).items():
        for each, gradient in zip(named, mine, strict=True):
            each[name].grad.copy_(gradient)
