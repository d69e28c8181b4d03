"""Pictures: stained cells, land from above and flags, and networks that see them."""

import functools
from typing import Any

import torch
from torch import nn
from training.learnt_data import Split

SIDE = 20
STAIN = (0.35, 0.55, 0.25)
GLASS = (0.85, 0.72, 0.8)


def divided(x: Any, y: Any, tested: int) -> Split:
    """Return a split whose first rows are tested."""
    return Split(x[tested:], y[tested:], x[:tested], y[:tested])


def centred(data: Split) -> Split:
    """Return pictures less the mean of a channel, by its deviation, both of the training set."""
    mean = data.x.mean((0, 2, 3), keepdim=True)
    deviation = data.x.std((0, 2, 3), keepdim=True)
    return data.of(lambda x: (x - mean) / deviation)


def _spots(middles: Any, radius: Any, side: int = SIDE) -> Any:
    """Return how near each place is to the middles ``(count, spots, 2)``, softly cut at 0 and 1."""
    places = torch.arange(side).float()
    down = (places[None, None, :, None] - middles[:, :, 0, None, None]) ** 2
    right = (places[None, None, None, :] - middles[:, :, 1, None, None]) ** 2
    return torch.sigmoid(2 * (radius - (down + right).sqrt())).amax(1)


@functools.cache
def raw_cells(count: int, seed: int, *, noise: float = 0.06, kinds: int = 5) -> tuple[Any, Any]:
    """Return stained cells of 0 to 1, ``(count, 3, 20, 20)``, and their kinds."""
    generator = torch.Generator().manual_seed(seed)
    kind = torch.randint(0, kinds, (count,), generator=generator)
    middle = 8 + 4 * torch.rand(count, 1, 2, generator=generator)
    turn = 2 * torch.pi * torch.rand(count, 1, generator=generator)
    away = torch.stack([turn.sin(), turn.cos()], 2)
    large = 5 + torch.rand(count, 1, 1, 1, generator=generator)
    one = _spots(middle, large)
    pair = _spots(torch.cat([middle + 4 * away, middle - 4 * away], 1), 0.5 * large)
    ring = one - _spots(middle, 0.55 * large)
    rod = _spots(middle + away * torch.linspace(-7, 7, 12)[:, None], 0.24 * large)
    three = torch.tensor([0.0, 2.1, 4.2]) + turn
    many = _spots(middle + 5 * torch.stack([three.sin(), three.cos()], 2), 0.35 * large)
    shape = torch.stack([one, pair, ring, rod, many], 1)[torch.arange(count), kind][:, None]
    light = 0.85 + 0.3 * torch.rand(count, 1, 1, 1, generator=generator)
    x = torch.tensor(GLASS)[:, None, None] - shape * torch.tensor(STAIN)[:, None, None]
    x = light * x + noise * torch.randn(count, 3, SIDE, SIDE, generator=generator)
    return x.clamp(0, 1), kind


def cells(count: int, seed: int, *, tested: int = 300, **more: Any) -> Split:
    """Return normalised cells and their kinds."""
    return centred(divided(*raw_cells(count, seed, **more), tested))


@functools.cache
def raw_land(count: int, seed: int, *, noise: float = 0.3) -> tuple[Any, Any, Any]:
    """Return heights of land, ``(count, 1, 20, 20)``, its kind of four, and how steep it is."""
    generator = torch.Generator().manual_seed(seed)
    kind = torch.randint(0, 4, (count,), generator=generator)
    places = torch.arange(SIDE).float()
    phase = 6.3 * torch.rand(3, count, 1, 1, generator=generator)
    high = 0.6 + 0.8 * torch.rand(count, 1, 1, generator=generator)
    down, right = places[None, :, None], places[None, None, :]
    dunes = torch.sin(1.6 * down + 0.3 * right + phase[0])
    hills = torch.sin(0.5 * down + phase[0]) * torch.sin(0.5 * right + phase[1])
    ridges = torch.sin(0.9 * (down + right) + phase[1]).abs() * 1.6 - 1
    steps = torch.sign(torch.sin(0.7 * right + phase[2])).expand(count, SIDE, SIDE)
    height = high * torch.stack([dunes, hills, ridges, steps], 1)[torch.arange(count), kind]
    slope = (height[:, 1:, 1:] - height[:, :-1, 1:]) ** 2 + (
        height[:, 1:, 1:] - height[:, 1:, :-1]
    ) ** 2
    steep = slope.mean((1, 2)).sqrt()[:, None]
    x = height + noise * torch.randn(count, SIDE, SIDE, generator=generator)
    return x[:, None], kind, (steep - steep.mean()) / steep.std()


def land(count: int, seed: int, *, tested: int = 300, noise: float = 0.3) -> Split:
    """Return normalised heights and their kinds."""
    x, kind, _ = raw_land(count, seed, noise=noise)
    return centred(divided(x, kind, tested))


def slopes(count: int, seed: int, *, tested: int = 300, noise: float = 0.3) -> Split:
    """Return normalised heights, and how steep the land is."""
    x, _, steep = raw_land(count, seed, noise=noise)
    return centred(divided(x, steep, tested))


@functools.cache
def raw_flags(count: int, seed: int, noise: float = 0.08) -> tuple[Any, Any]:
    """Return flags of 0 to 1, ``(count, 3, 12, 18)``, and which of six orders they have."""
    generator = torch.Generator().manual_seed(seed)
    kind = torch.randint(0, 6, (count,), generator=generator)
    dyes = torch.rand(count, 3, 3, generator=generator)
    down, right = torch.meshgrid(torch.arange(12), torch.arange(18), indexing="ij")
    cross = ((down - 5).abs() < 2) | ((right - 6).abs() < 2)
    disc = (down - 5.5) ** 2 + (right - 8.5) ** 2 < 16
    corner = (down < 6) & (right < 8)
    slant = (right * 2 > down * 3).long() + (right * 2 > down * 3 + 8).long()
    orders = [down // 4, right // 6, cross.long(), disc.long(), corner.long(), slant]
    place = torch.stack([order.long() for order in orders])[kind]
    x = torch.stack([dyes[row][place[row]] for row in range(count)]).permute(0, 3, 1, 2)
    x = x + noise * torch.randn(x.shape, generator=generator)
    return x.clamp(0, 1), kind


def flags(count: int, seed: int, *, tested: int = 300, **more: Any) -> Split:
    """Return normalised flags and their orders."""
    return centred(divided(*raw_flags(count, seed, **more), tested))


class _Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(width)
        self.second = nn.Conv2d(width, width, 3, padding=1)

    def forward(self, x: Any) -> Any:
        return x + self.second(nn.functional.relu(self.norm(self.first(x))))


class Lens(nn.Module):
    """A residual block with batch norm at half the size, and a mean over places."""

    def __init__(self, channels: int, out: int, width: int = 14, drop: float = 0.1) -> None:
        super().__init__()
        self.stem = nn.Conv2d(channels, width, 4, 2, 1)
        self.block = _Block(width)
        self.down, self.norm = nn.Conv2d(width, 2 * width, 3, 2, 1), nn.BatchNorm2d(2 * width)
        self.drop, self.head = nn.Dropout(drop), nn.Linear(2 * width, out)

    def forward(self, x: Any) -> Any:
        x = nn.functional.relu(self.norm(self.down(self.block(self.stem(x)))))
        return self.head(self.drop(x.mean((2, 3))))


class Mosaic(nn.Module):
    """Patches whose places and whose features are mixed in turns, with layer norms."""

    def __init__(
        self, channels: int, out: int, places: int, width: int = 24, drop: float = 0.0
    ) -> None:
        super().__init__()
        self.patches = nn.Conv2d(channels, width, 4, 2)
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.across = nn.Sequential(nn.Linear(places, 32), nn.GELU(), nn.Linear(32, places))
        self.within = nn.Sequential(
            nn.Linear(width, 48), nn.GELU(), nn.Dropout(drop), nn.Linear(48, width)
        )
        self.after, self.head = nn.LayerNorm(width), nn.Linear(width, out)

    def forward(self, x: Any) -> Any:
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = x + self.across(self.before(x).transpose(1, 2)).transpose(1, 2)
        x = x + self.within(self.between(x))
        return self.head(self.after(x).mean(1))


class Slim(nn.Module):
    """Two convolutions with leaky units and pooling, then dense layers with dropout."""

    def __init__(
        self, channels: int, out: int, flat: int, width: int = 8, drop: float = 0.2
    ) -> None:
        super().__init__()
        self.see = nn.Sequential(
            nn.Conv2d(channels, width, 3, padding=1),
            nn.LeakyReLU(0.1),
            nn.MaxPool2d(2),
            nn.Conv2d(width, 2 * width, 3, padding=1),
            nn.LeakyReLU(0.1),
            nn.MaxPool2d(2),
        )
        self.tell = nn.Sequential(
            nn.Linear(2 * width * flat, 32), nn.LeakyReLU(0.1), nn.Dropout(drop), nn.Linear(32, out)
        )

    def forward(self, x: Any) -> Any:
        return self.tell(self.see(x).flatten(1))
