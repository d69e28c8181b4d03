"""Generated pictures: dominoes, badges and balls; convolutions."""

import functools
from typing import Any

import numpy as np
from torch import nn
from training.learnt_data import Split

from runs_tuned.sixth_held_out.units.shared.tables import parted

BADGES = 5


def _shown(light: Any) -> Any:
    return ((light - light.mean()) / light.std())[:, None]


@functools.cache
def dominoes(count: int = 1100, noise: float = 0.25, seed: int = 2011) -> Split:
    """Return pictures ``(n, 1, 12, 20)`` of two halves with dots, and which one has more."""
    rng = np.random.default_rng(seed)
    halves, dots = np.zeros((2, count, 12, 10)), rng.integers(6, size=(2, count))
    dots[1] = (dots[0] + rng.integers(1, 6, count)) % 6
    places = [(y, x) for y in (2, 6, 9) for x in (3, 7)]
    for half, many in zip(halves, dots, strict=True):
        order = rng.random((count, 6)).argsort(1)
        for at, (y, x) in enumerate(places):
            on = (order[:, at] < many)[:, None, None]
            half[:, y - 1 : y + 1, x - 1 : x + 1] += on * rng.uniform(0.7, 1.2, (count, 1, 1))
    light = np.concatenate(list(halves), 2) + noise * rng.normal(size=(count, 12, 20))
    return parted(_shown(light), (dots[0] > dots[1]).astype(int))


@functools.cache
def badges(count: int = 1200, noise: float = 0.7, seed: int = 2012) -> Split:
    """Return pictures ``(n, 1, 18, 18)`` of a triangle, disc, cross, crescent or frame."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(BADGES, size=count)
    at = np.linspace(-1, 1, 18)
    shift, size = rng.uniform(-0.25, 0.25, (2, count, 1, 1)), rng.uniform(0.5, 0.75, (count, 1, 1))
    x, y = (at[None, None] - shift[0]) / size, (at[None, :, None] - shift[1]) / size
    wide, high = np.abs(x), np.abs(y)
    far = np.hypot(x, y)
    shapes = [
        (high < 1) & (wide < (y + 1) / 2),
        far < 0.95,
        ((wide < 0.3) | (high < 0.3)) & (np.maximum(wide, high) < 1),
        (far < 1) & (np.hypot(x - 0.5, y) > 0.8),
        (np.maximum(wide, high) < 0.95) & (np.maximum(wide, high) > 0.6),
    ]
    light = np.stack(shapes, 1)[np.arange(count), kind] * rng.uniform(0.8, 1.2, (count, 1, 1))
    return parted(_shown(light + noise * 0.5 * rng.normal(size=light.shape)), kind)


@functools.cache
def balls(count: int = 1100, noise: float = 0.5, seed: int = 2013) -> Split:
    """Return pictures ``(n, 1, 16, 16)`` of balls, and from where they are lit ``(n, 2)``."""
    rng = np.random.default_rng(seed)
    angle, size = rng.uniform(0, 2 * np.pi, (count, 1, 1)), rng.uniform(0.5, 0.8, (count, 1, 1))
    at = np.linspace(-1, 1, 16)
    shift = rng.uniform(-0.2, 0.2, (2, count, 1, 1))
    x, y = (at[None, None] - shift[0]) / size, (at[None, :, None] - shift[1]) / size
    front = np.sqrt(np.maximum(1 - x**2 - y**2, 0))
    lit = 0.8 * (x * np.cos(angle) + y * np.sin(angle)) + 0.3 * front
    light = np.maximum(lit, 0) * (front > 0)
    light = light / light.std() + noise * rng.normal(size=light.shape)
    return parted(_shown(light), np.concatenate([np.cos(angle), np.sin(angle)], 1)[..., 0])


class Lens(nn.Module):
    """Three convolutions, what is left of 3 by 3 places, and a linear layer."""

    def __init__(
        self, outs: int = BADGES, width: int = 12, norm: Any = None, act: Any = nn.ReLU
    ) -> None:
        super().__init__()
        parts: list[Any] = []
        for ins, wide, stride in ((1, width, 2), (width, 2 * width, 2), (2 * width, 2 * width, 1)):
            parts += [nn.Conv2d(ins, wide, 3, stride, 1), *([norm(wide)] if norm else []), act()]
        self.body = nn.Sequential(*parts, nn.AdaptiveAvgPool2d(3), nn.Flatten())
        self.head = nn.Linear(18 * width, outs)

    def forward(self, x: Any) -> Any:
        return self.head(self.body(x))


class Added(nn.Module):
    """A convolution and what it is added to."""

    def __init__(self, width: int, norm: Any, act: Any, size: int = 3) -> None:
        super().__init__()
        self.body = nn.Sequential(
            *(norm(width), act(), nn.Conv2d(width, width, size, padding=size // 2)),
            *(norm(width), act(), nn.Conv2d(width, width, size, padding=size // 2)),
        )

    def forward(self, x: Any) -> Any:
        return x + self.body(x)


def residual(outs: int, width: int, norm: Any = nn.BatchNorm2d, act: Any = nn.ReLU) -> Any:
    """Return two residual blocks between a stem with a stride and a linear layer."""
    return nn.Sequential(
        nn.Conv2d(1, width, 3, 2, 1),
        *(Added(width, norm, act) for _ in range(2)),
        *(norm(width), act(), nn.AdaptiveAvgPool2d(3), nn.Flatten()),
        nn.Linear(9 * width, outs),
    )
