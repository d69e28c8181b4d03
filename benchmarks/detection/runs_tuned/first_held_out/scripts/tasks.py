"""Tasks: generated data that the held-out scripts learn from, and the networks that do."""

import functools
import itertools
from typing import Any

import numpy as np
import torch
from sklearn.datasets import make_friedman2
from torch import nn
from training.learnt_data import Split


def parted(x: Any, y: Any, *, share: float = 0.8) -> Split:
    """Return the first rows to train with, and the others to validate with."""
    cut = int(share * len(x))
    inputs = torch.as_tensor(np.asarray(x), dtype=torch.float32)
    targets = torch.as_tensor(np.asarray(y))
    if targets.is_floating_point():
        targets = targets.float()
    return Split(inputs[:cut], targets[:cut], inputs[cut:], targets[cut:])


@functools.cache
def sensors(kinds: int = 6, count: int = 1500, seed: int = 51) -> Split:
    """Return eighteen readings of machines and the states that they are in, one of `kinds`."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(0, 0.9, (kinds, 18))
    state = rng.integers(kinds, size=count)
    return parted(centres[state] + rng.normal(0, 1.0, (count, 18)), state)


@functools.cache
def impedance(count: int = 1000) -> Split:
    """Return four quantities and the impedance of a circuit, all of them standardised."""
    x, y = make_friedman2(count, noise=60.0, random_state=52)
    return parted((x - x.mean(0)) / x.std(0), ((y - y.mean()) / y.std())[:, None])


@functools.cache
def shapes(count: int = 500, seed: int = 53) -> Split:
    """Return images ``(n, 1, 12, 12)`` and for each pixel 0, or 1 in discs, or 2 in bars."""
    rng = np.random.default_rng(seed)
    row, column = np.mgrid[:12, :12]
    label = np.zeros((count, 12, 12), np.int64)
    for at in range(count):
        top, left = rng.integers(2, 10, 2)
        label[at][(row - top) ** 2 + (column - left) ** 2 <= rng.integers(3, 9)] = 1
        bar = rng.integers(0, 10)
        label[at][:, bar : bar + 2] = 2
    brightness = np.array([-0.6, 0.9, 0.3])[label] + 0.35 * rng.normal(size=label.shape)
    return parted((brightness - brightness.mean())[:, None], label)


@functools.cache
def tags(count: int = 1200, seed: int = 54) -> Split:
    """Return twenty counts of words, standardised, and for each of five tags 0 or 1."""
    rng = np.random.default_rng(seed)
    tag = (rng.random((count, 5)) < [0.5, 0.4, 0.35, 0.3, 0.25]).astype(np.float32)
    x = rng.poisson(0.6 + tag @ rng.uniform(0, 1.6, (5, 20))).astype(float)
    return parted((x - x.mean(0)) / x.std(0), tag)


@functools.cache
def beats(count: int = 800, length: int = 24, seed: int = 55) -> Split:
    """Return series ``(n, length, 2)`` of two channels, and which of four rhythms they have."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(4, size=count)
    time = np.arange(length) + rng.uniform(0, 9, (count, 1))
    first = np.sin(time * np.array([0.5, 0.8, 1.1, 1.4])[kind][:, None])
    second = np.cos(time * np.array([1.4, 0.5, 0.8, 1.1])[kind][:, None])
    return parted(np.stack([first, second], 2) + 0.4 * rng.normal(size=(count, length, 2)), kind)


class Blocks(nn.Module):
    """Blocks that are gated by themselves, with norms and dropout, and a linear head."""

    def __init__(self, ins: int, outs: int, width: int = 40, drop: float = 0.2) -> None:
        super().__init__()
        self.stem = nn.Linear(ins, width)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.gates = nn.ModuleList(nn.Linear(width, 2 * width) for _ in range(2))
        self.dropout = nn.Dropout(drop)
        self.head = nn.Linear(width, outs)

    def forward(self, x: Any) -> Any:
        x = self.stem(x)
        for norm, gate in zip(self.norms, self.gates, strict=True):
            x = x + self.dropout(nn.functional.glu(gate(norm(x))))
        return self.head(x)


class Segmenter(nn.Module):
    """Convolutions with group norm, dilated in the middle; scores of three classes a pixel."""

    def __init__(self, end: Any = None) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(1, 12, 3, padding=1),
            nn.GroupNorm(3, 12),
            nn.LeakyReLU(0.1),
            nn.Conv2d(12, 12, 3, padding=2, dilation=2),
            nn.LeakyReLU(0.1),
            nn.Conv2d(12, 3, 1),
        )
        self.end = end or nn.Identity()

    def forward(self, x: Any) -> Any:
        return self.end(self.layers(x))


class Rhythm(nn.Module):
    """Convolutions over time with batch norm, a bidirectional GRU, dropout, and a head."""

    def __init__(self, drop: float = 0.3) -> None:
        super().__init__()
        self.convolution = nn.Conv1d(2, 12, 5, padding=2)
        self.norm = nn.BatchNorm1d(12)
        self.recurrent = nn.GRU(12, 12, batch_first=True, bidirectional=True)
        self.dropout = nn.Dropout(drop)
        self.head = nn.Linear(24, 4)

    def forward(self, x: Any) -> Any:
        x = nn.functional.elu(self.norm(self.convolution(x.transpose(1, 2))))
        outputs, _ = self.recurrent(x.transpose(1, 2))
        return self.head(self.dropout(outputs.mean(1)))


def tower(*widths: int, drop: float = 0.0) -> Any:
    """Return linear layers with SiLU, and dropout, between them."""
    layers: list[Any] = []
    for before, after in itertools.pairwise(widths[:-1]):
        layers += [nn.Linear(before, after), nn.SiLU(), nn.Dropout(drop)]
    return nn.Sequential(*layers, nn.Linear(*widths[-2:]))
