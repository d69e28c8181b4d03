"""Trainings that learn by heart, or that go on when nothing is left to learn."""

import functools
import math
from pathlib import Path
from typing import Any

import torch
from torch import nn
from training.torch_loop import adam, fit, sgd
from training_runs import faulty

from runs_tuned.fourth_held_out.data_and_trees.shared.consequences import LEARNT
from runs_tuned.fourth_held_out.data_and_trees.shared.pictures import Viewer, tiles
from runs_tuned.fourth_held_out.data_and_trees.shared.tables import (
    Ports,
    Stairs,
    flights,
    leavers,
    plain,
    wafers,
)
from runs_tuned.fourth_held_out.data_and_trees.shared.texts import Bag, recipes


@faulty(
    "customers that leave, 160 of them, two hidden layers, Adam",
    "numbers of units and of rows in a batch are exchanged: 256 units, batches of 16, no penalty",
    {"Overfit"},
    may=LEARNT,
)
def units_and_rows_exchanged(root: Path) -> int:
    return fit(
        root,
        lambda: plain(16, 256, 256, 1),
        leavers(660, 441, share=0.4, tested=500),
        loss=nn.BCEWithLogitsLoss(),
        optimizer=adam(7e-4),
        steps=240,
        batch=16,
        save_every=2,
        validate_every=8,
        seed=41,
    )


def acquainted() -> Any:
    """Return a network that has learned three kinds of tiles from many pictures."""
    torch.manual_seed(42)
    model = Viewer(3, 3, 20)
    data = tiles(1200, 442, kinds=3)
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    for number in range(60):
        rows = torch.arange(number * 32, number * 32 + 32) % len(data.x)
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(data.x[rows]), data.y[rows]).backward()
        optimizer.step()
    model.head = nn.Linear(40, 6)
    return model


@faulty(
    "six kinds of noisy tiles by a network that knows three, 90 pictures, a quarter labelled wrong",
    "all layers are thawed at the full rate, and no epoch is the last: wrong labels are learnt",
    {"Overfit"},
    may=LEARNT,
)
def thawed_at_the_full_rate(root: Path) -> int:
    generator = torch.Generator().manual_seed(443)
    wrong = lambda y: torch.where(
        torch.rand(len(y), generator=generator) < 0.25,
        torch.randint(0, 6, (len(y),), generator=generator),
        y,
    )
    data = tiles(390, 443, tested=300, noise=0.25).taught(wrong)
    return fit(
        root,
        acquainted,
        data,
        optimizer=adam(5e-3, torch.optim.AdamW),
        steps=240,
        batch=18,
        save_every=2,
        validate_every=10,
        seed=43,
    )


@faulty(
    "noisy delays of 140 flights, residual steps, squared errors, AdamW",
    "decay and dropout are settings of a group of parameters that is empty: nothing holds back",
    {"Overfit"},
    may=LEARNT,
)
def decay_of_an_empty_group(root: Path) -> int:
    data = flights(640, 444, noise=0.8, tested=500)
    make = lambda: Stairs(10, 1, 48, 3, drop=0.0)
    return fit(
        root,
        make,
        data.of(lambda x: torch.cat([x[:, :2] / 6 - 1, x[:, 2:]], 1)),
        loss=nn.MSELoss(),
        optimizer=adam(4e-4, torch.optim.AdamW, weight_decay=0.0),
        steps=300,
        batch=20,
        save_every=2,
        validate_every=10,
        seed=44,
    )


@faulty(
    "delays of flights by vectors of their airports, Huber's errors, momentum, to be stopped early",
    "patience was meant in steps and is counted in epochs: a training of 900 steps; 200 help",
    {"Overtraining"},
    may=LEARNT,
)
def patience_in_epochs(root: Path) -> int:
    return fit(
        root,
        lambda: Ports(6),
        flights(4300, 445, noise=1.0),
        loss=nn.HuberLoss(),
        optimizer=sgd(0.2, momentum=0.9, weight_decay=1e-3),
        steps=900,
        batch=64,
        save_every=4,
        validate_every=20,
        schedule=lambda step: 0.98 ** (step / 5),
        seed=45,
    )


@faulty(
    "recipes of four kitchens by the mean word, smoothed labels, AdamW with a strong decay",
    "the number of epochs is that of a tenth of the data: 50 instead of 5",
    {"Overtraining"},
    may=LEARNT,
)
def epochs_of_a_tenth(root: Path) -> int:
    data = recipes(2200, 446, kitchens=4, told=0.12, tested=300)
    return fit(
        root,
        lambda: Bag(4, 12),
        data,
        loss=nn.CrossEntropyLoss(label_smoothing=0.1),
        optimizer=adam(0.04, torch.optim.AdamW, weight_decay=1.0),
        steps=1000,
        batch=40,
        save_every=4,
        validate_every=25,
        seed=46,
    )


def half_wave(steps: int, floor: float = 0.03) -> Any:
    """Return a cosine of so many steps, and its floor from then on."""
    return lambda step: floor + (1 - floor) * (1 + math.cos(math.pi * min(1, step / steps))) / 2


@faulty(
    "wafers with defects of four kinds, one hidden layer, plain SGD, a cosine of 200 steps",
    "the cosine counts batches of the old size; three of four steps run on at its floor",
    {"Overtraining"},
    may=LEARNT,
)
def on_the_floor_of_the_cosine(root: Path) -> int:
    data = wafers(3800, 447, lean=(0.0, 0.2, 0.0, 0.1), noise=1.2)
    make = lambda: nn.Sequential(nn.Linear(14, 10), nn.Tanh(), nn.Linear(10, 4))
    return fit(
        root,
        make,
        data,
        optimizer=functools.partial(torch.optim.SGD, lr=0.5),
        steps=800,
        batch=48,
        save_every=4,
        validate_every=20,
        schedule=half_wave(200),
        seed=47,
    )
