"""Shapes: generated pictures and series, and dense networks."""

import functools
import itertools
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

SIDE = 10


@functools.cache
def rings(count: int = 800, seed: int = 320) -> tuple[Any, Any]:
    """Return pictures of rings, ``(n, 100)`` in -1..1, and which of three sizes each has."""
    random = torch.Generator().manual_seed(seed)
    at = torch.linspace(-1, 1, SIDE)
    size = torch.randint(0, 3, (count,), generator=random)
    middle = 0.5 * torch.rand(count, 2, generator=random) - 0.25
    flat = 0.7 + 0.6 * torch.rand(count, generator=random)
    x = at[None, None, :] - middle[:, :1, None]
    y = (at[None, :, None] - middle[:, 1:, None]) * flat[:, None, None]
    distance = (x**2 + y**2).sqrt() - (0.25 + 0.22 * size)[:, None, None]
    return (2 * torch.exp(-(distance**2) / 0.03) - 1).flatten(1), size


@functools.cache
def chords(count: int = 900, length: int = 32, seed: int = 321) -> tuple[Any, Any]:
    """Return series of two tones and some noise, and which of four lower tones each has."""
    random = torch.Generator().manual_seed(seed)
    at = torch.arange(length) / length * 6.283
    low = torch.randint(1, 5, (count,), generator=random)
    high = low + torch.randint(2, 5, (count,), generator=random)
    phase = 3 * torch.rand(count, 2, 1, generator=random)
    loud = 0.4 + 0.6 * torch.rand(count, 2, 1, generator=random)
    tones = torch.stack([low, high], 1)[..., None] * at
    clean = (loud * (tones + phase).sin()).sum(1)
    return clean + 0.05 * torch.randn(clean.shape, generator=random), low - 1


@functools.cache
def tides(count: int = 700, length: int = 30, seed: int = 322) -> tuple[Any, Any]:
    """Return 24 hours of three gauges, and the first gauge's next six hours."""
    random = torch.Generator().manual_seed(seed)
    start = 100 * torch.rand(count, 1, generator=random)
    hours = start + torch.arange(length)
    moon, sun = (hours / 12.4 * 6.283).sin(), (hours / 24 * 6.283).cos()
    wind = torch.randn(count, length, generator=random).cumsum(1) / 6
    gauges = torch.stack([moon + 0.4 * sun, moon.roll(2, 1) - wind, 0.5 * moon + wind], -1)
    gauges = gauges + 0.1 * torch.randn(gauges.shape, generator=random)
    return gauges[:, :24], gauges[:, 24:, 0]


def stack(*widths: int, act: Callable[[], Any] = nn.SiLU, norm: Any = None) -> Any:
    """Return linear layers with activations between them, and norms before those."""
    layers = list[Any]()
    for at, (ins, outs) in enumerate(itertools.pairwise(widths)):
        layers.append(nn.Linear(ins, outs))
        if at < len(widths) - 2:
            layers += [norm(outs)] if norm else []
            layers.append(act())
    return nn.Sequential(*layers)


class Tidal(nn.Module):
    """A transformer over hours that foresees the next six of the first gauge."""

    def __init__(self, width: int = 32, layers: int = 1, drop: float = 0.0) -> None:
        super().__init__()
        self.ins = nn.Linear(3, width)
        self.hours = nn.Parameter(0.1 * torch.randn(24, width))
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(width, 4, 2 * width, drop, batch_first=True)
            for _ in range(layers)
        )
        self.out = nn.Linear(24 * width, 6)

    def forward(self, x: Any) -> Any:
        x = self.ins(x) + self.hours
        for layer in self.layers:
            x = layer(x)
        return self.out(x.flatten(1))
