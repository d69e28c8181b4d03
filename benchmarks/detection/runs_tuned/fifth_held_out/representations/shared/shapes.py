"""Shapes: clocks, gaits, stars and knots, which are made up, blood values and photographs."""

import math
from typing import Any, Final

import torch
from sklearn.datasets import load_breast_cancer, load_sample_image

SIDE: Final = 12
GAIT: Final = 48


def _random(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def clocks(count: int = 800, seed: int = 0) -> tuple[Any, Any]:
    """Return pictures of clocks from 0 to 1, (count, 144), and their hours and quarters."""
    random = _random(seed)
    hour = torch.randint(12, (count,), generator=random)
    quarter = torch.randint(4, (count,), generator=random)
    line = torch.linspace(-1, 1, SIDE)
    y, x = torch.meshgrid(line, line, indexing="ij")
    pictures = 0.4 * (-(((x**2 + y**2).sqrt() - 0.9) ** 2) / 0.01).exp().expand(count, -1, -1)
    for turn, length in (((hour + quarter / 4) / 12, 0.5), (quarter / 4, 0.85)):
        angle = 2 * math.pi * turn[:, None, None]
        along = x * angle.sin() - y * angle.cos()
        across = x * angle.cos() + y * angle.sin()
        far = (along - along.clamp(0, length)) ** 2 + across**2
        pictures = torch.maximum(pictures, (-far / 0.02).exp())
    pictures = pictures + 0.05 * torch.rand(pictures.shape, generator=random)
    return pictures.clamp(0, 1).flatten(1), torch.stack([hour, quarter], 1)


def gaits(count: int = 800, seed: int = 0) -> tuple[Any, Any]:
    """Return three joints' angles at 16 times, (count, 48), and which of five persons walks."""
    random = _random(seed)
    person = torch.randint(5, (count,), generator=random)
    style = torch.randn(5, 3, 4, generator=_random(99))
    time = torch.arange(16) / 16 + torch.rand(count, 1, generator=random)
    waves = torch.stack(
        [part(2 * math.pi * n * time) for n in (1, 2) for part in (torch.sin, torch.cos)], 1
    )
    speed = 0.8 + 0.4 * torch.rand(count, 1, 1, generator=random)
    rows = speed * torch.einsum("pjw,pwt->pjt", style[person], waves)
    return (rows + 0.1 * torch.randn(rows.shape, generator=random)).flatten(1) / 2, person


def stars(count: int = 1500, seed: int = 0) -> Any:
    """Return points of a star with five rays."""
    random = _random(seed)
    angle = 2 * math.pi * torch.rand(count, generator=random)
    far = 1 + 0.4 * (5 * angle).cos()
    points = far[:, None] * torch.stack([angle.cos(), angle.sin()], 1)
    return points + 0.04 * torch.randn(points.shape, generator=random)


def knots(count: int = 1500, seed: int = 0) -> Any:
    """Return points of a trefoil knot in space."""
    random = _random(seed)
    at = 2 * math.pi * torch.rand(count, generator=random)
    parts = [
        at.sin() + 2 * (2 * at).sin(),
        at.cos() - 2 * (2 * at).cos(),
        -(3 * at).sin(),
    ]
    points = torch.stack(parts, 1) / 2
    return points + 0.04 * torch.randn(points.shape, generator=random)


def blood() -> tuple[Any, Any]:
    """Return the 30 standardised values of the cancer data, and their class."""
    data = load_breast_cancer()
    x = torch.tensor(data.data, dtype=torch.float32)
    return (x - x.mean(0)) / x.std(0), torch.tensor(data.target)


def photographs(count: int = 1200, seed: int = 0) -> Any:
    """Return patches of 8 by 8 grey pixels of a flower, (count, 64), standardised."""
    grey = torch.tensor(load_sample_image("flower.jpg")).float().mean(-1)[::2, ::2]
    tiles = grey.unfold(0, 8, 4).unfold(1, 8, 4).reshape(-1, 64)
    tiles = tiles[torch.randperm(len(tiles), generator=_random(seed))[:count]]
    return (tiles - tiles.mean()) / tiles.std()
