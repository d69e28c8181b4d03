"""Faulty trainings of weights: where they begin, how they grow, and numbers that run over."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from training.learnt_data import Split
from training_runs import faulty

from runs_held_out.units.shared.consequences import CUT_OFF, OVERSIZED
from runs_held_out.units.shared.data import (
    CLOUDS,
    SOILS,
    TOPICS,
    WORDS,
    clouds,
    loans,
    parted,
    power_rows,
    scaled,
    scaled_targets,
    soils,
    tickets,
)
from runs_held_out.units.shared.loop import train
from runs_held_out.units.shared.networks import layers, matrices


@faulty(
    "kinds of soil by six ReLU layers of 48 without norms, SGD with momentum",
    "the deviation of transformers, 0.02, in plain layers: each is ten times quieter than the last",
    {"PoorWeightInitialization"},
    may=CUT_OFF,
)
def deviation_of_transformers_in_plain_layers(root: Path) -> int:
    torch.manual_seed(871)
    model = layers(14, *[48] * 6, SOILS)
    for layer in matrices(model):
        nn.init.normal_(layer.weight, 0, 0.02)
        nn.init.zeros_(layer.bias)
    optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9)
    data, loss = soils(1800, 8701), nn.CrossEntropyLoss()
    return train(root, model, data, loss, optimizer, epochs=4, save_every=1, seed=871)


@faulty(
    "late loans by three ReLU layers, Adam",
    "uniform_() is left at 0 to 1: all weights are positive, each layer is many times louder",
    {"PoorWeightInitialization"},
    may=OVERSIZED | CUT_OFF,
)
def uniform_from_zero_to_one(root: Path) -> int:
    torch.manual_seed(872)
    model = layers(9, 64, 64, 32, 1)
    for layer in matrices(model):
        nn.init.uniform_(layer.weight)
        nn.init.zeros_(layer.bias)
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    data, loss = loans(1800, 8702), nn.BCEWithLogitsLoss()
    return train(root, model, data, loss, optimizer, epochs=4, save_every=1, seed=872)


@faulty(
    "clouds by three convolutions of five by five with ReLU, He's initialisation by hand, Adam",
    "inputs of a unit are counted as channels, without 25 places: each layer is 5 times louder",
    {"PoorWeightInitialization"},
    may=OVERSIZED | CUT_OFF,
)
def places_of_kernels_are_not_counted(root: Path) -> int:
    torch.manual_seed(873)
    parts: list[Any] = []
    for ins, outs in ((3, 8), (8, 12), (12, 12)):
        parts += [nn.Conv2d(ins, outs, 5, padding=2), nn.ReLU()]
    model = nn.Sequential(
        *(*parts, nn.MaxPool2d(2), nn.Flatten(), nn.Linear(12 * 49, 32), nn.ReLU()),
        nn.Linear(32, CLOUDS),
    )
    for layer in matrices(model):
        nn.init.normal_(layer.weight, 0, math.sqrt(2 / layer.weight.shape[1]))
        nn.init.zeros_(layer.bias)
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    data, loss = clouds(1000, 0.8, 8703), nn.CrossEntropyLoss()
    return train(root, model, data, loss, optimizer, epochs=3, save_every=1, seed=873)


@faulty(
    "kinds of soil by layers with layer norm and GELU, SGD, weights decay by hand",
    "the decay is added and not subtracted: all weights grow by five percent at each step",
    {"TensorVariance"},
    may=OVERSIZED | CUT_OFF,
)
def decay_is_added(root: Path) -> int:
    torch.manual_seed(874)
    model = layers(14, 48, 32, SOILS, act=nn.GELU, norm=nn.LayerNorm)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)

    def decay(_number: int) -> None:
        with torch.no_grad():
            for layer in matrices(model):
                layer.weight.add_(0.05 * layer.weight)

    data, loss = soils(1800, 8704), nn.CrossEntropyLoss()
    return train(root, model, data, loss, optimizer, after=decay, epochs=5, save_every=3, seed=874)


def rainy(count: int, seed: int) -> Split:
    """Return the logarithm of yesterday's rain beside five scaled facts, and the river's level."""
    rng = np.random.default_rng(seed)
    rain = np.where(rng.random(count) < 0.3, 0.0, rng.gamma(1.5, 4, count))
    facts = rng.normal(size=(count, 5))
    level = 0.6 * np.sqrt(rain) + 0.5 * facts[:, 0] - 0.4 * facts[:, 1] * facts[:, 2]
    level += 0.2 * rng.normal(size=count)
    with np.errstate(divide="ignore"):
        x = np.column_stack([np.log(rain), facts])
    return scaled_targets(parted(x, level[:, None]))


@faulty(
    "levels of a river from the logarithm of rain and five facts by ReLU layers, Adam",
    "log and not log1p: on dry days the logarithm of 0 is minus infinity, and all weights are NaN",
    {"ExplodingTensor"},
    may=OVERSIZED | CUT_OFF,
)
def logarithm_of_dry_days(root: Path) -> int:
    torch.manual_seed(875)
    model = layers(6, 48, 24, 1)
    optimizer = torch.optim.Adam(model.parameters(), 2e-3)
    return train(root, model, rainy(1600, 8705), nn.MSELoss(), optimizer, epochs=4, seed=875)


class MeanOfWords(nn.Module):
    """The sum of the embeddings of words that are there by their number, and dense layers."""

    def __init__(self, outs: int, width: int = 24) -> None:
        super().__init__()
        self.embedding, self.body = nn.Embedding(WORDS, width), layers(width, 32, outs)

    def forward(self, x: Any) -> Any:
        there = (x != 0).float()[..., None]
        return self.body((self.embedding(x) * there).sum(1) / there.sum(1))


@faulty(
    "teams of tickets by the mean of embedded words, AdamW; one ticket in 400 has no words",
    "the sum is divided by a number of words of 0: NaN comes with the first empty ticket",
    {"ExplodingTensor"},
    may=OVERSIZED | CUT_OFF,
)
def mean_over_no_words(root: Path) -> int:
    torch.manual_seed(876)
    whole = tickets(1700, 10, 0.4, 8706)
    x = whole.x.clone()
    x[torch.randperm(len(x))[: len(x) // 400]] = 0
    data = Split(x, whole.y, whole.test_x, whole.test_y)
    model = MeanOfWords(TOPICS)
    optimizer = torch.optim.AdamW(model.parameters(), 3e-3)
    return train(root, model, data, nn.CrossEntropyLoss(), optimizer, epochs=5, seed=876)


@faulty(
    "output of power plants in kilowatts by layers with SiLU, SGD with momentum",
    "targets of 454,000 are not scaled: errors are so large that steps run over to NaN",
    {"ExplodingTensor"},
    may=OVERSIZED | CUT_OFF,
)
def targets_in_kilowatts(root: Path) -> int:
    torch.manual_seed(877)
    x, y = power_rows(1700, 8707)
    model = layers(7, 64, 32, 1, act=nn.SiLU)
    optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)
    data = scaled(parted(x, 1000 * y))
    return train(root, model, data, nn.MSELoss(), optimizer, epochs=4, save_every=1, seed=877)
