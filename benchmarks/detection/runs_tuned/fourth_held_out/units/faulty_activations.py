"""Units that are silent or saturated, and tensors of zeros."""

from pathlib import Path
from typing import Any

import torch
from torch import nn
from training.torch_loop import adam, fit, sgd
from training_runs import faulty

from runs_tuned.fourth_held_out.units.shared.consequences import STILL, WILD
from runs_tuned.fourth_held_out.units.shared.signals import calls, flocks, strides
from runs_tuned.fourth_held_out.units.shared.tables import kilns, minerals, plain


@faulty(
    "minerals, sparse weights by soft thresholds after each step, SGD",
    "the threshold is 0.015 in each step, and not 0.015 times the rate: all weights become zero",
    {"AllZero", "TensorVariance"},
    may=STILL,
)
def threshold_without_the_rate(root: Path) -> int:
    weights: list[Any] = []

    def make() -> Any:
        model = plain(12, 40, 40, 5)
        weights.extend(each for each in model.parameters() if each.dim() > 1)
        return model

    def update(optimizer: Any) -> None:
        optimizer.step()
        with torch.no_grad():
            for weight in weights:
                weight.copy_(nn.functional.softshrink(weight, 0.015))

    data = minerals(1500, 941)
    return fit(root, make, data, optimizer=sgd(0.05), steps=140, update=update)


class Switched(nn.Module):
    """Layers whose units are switched by what an own layer says, 0 or 1."""

    def __init__(self) -> None:
        super().__init__()
        self.switch = nn.Linear(10, 32)
        self.body, self.act, self.head = nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 1)

    def forward(self, x: Any) -> Any:
        on = torch.sigmoid(self.switch(x)).round()
        return self.head(self.act(self.body(x)) * on)


@faulty(
    "hardness of pots, units are switched on and off by a layer, Adam",
    "switches are rounded without a straight-through trick: their layer gets gradients of zeros",
    {"AllZero", "VanishingGradient"},
    may=STILL,
)
def switches_rounded(root: Path) -> int:
    data = kilns(1500, 0.3, 942)
    return fit(root, Switched, data, loss=nn.MSELoss(), optimizer=adam(4e-3), steps=150, seed=1)


class Similar(nn.Module):
    """What is near to each of some prototypes, beside a linear layer."""

    def __init__(self) -> None:
        super().__init__()
        self.prototypes = nn.Parameter(torch.randn(24, 12))
        self.act, self.near, self.far = nn.ReLU(), nn.Linear(24, 5), nn.Linear(12, 5)

    def forward(self, x: Any) -> Any:
        similar = self.act(-(torch.cdist(x, self.prototypes) ** 2) / 12)
        return self.near(similar) + self.far(x)


@faulty(
    "minerals by how similar they are to prototypes, and by a linear layer, RMSprop",
    "similarity is a negative distance without its offset, and ReLU makes a zero of it",
    {"AllZero", "DeadRelu"},
    may=STILL,
)
def similarity_without_offset(root: Path) -> int:
    optimizer = adam(3e-3, torch.optim.RMSprop)
    return fit(root, Similar, minerals(1500, 943), optimizer=optimizer, steps=140, seed=2)


@faulty(
    "shares of three glazes in logarithms, by a network of before, Adam",
    "it ends with ReLU, as shares are positive; their logarithms are all negative",
    {"DeadRelu", "GradientNormZero"},
    may=STILL,
)
def logarithms_behind_relu(root: Path) -> int:
    data = kilns(1500, 0.3, 944).relabelled(
        lambda y: -1.5 + 0.4 * torch.cat([y, -y, y.abs()], 1).clamp(-2.5, 2.5)
    )
    make = lambda: nn.Sequential(plain(10, 32, 32, 3), nn.ReLU())
    return fit(root, make, data, loss=nn.MSELoss(), optimizer=adam(5e-3), steps=160, seed=3)


class Inhibited(nn.Module):
    """Units that are inhibited by each other, beside a linear path."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.act = nn.Linear(12, 48), nn.ReLU()
        self.second, self.past = nn.Linear(48, 5), nn.Linear(12, 5)

    def forward(self, x: Any) -> Any:
        h = self.first(x)
        rivals = nn.functional.relu(h).sum(1, keepdim=True)
        return self.second(self.act(h - 0.5 * rivals)) + self.past(x)


@faulty(
    "minerals by units that inhibit each other, and a linear path, NAdam",
    "rivals are summed over 48 units instead of averaged: no unit gets above them",
    {"DeadRelu"},
    may=STILL,
)
def rivals_summed(root: Path) -> int:
    optimizer = adam(2e-3, torch.optim.NAdam)
    return fit(root, Inhibited, minerals(1500, 945), optimizer=optimizer, steps=140, seed=4)


class Filters(nn.Module):
    """A bank of filters of pitch, learnt from positive ones, beside the loudness by time."""

    def __init__(self) -> None:
        super().__init__()
        self.bank, self.act = nn.Conv2d(1, 16, (5, 3), bias=False), nn.ReLU()
        nn.init.uniform_(self.bank.weight, 0, 0.2)
        self.found, self.loud = nn.Linear(16, 5), plain(28, 24, 5, between=nn.Tanh)

    def forward(self, x: Any) -> Any:
        by_axis = torch.cat([x.mean((1, 2)), x.mean((1, 3))], 1) / 10 + 2
        return self.found(self.act(self.bank(x)).mean((2, 3))) + self.loud(by_axis)


@faulty(
    "calls of birds by a bank of positive filters and by their loudness, Adam",
    "pictures are in decibels, -40 to 0, and not in power: no filter ever answers",
    {"DeadRelu"},
    may=STILL,
)
def decibels_through_filters(root: Path) -> int:
    data = calls(1000, 0.4, 946).of(lambda x: (8 * x - 26).clamp(-40, 0))
    return fit(root, Filters, data, optimizer=adam(4e-3), steps=150, seed=5)


@faulty(
    "hardness of pots on a scale of 3 to 40, two outputs, momentum",
    "the network ends with tanh, but targets are not scaled to -1..1: it is driven to its limit",
    {"GradientNormZero", "SaturatedActivation"},
    may=WILD | STILL,
)
def targets_beyond_tanh(root: Path) -> int:
    data = kilns(1500, 0.3, 947).relabelled(
        lambda y: torch.cat([20 + 5 * y, 22 - 5 * y], 1).clamp(3, 40)
    )
    make = lambda: nn.Sequential(plain(10, 32, 2), nn.Tanh())
    loss = nn.MSELoss()
    return fit(root, make, data, loss=loss, optimizer=sgd(0.05, momentum=0.9), steps=160, seed=6)


class Gated(nn.Module):
    """A mean over birds, each weighed by a gate that is to be shut for those not there."""

    def __init__(self) -> None:
        super().__init__()
        self.bird, self.score, self.gate = plain(5, 32, 24), nn.Linear(24, 1), nn.Sigmoid()
        self.flock = plain(24, 24, 1)

    def forward(self, x: Any) -> Any:
        found = self.bird(x)
        scores = self.score(found)[..., 0].masked_fill(x[..., 4] > 0, -1e4)
        return self.flock((found * self.gate(scores)[..., None]).mean(1))


@faulty(
    "flocks of 12 to 16 birds, padded, gates of birds that are not there are to be shut, Adam",
    "the mask is 1 for birds that are there, but is taken for that of padding",
    {"SaturatedActivation"},
    may=STILL,
)
def gates_of_birds_shut(root: Path) -> int:
    def padded(x: Any) -> Any:
        sizes = 12 + torch.arange(len(x)) % 5
        there = (torch.arange(16) < sizes[:, None]).float()[..., None]
        return torch.cat([x * there, there], 2)

    data = flocks(900, 16, 948).of(padded)
    return fit(root, Gated, data, loss=nn.MSELoss(), optimizer=adam(4e-3), steps=150, seed=7)


class Leaky(nn.Module):
    """A memory of each unit, which forgets by gates that see the input, and its last state."""

    def __init__(self) -> None:
        super().__init__()
        self.keep, self.act = nn.Linear(3, 24), nn.Sigmoid()
        self.new, self.head = nn.Linear(3, 24), nn.Linear(24, 4)
        nn.init.uniform_(self.keep.bias, 1, 365)

    def forward(self, x: Any) -> Any:
        keep, new = self.act(self.keep(x)), torch.tanh(self.new(x))
        state = torch.zeros_like(new[:, 0])
        for at in range(x.shape[1]):
            state = keep[:, at] * state + (1 - keep[:, at]) * new[:, at]
        return self.head(state)


@faulty(
    "gaits by gates that keep a state, shifts are drawn by how long it is to be kept, RMSprop",
    "shifts are times of 1 to 365, and not their logarithms: gates stay open, nothing enters",
    {"SaturatedActivation"},
    may=STILL,
)
def times_without_logarithm(root: Path) -> int:
    optimizer = adam(4e-3, torch.optim.RMSprop)
    data = strides(900, 16, 0.5, 949)
    return fit(root, Leaky, data, optimizer=optimizer, steps=130, seed=8)
