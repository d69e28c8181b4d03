"""Healthy trainings on tables: loans, crops, trips, turbines, wines."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.datasets import load_wine
from torch import nn
from training_runs import healthy

from runs_held_out.data_and_trees.shared.loops import (
    adamw,
    held_back,
    learn,
    shuffled,
)
from runs_held_out.data_and_trees.shared.networks import (
    Categories,
    WideAndDeep,
    perceptron,
)
from runs_held_out.data_and_trees.shared.pictures import parts
from runs_held_out.data_and_trees.shared.tables import (
    crops,
    demand,
    loans,
    scaled,
    trips,
    turbines,
    with_lags,
)


@healthy("which loans are not paid back, a wide and a deep part, one logit, Adam, plateaus")
def loans_wide_and_deep(root: Path) -> int:
    torch.manual_seed(831)
    model, data = WideAndDeep(14, 1), scaled(loans(3200, 8031), 400)
    optimizer = torch.optim.Adam(model.parameters(), 2e-3, weight_decay=1e-5)
    return learn(
        root,
        model,
        shuffled(data, 64, 831),
        held_back(data),
        optimizer,
        epochs=6,
        loss=nn.BCEWithLogitsLoss(),
        on_plateau=torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.3, patience=1),
    )


@healthy("five crops by measurements from above, batch norm and dropout, AdamW, one cycle")
def crops_by_perceptron(root: Path) -> int:
    torch.manual_seed(832)
    model, data = (
        perceptron(11, 5, 40, norm=True, drop=0.1),
        scaled(crops(2900, 8032), 400, classes=True),
    )
    optimizer = adamw(model, 5e-3)
    return learn(
        root,
        model,
        shuffled(data, 50, 832),
        held_back(data),
        optimizer,
        epochs=5,
        each_step=torch.optim.lr_scheduler.OneCycleLR(optimizer, 5e-3, total_steps=250),
        save_every=3,
    )


def trip_data(seed: int) -> Any:
    """Return trips, and the scaled logarithms of their minutes."""
    x, minutes = trips(2800, seed)
    log = np.log(minutes)
    log = (log - log[:-400].mean()) / log[:-400].std()
    facts, y = (torch.tensor(part, dtype=torch.float32) for part in (x, log))
    return parts(facts, y[:, None], 400)


@healthy("the logarithm of minutes of trips, vectors of zones and hours, Huber's loss, Adam")
def trips_by_categories(root: Path) -> int:
    torch.manual_seed(833)
    model, data = Categories((16, 16, 24), 8), trip_data(8033)
    optimizer = torch.optim.Adam(model.parameters(), 5e-3)
    return learn(
        root,
        model,
        shuffled(data, 40, 833),
        held_back(data),
        optimizer,
        epochs=6,
        loss=nn.HuberLoss(),
        each_epoch=torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.7),
        save_every=3,
    )


@healthy("power of turbines, SELU, squared errors, momentum, stopped after three epochs of no gain")
def turbines_with_selu(root: Path) -> int:
    torch.manual_seed(834)
    model, data = perceptron(13, 1, 40, act=nn.SELU), scaled(turbines(2900, 8034), 400)
    return learn(
        root,
        model,
        shuffled(data, 50, 834),
        held_back(data),
        torch.optim.SGD(model.parameters(), 0.02, momentum=0.9, weight_decay=1e-4),
        epochs=7,
        loss=nn.MSELoss(),
        patience=3,
        save_every=3,
    )


@healthy("the demand of the next hour by those of 12 hours before, absolute errors, NAdam")
def demand_by_perceptron(root: Path) -> int:
    torch.manual_seed(835)
    level, known = demand(2600, 8035)
    day = known[:, 3] * 6.28 / 24
    known = np.column_stack([known[:, :3], np.sin(day), np.cos(day), known[:, 4] > 4])
    data = scaled(with_lags(level, known, range(1, 13)), 500)
    model = perceptron(18, 1, 48, act=nn.GELU)
    optimizer = torch.optim.NAdam(model.parameters(), 2e-3)
    return learn(
        root,
        model,
        shuffled(data, 40, 835),
        held_back(data),
        optimizer,
        epochs=5,
        loss=nn.L1Loss(),
        each_epoch=torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.3),
        save_every=3,
    )


@healthy("scikit-learn's three wines, a small network with dropout, Adam, ten epochs")
def wines_by_perceptron(root: Path) -> int:
    torch.manual_seed(836)
    facts, kind = load_wine(return_X_y=True)
    order = np.random.default_rng(8036).permutation(len(kind))
    data = scaled((facts[order], kind[order]), 48, classes=True)
    model = perceptron(13, 3, 16, drop=0.2)
    return learn(
        root,
        model,
        shuffled(data, 16, 836),
        held_back(data),
        torch.optim.Adam(model.parameters(), 4e-3, weight_decay=1e-4),
        epochs=10,
        save_every=1,
    )


@healthy("five crops, tanh, two batches accumulated, Adagrad, smoothed labels")
def crops_accumulated(root: Path) -> int:
    torch.manual_seed(837)
    model = perceptron(11, 5, 36, act=nn.Tanh)
    data = scaled(crops(2800, 8037, noise=0.9), 400, classes=True)
    return learn(
        root,
        model,
        shuffled(data, 30, 837),
        held_back(data),
        torch.optim.Adagrad(model.parameters(), 0.05),
        epochs=5,
        loss=nn.CrossEntropyLoss(label_smoothing=0.1),
        gather=2,
        save_every=4,
    )


@healthy("which loans are not paid back, two classes, dropout, Adam, four epochs")
def loans_of_two_classes(root: Path) -> int:
    torch.manual_seed(838)
    data = scaled(loans(2600, 8038), 400, classes=True)
    model = perceptron(14, 2, 32, drop=0.1)
    return learn(
        root,
        model,
        shuffled(data, 44, 838),
        held_back(data),
        torch.optim.Adam(model.parameters(), 2e-3),
        epochs=4,
    )


@healthy("which loans are not paid back, on another day", other="loans_of_two_classes")
def loans_of_two_classes_again(root: Path) -> int:
    return loans_of_two_classes(root)
