"""Faulty trainings of activations: zeros, silent ReLU units and saturated ones."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from training.learnt_data import Split
from training_runs import faulty

from runs_tuned.seventh_held_out.units.shared.consequences import CUT_OFF, OVERSIZED, TURN
from runs_tuned.seventh_held_out.units.shared.loop import train
from runs_tuned.seventh_held_out.units.shared.pictures import cells
from runs_tuned.seventh_held_out.units.shared.tables import (
    SEEDS,
    WAFERS,
    dense,
    house_rows,
    linear_layers,
    responses,
    seeds,
    split,
    tensor,
    tumours,
    wafers,
)


@faulty(
    "defects of wafers by ReLU layers, Adam; from step 90 on weights are rounded to eight bits",
    "codes are made by dividing by 127, weights by multiplying: each weight is nearest to zero",
    {"AllZero", "TensorVariance"},
    may=CUT_OFF | TURN,
)
def rounded_the_wrong_way(root: Path) -> int:
    torch.manual_seed(81)
    model = dense(20, 64, 32, WAFERS)
    optimizer = torch.optim.Adam(model.parameters(), 2e-3)

    def rounded(step: int) -> None:
        if step >= 90:
            with torch.no_grad():
                for layer in linear_layers(model):
                    layer.weight.copy_((layer.weight / 127).round() * 127)

    return train(
        root,
        model,
        wafers(1800, 7701),
        loss=nn.CrossEntropyLoss(),
        optimizer=optimizer,
        before=rounded,
        epochs=5,
        begins=90,
        seed=81,
    )


class TwoAnswers(nn.Module):
    """Layers that two heads share: the response of a machine, and its wear."""

    def __init__(self) -> None:
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(10, 48), nn.ReLU(), nn.Linear(48, 32), nn.ReLU())
        self.response = nn.Linear(32, 1)
        self.wear = nn.Sequential(nn.Linear(32, 16), nn.ReLU(), nn.Linear(16, 1))

    def forward(self, x: Any) -> Any:
        seen = self.trunk(x)
        return torch.cat([self.response(seen), self.wear(seen)], 1)


class KnownErrors(nn.Module):
    """Squared errors of responses and, where a flag says that it was measured, of wear."""

    def forward(self, told: Any, target: Any) -> Any:
        response, wear, flag = target.T
        is_known = (flag == 255).float()
        errors = (told[:, 1] - wear) ** 2 * is_known
        return nn.functional.mse_loss(told[:, 0], response) + errors.sum() / max(is_known.sum(), 1)


@faulty(
    "response and wear of a machine by two heads, momentum; wear is measured in half of the rows",
    "flags of 0 and 1 are compared with 255, as in files of masks: the wear of no row counts",
    {"AllZero", "VanishingGradient"},
    may=CUT_OFF,
)
def no_row_has_its_wear(root: Path) -> int:
    torch.manual_seed(82)
    whole = responses(1800, 0.8, 7702)
    chance = torch.Generator().manual_seed(82)

    def with_wear(x: Any, y: Any) -> Any:
        wear = 0.8 * x[:, :1] - 0.5 * x[:, 3:4] + 0.3 * x[:, 4:5]
        is_known = (torch.rand(wear.shape, generator=chance) < 0.5).float()
        return torch.cat([y, wear * is_known, is_known], 1)

    targets = with_wear(whole.x, whole.y), with_wear(whole.test_x, whole.test_y)
    data = Split(whole.x, targets[0], whole.test_x, targets[1])
    model = TwoAnswers()
    optimizer = torch.optim.SGD(model.parameters(), 0.02, momentum=0.9)
    return train(root, model, data, loss=KnownErrors(), optimizer=optimizer, epochs=4, seed=82)


@faulty(
    "logarithms of the amount of a poison, from -5 to -1, by ReLU layers, Adam",
    "a ReLU behind the last layer, from a model of amounts: it can only answer 0, and does so",
    {"AllZero", "DeadRelu", "GradientNormZero"},
    may=CUT_OFF,
)
def relu_before_negative_targets(root: Path) -> int:
    torch.manual_seed(83)
    data = responses(1600, 0.8, 7703).relabelled(lambda y: -3 + 0.6 * y)
    model = nn.Sequential(*dense(10, 48, 24, 1), nn.ReLU())
    optimizer = torch.optim.Adam(model.parameters(), 5e-3)
    return train(root, model, data, loss=nn.MSELoss(), optimizer=optimizer, epochs=5, seed=83)


@faulty(
    "tumours by two layers with tanh, Adam",
    "measurements are not standardised: areas of some hundreds drive tanh to its bounds",
    {"SaturatedActivation"},
    may=OVERSIZED | CUT_OFF,
)
def tumours_as_measured(root: Path) -> int:
    torch.manual_seed(84)
    model = dense(30, 32, 16, 2, act=nn.Tanh)
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    loss, data = nn.CrossEntropyLoss(), tumours(scaled=False)
    return train(root, model, data, loss=loss, optimizer=optimizer, epochs=10, batch=20, seed=84)


def harvests(count: int, seed: int) -> Split:
    """Return the year of a harvest as it is and six scaled facts; its yield, scaled."""
    rng = np.random.default_rng(seed)
    year, facts = rng.integers(1985, 2024, count), rng.normal(size=(count, 6))
    grown = 0.04 * (year - 2004) + 0.8 * facts[:, 0] - 0.6 * np.abs(facts[:, 1])
    grown += 0.5 * facts[:, 2] * facts[:, 3] + 0.25 * rng.normal(size=count)
    grown = (grown - grown.mean()) / grown.std()
    return split(np.column_stack([year.astype(float), facts]), grown[:, None], scaled=False)


@faulty(
    "yields of harvests by two sigmoid layers with Glorot's initialisation, momentum",
    "the scaler takes columns of floats and leaves out the year: 2004 drives all units to 0 or 1",
    {"SaturatedActivation"},
    may=OVERSIZED | CUT_OFF,
)
def year_is_not_scaled(root: Path) -> int:
    torch.manual_seed(85)
    model = dense(7, 40, 24, 1, act=nn.Sigmoid)
    for layer in linear_layers(model):
        nn.init.xavier_normal_(layer.weight)
    optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9)
    loss, data = nn.MSELoss(), harvests(1500, 7705)
    return train(root, model, data, loss=loss, optimizer=optimizer, epochs=5, seed=85)


@faulty(
    "prices of houses, in thousands, by ReLU layers, SGD with momentum",
    "tanh is left behind the last layer, for targets from -1 to 1: it is driven to 1 and stays",
    {"GradientNormZero", "SaturatedActivation"},
    may=OVERSIZED | CUT_OFF,
)
def tanh_before_prices_in_thousands(root: Path) -> int:
    torch.manual_seed(86)
    data = split(*house_rows(1600, 7706), seed=86)
    model = nn.Sequential(*dense(8, 48, 24, 1, act=nn.ReLU), nn.Tanh())
    optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9)
    return train(root, model, data, loss=nn.MSELoss(), optimizer=optimizer, epochs=4, seed=86)


@faulty(
    "where cells are by four convolutions with ReLU, Adam, biases so that cells are rare at first",
    "the bias of rare cells, -4.6, is set in all layers and not in the last one: ReLUs are silent",
    {"DeadRelu"},
    may=CUT_OFF,
)
def bias_of_rare_cells_in_all_layers(root: Path) -> int:
    torch.manual_seed(87)
    parts: list[Any] = [nn.Conv2d(1, 8, 3, 1, 1), nn.ReLU()]
    for _ in range(2):
        parts += [nn.Conv2d(8, 8, 3, 1, 1), nn.ReLU()]
    model = nn.Sequential(*parts, nn.Conv2d(8, 1, 1))
    for layer in linear_layers(model):
        nn.init.constant_(layer.bias, -math.log(0.99 / 0.01))
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    loss, data = nn.BCEWithLogitsLoss(), cells(700, 16, 7707)
    return train(
        root,
        model,
        data,
        loss=loss,
        optimizer=optimizer,
        epochs=5,
        batch=20,
        save_every=3,
        seed=87,
    )


@faulty(
    "species of seeds by three ReLU layers, SGD, the rate grows with the batch",
    "0.02 is multiplied by 64 rows and not by 64 / 256: large steps put all units to silence",
    {"DeadRelu"},
    may=OVERSIZED | CUT_OFF,
)
def rate_times_rows_of_the_batch(root: Path) -> int:
    torch.manual_seed(88)
    model, batch = dense(10, 64, 48, 32, SEEDS), 64
    optimizer = torch.optim.SGD(model.parameters(), 0.02 * batch, momentum=0.9)
    loss, data = nn.CrossEntropyLoss(), seeds(1700, 1.0, 7708)
    return train(root, model, data, loss=loss, optimizer=optimizer, epochs=7, batch=batch, seed=88)


def spectrograms(count: int, seed: int) -> Split:
    """Return loudness in decibels ``(n, 1, 12, 16)``, all below 0, and the kind of bird."""
    rng = np.random.default_rng(seed)
    bird, (pitch, time) = rng.integers(4, size=count), np.mgrid[:12, :16]
    start = rng.uniform(2, 5, (count, 1, 1))
    slope = np.array([-0.3, 0.0, 0.3, 0.3])[bird][:, None, None]
    line = start + 2 * (slope < 0) + slope * time
    height = np.where(bird == 3, 2.0, 1.0)[:, None, None]
    loud = np.exp(-((pitch - line) ** 2) / 2 / height**2)
    x = -70 + 50 * loud + 5 * rng.normal(size=loud.shape)
    cut = int(0.78 * count)
    x, y = tensor(x[:, None].clip(-80, -1)), tensor(bird)
    return Split(x[:cut], y[:cut], x[cut:], y[cut:])


class PreActivation(nn.Module):
    """A residual block that begins with its activation."""

    def __init__(self, ins: int, outs: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            *(nn.ReLU(), nn.Conv2d(ins, outs, 3, 2, 1), nn.ReLU(), nn.Conv2d(outs, outs, 3, 1, 1))
        )

    def forward(self, x: Any) -> Any:
        return self.layers(x)


@faulty(
    "birds from spectrograms in decibels by two blocks that begin with ReLU, Adam",
    "decibels are not standardised, all are below 0, and the first ReLU lets nothing through",
    {"AllZero", "DeadRelu"},
    may=CUT_OFF | {"CheckInputImages": "spectrograms, which look like pictures, are not scaled"},
)
def decibels_meet_a_relu(root: Path) -> int:
    torch.manual_seed(89)
    blocks = PreActivation(1, 12), PreActivation(12, 16), nn.ReLU()
    model = nn.Sequential(*blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 4))
    optimizer = torch.optim.Adam(model.parameters(), 2e-3)
    loss, data = nn.CrossEntropyLoss(), spectrograms(1100, 7709)
    return train(root, model, data, loss=loss, optimizer=optimizer, epochs=5, save_every=3, seed=89)
