"""Generated pictures: patterns, masks, and the networks that see them."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional
from training.learnt_data import Split

from runs_tuned.second_held_out.shared.tables import split

SIDE = 12


@functools.cache
def patterns(count: int = 800, noise: float = 0.7, seed: int = 64) -> Split:
    """Return normalised pictures ``(n, 1, 12, 12)`` and which of five patterns they show."""
    rng = np.random.default_rng(seed)
    row, column = np.mgrid[:SIDE, :SIDE] / 1.7
    kind = rng.integers(5, size=count)
    images = np.zeros((count, 1, SIDE, SIDE))
    for at in range(count):
        phase, place = rng.uniform(0, 6, 2), rng.uniform(2, 5, 2)
        images[at, 0] = (
            np.sin(2 * row + phase[0]),
            np.sin(2 * column + phase[0]),
            np.sin(1.4 * (row + column) + phase[0]),
            2 * np.exp(-((row - place[0]) ** 2) - (column - place[1]) ** 2),
            np.sign(np.sin(row + phase[0]) * np.sin(column + phase[1])),
        )[kind[at]]
    images += noise * rng.normal(size=images.shape)
    return split((images - images.mean()) / images.std(), kind)


@functools.cache
def coloured(count: int = 700, seed: int = 65) -> Split:
    """Return normalised pictures of three colours and which of four fruits they show."""
    rng = np.random.default_rng(seed)
    row, column = np.mgrid[:SIDE, :SIDE]
    kind = rng.integers(4, size=count)
    colours = np.array([[2, 0.3, 0.2], [0.3, 1.8, 0.4], [1.6, 1.4, 0.1], [1.1, 0.4, 1.5]])
    images = 0.6 * rng.normal(size=(count, 3, SIDE, SIDE))
    for at in range(count):
        top, left = rng.uniform(3, 9, 2)
        blob = np.exp(-((row - top) ** 2 + (column - left) ** 2) / rng.uniform(3, 9))
        images[at] += colours[kind[at]][:, None, None] * blob * rng.uniform(0.6, 1.4)
    mean, deviation = images.mean((0, 2, 3)), images.std((0, 2, 3))
    return split((images - mean[:, None, None]) / deviation[:, None, None], kind)


@functools.cache
def masks(count: int = 500, seed: int = 66) -> Split:
    """Return normalised pictures of spots, and for each pixel 1 in a spot, or 0."""
    rng = np.random.default_rng(seed)
    row, column = np.mgrid[:SIDE, :SIDE]
    mask = np.zeros((count, 1, SIDE, SIDE))
    for at in range(count):
        for top, left, size in zip(*rng.uniform(1, 11, (2, 2)), rng.uniform(2, 7, 2), strict=True):
            mask[at, 0][(row - top) ** 2 + (column - left) ** 2 < size] = 1
    images = 1.6 * mask + 0.8 * rng.normal(size=mask.shape)
    return split((images - images.mean()) / images.std(), mask)


class Gallery(nn.Module):
    """Convolutions, each with a norm and an activation; a head of the mean over all places."""

    def __init__(
        self,
        classes: int = 5,
        channels: int = 1,
        width: int = 14,
        *,
        norm: Callable[[int], Any] = nn.BatchNorm2d,
        act: Callable[[], Any] = nn.ReLU,
        drop: float = 0.0,
    ) -> None:
        super().__init__()
        self.features = nn.Sequential(
            *(nn.Conv2d(channels, width, 3, padding=1), norm(width), act(), nn.MaxPool2d(2)),
            *(nn.Conv2d(width, 2 * width, 3, padding=1), norm(2 * width), act()),
        )
        self.dropout = nn.Dropout(drop)
        self.head = nn.Linear(2 * width, classes)

    def forward(self, x: Any) -> Any:
        return self.head(self.dropout(self.features(x).mean((2, 3))))


class Masker(nn.Module):
    """A small U: down, up, and a joint; a score for each pixel."""

    def __init__(self, width: int = 8, outs: int = 1, end: Any = None) -> None:
        super().__init__()
        self.down = nn.Sequential(
            nn.Conv2d(1, width, 3, padding=1), nn.GroupNorm(2, width), nn.SiLU()
        )
        self.deep = nn.Sequential(nn.Conv2d(width, 2 * width, 3, 2, 1), nn.SiLU())
        self.up = nn.ConvTranspose2d(2 * width, width, 2, 2)
        self.out = nn.Conv2d(2 * width, outs, 3, padding=1)
        self.end = end or nn.Identity()

    def forward(self, x: Any) -> Any:
        wide = self.down(x)
        narrow = functional.silu(self.up(self.deep(wide)))
        return self.end(self.out(torch.cat([wide, narrow], 1)))


def groups(width: int) -> Any:
    """Return a norm of two groups of channels."""
    return nn.GroupNorm(2, width)
