"""Workers: a training of one model on several workers, which average chosen gradients."""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn
from training.torch_loop import hook

from runs_tuned.third_held_out.sequences.shared.loops import dealt
from smdebug.core.modes import ModeKeys


def work_together(
    root: Path,
    model: Any,
    x: Any,
    y: Any,
    optimizer: Callable[[Any], Any],
    *,
    workers: int = 2,
    steps: int = 100,
    save_every: int = 2,
    size: int = 12,
    is_sent: Callable[[str], bool] = lambda _: True,
    schedule: Callable[[int], float] = lambda _: 1.0,
    before: Callable[[int, list[Any]], object] = lambda *_: None,
    at: int = 0,
    clip: float = 1.0,
) -> int:
    """Train copies of a model on parts of the rows; return the step at which the fault begins.

    Parameters
    ----------
    is_sent
        Whether the gradient of a parameter is averaged, by its name.
    before
        What happens to the models before a step.
    at
        The step at which the fault begins.
    """
    torch.set_num_threads(1)
    models = [model, *(copy.deepcopy(model) for _ in range(workers - 1))]
    optimizers = [optimizer(one.parameters()) for one in models]
    rates = [group["lr"] for group in optimizers[0].param_groups]
    hooks, parts = [], []
    for rank, one in enumerate(models):
        several = {"include_workers": "all", "rank": rank, "world_size": workers}
        hooks.append(hook(root, save_every, **several))
        hooks[-1].register_module(one, counts_steps=False)
        hooks[-1].set_mode(ModeKeys.TRAIN)
        parts.append(dealt(x[rank::workers], y[rank::workers], size=size, seed=rank))
    onset = 0
    for step in range(steps):
        before(step, models)
        for watching in hooks:
            watching.begin_step()
        onset = hooks[0].global_step if at and step == at else onset
        for one, watching, part in zip(models, hooks, parts, strict=True):
            rows, targets = next(part)
            value = nn.functional.cross_entropy(one(rows), targets)
            watching.record_tensor_value("loss", value)
            value.backward()
        _average(models, is_sent)
        for one, optimizer_ in zip(models, optimizers, strict=True):
            for group, rate in zip(optimizer_.param_groups, rates, strict=True):
                group["lr"] = rate * schedule(step)
            nn.utils.clip_grad_norm_(one.parameters(), clip)
            optimizer_.step()
            optimizer_.zero_grad()
        for watching in hooks:
            watching.step()
    for watching in hooks:
        watching.close()
    return onset


def _average(models: list[Any], is_sent: Callable[[str], bool]) -> None:
    for copies in zip(*(model.named_parameters() for model in models), strict=True):
        gradients = [one.grad for name, one in copies if one.grad is not None and is_sent(name)]
        if len(gradients) == len(copies):
            mean = torch.stack(gradients).mean(0)
            for gradient in gradients:
                gradient.copy_(mean)
