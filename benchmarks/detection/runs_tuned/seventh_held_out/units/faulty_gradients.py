"""Faulty trainings of gradients that vanish on their way to the first layers."""

from pathlib import Path
from typing import Any

import torch
from torch import nn
from training_runs import faulty

from runs_tuned.seventh_held_out.units.shared.consequences import CUT_OFF
from runs_tuned.seventh_held_out.units.shared.loop import train
from runs_tuned.seventh_held_out.units.shared.pictures import SIGNS, signs
from runs_tuned.seventh_held_out.units.shared.tables import (
    SEEDS,
    dense,
    linear_layers,
    responses,
    seeds,
)


@faulty(
    "signs by a stem and 24 convolutions with ReLU, momentum",
    "skips and norms of the residual network are taken out: each layer loses half of the gradient",
    {"VanishingGradient"},
    may=CUT_OFF,
)
def residual_network_without_skips(root: Path) -> int:
    torch.manual_seed(91)
    parts: list[Any] = [nn.Conv2d(1, 8, 3, 2, 1), nn.ReLU()]
    for _ in range(24):
        parts += [nn.Conv2d(8, 8, 3, 1, 1), nn.ReLU()]
    model = nn.Sequential(*parts, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, SIGNS))
    optimizer = torch.optim.SGD(model.parameters(), 0.02, momentum=0.9)
    loss, data = nn.CrossEntropyLoss(), signs(1100, 0.2, 12, 7801)
    return train(root, model, data, loss=loss, optimizer=optimizer, epochs=4, save_every=4, seed=91)


@faulty(
    "species of seeds by eleven sigmoid layers of 32, SGD with momentum",
    "small normal weights, sigmoids and no norms: a seventh of the gradient is left by each layer",
    {"VanishingGradient"},
    may=CUT_OFF,
)
def eleven_sigmoid_layers(root: Path) -> int:
    torch.manual_seed(92)
    model = dense(10, *[32] * 11, SEEDS, act=nn.Sigmoid)
    for layer in linear_layers(model):
        nn.init.normal_(layer.weight, 0, 0.1)
        nn.init.zeros_(layer.bias)
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    loss, data = nn.CrossEntropyLoss(), seeds(1700, 1.0, 7802)
    return train(root, model, data, loss=loss, optimizer=optimizer, epochs=4, save_every=3, seed=92)


class Highway(nn.Module):
    """A layer that a gate mixes with what came in; its bias says how much at first."""

    def __init__(self, width: int, bias: float) -> None:
        super().__init__()
        self.layer, self.gate = nn.Linear(width, width), nn.Linear(width, width)
        self.relu, self.sigmoid = nn.ReLU(), nn.Sigmoid()
        nn.init.constant_(self.gate.bias, bias)

    def forward(self, x: Any) -> Any:
        share = self.sigmoid(self.gate(x))
        return share * self.relu(self.layer(x)) + (1 - share) * x


@faulty(
    "responses of a machine by a linear layer and four highway layers, SGD with momentum",
    "gates begin at a bias of -20 and not -2: they are shut and nothing behind them ever learns",
    {"VanishingGradient"},
    may=CUT_OFF,
)
def highways_are_shut(root: Path) -> int:
    torch.manual_seed(93)
    blocks = (Highway(24, -20.0) for _ in range(4))
    model = nn.Sequential(nn.Linear(10, 24), *blocks, nn.Linear(24, 1))
    optimizer = torch.optim.SGD(model.parameters(), 0.02, momentum=0.9)
    loss, data = nn.MSELoss(), responses(1700, 0.8, 7803)
    return train(root, model, data, loss=loss, optimizer=optimizer, epochs=4, seed=93)
