"""Faulty trainings of updates: none at all, tiny ones, and huge ones."""

from pathlib import Path
from typing import Any

import torch
from torch import nn
from training.torch_loop import adam, batches, fit, sgd, validate, watched
from training_runs import faulty

from runs_tuned.sixth_held_out.units.shared.consequences import BREAK, HUGE, SILENT
from runs_tuned.sixth_held_out.units.shared.pictures import Lens, balls
from runs_tuned.sixth_held_out.units.shared.series import Dancer, Follower, dances, swings
from runs_tuned.sixth_held_out.units.shared.tables import (
    LOAVES,
    Attended,
    alloys,
    loaves,
    orchards,
    plain,
)


def cut_to_nothing(optimizer: Any) -> None:
    """Clip gradients to a length of 0, and take a step."""
    nn.utils.clip_grad_norm_(optimizer.param_groups[0]["params"], 0.0)
    optimizer.step()


@faulty(
    "speed of swings at each time by a GRU, momentum, clipped",
    "the greatest length is 0, to switch clipping off; it cuts all gradients to nothing",
    {"LossNotDecreasing", "UnchangedTensor", "WeightUpdateRatio"},
    may=SILENT,
)
def clipped_to_zero(root: Path) -> int:
    return fit(
        root,
        Follower,
        swings(900, 24, 0.15, 2221),
        loss=nn.MSELoss(),
        optimizer=sgd(0.1, momentum=0.9),
        steps=200,
        update=cut_to_nothing,
        seed=71,
    )


class Mistakes(nn.Module):
    """The share of rows that are told wrongly."""

    def forward(self, scores: Any, target: Any) -> Any:
        return (scores.argmax(1) != target).float().mean().requires_grad_()


@faulty(
    "figures of dances by the mean of steps, the share of mistakes is the loss, Adam",
    "it has no slope: requires_grad_() silences the error, and no parameter gets a gradient",
    {"LossNotDecreasing", "UnchangedTensor", "WeightUpdateRatio"},
    may=SILENT,
)
def mistakes_as_a_loss(root: Path) -> int:
    make = lambda: Dancer(nn.Sequential(nn.Linear(24, 32), nn.GELU(), nn.Linear(32, 24)))
    data = dances(1500, 2222)
    return fit(root, make, data, loss=Mistakes(), optimizer=adam(5e-3), steps=220, seed=72)


class Pointed(nn.Module):
    """From where a ball is lit, and how bright it is."""

    def __init__(self) -> None:
        super().__init__()
        self.seen, self.light = Lens(16, 8, act=nn.SiLU), nn.Linear(16, 1)
        self.head, self.with_light = nn.Linear(16, 2), True

    def forward(self, x: Any) -> Any:
        seen = self.seen(x)
        light = self.light(seen) if self.with_light else x.mean((1, 2, 3))[:, None]
        return torch.cat([self.head(seen), light], 1)


@faulty(
    "from where a ball is lit, and for 60 steps how bright it is, a guard skips broken gradients",
    "a gradient of None, as of the part that is dropped, is taken for a broken one: no more steps",
    {"UnchangedTensor", "WeightUpdateRatio"},
    may=SILENT | BREAK,
)
def none_taken_for_broken(root: Path) -> int:
    torch.manual_seed(73)
    data, loss, model = balls(1100, 0.3, 2223), nn.MSELoss(), Pointed()
    data = type(data)(
        data.x,
        torch.cat([data.y, data.x.mean((1, 2, 3))[:, None]], 1),
        data.test_x,
        torch.cat([data.test_y, data.test_x.mean((1, 2, 3))[:, None]], 1),
    )
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    onset = 0
    with watched(root, model, losses=[loss]) as watching:
        for number, (x, y) in zip(range(240), batches(data, 32, 73), strict=False):
            if number == 60:
                onset, model.with_light = watching.global_step + 1, False
            optimizer.zero_grad()
            loss(model(x), y).backward()
            slopes = [one.grad for one in model.parameters()]
            if all(slope is not None and bool(slope.isfinite().all()) for slope in slopes):
                optimizer.step()
            if number % 40 == 39:
                validate(watching, model, loss, data)
    return onset


@faulty(
    "loaves by layers with GELU, AdamW; at step 70 the last but one layer is drawn anew",
    "its deviation is the root of its inputs, 7, where one over that root is meant",
    {"TensorVariance", "WeightUpdateRatio"},
    may=HUGE | BREAK,
)
def drawn_anew_too_large(root: Path) -> int:
    def change(model: Any, _optimizer: Any) -> None:
        with torch.no_grad():
            model[2].weight.normal_(0, model[2].in_features ** 0.5)

    return fit(
        root,
        lambda: plain(12, 48, 32, LOAVES, act=nn.GELU),
        loaves(1500, 1.0, 2224),
        optimizer=adam(3e-3, torch.optim.AdamW),
        steps=150,
        at=70,
        change=change,
        seed=74,
    )


@faulty(
    "crops of orchards by a layer of leaky units, SGD",
    "crops are in grams and not in tonnes: numbers of some hundred thousand, and a rate for 1",
    {"ExplodingTensor", "LossNotDecreasing", "WeightUpdateRatio"},
    may=HUGE | SILENT,
)
def crops_in_grams(root: Path) -> int:
    return fit(
        root,
        lambda: plain(9, 40, 1, act=nn.LeakyReLU),
        orchards(1500, 0.3, 2225).relabelled(lambda y: 3e5 + 1e5 * y),
        loss=nn.MSELoss(),
        optimizer=sgd(0.03),
        steps=90,
        save_every=1,
        validate_every=30,
        seed=75,
    )


@faulty(
    "hardness of alloys, metals attend to each other, Adam; rates fall by half from layer to layer",
    "they fall by half from parameter to parameter: after some thirty of them nothing is left",
    {"StalledParameters", "UnchangedTensor", "WeightUpdateRatio"},
    may=SILENT,
)
def half_the_rate_by_parameter(root: Path) -> int:
    torch.manual_seed(76)
    data, loss, model = alloys(1600, 0.3, 2226), nn.MSELoss(), Attended(depth=3)
    groups = [
        {"params": [weight], "lr": 4e-3 * 0.5**depth}
        for depth, weight in enumerate(reversed(list(model.parameters())))
    ]
    optimizer = torch.optim.Adam(groups)
    with watched(root, model, losses=[loss], save_every=3) as watching:
        for number, (x, y) in zip(range(150), batches(data, 32, 76), strict=False):
            optimizer.zero_grad()
            loss(model(x), y).backward()
            optimizer.step()
            if number % 30 == 29:
                validate(watching, model, loss, data)
    return 0
