"""Workers: copies of a model that learn from parts of the rows and average their gradients."""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn
from training.torch_loop import hook

from runs_tuned.fourth_held_out.losses_and_optimizers.shared.loops import dealt
from smdebug.core.modes import ModeKeys

Gather = Callable[[int, str, list[Any]], list[Any]]


def mean_of_all(_: int, __: str, gradients: list[Any]) -> list[Any]:
    """Return the mean of a parameter's gradients for each worker."""
    return [torch.stack(gradients).mean(0)] * len(gradients)


def together(
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
    accumulate: int = 1,
    gather: Gather = mean_of_all,
    schedule: Callable[[int], float] = lambda _: 1.0,
    after: Callable[[int, list[Any]], object] = lambda *_: None,
    lives: Callable[[int, int], bool] = lambda *_: True,
    at: int = 0,
    clip: float = 0.0,
) -> int:
    """Train copies of a model; return the global step of step `at`.

    Parameters
    ----------
    objective
        Returns the loss of a model on a batch.
    gather
        Returns what each worker gets of a parameter's gradients, by update and name.
    after
        What happens to the models after each step.
    lives
        Whether a worker takes part in a step, by step and rank.
    """
    torch.set_num_threads(1)
    models = [model, *(copy.deepcopy(model) for _ in range(workers - 1))]
    optimizers = [optimizer(one.parameters()) for one in models]
    rates = [group["lr"] for group in optimizers[0].param_groups]
    hooks, parts = [], []
    for rank, one in enumerate(models):
        hooks.append(hook(root, save_every, include_workers="all", rank=rank, world_size=workers))
        hooks[-1].register_module(one, counts_steps=False)
        hooks[-1].set_mode(ModeKeys.TRAIN)
        parts.append(dealt(*(each[rank::workers] for each in data), size=size, seed=rank))
    onset = 0
    for step in range(steps):
        living = [rank for rank in range(workers) if lives(step, rank)]
        for rank in living:
            hooks[rank].begin_step()
        onset = hooks[0].global_step if at and step == at else onset
        for rank in living:
            value = objective(models[rank], next(parts[rank]))
            hooks[rank].record_tensor_value("loss", value)
            value.div(accumulate).backward()
        if (step + 1) % accumulate == 0:
            _exchange(step, [models[rank] for rank in living], gather)
            for rank in living:
                _update(models[rank], optimizers[rank], rates, schedule(step), clip)
        after(step, models)
        for rank in living:
            hooks[rank].step()
    for each in hooks:
        each.close()
    return onset


def _update(model: Any, optimizer: Any, rates: list[float], factor: float, clip: float) -> None:
    for group, rate in zip(optimizer.param_groups, rates, strict=True):
        group["lr"] = rate * factor
    if clip:
        nn.utils.clip_grad_norm_(model.parameters(), clip)
    optimizer.step()
    optimizer.zero_grad()


def _exchange(step: int, models: list[Any], gather: Gather) -> None:
    for copies in zip(*(model.named_parameters() for model in models), strict=True):
        gradients = [parameter.grad.clone() for _, parameter in copies]
        for (_, parameter), one in zip(copies, gather(step, copies[0][0], gradients), strict=True):
            parameter.grad.copy_(one)
