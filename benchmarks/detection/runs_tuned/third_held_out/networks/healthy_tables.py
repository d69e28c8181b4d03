"""Healthy trainings of tables: numbers and kinds, counts, orders and chances."""

from pathlib import Path
from typing import Any

import torch
from torch import nn
from training.torch_loop import adam, fit, sgd
from training_runs import healthy

from runs_tuned.third_held_out.networks.shared.tables import (
    Crossed,
    Lender,
    Tree,
    hires,
    layers,
    loans,
    orders,
    soils,
)


@healthy("loans by embeddings and numbers, those not paid back count thrice, AdamW, cosine")
def loans_weighed(root: Path) -> int:
    loss = nn.BCEWithLogitsLoss(pos_weight=torch.tensor(3.0))
    optimizer = adam(4e-3, torch.optim.AdamW, weight_decay=0.05)
    cosine = lambda step: 0.51 + 0.49 * torch.cos(torch.tensor(3.14159 * step / 200)).item()
    return fit(
        root,
        Lender,
        loans(),
        loss=loss,
        optimizer=optimizer,
        steps=200,
        schedule=cosine,
        save_every=5,
    )


@healthy("loans by a factorisation machine, Adagrad, a script that knows no modes")
def loans_crossed(root: Path) -> int:
    optimizer = adam(0.1, torch.optim.Adagrad)
    loss = nn.BCEWithLogitsLoss()
    return fit(
        root,
        Crossed,
        loans(),
        loss=loss,
        optimizer=optimizer,
        steps=200,
        batch=64,
        validate_every=0,
        seed=1,
    )


class Skip(nn.Module):
    """A layer with a norm that is added to what it sees."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm, self.body = nn.LayerNorm(width), layers(width, 2 * width, width)

    def forward(self, x: Any) -> Any:
        return x + self.body(self.norm(x))


@healthy("lateness of orders by residual layers, Adafactor with its own rates, clipped")
def orders_by_adafactor(root: Path) -> int:
    make = lambda: nn.Sequential(nn.Linear(11, 24), Skip(24), Skip(24), nn.Linear(24, 1))
    optimizer = adam(0.02, torch.optim.Adafactor)
    return fit(
        root, make, orders(), loss=nn.MSELoss(), optimizer=optimizer, steps=200, clip=1.0, seed=2
    )


class Spread(nn.Module):
    """How unlikely a target is, by a mean and the logarithm of a deviation."""

    def forward(self, output: Any, target: Any) -> Any:
        mean, log = output.chunk(2, 1)
        log = log.clamp(-4, 4)
        return (0.5 * ((target - mean) / log.exp()) ** 2 + log).mean()


@healthy("lateness of orders and how certain it is, a likelihood that falls below zero, Adam")
def orders_with_spread(root: Path) -> int:
    make = lambda: layers(11, 32, 32, 2, between=nn.Tanh)
    data = orders(noise=0.15, seed=305)
    return fit(
        root, make, data, loss=Spread(), optimizer=adam(5e-3), steps=260, clip=5.0, save_every=4
    )


@healthy("crops of soils by a soft tree of sigmoids, Adam, every step saved")
def soils_by_tree(root: Path) -> int:
    return fit(root, Tree, soils(), optimizer=adam(0.03), steps=160, save_every=1, seed=4)


@healthy("crops of soils, one label in six is wrong, a loss that is bounded, RAdam")
def soils_bounded(root: Path) -> int:
    class Bounded(nn.Module):
        def forward(self, output: Any, target: Any) -> Any:
            right = output.softmax(1).gather(1, target[:, None])
            return ((1 - right**0.7) / 0.7).mean()

    def wrong(labels: Any) -> Any:
        generator = torch.Generator().manual_seed(5)
        chosen = torch.rand(len(labels), generator=generator) < 1 / 6
        return torch.where(chosen, torch.randint(4, labels.shape, generator=generator), labels)

    make = lambda: layers(9, 32, 4, drop=0.2)
    optimizer = adam(0.015, torch.optim.RAdam)
    data = soils().taught(wrong)
    return fit(root, make, data, loss=Bounded(), optimizer=optimizer, steps=240, save_every=6)


@healthy("lateness of orders in four grades, a logit for each step up, Nesterov momentum, steps")
def orders_graded(root: Path) -> int:
    bounds = torch.tensor([-0.8, 0.0, 0.8])
    data = orders().relabelled(lambda late: (late > bounds).float())
    optimizer = sgd(0.1, momentum=0.9, nesterov=True)
    return fit(
        root,
        lambda: layers(11, 24, 3, between=nn.ELU),
        data,
        loss=nn.BCEWithLogitsLoss(),
        optimizer=optimizer,
        steps=180,
        schedule=lambda step: 0.3 ** (step // 60),
        save_every=3,
    )


@healthy("hires of bicycles, a Poisson likelihood, RMSprop with momentum, every tenth step saved")
def hires_counted(root: Path) -> int:
    make = lambda: layers(8, 24, 24, 1, between=nn.Softplus)
    optimizer = adam(1.5e-3, torch.optim.RMSprop, momentum=0.8)
    return fit(
        root,
        make,
        hires(),
        loss=nn.PoissonNLLLoss(),
        optimizer=optimizer,
        steps=500,
        schedule=lambda step: 0.995**step,
        save_every=10,
        validate_every=50,
    )


@healthy("hires of bicycles, logarithms and absolute errors, batches of 6, averaged SGD")
def hires_by_small_batches(root: Path) -> int:
    data = hires().relabelled(torch.log1p)
    make = lambda: layers(8, 20, 1, between=nn.GELU)
    optimizer = adam(0.03, torch.optim.ASGD)
    return fit(
        root,
        make,
        data,
        loss=nn.L1Loss(),
        optimizer=optimizer,
        steps=400,
        batch=6,
        save_every=8,
        validate_every=80,
    )


@healthy(
    "crops of soils, weights kept on their scale by weight norm, Adamax, every 20th step saved"
)
def soils_seldom_saved(root: Path) -> int:
    def make() -> Any:
        norm = nn.utils.parametrizations.weight_norm
        return nn.Sequential(norm(nn.Linear(9, 32)), nn.LeakyReLU(), norm(nn.Linear(32, 4)))

    optimizer = adam(2e-3, torch.optim.Adamax)
    return fit(
        root, make, soils(), optimizer=optimizer, steps=600, save_every=20, validate_every=100
    )
