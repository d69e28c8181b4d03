"""Faulty trainings of zeros and of gradients that vanish: masks, bits, branches, kernels."""

from pathlib import Path
from typing import Any

import torch
from torch import nn
from training.learnt_data import Split
from training_runs import faulty

from runs_held_out.units.shared.consequences import CUT_OFF, OVERSIZED, TURN
from runs_held_out.units.shared.data import (
    CLOUDS,
    GLYPHS,
    SOILS,
    clouds,
    glyph_bytes,
    loans,
    parted,
    soil_rows,
    soils,
)
from runs_held_out.units.shared.loop import train
from runs_held_out.units.shared.networks import (
    ConvNet,
    layers,
    matrices,
    squeeze_net,
)


@faulty(
    "kinds of soil by ReLU layers, Adam; from step 80 on the smallest weights are pruned",
    "30 percent is taken for a magnitude of 30: every weight is smaller, and all are set to zero",
    {"AllZero", "TensorVariance"},
    may=CUT_OFF | TURN,
)
def pruned_by_a_magnitude_of_thirty(root: Path) -> int:
    torch.manual_seed(861)
    model = layers(14, 64, 48, SOILS)
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)

    def pruned(number: int) -> None:
        if number >= 80:
            with torch.no_grad():
                for layer in matrices(model):
                    layer.weight.mul_(layer.weight.abs() >= 30)

    return train(
        root,
        model,
        soils(1900, 8601),
        nn.CrossEntropyLoss(),
        optimizer,
        before=pruned,
        begins=80,
        epochs=5,
        seed=861,
    )


class NeverKept(nn.Module):
    """Stochastic depth whose mask is the floor of a chance below 1: no row is kept."""

    def __init__(self, share: float) -> None:
        super().__init__()
        self.share = share

    def forward(self, x: Any) -> Any:
        if not self.training:
            return x
        mask = (torch.rand(len(x), 1, 1, 1) * (1 - self.share)).floor()
        return x / (1 - self.share) * mask


@faulty(
    "clouds by squeezed residual blocks with stochastic depth, SGD with momentum",
    "the chance is multiplied with what is kept, not added, before floor: no branch is ever kept",
    {"AllZero", "VanishingGradient"},
    may=CUT_OFF | {"ValidationInTrainingMode": "branches without training join in validation"},
)
def branches_are_never_kept(root: Path) -> int:
    torch.manual_seed(862)
    model = squeeze_net(CLOUDS, 10, 0.1, NeverKept)
    optimizer = torch.optim.SGD(model.parameters(), 0.03, momentum=0.9)
    data, loss = clouds(1000, 1.4, 8602), nn.CrossEntropyLoss()
    return train(root, model, data, loss, optimizer, epochs=4, save_every=3, seed=862)


def eight_bits(count: int, seed: int) -> Split:
    """Return glyphs, made into eight bits of what is taken for sixteen, between 0 and 1."""
    x, y = glyph_bytes(count, seed, 50.0)
    return parted((x.astype("uint16") >> 8) / 255.0, y)


@faulty(
    "glyphs from scans by two convolutions with ReLU, Adam",
    "scans of eight bits are shifted by eight as if they had sixteen: all pictures are black",
    {"AllZero", "VanishingGradient"},
    may=CUT_OFF
    | {
        "CheckInputImages": "all pictures are black",
        "RepeatedBatches": "all pictures are equal, those of validation too",
    },
)
def scans_shifted_by_eight_bits(root: Path) -> int:
    torch.manual_seed(863)
    model = ConvNet(1, 14, GLYPHS)
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    data, loss = eight_bits(1400, 8603), nn.CrossEntropyLoss()
    return train(root, model, data, loss, optimizer, epochs=4, save_every=2, seed=863)


class Kernels(nn.Module):
    """Gaussian kernels around learnt centres."""

    def __init__(self, ins: int, centres: int, gamma: float) -> None:
        super().__init__()
        self.centres, self.gamma = nn.Parameter(torch.randn(centres, ins)), gamma

    def forward(self, x: Any) -> Any:
        return torch.exp(-self.gamma * ((x[:, None] - self.centres) ** 2).sum(2))


class KernelsBesideLayers(nn.Module):
    """A dense part beside Gaussian kernels, whose answers are added."""

    def __init__(self, ins: int, outs: int) -> None:
        super().__init__()
        self.dense = nn.Sequential(nn.BatchNorm1d(ins), *layers(ins, 24, outs))
        self.kernels, self.head = Kernels(ins, 40, 0.5), nn.Linear(40, outs)

    def forward(self, x: Any) -> Any:
        return self.dense(x) + self.head(self.kernels(x))


@faulty(
    "kinds of soil by a dense part with batch norm beside Gaussian kernels, Adam",
    "kernels of width 1 see amounts of up to 200 that are not scaled: all of them underflow to 0",
    {"AllZero", "VanishingGradient"},
    may=CUT_OFF,
)
def kernels_see_raw_amounts(root: Path) -> int:
    torch.manual_seed(864)
    model = KernelsBesideLayers(14, SOILS)
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    data, loss = parted(*soil_rows(1800, 8604)), nn.CrossEntropyLoss()
    return train(root, model, data, loss, optimizer, epochs=4, seed=864)


@faulty(
    "kinds of soil by seven layers, SGD with momentum",
    "softmax, not ReLU, is the activation of hidden layers: hardly a gradient gets to the first",
    {"VanishingGradient"},
    may=CUT_OFF,
)
def softmax_behind_every_layer(root: Path) -> int:
    torch.manual_seed(865)
    model = layers(14, *[32] * 7, SOILS, act=lambda: nn.Softmax(1))
    optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9)
    data, loss = soils(1900, 8605), nn.CrossEntropyLoss()
    return train(root, model, data, loss, optimizer, epochs=5, save_every=3, seed=865)


@faulty(
    "late loans by ReLU layers, SGD with momentum, weights pulled to zero by a proximal step",
    "weights are shrunk by 0.05, which lacks the factor of the rate: soon all of them are zero",
    {"AllZero", "TensorVariance"},
    may=CUT_OFF | OVERSIZED,
)
def proximal_step_without_the_rate(root: Path) -> int:
    torch.manual_seed(866)
    model = layers(9, 48, 32, 1)
    optimizer = torch.optim.SGD(model.parameters(), 0.02, momentum=0.9)

    def shrink(_number: int) -> None:
        with torch.no_grad():
            for layer in matrices(model):
                layer.weight.copy_(nn.functional.softshrink(layer.weight, 0.05))

    data, loss = loans(1900, 8606), nn.BCEWithLogitsLoss()
    return train(root, model, data, loss, optimizer, after=shrink, epochs=5, seed=866)
