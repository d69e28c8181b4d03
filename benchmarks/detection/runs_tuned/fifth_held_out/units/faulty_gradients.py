"""Faulty trainings of gradients: those that vanish, and numbers that are none."""

from pathlib import Path
from typing import Any

import torch
from torch import nn
from training.torch_loop import adam, batches, fit, sgd, validate, watched
from training_runs import faulty

from runs_tuned.fifth_held_out.units.shared.consequences import IDLE, LOUD
from runs_tuned.fifth_held_out.units.shared.pictures import (
    GALAXIES,
    TREMORS,
    Scope,
    galaxies,
    pairs_of_digits,
    tremors,
)
from runs_tuned.fifth_held_out.units.shared.tables import bridges, cheeses, layers


class Squashed(nn.Module):
    """Scales groups of eight units to a length below 1: small ones to their square."""

    def forward(self, x: Any) -> Any:
        groups = x.unflatten(1, (-1, 8))
        square = (groups**2).sum(2, keepdim=True)
        return (groups * square.sqrt() / (1 + square)).flatten(1)


@faulty(
    "cheeses by ten layers of capsules, momentum",
    "capsules are squashed behind each layer: what is small is squared ten times over",
    {"VanishingGradient"},
    may=IDLE,
)
def squashed_ten_times(root: Path) -> int:
    make = lambda: layers(10, *[32] * 10, 4, act=Squashed)
    optimizer = sgd(0.05, momentum=0.9)
    return fit(root, make, cheeses(1500, 1.4, 1071), optimizer=optimizer, steps=150, seed=51)


class Chosen(nn.Module):
    """Three operations for each of two stages, mixed by a softmax that is to choose one."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.stem, self.head = nn.Conv1d(2, width, 8, 4, 2), nn.Linear(width, TREMORS)
        self.stages = nn.ModuleList(
            nn.ModuleList(nn.Conv1d(width, width, size, padding=size // 2) for size in (3, 5, 9))
            for _ in range(2)
        )
        self.votes = nn.Parameter(torch.tensor([[0.1, 0.6, -0.5], [-0.4, 0.0, 0.7]]))

    def forward(self, x: Any) -> Any:
        x = self.stem(x)
        for stage, votes in zip(self.stages, self.votes, strict=True):
            shares = (votes / 0.02).softmax(0)
            x = sum(share * one(x) for share, one in zip(shares, stage, strict=True)).relu()
        return self.head(x.mean(2))


@faulty(
    "tremors, which of three convolutions suits each stage is to be found while they learn, Adam",
    "the temperature begins at 0.02, where it should end: one of them has it all from the start",
    {"VanishingGradient"},
    may=IDLE,
)
def chosen_from_the_start(root: Path) -> int:
    data = tremors(1100, 1.5, 1072)
    return fit(root, Chosen, data, optimizer=adam(3e-3), steps=150, save_every=3, seed=52)


class Share(torch.autograd.Function):
    """Passes values on as they are, and back only a share of the gradient."""

    @staticmethod
    def forward(ctx: Any, x: Any, share: float) -> Any:
        ctx.share = share
        return x.clone()

    @staticmethod
    def backward(ctx: Any, *slopes: Any) -> Any:
        return ctx.share * slopes[0], None


class Handed(nn.Module):
    """A trunk that learns less and less, and a head."""

    def __init__(self) -> None:
        super().__init__()
        self.trunk = nn.Sequential(nn.Flatten(), *layers(128, 48, 32, act=nn.SiLU))
        self.head = layers(32, 16, 1, act=nn.SiLU)
        self.share = 1.0

    def forward(self, x: Any) -> Any:
        if self.training:
            self.share *= 0.7
        return self.head(Share.apply(self.trunk(x), self.share))


@faulty(
    "which of two digits is the greater, a trunk that is to learn 0.7 times as much in each epoch",
    "its share falls in each step: after 30 of them it is below a ten-thousandth",
    {"VanishingGradient"},
    may=IDLE,
)
def trunk_fades_by_steps(root: Path) -> int:
    return fit(
        root,
        Handed,
        pairs_of_digits(1500, 1073),
        loss=nn.BCEWithLogitsLoss(),
        optimizer=sgd(0.05, momentum=0.9),
        steps=160,
        seed=53,
    )


class Rooted(nn.Module):
    """Takes the root of what is positive and leaves the rest at zero, between layers."""

    def forward(self, x: Any) -> Any:
        return torch.where(x > 0, x.sqrt(), 0.0)


@faulty(
    "how far bridges bend by layers with roots of their positive part, Adam",
    "where() hides roots of negative numbers, but not their slopes: weights become no numbers",
    {"ExplodingTensor"},
    may=LOUD | IDLE,
)
def slope_behind_where(root: Path) -> int:
    return fit(
        root,
        lambda: layers(8, 32, 32, 1, act=Rooted),
        bridges(1500, 0.3, 1074),
        loss=nn.MSELoss(),
        optimizer=adam(3e-3),
        steps=110,
        seed=54,
    )


class Waves(nn.Module):
    """The deviation of six pieces of a tremor, from the mean of squares, and layers behind."""

    def __init__(self) -> None:
        super().__init__()
        self.wide = nn.Conv1d(2, 12, 7, 2, 3)
        self.body = layers(24, 32, TREMORS)

    def forward(self, x: Any) -> Any:
        pieces = x.unflatten(2, (6, 16))
        spread = (pieces**2).mean(3) - pieces.mean(3) ** 2
        seen = self.wide(x - x.mean(2, keepdim=True)).relu().mean(2)
        return self.body(torch.cat([spread.sqrt().flatten(1), seen], 1))


@faulty(
    "tremors by the spread of their pieces, AdamW; a new station comes in at step 60",
    "its zero lies at 8000, and the mean of squares less the square of the mean falls below zero",
    {"ExplodingTensor", "LossNotDecreasing"},
    may=LOUD | IDLE,
)
def spread_below_zero(root: Path) -> int:
    torch.manual_seed(55)
    data, loss, model = tremors(1100, 1.4, 1075), nn.CrossEntropyLoss(), Waves()
    optimizer = torch.optim.AdamW(model.parameters(), 4e-3)
    onset = 0
    with watched(root, model, losses=[loss]) as watching:
        for number, (x, y) in zip(range(150), batches(data, 32, 55), strict=False):
            onset = watching.global_step + 1 if number == 60 else onset
            station = (torch.arange(len(x)) % 4 == 0) * (number >= 60) * 8000.0
            optimizer.zero_grad()
            loss(model(x + station[:, None, None]), y).backward()
            optimizer.step()
            if number % 20 == 19:
                validate(watching, model, loss, data)
    return onset


class Power(nn.Module):
    """The mean of a learnt power over all places, and its root: between mean and maximum."""

    def __init__(self) -> None:
        super().__init__()
        self.power = nn.Parameter(torch.tensor(3.0))

    def forward(self, x: Any) -> Any:
        return (x**self.power).mean((2, 3)) ** (1 / self.power)


class Measured(Scope):
    """Convolutions, a learnt power of their outputs over all places, and a linear layer."""

    def __init__(self) -> None:
        super().__init__(GALAXIES, 12, nn.BatchNorm2d, nn.LeakyReLU)
        self.pool = Power()

    def forward(self, x: Any) -> Any:
        return self.head(self.pool(self.body(x)))


@faulty(
    "galaxies by convolutions with leaky units, pooled by a learnt power, Nesterov",
    "what is pooled is not cut off at zero: powers of negative numbers have no logarithm",
    {"ExplodingTensor", "LossNotDecreasing"},
    may=LOUD | IDLE,
)
def power_of_negatives(root: Path) -> int:
    optimizer = sgd(0.05, momentum=0.9, nesterov=True)
    data = galaxies(1000, 1.2, 1076)
    return fit(root, Measured, data, optimizer=optimizer, steps=110, save_every=3, seed=56)
