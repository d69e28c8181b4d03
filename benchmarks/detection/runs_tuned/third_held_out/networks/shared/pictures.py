"""Generated pictures: leaves, cells under a microscope, tracks; and their networks."""

import functools
import itertools
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from training.learnt_data import Split

LEAVES = 6


def _grid(size: int) -> tuple[Any, Any]:
    axis = torch.linspace(-1, 1, size)
    return torch.meshgrid(axis, axis, indexing="ij")


def _normalised(x: Any) -> Any:
    dims = (0, *range(2, x.dim()))
    return (x - x.mean(dims, keepdim=True)) / x.std(dims, keepdim=True)


def divided(x: Any, y: Any, share: float = 0.75) -> Split:
    """Return the first rows to train with, and the others to validate with."""
    cut = int(share * len(x))
    return Split(x[:cut], y[:cut], x[cut:], y[cut:])


@functools.cache
def leaves(count: int = 1100, noise: float = 0.5, size: int = 14, seed: int = 311) -> Split:
    """Return leaves in three colours, of one of six kinds.

    Kinds have two, three or five lobes, and are green or brown.
    """
    generator = torch.Generator().manual_seed(seed)
    rand = functools.partial(torch.rand, generator=generator)
    kind = torch.randint(LEAVES, (count,), generator=generator)
    lobes = torch.tensor([2.0, 3.0, 5.0])[kind // 2][:, None, None]
    down, right = _grid(size)
    down = down + 0.3 * (rand(count, 1, 1) - 0.5)
    right = right + 0.3 * (rand(count, 1, 1) - 0.5)
    angle = torch.atan2(down, right) + 0.8 * rand(count, 1, 1)
    edge = 0.55 + 0.3 * torch.cos(lobes * angle) + 0.1 * rand(count, 1, 1)
    leaf = torch.sigmoid(12 * (edge - (down**2 + right**2).sqrt()))[:, None]
    colour = torch.tensor([[0.2, 0.9, 0.2], [0.8, 0.5, 0.2]])[kind % 2][:, :, None, None]
    x = leaf * (colour + 0.15 * rand(count, 3, 1, 1))
    return divided(_normalised(x + 0.25 * noise * torch.randn(x.shape, generator=generator)), kind)


@functools.cache
def cells(count: int = 900, size: int = 16, seed: int = 312) -> tuple[Split, Any]:
    """Return pictures of up to six cells with where these are, and the number of cells."""
    generator = torch.Generator().manual_seed(seed)
    down, right = _grid(size)
    number = torch.randint(1, 7, (count,), generator=generator)
    places = 1.7 * torch.rand(count, 6, 2, 1, 1, generator=generator) - 0.85
    apart = (down - places[:, :, 0]) ** 2 + (right - places[:, :, 1]) ** 2
    there = (torch.arange(6) < number[:, None])[:, :, None, None]
    x = (torch.exp(-apart / 0.03) * there).sum(1, keepdim=True)
    where = (torch.exp(-apart / 0.01) * there).sum(1, keepdim=True)
    x = x + 0.15 * torch.randn(x.shape, generator=generator) + 0.3 * down
    return divided(_normalised(x), where), number


@functools.cache
def tracks(count: int = 1000, size: int = 18, seed: int = 313) -> Split:
    """Return pictures of a track ahead, and how far to steer: -1 to 1."""
    generator = torch.Generator().manual_seed(seed)
    down, right = _grid(size)
    bend = 2 * torch.rand(count, 1, 1, generator=generator) - 1
    start = 0.4 * torch.randn(count, 1, 1, generator=generator)
    ahead = (1 - down) / 2
    middle = start * (1 - ahead) + bend * ahead**2
    x = torch.exp(-(((right - middle) / 0.15) ** 2))[:, None]
    x = x + 0.3 * torch.randn(x.shape, generator=generator)
    return divided(_normalised(x), bend[:, 0])


def turned(x: Any, generator: Any) -> Any:
    """Return each picture turned by a random number of quarters, and mirrored at random."""
    quarter = torch.randint(4, (len(x),), generator=generator)
    turns = torch.stack([torch.rot90(x, number, (2, 3)) for number in range(4)])
    x = turns[quarter, torch.arange(len(x))]
    mirrored = torch.rand(len(x), generator=generator) < 0.5
    return torch.where(mirrored[:, None, None, None], x.flip(3), x)


def convolved(*channels: int, norm: Any = None, between: Callable[[], Any] = nn.ReLU) -> Any:
    """Return convolutions, each followed by what is between them."""
    found: list[Any] = []
    for ins, outs in itertools.pairwise(channels):
        found += [nn.Conv2d(ins, outs, 3, padding=1)]
        found += [norm(outs)] if norm else []
        found += [between()]
    return nn.Sequential(*found)


class Herbarium(nn.Module):
    """Tells pictures by convolutions, pooling, and a linear head."""

    def __init__(
        self,
        ins: int = 3,
        outs: int = LEAVES,
        width: int = 12,
        norm: Any = nn.BatchNorm2d,
        between: Callable[[], Any] = nn.ReLU,
        drop: float = 0.0,
    ) -> None:
        super().__init__()
        self.low = convolved(ins, width, width, norm=norm, between=between)
        self.pool = nn.MaxPool2d(2)
        self.high = convolved(width, 2 * width, norm=norm, between=between)
        self.drop = nn.Dropout(drop)
        self.head = nn.Linear(2 * width * 4, outs)

    def features(self, x: Any) -> Any:
        """Return what the head sees."""
        x = self.high(self.pool(self.low(x)))
        return self.drop(nn.functional.adaptive_avg_pool2d(x, 2).flatten(1))

    def forward(self, x: Any) -> Any:
        return self.head(self.features(x))


class Squeezed(nn.Module):
    """A residual block whose channels are weighted by what the whole picture shows."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.body = convolved(width, width, norm=lambda w: nn.GroupNorm(4, w), between=nn.SiLU)
        self.weigh = nn.Sequential(
            nn.Linear(width, 6), nn.ReLU(), nn.Linear(6, width), nn.Sigmoid()
        )

    def forward(self, x: Any) -> Any:
        y = self.body(x)
        return x + y * self.weigh(y.mean((2, 3)))[:, :, None, None]


class Mixer(nn.Module):
    """Mixes patches and their channels in turn."""

    def __init__(self, patches: int = 49, width: int = 24, outs: int = LEAVES) -> None:
        super().__init__()
        self.patch = nn.Conv2d(3, width, 2, 2)
        mixing = lambda size: nn.Sequential(
            nn.Linear(size, 2 * size), nn.GELU(), nn.Linear(2 * size, size)
        )
        self.places = nn.ModuleList(mixing(patches) for _ in range(2))
        self.channels = nn.ModuleList(mixing(width) for _ in range(2))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(5))
        self.head = nn.Linear(width, outs)

    def forward(self, x: Any) -> Any:
        x = self.patch(x).flatten(2).transpose(1, 2)
        for number, (places, channels) in enumerate(zip(self.places, self.channels, strict=True)):
            x = x + places(self.norms[2 * number](x).transpose(1, 2)).transpose(1, 2)
            x = x + channels(self.norms[2 * number + 1](x))
        return self.head(self.norms[4](x).mean(1))
