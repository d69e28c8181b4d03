"""Workers: copies of a model that learn from rows of their own and average their gradients."""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn
from training.torch_loop import hook

from runs_tuned.sixth_held_out.losses_and_optimizers.shared.lesson import dealt
from smdebug.core.modes import ModeKeys

# Parameters of one name, one of each worker, and the step.
Average = Callable[[int, str, list[Any]], None]


def mean_for_all(_: int, name: str, parameters: list[Any]) -> None:
    """Give all workers the mean of their gradients."""
    del name
    mean = sum(each.grad for each in parameters) / len(parameters)
    for each in parameters:
        each.grad.copy_(mean)


def side_by_side(
    root: Path,
    model: Any,
    loss: Callable[[Any, Any], Any],
    data: tuple[Any, ...],
    optimizer: Callable[[Any, int], Any],
    *,
    workers: int = 2,
    steps: int = 100,
    save_every: int = 2,
    size: int = 16,
    clip: float = 0.0,
    average: Average = mean_for_all,
    factor: Callable[[int, int], float] = lambda *_: 1.0,
    after: Callable[[int, list[Any]], object] = lambda *_: None,
    fault_at: int = 0,
) -> int:
    """Train copies of a model together; return the global step of step `fault_at`.

    Parameters
    ----------
    loss
        Returns the loss of a model on a batch.
    optimizer
        Makes the optimizer of a model, by its rank.
    average
        Gives workers the gradients of a parameter to learn from.
    factor
        The factor of the rates by step and rank.
    after
        What happens after the updates of a step.
    """
    torch.set_num_threads(1)
    models = [model, *(copy.deepcopy(model) for _ in range(workers - 1))]
    optimizers = [optimizer(each, rank) for rank, each in enumerate(models)]
    rates = [group["lr"] for group in optimizers[0].param_groups]
    hooks = [
        hook(root, save_every, include_workers="all", rank=rank, world_size=workers)
        for rank in range(workers)
    ]
    for watching, each in zip(hooks, models, strict=True):
        watching.register_module(each, counts_steps=False)
        watching.set_mode(ModeKeys.TRAIN)
    rows = [
        dealt(*(part[rank::workers] for part in data), size=size, seed=rank)
        for rank in range(workers)
    ]
    onset = 0
    for step in range(steps):
        for watching, each, batches in zip(hooks, models, rows, strict=True):
            watching.begin_step()
            value = loss(each, next(batches)).float()
            watching.record_tensor_value("loss", value)
            value.backward()
        onset = hooks[0].global_step if fault_at and step == fault_at else onset
        named = [dict(each.named_parameters()) for each in models]
        for name in named[0]:
            average(step, name, [each[name] for each in named])
        for rank, (each, taking) in enumerate(zip(models, optimizers, strict=True)):
            for group, rate in zip(taking.param_groups, rates, strict=True):
                group["lr"] = rate * factor(step, rank)
            if clip:
                nn.utils.clip_grad_norm_(each.parameters(), clip)
            taking.step()
            taking.zero_grad()
        after(step, models)
        for watching in hooks:
            watching.step()
    for watching in hooks:
        watching.close()
    return onset
