"""Pictures: tiles of kinds and dials of instruments, and networks that see them."""

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from training.learnt_data import Split

SIZE = 16
TINT = (0.62, 0.45, 0.3)


def _patterns(kind: Any, generator: Any) -> Any:
    """Return one grey picture for each kind: stripes, columns, checks, discs, crosses, slants."""
    count = len(kind)
    row = torch.arange(SIZE).float()
    down, right = row[None, :, None], row[None, None, :]
    phase = torch.randint(0, 4, (2, count, 1, 1), generator=generator)
    middle = 5 + 6 * torch.rand(2, count, 1, 1, generator=generator)
    radius = 3 + 2 * torch.rand(count, 1, 1, generator=generator)
    near = (down - middle[0]).abs(), (right - middle[1]).abs()
    lines = ((down + phase[0]) % 4 < 2).expand(count, SIZE, SIZE)
    columns = ((right + phase[1]) % 4 < 2).expand(count, SIZE, SIZE)
    disc = near[0] ** 2 + near[1] ** 2 < radius**2
    cross = ((near[0] < 1) | (near[1] < 1)) & (near[0] < 9) & (near[1] < 9)
    slant = (down + right + phase[0]) % 6 < 3
    every = torch.stack([lines, columns, lines ^ columns, disc, cross, slant], 1)
    return every[torch.arange(count), kind].float()


@functools.cache
def raw_tiles(count: int, seed: int, *, noise: float = 0.15, kinds: int = 6) -> tuple[Any, Any]:
    """Return coloured pictures of 0 to 1, ``(count, 3, 16, 16)``, and their kinds."""
    generator = torch.Generator().manual_seed(seed)
    kind = torch.randint(0, kinds, (count,), generator=generator)
    light = 0.7 + 0.6 * torch.rand(count, 3, 1, 1, generator=generator)
    tint = torch.tensor(TINT)[:, None, None] * light
    x = tint * (0.6 + 0.8 * _patterns(kind, generator)[:, None])
    x = x + noise * torch.randn(count, 3, SIZE, SIZE, generator=generator)
    return x.clamp(0, 1), kind


def halves(x: Any, y: Any, tested: int) -> Split:
    """Return a split whose last rows are tested."""
    return Split(x[:-tested], y[:-tested], x[-tested:], y[-tested:])


def levelled(data: Split) -> Split:
    """Return pictures less their mean, by their deviation, both of the training set."""
    mean = data.x.mean((0, 2, 3), keepdim=True)
    deviation = data.x.std((0, 2, 3), keepdim=True)
    return data.of(lambda x: (x - mean) / deviation)


def tiles(count: int, seed: int, *, tested: int = 200, **more: Any) -> Split:
    """Return normalised tiles and their kinds."""
    return levelled(halves(*raw_tiles(count, seed, **more), tested))


@functools.cache
def raw_dials(count: int, seed: int, noise: float = 0.1) -> tuple[Any, Any]:
    """Return pictures of a hand, ``(count, 1, 16, 16)`` of 0 to 1, and its angle in turns."""
    generator = torch.Generator().manual_seed(seed)
    turn = torch.rand(count, generator=generator)
    at = torch.arange(SIZE).float() - 7.5
    down, right = at[None, :, None], at[None, None, :]
    angle = 2 * torch.pi * turn[:, None, None]
    along = down * angle.sin() + right * angle.cos()
    beside = down * angle.cos() - right * angle.sin()
    hand = ((beside.abs() < 1.1) & (along > -1) & (along < 7)).float()
    x = 0.1 + 0.7 * hand + noise * torch.randn(count, SIZE, SIZE, generator=generator).abs()
    return x.clamp(0, 1)[:, None], turn


def directions(turn: Any) -> Any:
    """Return the sine and the cosine of turns."""
    return torch.stack([(2 * torch.pi * turn).sin(), (2 * torch.pi * turn).cos()], 1)


def dials(count: int, seed: int, target: Callable[[Any], Any], tested: int = 200) -> Split:
    """Return normalised pictures of a hand, and what `target` makes of its angle."""
    x, turn = raw_dials(count, seed)
    return levelled(halves(x, target(turn), tested))


def _grouped(inputs: int, outputs: int, stride: int) -> Any:
    convolution = nn.Conv2d(inputs, outputs, 3, stride, 1)
    return nn.Sequential(convolution, nn.GroupNorm(4, outputs), nn.SiLU())


class Viewer(nn.Module):
    """Convolutions with group norm, a mean over places, and one linear layer."""

    def __init__(self, channels: int, out: int, width: int = 12, drop: float = 0.0) -> None:
        super().__init__()
        self.stem = _grouped(channels, width, 1)
        self.stages = nn.Sequential(
            _grouped(width, 2 * width, 2), _grouped(2 * width, 2 * width, 2)
        )
        self.drop, self.head = nn.Dropout(drop), nn.Linear(2 * width, out)

    def forward(self, x: Any) -> Any:
        return self.head(self.drop(self.stages(self.stem(x)).mean((2, 3))))


class Pocket(nn.Module):
    """Separable convolutions with batch norm and Hardswish, as for telephones."""

    def __init__(self, channels: int, out: int, width: int = 16, drop: float = 0.2) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(channels, width, 3, 2, 1, bias=False), nn.BatchNorm2d(width), nn.Hardswish()
        )
        self.deep = nn.Sequential(
            nn.Conv2d(width, width, 3, 1, 1, groups=width, bias=False),
            nn.BatchNorm2d(width),
            nn.Hardswish(),
            nn.Conv2d(width, 2 * width, 1, bias=False),
            nn.BatchNorm2d(2 * width),
            nn.Hardswish(),
        )
        self.drop, self.head = nn.Dropout(drop), nn.Linear(2 * width, out)

    def forward(self, x: Any) -> Any:
        return self.head(self.drop(self.deep(self.stem(x)).mean((2, 3))))


class Sight(nn.Module):
    """Two convolutions with ELU, and dense layers that know places."""

    def __init__(self, channels: int, out: int, width: int = 8, hidden: int = 32) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(channels, width, 3, 2, 1),
            nn.ELU(),
            nn.Conv2d(width, 2 * width, 3, 2, 1),
            nn.ELU(),
            nn.Flatten(),
            nn.Linear(2 * width * 16, hidden),
            nn.ELU(),
            nn.Linear(hidden, out),
        )

    def forward(self, x: Any) -> Any:
        return self.layers(x)
