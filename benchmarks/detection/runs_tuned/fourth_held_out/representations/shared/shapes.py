"""Shapes: spectra, bars, rolls and a graph, which are made up."""

import itertools
import math
from typing import Any, Final

import torch
from sklearn.datasets import make_s_curve, make_swiss_roll
from torch import nn

BINS: Final = 48
SIDE: Final = 12


def layers(*sizes: int, act: Any = nn.ReLU, norm: Any = None) -> Any:
    """Return linear layers with activations between them."""
    parts: list[Any] = []
    for number, (ins, outs) in enumerate(itertools.pairwise(sizes)):
        parts.append(nn.Linear(ins, outs))
        if number < len(sizes) - 2:
            parts += [norm(outs)] if norm else []
            parts.append(act())
    return nn.Sequential(*parts)


def spectra(count: int = 1200, seed: int = 0) -> tuple[Any, Any]:
    """Return spectra of two lines each over a slope, and which of five substances it is."""
    random = torch.Generator().manual_seed(seed)
    kind = torch.randint(5, (count,), generator=random)
    at = torch.linspace(0, 1, BINS)

    def uniform(low: float, high: float) -> Any:
        return low + (high - low) * torch.rand(count, 1, generator=random)

    first = 0.1 + 0.12 * kind[:, None] + uniform(-0.03, 0.03)
    second = 0.9 - 0.07 * kind[:, None] + uniform(-0.03, 0.03)
    x = uniform(0.6, 1.4) * (-((at - first) ** 2) / 0.004).exp()
    x = x + uniform(0.3, 1.0) * (-((at - second) ** 2) / 0.002).exp() + uniform(-0.3, 0.3) * at
    return x + 0.03 * torch.randn(count, BINS, generator=random), kind


def bars(count: int = 1000, seed: int = 0) -> tuple[Any, Any]:
    """Return pictures of 12 by 12 of a tilted soft bar, and its angle."""
    random = torch.Generator().manual_seed(seed)
    angle = math.pi * torch.rand(count, 1, 1, generator=random)
    offset = 4 * torch.rand(count, 1, 1, generator=random) - 2
    width = 0.6 + 0.8 * torch.rand(count, 1, 1, generator=random)
    y, x = torch.meshgrid(*[torch.arange(SIDE) - (SIDE - 1) / 2] * 2, indexing="ij")
    distance = x * angle.sin() - y * angle.cos() - offset
    pictures = (-((distance / width) ** 2)).exp()
    return pictures + 0.03 * torch.randn(count, SIDE, SIDE, generator=random), angle[:, 0, 0]


def roll(count: int = 1500, seed: int = 0) -> Any:
    """Return points of a rolled sheet."""
    points, _ = make_swiss_roll(count, noise=0.2, random_state=seed)
    return torch.tensor(points / 7.0).float()


def bent(count: int = 1500, seed: int = 0) -> Any:
    """Return points of a sheet that is bent like an S."""
    points, _ = make_s_curve(count, noise=0.05, random_state=seed)
    return torch.tensor(points).float()


def acquaintances(people: int = 150, groups: int = 5, seed: int = 0) -> tuple[Any, Any, Any]:
    """Return who knows whom with shares that add up to 1, traits, and groups."""
    random = torch.Generator().manual_seed(seed)
    group = torch.arange(people) % groups
    chance = torch.where(group[:, None] == group, 0.2, 0.02)
    knows = torch.rand(people, people, generator=random) < chance
    knows = (knows | knows.T).float()
    knows.fill_diagonal_(1)
    traits = torch.randn(groups, 12, generator=random)[group]
    return (
        knows / knows.sum(1, keepdim=True),
        traits + 1.5 * torch.randn(people, 12, generator=random),
        group,
    )
