"""Trainings that do not end, and weights that grow."""

import math
from pathlib import Path
from typing import Any

import torch
import training_runs
from torch import nn
from torch.nn import functional

from runs_held_out.losses_and_optimizers.shared.consequences import IDLE, THROWN
from runs_held_out.losses_and_optimizers.shared.data import (
    FILMS,
    USERS,
    WORDS,
    films,
    glyphs,
    load,
    opinions,
    species,
    subscribers,
)
from runs_held_out.losses_and_optimizers.shared.loop import by, run, served
from runs_held_out.losses_and_optimizers.shared.models import Cnn, Factors, WordMean, dense

faulty = training_runs.faulty
CONVERGED = IDLE | {"LearningRate": "the schedule ends long before the training"}

# Trainings that do not end


@faulty(
    "electric load of the next hours by a linear layer, Adam",
    "a hundred epochs are left from a deep network: after ten no loss falls any more",
    {"Overtraining"},
    may=CONVERGED,
)
def hundred_epochs_of_a_line(root: Path) -> int:
    torch.manual_seed(8160)
    model = nn.Sequential(nn.Flatten(), nn.Linear(36, 3))
    return run(
        root,
        model,
        by(model, functional.mse_loss),
        served(*load(600, 8160, noise=0.4), size=100, seed=8160),
        torch.optim.Adam(model.parameters(), 1e-2),
        steps=600,
        every=3,
        test=load(400, 8161, noise=0.4),
        test_every=12,
    )


@faulty(
    "species of flowers by softmax regression, Adam; stops after six validations "
    "without a better loss",
    "the count of validations without a better loss is set to zero in each round: it never stops",
    {"Overtraining"},
    may=CONVERGED,
)
def patience_begins_anew(root: Path) -> int:
    torch.manual_seed(8162)
    model = nn.Sequential(nn.Linear(9, 5))
    best = math.inf

    def validated(loss: float) -> bool:
        nonlocal best
        without = 0
        if loss < best:
            best = loss
        else:
            without += 1
        return without >= 6

    return run(
        root,
        model,
        by(model),
        served(*species(3000, 8162, spread=0.9), size=150, seed=8162),
        torch.optim.Adam(model.parameters(), 2e-2),
        steps=700,
        every=3,
        test=species(600, 8163, spread=0.9),
        test_every=15,
        validated=validated,
    )


@faulty(
    "which subscribers leave by dense layers, AdamW, the rate falls to a tenth each 60 steps",
    "the steps of the schedule were meant as epochs: the rate is almost nothing after a third of "
    "the training, which goes on",
    {"Overtraining"},
    may=CONVERGED,
)
def steps_down_too_early(root: Path) -> int:
    torch.manual_seed(8164)
    model = dense(14, 32, 1, drop=0.1)
    optimizer = torch.optim.AdamW(model.parameters(), 5e-3)
    return run(
        root,
        model,
        by(model, functional.binary_cross_entropy_with_logits),
        served(*subscribers(4000, 8164), size=100, seed=8164),
        optimizer,
        steps=600,
        every=3,
        schedule=torch.optim.lr_scheduler.StepLR(optimizer, 60, 0.1),
        test=subscribers(1000, 8165),
        test_every=15,
    )


# Weights that grow


@faulty(
    "opinions by the mean of words, Adam, embeddings with a rate of their own",
    "the rate of the embeddings is 0.3, as it was with SGD, and not 0.003",
    {"NormGrowth"},
    may=THROWN,
)
def rate_of_sgd_for_embeddings(root: Path) -> int:
    torch.manual_seed(8166)
    model = WordMean(WORDS, 2, drop=0.3)
    nn.init.normal_(model.words.weight, std=0.02)
    groups = [
        {"params": model.words.parameters(), "lr": 0.3},
        {"params": model.layers.parameters(), "lr": 3e-3},
    ]
    return run(
        root,
        model,
        by(model),
        served(*opinions(2400, 8166, 0.15), size=32, seed=8166),
        torch.optim.Adam(groups),
        steps=200,
        every=2,
        test=opinions(400, 8167, 0.15),
        test_every=50,
    )


@faulty(
    "films of users by factors, pairs of films, Adam",
    "the loss of a pair is the plain difference of the scores, which has no least value: factors "
    "grow for ever",
    {"NormGrowth"},
    may=THROWN,
)
def difference_without_a_bound(root: Path) -> int:
    torch.manual_seed(8168)
    model = Factors(USERS, FILMS)

    def loss(batch: Any) -> Any:
        user, liked, other = batch
        return (model(user, other) - model(user, liked)).mean()

    return run(
        root,
        model,
        loss,
        served(*films(6000, 8168), size=128, seed=8168),
        torch.optim.Adam(model.parameters(), 2e-2),
        steps=220,
        every=2,
        test=films(1000, 8169),
        test_every=55,
    )


@faulty(
    "glyphs by convolutions with batch norm, SGD with momentum, decay by hand in the loss",
    "the squares of the weights are taken off the loss, not added to it",
    {"NormGrowth"},
    may=THROWN,
)
def squares_taken_off_the_loss(root: Path) -> int:
    torch.manual_seed(8170)
    model = Cnn(8)
    weights = [each for each in model.parameters() if each.ndim > 1]

    def loss(batch: Any) -> Any:
        error = functional.cross_entropy(model(batch[0]), batch[1])
        return error - 5e-3 * sum(each.square().sum() for each in weights)

    return run(
        root,
        model,
        loss,
        served(*glyphs(1600, 8170, noise=0.9), size=40, seed=8170),
        torch.optim.SGD(model.parameters(), 0.1, momentum=0.9),
        steps=260,
        every=2,
    )
