"""Trainings whose gradients vanish, whose units die or saturate, or whose weights begin badly."""

import itertools
import math
from pathlib import Path
from typing import Any

import torch
from torch import nn
from training.torch_loop import adam, fit, sgd
from training_runs import faulty

from runs_tuned.first_held_out.supervised.consequences import NOT_LEARNT, OUT_OF_HAND, STILL
from runs_tuned.first_held_out.supervised.generated_data import (
    SHAPES,
    friedman,
    segmented,
    shapes,
    signals,
    table,
)

NO_SIGNAL = NOT_LEARNT | STILL


class Highway(nn.Module):
    """Layers of which a gate lets a share through, and the inputs themselves the rest."""

    def __init__(self, bias: float, width: int = 32, layers: int = 4) -> None:
        super().__init__()
        self.stem, self.head = nn.Linear(12, width), nn.Linear(width, 3)
        self.transforms = nn.ModuleList(nn.Linear(width, width) for _ in range(layers))
        self.gates = nn.ModuleList(nn.Linear(width, width) for _ in range(layers))
        for gate in self.gates:
            nn.init.constant_(gate.bias, bias)

    def forward(self, x: Any) -> Any:
        x = self.stem(x)
        for transform, gate in zip(self.transforms, self.gates, strict=True):
            share = torch.sigmoid(gate(x))
            x = share * torch.tanh(transform(x)) + (1 - share) * x
        return self.head(x)


@faulty(
    "a table of three classes, a highway network of four layers",
    "the bias of the gates is -20 instead of -2: only the linear path learns",
    {"VanishingGradient"},
    may=NO_SIGNAL,
)
def gates_shut(root: Path) -> int:
    optimizer = sgd(0.05, momentum=0.9)
    return fit(root, lambda: Highway(-20.0), table(), optimizer=optimizer, steps=140)


class Radial(nn.Module):
    """Bells around centres, and a linear layer on their heights."""

    def __init__(self, centres: Any, width: float) -> None:
        super().__init__()
        self.centres, self.width = nn.Parameter(centres.clone()), width
        self.head = nn.Linear(len(centres), SHAPES)

    def forward(self, x: Any) -> Any:
        square = torch.cdist(x.flatten(1), self.centres) ** 2
        return self.head((-square / (2 * self.width**2)).exp())


@faulty(
    "shapes, a network of radial bells around 60 training images",
    "bells are 1 wide, as in two dimensions: in 256 none is reached by any image",
    {"VanishingGradient", "LossNotDecreasing"},
    may=NO_SIGNAL,
)
def bells_too_narrow(root: Path) -> int:
    data = shapes()[0]
    others = data.chosen(slice(100, None))
    centres = data.x[:60].flatten(1)
    return fit(
        root, lambda: Radial(centres, 1.0), others, optimizer=sgd(0.1), steps=200, save_every=4
    )


@faulty(
    "Friedman's function in a small unit (targets of 200 to 2,600), ReLU, clipped at 10,000",
    "targets are not standardised: the first updates push all units below zero",
    {"DeadRelu"},
    may=OUT_OF_HAND | NOT_LEARNT,
)
def targets_kill_units(root: Path) -> int:
    data = friedman().relabelled(lambda y: 500 * y + 1400)
    make = lambda: nn.Sequential(
        nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 16), nn.ReLU(), nn.Linear(16, 1)
    )
    optimizer = sgd(3e-3, momentum=0.9)
    return fit(root, make, data, loss=nn.MSELoss(), optimizer=optimizer, clip=1e4, steps=160)


class Sparse(nn.Module):
    """An autoencoder of ReLU units, which returns its code beside its outputs."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder, self.relu = nn.Linear(256, 64), nn.ReLU()
        self.decoder = nn.Linear(64, 256)

    def forward(self, x: Any) -> tuple[Any, Any]:
        code = self.relu(self.encoder(x.flatten(1)))
        return self.decoder(code), code


class SparseLoss(nn.Module):
    """The error of a reconstruction, and a penalty on each row's code."""

    def forward(self, outputs: Any, y: Any) -> Any:
        return nn.functional.mse_loss(outputs[0], y.flatten(1)) + 0.05 * outputs[1].sum(1).mean()


@faulty(
    "shapes, a sparse autoencoder",
    "the penalty is summed over 64 units instead of averaged: all of them go silent",
    {"DeadRelu"},
    may=OUT_OF_HAND
    | NOT_LEARNT
    | {
        "RepresentationCollapse": "all codes are zero",
        "PosteriorCollapse": "all codes are zero",
    },
    kind="autoencoder",
)
def sparse_to_death(root: Path) -> int:
    data = segmented()
    return fit(
        root, Sparse, data, loss=SparseLoss(), optimizer=adam(5e-3), steps=200, validate_every=40
    )


class SummedOverTime(nn.Module):
    """Convolutions over time, the sum over all steps, and two tanh layers."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.conv, self.relu = nn.Conv1d(2, 32, 5), nn.ReLU()
        self.hidden, self.tanh1 = nn.Linear(32, 32), nn.Tanh()
        self.head = nn.Linear(32, classes)

    def forward(self, x: Any) -> Any:
        return self.head(self.tanh1(self.hidden(self.relu(self.conv(x)).sum(2))))


@faulty(
    "signals of 400 steps, convolutions, tanh",
    "outputs are summed over 400 steps of time instead of averaged",
    {"SaturatedActivation"},
    may=NO_SIGNAL | {"DeadRelu": "large gradients of the sum", "TensorVariance": "large updates"},
)
def summed_over_time(root: Path) -> int:
    data = signals(400, 400, 100).of(lambda x: 2 * x)
    make = lambda: SummedOverTime(4)
    return fit(root, make, data, optimizer=sgd(0.05, momentum=0.9), steps=100, validate_every=50)


@faulty(
    "a table of twelve features and the number of an order, two sigmoid layers",
    "the number of the order, about 100,000, was left among the features",
    {"SaturatedActivation", "LossNotDecreasing"},
    may=NO_SIGNAL,
)
def order_number_left(root: Path) -> int:
    data = table()
    generator = torch.Generator().manual_seed(5)

    def numbered(x: Any) -> Any:
        number = 90_000 + 20_000 * torch.rand((len(x), 1), generator=generator)
        return torch.cat([x, number], 1)

    make = lambda: nn.Sequential(
        nn.Linear(13, 24), nn.Sigmoid(), nn.Linear(24, 16), nn.Sigmoid(), nn.Linear(16, 3)
    )
    return fit(root, make, data.of(numbered), optimizer=adam(3e-3), steps=140)


class Plain(nn.Module):
    """Five convolutions with ReLU and without norms, all weights of the same deviation."""

    def __init__(self, deviation: float) -> None:
        super().__init__()
        widths = [1, 24, 24, 24, 24, 24]
        self.convs = nn.ModuleList(
            nn.Conv2d(ins, outs, 3, padding=1) for ins, outs in itertools.pairwise(widths)
        )
        self.relus = nn.ModuleList(nn.ReLU() for _ in self.convs)
        self.head = nn.Linear(24, SHAPES)
        for conv in self.convs:
            nn.init.normal_(conv.weight, std=deviation)

    def forward(self, x: Any) -> Any:
        for conv, relu in zip(self.convs, self.relus, strict=True):
            x = relu(conv(x))
        return self.head(x.mean((2, 3)))


@faulty(
    "shapes, five convolutions of 24 channels without norms",
    "the fan-in was counted without channels: deviations are five times too large",
    {"PoorWeightInitialization"},
    may=OUT_OF_HAND | NOT_LEARNT,
)
def fan_in_without_channels(root: Path) -> int:
    make = lambda: Plain(math.sqrt(2 / 9))
    return fit(root, make, shapes()[0], optimizer=adam(1e-3), steps=70, batch=24)


class Scaled(nn.Module):
    """Dilated convolutions with weight norm, whose lengths begin at a value of one's choice."""

    def __init__(self, length: float, width: int = 24) -> None:
        super().__init__()
        self.stem = nn.Conv1d(2, width, 1)
        self.convs = nn.ModuleList(
            nn.utils.parametrizations.weight_norm(nn.Conv1d(width, width, 3, padding="same"))
            for _ in range(5)
        )
        self.relus = nn.ModuleList(nn.ReLU() for _ in self.convs)
        self.head = nn.Linear(width, 4)
        for conv in self.convs:
            nn.init.constant_(conv.parametrizations.weight.original0, length)
            nn.init.zeros_(conv.bias)

    def forward(self, x: Any) -> Any:
        x = self.stem(x)
        for conv, relu in zip(self.convs, self.relus, strict=True):
            x = relu(conv(x))
        return self.head(x.mean(2))


@faulty(
    "signals, five convolutions with weight norm",
    "lengths of weights begin at 0.05, a value meant for the last layer: signals die away",
    {"PoorWeightInitialization", "VanishingGradient", "LossNotDecreasing"},
    may=NO_SIGNAL
    | {"NormGrowth": "lengths grow to a useful size", "DeadRelu": "signals of nothing"},
)
def lengths_too_small(root: Path) -> int:
    make = lambda: Scaled(0.05)
    optimizer = adam(2e-3)
    return fit(root, make, signals(), optimizer=optimizer, steps=100, validate_every=25)
