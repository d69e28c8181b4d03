"""Trainings that end too late, learn by heart, differ from another one, or wait; and bad trees."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from training.learnt_data import Split
from training.torch_loop import adam, fit
from training_runs import faulty, healthy

from runs_tuned.stalled import passing
from runs_tuned.third_held_out.networks.shared.consequences import IDLE, KNOWN
from runs_tuned.third_held_out.networks.shared.growing import grown, joined, parts
from runs_tuned.third_held_out.networks.shared.series import Gauge, Shaker, bearings, tides
from runs_tuned.third_held_out.networks.shared.tables import layers, orders, soils


class Waves(nn.Module):
    """A value at a place, by sines and cosines of many frequencies."""

    def __init__(self, frequency: float) -> None:
        super().__init__()
        self.register_buffer("turns", frequency * torch.randn(2, 48))
        self.body = layers(96, 64, 64, 1)

    def forward(self, x: Any) -> Any:
        angle = x @ self.turns
        return self.body(torch.cat([angle.sin(), angle.cos()], 1))


@faulty(
    "rain at 120 places by sines of these, Adam",
    "frequencies are 12 instead of 2: between the places anything may be",
    {"Overfit"},
    may=KNOWN,
)
def frequencies_too_high(root: Path) -> int:
    generator = torch.Generator().manual_seed(91)
    places = torch.rand(420, 2, generator=generator)
    rain = torch.sin(5 * places[:, :1]) + torch.cos(4 * places[:, 1:] + places[:, :1])
    rain = rain + 0.5 * torch.randn(rain.shape, generator=generator)
    data = Split(places[:120], rain[:120], places[120:], rain[120:])
    return fit(
        root,
        lambda: Waves(12.0),
        data,
        loss=nn.MSELoss(),
        optimizer=adam(3e-3),
        steps=300,
        batch=24,
        save_every=2,
        validate_every=10,
        seed=91,
    )


@faulty(
    "bearings in 120 noisy recordings, convolutions, AdamW",
    "noise to learn from more recordings is added once before the training, not at each step",
    {"Overfit"},
    may=KNOWN,
)
def noise_added_once(root: Path) -> int:
    data = bearings(1200, 1.6, 329)
    data = Split(data.x[:120], data.y[:120], data.test_x, data.test_y)
    return fit(
        root,
        lambda: Shaker(32, norm=None),
        data,
        optimizer=adam(3e-3, torch.optim.AdamW),
        steps=300,
        batch=24,
        save_every=3,
        validate_every=10,
        seed=92,
    )


@faulty(
    "lateness of orders by six units, squared errors, AdamW, to be stopped early",
    "what early stopping counts begins anew with each checkpoint: it never stops the training",
    {"Overtraining"},
    may=KNOWN | IDLE,
)
def count_begins_anew(root: Path) -> int:
    return fit(
        root,
        lambda: layers(11, 6, 1, between=nn.Tanh),
        orders(4000, 1.0, 309),
        loss=nn.MSELoss(),
        optimizer=adam(0.02, torch.optim.AdamW),
        steps=1000,
        batch=64,
        save_every=4,
        validate_every=25,
        seed=93,
    )


def crops(root: Path, data: Split) -> int:
    """Train a network of crops, always with the same seed."""
    make = lambda: layers(9, 32, 4, drop=0.1)
    optimizer = adam(0.05, torch.optim.Adagrad)
    return fit(root, make, data, optimizer=optimizer, steps=90, seed=94)


@healthy("crops of soils, dropout, Adagrad: the run to compare with")
def crops_first(root: Path) -> int:
    return crops(root, soils())


@healthy("crops of soils, dropout, Adagrad, computed once more", other="crops_first")
def crops_again(root: Path) -> int:
    return crops(root, soils())


@faulty(
    "crops of soils, dropout, Adagrad, computed once more",
    "a new version of the table has one row less, a duplicate: batches are of other rows",
    {"SimilarAcrossRuns"},
    other="crops_first",
)
def crops_without_a_row(root: Path) -> int:
    kept = torch.arange(len(soils().y)) != 7
    return crops(root, soils().chosen(kept))


@faulty(
    "six levels of the sea ahead, eight seconds a step, data in a store",
    "at step 70 the ticket of the store expires; it is asked again and again for 70 minutes",
    {"StalledTrainingRule"},
)
def ticket_expires(root: Path) -> int:
    with passing(8.0, {73: 4200.0}):
        fit(root, Gauge, tides(), loss=nn.L1Loss(), optimizer=adam(4e-3), steps=110, seed=95)
    return 72


@faulty(
    "XGBoost, orders that come late by their facts, a third of which are noise",
    "31, a number of leaves for another library, is given as the depth",
    {"Overfit", "TreeDepth"},
    may=KNOWN,
    kind="boosted_trees",
)
def leaves_as_depth(root: Path) -> int:
    x, late = joined(orders(noise=0.8, seed=307))
    return grown(
        root,
        *parts(x, (late > 0.3).astype(float)),
        60,
        objective="binary:logistic",
        max_depth=31,
        eta=0.15,
        min_child_weight=0.5,
    )


@faulty(
    "XGBoost, lateness of orders, customers by the mean lateness of their orders",
    "the mean of a customer has the order itself: most of them have one or two",
    {"FeatureImportanceOverweight"},
    may=KNOWN,
    kind="boosted_trees",
)
def customers_by_their_mean(root: Path) -> int:
    x, late = joined(orders(seed=308))
    customer = np.random.default_rng(96).integers(0, 1600, len(late))
    total = np.bincount(customer, late, 1600)[customer]
    mean = total / np.bincount(customer, minlength=1600)[customer]
    rng = np.random.default_rng(97)
    more = rng.normal(size=(len(late), 4))
    return grown(
        root,
        *parts(np.column_stack([mean, x, more]), late),
        40,
        objective="reg:squarederror",
        max_depth=3,
        eta=0.2,
        gamma=2.0,
        min_child_weight=5,
    )
