"""Trainings that hang, and workers that no longer train the same model."""

import functools
from pathlib import Path
from typing import Any

import numpy as np
import torch
import training_runs
from torch import nn
from torch.nn import functional
from training.boosting import boost

from runs_tuned.fourth_held_out.losses_and_optimizers.shared.consequences import APART
from runs_tuned.fourth_held_out.losses_and_optimizers.shared.lessons import (
    LETTERS,
    TOPICS,
    WORDS,
    addresses,
    dice,
    letters_to_editors,
    lifts,
    plaids,
    power,
)
from runs_tuned.fourth_held_out.losses_and_optimizers.shared.loops import (
    clock,
    cosine,
    dealt,
    learn,
)
from runs_tuned.fourth_held_out.losses_and_optimizers.shared.networks import (
    Bag,
    Dilated,
    Mixer,
    Weaver,
    Writer,
)
from runs_tuned.fourth_held_out.losses_and_optimizers.shared.workers import together

faulty = training_runs.faulty
of_language = functools.partial(faulty, kind="language_model")
MINUTE = 60.0

# Trainings that hang


@of_language(
    "a decoder of addresses, AdamW, three seconds a step",
    "a breakpoint was left where a batch is longer than usual: it waits for a key for 13 hours",
    {"StalledTrainingRule"},
)
def breakpoint_left(root: Path) -> int:
    torch.manual_seed(740)
    model = Writer(len(LETTERS), depth=1)
    with clock(3.0, {72: 13 * 60 * MINUTE}):
        learn(
            root,
            model,
            lambda batch: functional.cross_entropy(model(batch[0]), batch[1]),
            dealt(*addresses(800, 740), size=16, seed=740),
            torch.optim.AdamW(model.parameters(), 3e-3),
            steps=140,
            schedule=cosine(10, 150),
            clip=1.0,
        )
    return 71


@faulty(
    "defects of lifts by boosted trees, twelve seconds a round, pages of the table on a disk",
    "the disk is full of another job's files: writing a page is tried again for 55 minutes",
    {"StalledTrainingRule"},
    kind="boosted_trees",
)
def disk_full_of_others(root: Path) -> int:
    x, y = lifts(900, 741)
    with clock(12.0, {19: 55 * MINUTE}):
        boost(
            root, np.asarray(x), np.asarray(y[:, 0]).astype(int), max_depth=2, eta=0.25, rounds=40
        )
    return 18


@faulty(
    "power of a town on two workers that may come and go, Adam, half a minute a step",
    "the memory of the second one is full at step 36, and it is killed; the first goes on alone",
    {"StalledTrainingRule"},
)
def second_worker_killed(root: Path) -> int:
    torch.manual_seed(742)
    model = Dilated()
    with clock(15.0):
        together(
            root,
            model,
            lambda model, batch: functional.mse_loss(model(batch[0]), batch[1]),
            power(600, 742),
            functools.partial(torch.optim.Adam, lr=3e-3),
            steps=200,
            lives=lambda step, rank: rank == 0 or step < 36,
        )
    return 36


# Workers that no longer train the same model


@faulty(
    "topics of letters on three workers, a mean of embeddings, SGD with momentum",
    "gradients of the embedding are sparse, and what is sparse is not sent",
    {"ReplicaDivergence"},
    may=APART,
)
def sparse_gradients_stay(root: Path) -> int:
    torch.manual_seed(743)
    model = Bag(WORDS, TOPICS)

    def gather(_: int, name: str, gradients: list[Any]) -> list[Any]:
        if name.startswith("embed"):
            return gradients
        return [torch.stack(gradients).mean(0)] * len(gradients)

    return together(
        root,
        model,
        lambda model, batch: functional.cross_entropy(model(batch[0]), batch[1]),
        letters_to_editors(900, 743),
        functools.partial(torch.optim.SGD, lr=0.15, momentum=0.9),
        workers=3,
        size=16,
        steps=110,
        gather=gather,
    )


@faulty(
    "woven patterns on two workers, AdamW; filters that hardly move are drawn again at step 44",
    "each worker draws new filters with random numbers of its own",
    {"ReplicaDivergence"},
    may=APART,
)
def filters_drawn_by_each(root: Path) -> int:
    torch.manual_seed(744)
    model = Weaver()
    random = [dice(744), dice(745)]

    def after(step: int, models: list[Any]) -> None:
        if step != 43:
            return
        for one, numbers in zip(models, random, strict=True):
            weight = one.body[3].weight
            with torch.no_grad():
                weakest = weight.flatten(1).norm(dim=1).argsort()[:4]
                weight[weakest] = 0.1 * torch.randn(weight[weakest].shape, generator=numbers)

    return together(
        root,
        model,
        lambda model, batch: functional.cross_entropy(model(batch[0]), batch[1]),
        plaids(800, 744),
        functools.partial(torch.optim.AdamW, lr=4e-3, weight_decay=0.02),
        size=20,
        steps=110,
        after=after,
        at=44,
    )


@faulty(
    "woven patterns by a mixer on two workers, Adam; the largest tenth of a gradient is sent",
    "each worker adds what the other sent to its own gradient, of which nothing was left out",
    {"ReplicaDivergence"},
    may=APART,
)
def own_gradient_left_whole(root: Path) -> int:
    torch.manual_seed(745)
    model = Mixer()

    def sent(gradient: Any) -> Any:
        limit = gradient.abs().flatten().kthvalue(max(1, int(0.9 * gradient.numel()))).values
        return torch.where(gradient.abs() >= limit, gradient, 0.0)

    def gather(_: int, __: str, gradients: list[Any]) -> list[Any]:
        first, second = gradients
        return [(first + sent(second)) / 2, (sent(first) + second) / 2]

    return together(
        root,
        model,
        lambda model, batch: nn.functional.cross_entropy(model(batch[0]), batch[1]),
        plaids(800, 745),
        functools.partial(torch.optim.Adam, lr=2e-3),
        size=20,
        steps=100,
        save_every=4,
        gather=gather,
    )
