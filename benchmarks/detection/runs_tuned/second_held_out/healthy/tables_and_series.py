"""Healthy trainings with tables and series."""

import math
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from training.learnt_data import Split
from training.torch_loop import adam, fit, sgd
from training_runs import healthy

from runs_tuned.second_held_out.shared.series import Forecaster, Ripples, gestures, heat
from runs_tuned.second_held_out.shared.tables import Factors, dense, ratings, rents, tickets


@healthy("tickets and their desks, layer norm and dropout, AdamW, cosine")
def tickets_by_layers(root: Path) -> int:
    make = lambda: dense(14, 40, 40, 5, norm=nn.LayerNorm, drop=0.15)
    return fit(
        root,
        make,
        tickets(),
        optimizer=adam(4e-3, torch.optim.AdamW, weight_decay=0.02),
        schedule=lambda step: 0.52 + 0.48 * math.cos(math.pi * step / 150),
        steps=150,
    )


@healthy("tickets of one desk among five, two unequal classes, RMSprop, every tenth step saved")
def tickets_of_one_desk(root: Path) -> int:
    data = tickets(apart=0.9).relabelled(lambda y: (y == 0).long())
    return fit(
        root,
        lambda: dense(14, 24, 2, act=nn.ReLU),
        data,
        optimizer=adam(1e-3, torch.optim.RMSprop),
        steps=300,
        save_every=10,
        validate_every=30,
    )


class Rates(nn.Module):
    """The Poisson likelihood of counts, given logarithms of their rates."""

    def forward(self, logs: Any, counts: Any) -> Any:
        return functional.poisson_nll_loss(logs, counts, full=True)


@healthy("visits to flats, Poisson regression, Adam, clipped")
def visits_counted(root: Path) -> int:
    random = torch.Generator().manual_seed(35)
    data = rents().relabelled(lambda y: torch.poisson((0.6 * y + 0.8).exp(), generator=random))
    make = lambda: dense(9, 32, 16, 1, act=nn.ELU)
    return fit(root, make, data, loss=Rates(), optimizer=adam(4e-3), steps=150, clip=5.0)


class Deciles(nn.Module):
    """The pinball loss of three quantiles."""

    def forward(self, output: Any, target: Any) -> Any:
        share = torch.tensor([0.1, 0.5, 0.9])
        error = target - output
        return torch.maximum(share * error, (share - 1) * error).mean()


@healthy("rents of flats, three quantiles, SGD with momentum, a rate that falls linearly")
def rents_by_quantiles(root: Path) -> int:
    return fit(
        root,
        lambda: dense(9, 48, 3, act=nn.ReLU),
        rents(noise=0.5),
        loss=Deciles(),
        optimizer=sgd(0.1, momentum=0.9),
        schedule=lambda step: 1 - step / 180,
        steps=170,
        save_every=1,
    )


@healthy("ratings of films by factors, Adagrad, few ratings of some films")
def ratings_by_factors(root: Path) -> int:
    return fit(
        root,
        lambda: Factors(width=3),
        ratings(),
        loss=nn.MSELoss(),
        optimizer=adam(0.15, torch.optim.Adagrad),
        steps=180,
        batch=100,
        save_every=2,
    )


@healthy("rents of flats by a network of one layer, ASGD, batches of 8")
def rents_by_small_batches(root: Path) -> int:
    return fit(
        root,
        lambda: dense(9, 24, 1, act=nn.Tanh),
        rents(),
        loss=nn.HuberLoss(),
        optimizer=adam(0.03, torch.optim.ASGD),
        steps=350,
        batch=8,
        save_every=3,
        validate_every=35,
    )


@healthy("heat of a furnace by a GRU, Adam, clipped, every step saved")
def heat_by_gru(root: Path) -> int:
    return fit(
        root,
        Forecaster,
        heat(),
        loss=nn.MSELoss(),
        optimizer=adam(5e-3),
        steps=150,
        clip=1.0,
        save_every=1,
    )


@healthy("gestures by an LSTM with dropout, AdamW, warm restarts of a cosine")
def gestures_by_lstm(root: Path) -> int:
    make = lambda: Forecaster(4, 28, kind=nn.LSTM, drop=0.1)
    return fit(
        root,
        make,
        gestures(),
        optimizer=adam(8e-3, torch.optim.AdamW),
        schedule=lambda step: 0.55 + 0.45 * math.cos(math.pi * (step % 70) / 70),
        steps=210,
        clip=1.0,
        save_every=3,
    )


@healthy("gestures by convolutions, a sixth of the rows of one kind, SGD, every tenth step saved")
def gestures_by_ripples(root: Path) -> int:
    data = gestures(1200, seed=177)
    rare = (data.y == 3).nonzero()[:, 0]
    kept = torch.ones(len(data.y), dtype=torch.bool)
    kept[rare[len(rare) // 2 :]] = False
    return fit(
        root,
        Ripples,
        Split(data.x[kept], data.y[kept], data.test_x, data.test_y),
        optimizer=sgd(0.1, momentum=0.9),
        steps=300,
        save_every=10,
        validate_every=30,
    )
