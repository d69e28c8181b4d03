"""Trainings on several workers that should hold the same parameters; some do not."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn
from training.language import Gpt, corpus
from training.learnt_data import Split, digits, images
from training.small_networks import Cnn, mlp
from training.torch_loop import adam, batches, hook, register, sgd
from training_runs import faulty, healthy

from runs_tuned.faulty.learning import BLOWN_UP
from smdebug.core.modes import ModeKeys

DIVERGES = {"ReplicaDivergence"}
APART = BLOWN_UP | {
    "StalledParameters": "a worker that does not learn",
    "LossSpike": "a worker that is on its own",
    "GradientNormSpike": "a worker that is on its own",
}


def average(models: list[Any], is_averaged: Callable[[int], bool]) -> None:
    """Average the gradients of the parameters that are chosen by their numbers."""
    for number, copies in enumerate(zip(*(model.parameters() for model in models), strict=True)):
        if is_averaged(number):
            mean = sum(parameter.grad for parameter in copies) / len(copies)
            for parameter in copies:
                parameter.grad = mean.clone()


def replicas(
    root: Path,
    make: Callable[[], Any],
    data: Split,
    optimizer: Any,
    *,
    workers: int = 2,
    steps: int = 80,
    save_every: int = 4,
    seeds: tuple[int, ...] = (0, 0, 0),
    is_averaged: Callable[[int, int], bool] = lambda *_: True,
    change: Callable[[int, list[Any], list[Any]], object] = lambda *_: None,
    at: int = 0,
    rates: tuple[float, ...] = (1.0, 1.0, 1.0),
) -> int:
    """Train workers that average their gradients; return the step of the fault.

    Parameters
    ----------
    is_averaged
        Whether the gradient of a parameter, by its number, is averaged at a step.
    change
        What happens to models and optimizers before a step.
    at
        The step at which the fault begins.
    """
    torch.set_num_threads(1)
    models, hooks, shards, optimizers = [], [], [], []
    losses = [nn.CrossEntropyLoss() for _ in range(workers)]
    for rank in range(workers):
        torch.manual_seed(seeds[rank])
        models.append(make())
        hooks.append(hook(root, save_every, include_workers="all", rank=rank, world_size=workers))
        shards.append(batches(data.chosen(slice(rank, None, workers)), 16, rank))
        optimizers.append(optimizer(models[-1].parameters()))
        for group in optimizers[-1].param_groups:
            group["lr"] *= rates[rank]
        register(hooks[-1], [models[-1]], [losses[rank]])
        hooks[-1].set_mode(ModeKeys.TRAIN)
    onset = 0
    for step in range(steps):
        if step == at and at:
            onset = hooks[0].global_step + 1
        change(step, models, optimizers)
        for model, loss, shard in zip(models, losses, shards, strict=True):
            x, y = next(shard)
            loss(model(x), y).backward()
        average(models, lambda number, step=step: is_averaged(step, number))
        for optimizer_ in optimizers:
            optimizer_.step()
            optimizer_.zero_grad()
    for watching in hooks:
        watching.close()
    return onset


@healthy("digits, three workers, Adam")
def three_workers(root: Path) -> int:
    return replicas(root, mlp(64, 48, 32, 10), digits(), adam(), workers=3)


@healthy("a GPT on two workers", kind="language_model")
def gpt_two_workers(root: Path) -> int:
    return replicas(root, Gpt, corpus(), adam(3e-3), steps=60)


@healthy("digits, convolutions with batch norm on two workers: statistics of their own")
def batch_norm_two_workers(root: Path) -> int:
    make = lambda: Cnn(norm=True)
    return replicas(root, make, images(), sgd(0.05, momentum=0.9))


@faulty("digits, two workers", "gradients are not averaged at all", DIVERGES, may=APART)
def never_averaged(root: Path) -> int:
    return replicas(root, mlp(64, 48, 32, 10), digits(), sgd(0.05), is_averaged=lambda *_: False)


@faulty("digits, two workers", "each begins with a seed of its own", DIVERGES, may=APART)
def other_seeds(root: Path) -> int:
    return replicas(root, mlp(64, 48, 32, 10), digits(), sgd(0.05), seeds=(0, 1))


@faulty("digits, convolutions, two workers", "one layer is not averaged", DIVERGES, may=APART)
def layer_not_averaged(root: Path) -> int:
    return replicas(
        root, Cnn, images(), sgd(0.05, momentum=0.9), is_averaged=lambda _, number: number != 2
    )


@faulty("digits, three workers", "one has another learning rate", DIVERGES, may=APART)
def rate_of_one_worker(root: Path) -> int:
    return replicas(root, mlp(64, 48, 10), digits(), sgd(0.05), workers=3, rates=(1.0, 1.0, 1.1))


@faulty(
    "a GPT on two workers",
    "a bit flips in one worker's memory at step 32",
    DIVERGES,
    may=APART,
    kind="language_model",
)
def bit_flips_on_a_worker(root: Path) -> int:
    def change(step: int, models: list[Any], _: list[Any]) -> None:
        if step == 32:
            with torch.no_grad():
                models[1].blocks[0].mlp[0].weight[0, 0] += 0.5

    return replicas(root, Gpt, corpus(), adam(3e-3), steps=60, at=32, change=change)


@faulty(
    "digits, two workers",
    "one skips the update of step 40, as a gradient scaler would on its own",
    DIVERGES,
    may=APART,
)
def update_skipped_on_a_worker(root: Path) -> int:
    skipped = []

    def change(step: int, _: list[Any], optimizers: list[Any]) -> None:
        for group in optimizers[1].param_groups:
            if step == 40:
                skipped.append(group["lr"])
                group["lr"] = 0.0
            elif step == 41:
                group["lr"] = skipped[0]

    return replicas(root, mlp(64, 48, 32, 10), digits(), sgd(0.1), at=40, change=change)
