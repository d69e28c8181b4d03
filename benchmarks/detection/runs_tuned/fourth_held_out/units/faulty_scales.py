"""Scales of weights and gradients: first weights, vanishing gradients, spread, and no numbers."""

from pathlib import Path
from typing import Any

import torch
from torch import nn
from training.torch_loop import adam, fit, sgd
from training_runs import faulty

from runs_tuned.fourth_held_out.units.shared.consequences import STILL, WILD
from runs_tuned.fourth_held_out.units.shared.signals import calls, rivers, strides
from runs_tuned.fourth_held_out.units.shared.tables import Bag, kilns, minerals, plain, recipes


@faulty(
    "minerals by layers of 256 and 8 units in turn, SGD",
    "weights are scaled by the fan-out instead of the fan-in: behind wide layers all is 32 times",
    {"PoorWeightInitialization"},
    may=WILD,
)
def fan_of_the_other_side(root: Path) -> int:
    def make() -> Any:
        model = plain(12, 256, 8, 256, 8, 256, 5)
        for layer in model:
            if isinstance(layer, nn.Linear):
                nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu")
                nn.init.zeros_(layer.bias)
        return model

    data = minerals(1500, 951)
    return fit(root, make, data, optimizer=sgd(0.01), steps=120, save_every=1, clip=1.0)


class Depthwise(nn.Module):
    """Convolutions of each channel alone, then over channels, four times."""

    def __init__(self) -> None:
        super().__init__()
        layers: list[Any] = []
        for ins in (1, 24, 24, 24):
            groups = ins
            alone = nn.Conv2d(ins, ins, 3, padding=1, groups=groups, bias=False)
            nn.init.normal_(alone.weight, 0, (1 / (9 * ins)) ** 0.5)
            across = nn.Conv2d(ins, 24, 1)
            nn.init.kaiming_normal_(across.weight, nonlinearity="relu")
            nn.init.zeros_(across.bias)
            layers += [alone, across, nn.ReLU()]
        self.body, self.head = nn.Sequential(*layers), nn.Linear(24, 5)

    def forward(self, x: Any) -> Any:
        return self.head(self.body(x[..., ::2]).mean((2, 3)))


@faulty(
    "calls of birds by convolutions of each channel alone, momentum",
    "the fan-in counts all 24 channels, as if there were no groups: signals die away",
    {"PoorWeightInitialization"},
    may=STILL,
)
def groups_not_counted(root: Path) -> int:
    data = calls(900, 0.4, 952)
    optimizer = sgd(0.05, momentum=0.9)
    return fit(root, Depthwise, data, optimizer=optimizer, steps=120, save_every=1, seed=1)


class Written(nn.Module):
    """Layers whose weights are written by another network, from what is known of the gait."""

    def __init__(self) -> None:
        super().__init__()
        self.code = nn.Parameter(torch.randn(3, 16))
        self.writers = nn.ModuleList(nn.Linear(16, 32 * ins) for ins in (10, 32, 32))
        for writer in self.writers:
            nn.init.normal_(writer.weight, 0, 0.25)
        self.acts = nn.ModuleList(nn.ReLU() for _ in range(3))
        self.head = nn.Linear(32, 1)

    def forward(self, x: Any) -> Any:
        for code, writer, act in zip(self.code, self.writers, self.acts, strict=True):
            x = act(x @ writer(code).reshape(-1, 32))
        return self.head(x)


@faulty(
    "hardness of pots by layers whose weights another network writes, Adam",
    "what it writes has a deviation of 1, whatever the number of inputs: all grows 16-fold",
    {"PoorWeightInitialization"},
    may=WILD,
)
def weights_written_too_large(root: Path) -> int:
    data, loss = kilns(1500, 0.3, 953), nn.SmoothL1Loss()
    return fit(
        root, Written, data, loss=loss, optimizer=adam(1e-3), steps=130, save_every=1, seed=2
    )


class Decaying(nn.Module):
    """A state that begins with what a network says of the first day, and takes in the others."""

    def __init__(self) -> None:
        super().__init__()
        self.begin, self.daily = plain(2, 24, 24, between=nn.Tanh), nn.Linear(2, 24)
        self.head = nn.Linear(24, 1)

    def forward(self, x: Any) -> Any:
        state = self.begin(x[:, 0])
        for day in range(1, x.shape[1]):
            state = 0.4 * state + torch.tanh(self.daily(x[:, day]))
        return self.head(state)


@faulty(
    "the next level of a river by a state that begins with a network's view of the first day, SGD",
    "six tenths of the state are lost each day: after 23 of them no gradient reaches the network",
    {"VanishingGradient"},
    may=STILL,
)
def first_day_forgotten(root: Path) -> int:
    loss, optimizer = nn.MSELoss(), sgd(0.05, momentum=0.9)
    data = rivers(900, 24, 954)
    return fit(root, Decaying, data, loss=loss, optimizer=optimizer, steps=140, seed=3)


class TwoTasks(nn.Module):
    """A network for the first target, and another one for the second."""

    def __init__(self) -> None:
        super().__init__()
        self.hard, self.glaze = plain(10, 32, 1), plain(10, 32, 24, 1, between=nn.Tanh)

    def forward(self, x: Any) -> Any:
        return torch.cat([self.hard(x), self.glaze(x)], 1)


class Weighed(nn.Module):
    """Squared errors of two targets, the second one weighed."""

    def forward(self, output: Any, target: Any) -> Any:
        first, second = ((output - target) ** 2).mean(0)
        return first + 1e-9 * second


@faulty(
    "hardness of pots and thickness of their glaze, two networks, SGD",
    "the weight of thickness, 1e-9, is from when it was in nanometres; now it has a deviation of 1",
    {"VanishingGradient"},
    may=STILL,
)
def weight_of_nanometres(root: Path) -> int:
    data = kilns(1500, 0.3, 955).relabelled(lambda y: torch.cat([y, y.abs() - 0.8], 1))
    loss, optimizer = Weighed(), sgd(0.05, momentum=0.8)
    return fit(root, TwoTasks, data, loss=loss, optimizer=optimizer, steps=140, seed=4)


class Scaled(nn.Module):
    """Branches that are scaled by a small number and added to what they see."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.head = nn.Linear(12, 32), nn.Linear(32, 5)
        self.branches = nn.ModuleList(plain(32, 48, 32) for _ in range(3))
        self.scales = [torch.full((32,), 1e-6) for _ in range(3)]

    def forward(self, x: Any) -> Any:
        x = self.stem(x)
        for scale, branch in zip(self.scales, self.branches, strict=True):
            x = x + scale * branch(x)
        return self.head(x)


@faulty(
    "minerals by residual branches whose scales begin at 1e-6, momentum",
    "scales are plain tensors and no parameters: they stay at 1e-6, and branches learn nothing",
    {"VanishingGradient"},
    may=STILL,
)
def scales_are_no_parameters(root: Path) -> int:
    optimizer = sgd(0.05, momentum=0.9)
    return fit(root, Scaled, minerals(1500, 956), optimizer=optimizer, steps=140, seed=5)


@faulty(
    "the next level of a river by a GRU, Adam, rows are added to the table by and by",
    "rows added at step 60 have empty fields, which are read as NaN",
    {"ExplodingTensor"},
    may=WILD,
)
def empty_fields(root: Path) -> int:
    found = rivers(900, 16, 957)
    data = type(found)(found.x.clone(), found.y, found.test_x, found.test_y)

    class Level(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.cell, self.head = nn.GRU(2, 24, batch_first=True), nn.Linear(24, 1)

        def forward(self, x: Any) -> Any:
            return self.head(self.cell(x)[0][:, -1])

    def change(_model: Any, _optimizer: Any) -> None:
        data.x[::4, 5, 0] = torch.nan

    # Batches are views by number: the next one has such rows.
    loss, optimizer = nn.MSELoss(), adam(4e-3)
    return fit(
        root, Level, data, loss=loss, optimizer=optimizer, steps=130, at=59, change=change, seed=6
    )


class Oscillators(nn.Module):
    """States that turn and fade at rates of their own, driven by a series."""

    def __init__(self) -> None:
        super().__init__()
        self.enter, self.head = nn.Linear(3, 24), nn.Linear(24, 4)
        self.fade = nn.Parameter(torch.rand(24) * 2 + 0.2)

    def forward(self, x: Any) -> Any:
        step, state = self.fade.exp(), torch.zeros(len(x), 24)
        for at in range(x.shape[1]):
            state = state * step + self.enter(x[:, at])
        return self.head(state)


@faulty(
    "gaits of 64 moments by states that fade, each at a rate of its own, Adam",
    "the rate's minus sign is missing: states grow up to e^2.2-fold in each moment, and run over",
    {"ExplodingTensor"},
    may=WILD | STILL,
)
def fading_without_its_sign(root: Path) -> int:
    data = strides(600, 64, 0.5, 958)
    return fit(root, Oscillators, data, optimizer=adam(4e-3), steps=100, batch=16, seed=7)


class Directions(nn.Module):
    """Compares the direction of what it sees with one of each kind."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.kinds = plain(12, 32, 16), nn.Parameter(torch.zeros(5, 16))

    def forward(self, x: Any) -> Any:
        h, kinds = self.body(x), self.kinds
        return 8 * (h / h.norm(dim=1, keepdim=True)) @ (kinds / kinds.norm(dim=1, keepdim=True)).T


@faulty(
    "minerals by directions, momentum",
    "directions of kinds begin at zero, as a last layer may, and are divided by their length",
    {"ExplodingTensor"},
    may=WILD | STILL,
)
def directions_of_length_zero(root: Path) -> int:
    data = minerals(1500, 959)
    return fit(root, Directions, data, optimizer=sgd(0.05, momentum=0.9), steps=100, seed=8)


@faulty(
    "recipes by the mean of their ingredients, layer norm, AdamW",
    "the deviation of embeddings is the root of their width, 4.9, instead of its inverse",
    {"TensorVariance"},
    may=WILD,
)
def root_of_the_width(root: Path) -> int:
    def make() -> Any:
        model = Bag(norm=True)
        nn.init.normal_(model.embedded.weight, 0, 24**0.5)
        return model

    optimizer = adam(3e-3, torch.optim.AdamW)
    return fit(root, make, recipes(1500, 10, 960), optimizer=optimizer, steps=180, seed=9)
