"""Generated pictures of calls, series of strides and rivers, flocks of birds; and networks."""

import functools
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from torch import nn
from training.learnt_data import Split

from runs_tuned.fourth_held_out.units.shared.tables import halves

SPECIES = 5
GAITS = 4


@functools.cache
def calls(count: int = 1100, noise: float = 0.5, seed: int = 911) -> Split:
    """Return loudness by pitch and time ``(n, 1, 12, 16)`` of a call, and the bird's species."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(SPECIES, size=count)[:, None]
    time = np.linspace(-1, 1, 16)
    start = rng.uniform(3.5, 7.5, (count, 1))
    slope, bend = np.array([3.0, -3.0, 0, 0, 1.5])[kind], np.array([0, 0, 3.0, -3.0, 0])[kind]
    beat = 1 + 0.8 * (kind == 4) * np.sin(9 * time + rng.uniform(0, 6, (count, 1)))
    pitch = start + slope * time + bend * (time**2 - 0.4)
    loud = beat[:, None] * np.exp(-((np.arange(12)[:, None] - pitch[:, None]) ** 2) / 1.5)
    loud = loud * rng.uniform(1.5, 3.0, (count, 1, 1)) + noise * rng.normal(size=loud.shape)
    return halves(((loud - loud.mean()) / loud.std())[:, None], kind[:, 0])


@functools.cache
def strides(count: int = 1000, length: int = 32, noise: float = 0.6, seed: int = 912) -> Split:
    """Return three accelerations over time ``(n, length, 3)``, and the gait."""
    rng = np.random.default_rng(seed)
    gait = rng.integers(GAITS, size=count)
    time, phase = np.arange(length), rng.uniform(0, 6.28, (count, 1))
    speed = np.array([0.35, 0.6, 0.6, 0.95])[gait][:, None] * rng.uniform(0.9, 1.1, (count, 1))
    swing = np.sin(speed * time + phase)
    jolt = np.cos(2 * speed * time + phase) * np.where(gait == 2, 1.2, 0.3)[:, None]
    sway = np.sin(speed * time / 2) * np.where(gait == 1, 1.0, 0.3)[:, None]
    x = np.stack([swing, jolt, sway], 2) + noise * rng.normal(size=(count, length, 3))
    return halves(x / x.std(), gait)


@functools.cache
def rivers(count: int = 1000, length: int = 24, seed: int = 913) -> Split:
    """Return rain and level of a river by day ``(n, length, 2)``, and its next level ``(n, 1)``."""
    rng = np.random.default_rng(seed)
    rain = rng.gamma(0.4, 1.5, (count, length + 1))
    level = np.zeros((count, length + 1))
    level[:, 0] = rng.normal(2, 0.7, count)
    for day in range(1, length + 1):
        soaked = 0.35 * rain[:, day - 1] / (1 + 0.2 * rain[:, day - 1])
        level[:, day] = 0.85 * level[:, day - 1] + soaked + 0.05 * rng.normal(size=count)
    level = (level - level.mean()) / level.std()
    x = np.stack([np.log1p(rain[:, :-1]), level[:, :-1]], 2)
    return halves(x, level[:, -1:])


@functools.cache
def flocks(count: int = 900, birds: int = 16, seed: int = 914) -> Split:
    """Return where birds are and fly to ``(n, birds, 4)``, and how well they agree ``(n, 1)``."""
    rng = np.random.default_rng(seed)
    agree = rng.uniform(0, 1, count)
    course = rng.uniform(0, 6.28, (count, 1)) + (1 - agree[:, None]) * rng.uniform(
        -3, 3, (count, birds)
    )
    place = rng.normal(size=(count, birds, 2))
    x = np.concatenate([place, np.cos(course)[..., None], np.sin(course)[..., None]], 2)
    found = np.hypot(x[:, :, 2].mean(1), x[:, :, 3].mean(1))
    return halves(x, ((found - found.mean()) / found.std())[:, None])


@functools.cache
def lines_of_digits() -> Split:
    """Return digits line by line ``(n, 8, 8)``, from 0 to 1, in an order of their own."""
    found = load_digits()
    order = np.random.default_rng(915).permutation(len(found.target))
    return halves(found.images[order] / 16, found.target[order])


class Ear(nn.Module):
    """Convolutions over pitch and time, the mean over all places, and a linear layer."""

    def __init__(self, width: int = 12, norm: Any = None, act: Any = nn.ReLU) -> None:
        super().__init__()
        layers: list[Any] = []
        for ins, outs, stride in ((1, width, 1), (width, 2 * width, 2), (2 * width, 2 * width, 1)):
            layers.append(nn.Conv2d(ins, outs, 3, stride, 1))
            layers += [norm(outs)] if norm else []
            layers.append(act())
        self.body, self.head = nn.Sequential(*layers), nn.Linear(2 * width, SPECIES)

    def forward(self, x: Any) -> Any:
        return self.head(self.body(x).mean((2, 3)))


class Pace(nn.Module):
    """Convolutions over time, dilated and added to what they see; the mean, a linear layer."""

    def __init__(self, width: int = 16, norm: Any = nn.BatchNorm1d) -> None:
        super().__init__()
        self.stem = nn.Conv1d(3, width, 3, padding=1)
        self.blocks = nn.ModuleList(
            nn.Sequential(
                nn.Conv1d(width, width, 3, padding=far, dilation=far), norm(width), nn.ReLU()
            )
            for far in (1, 2, 4)
        )
        self.head = nn.Linear(width, GAITS)

    def forward(self, x: Any) -> Any:
        h = self.stem(x.transpose(1, 2))
        for block in self.blocks:
            h = h + block(h)
        return self.head(h.mean(2))


class Memory(nn.Module):
    """A recurrent layer over a series, and a linear one on its last or mean output."""

    def __init__(self, cell: Any, ins: int, outs: int, *, mean: bool = False, **more: Any) -> None:
        super().__init__()
        self.cell = cell(ins, 24, batch_first=True, **more)
        self.head = nn.Linear(48 if more.get("bidirectional") else 24, outs)
        self.mean = mean

    def forward(self, x: Any) -> Any:
        found, _ = self.cell(x)
        return self.head(found.mean(1) if self.mean else found[:, -1])


class Flock(nn.Module):
    """The same layers for each bird, the mean or maximum of all, and layers behind it."""

    def __init__(self, *, highest: bool = False, norm: bool = False) -> None:
        super().__init__()
        self.bird = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 32))
        self.norm = nn.LayerNorm(32) if norm else nn.Identity()
        self.flock = nn.Sequential(nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 1))
        self.highest = highest

    def forward(self, x: Any) -> Any:
        found = self.bird(x)
        return self.flock(self.norm(found.amax(1) if self.highest else found.mean(1)))
