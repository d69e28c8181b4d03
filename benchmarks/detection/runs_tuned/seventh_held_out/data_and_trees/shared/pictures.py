"""Pictures: tiles of land, blood cells under a microscope, and displays of meters."""

import functools
from typing import Any

import torch
from training.learnt_data import Split

LAND = ("field", "forest", "water", "town", "sand")
CELLS = ("round nucleus", "two lobes", "granules", "no nucleus")
# Segments that are lit: top, upper left, upper right, middle, lower left, lower right, bottom.
SEGMENTS = (
    (1, 1, 1, 0, 1, 1, 1),
    (0, 0, 1, 0, 0, 1, 0),
    (1, 0, 1, 1, 1, 0, 1),
    (1, 0, 1, 1, 0, 1, 1),
    (0, 1, 1, 1, 0, 1, 0),
    (1, 1, 0, 1, 0, 1, 1),
    (1, 1, 0, 1, 1, 1, 1),
    (1, 0, 1, 0, 0, 1, 0),
    (1, 1, 1, 1, 1, 1, 1),
    (1, 1, 1, 1, 0, 1, 1),
)


def apart(x: Any, y: Any, tested: int) -> Split:
    """Return the last rows as those to validate with."""
    return Split(x[:-tested], y[:-tested], x[-tested:], y[-tested:])


def normalised(data: Split) -> Split:
    """Return pictures less the mean of each channel, by its deviation, of those to train with."""
    mean = data.x.mean((0, 2, 3), keepdim=True)
    deviation = data.x.std((0, 2, 3), keepdim=True)
    return data.of(lambda x: (x - mean) / deviation)


def _kinds_of_land(count: int, size: int, generator: Any) -> Any:
    """Return a texture from 0 to 255 of each kind of land for each tile."""
    axis = torch.arange(float(size))
    angle = 3.14 * torch.rand(count, 1, 1, generator=generator)
    along = axis[:, None] * angle.cos() + axis * angle.sin()
    rows = (1.6 * along + 6.3 * torch.rand(count, 1, 1, generator=generator)).sin()
    coarse = torch.randn(count, 1, size // 2, size // 2, generator=generator)
    blobs = torch.nn.functional.interpolate(coarse, scale_factor=2)[:, 0]
    roofs = torch.nn.functional.interpolate(
        (torch.rand(count, 1, size // 4, size // 4, generator=generator) > 0.5).float(),
        scale_factor=4,
    )[:, 0]
    level = torch.zeros(count, size, size)
    pattern = torch.stack([22 * rows, 20 * blobs, level, 60 * roofs - 30, 8 * blobs], 1)
    colour = torch.tensor(
        [[118, 128, 70], [58, 84, 52], [50, 76, 108], [128, 122, 118], [188, 170, 132.0]]
    )
    return colour[None, :, :, None, None] + pattern[:, :, None]


@functools.cache
def tiles(
    count: int, seed: int, *, size: int = 16, mixed: float = 0.45, noise: float = 14.0
) -> tuple[Any, Any]:
    """Return tiles of five kinds of land in three channels from 0 to 255, and their kinds.

    Each is mixed with another kind of land, of which it has a share of up to `mixed`.
    """
    generator = torch.Generator().manual_seed(seed)
    kind = torch.randint(0, 5, (count,), generator=generator)
    other = torch.randint(0, 5, (count,), generator=generator)
    every = torch.arange(count)
    first = _kinds_of_land(count, size, generator)[every, kind]
    second = _kinds_of_land(count, size, generator)[every, other]
    share = mixed * torch.rand(count, 1, 1, 1, generator=generator)
    sun = 0.75 + 0.5 * torch.rand(count, 1, 1, 1, generator=generator)
    seen = sun * ((1 - share) * first + share * second)
    seen = seen + noise * torch.randn(seen.shape, generator=generator)
    return seen.clamp(0, 255).round(), kind


def land(count: int, seed: int, *, tested: int = 400, **more: Any) -> Split:
    """Return tiles of land, normalised."""
    return normalised(apart(*tiles(count, seed, **more), tested))


@functools.cache
def slides(
    count: int,
    seed: int,
    *,
    size: int = 20,
    noise: float = 0.08,
    shares: tuple[float, ...] = (1.0, 1.0, 1.0, 1.0),
) -> tuple[Any, Any]:
    """Return blood cells in grey from 0 to 1 before a bright ground, and their kinds."""
    generator = torch.Generator().manual_seed(seed)
    kind = torch.multinomial(torch.tensor(shares), count, replacement=True, generator=generator)
    axis = torch.linspace(-1, 1, size)

    def drawn(low: float, high: float) -> Any:
        return low + (high - low) * torch.rand(count, 1, 1, generator=generator)

    down, across = axis[:, None] - drawn(-0.2, 0.2), axis - drawn(-0.2, 0.2)
    angle = drawn(0, 3.14)
    x = across * angle.cos() + down * angle.sin()
    y = down * angle.cos() - across * angle.sin()
    radius = (x**2 + (y * drawn(1, 1.25)) ** 2).sqrt()
    body = torch.sigmoid(18 * (drawn(0.6, 0.75) - radius))
    centre = torch.sigmoid(18 * (drawn(0.28, 0.36) - radius))
    gap = drawn(0.22, 0.28)
    lobes = sum(
        torch.sigmoid(20 * (0.2 - ((x - side * gap) ** 2 + y**2).sqrt())) for side in (-1, 1)
    )
    grains = (torch.rand(count, size, size, generator=generator) > 0.75).float() * body
    dark = torch.stack([centre, lobes, 0.8 * grains, -0.4 * centre], 1)[torch.arange(count), kind]
    picture = 0.88 - drawn(0.2, 0.35) * body - drawn(0.22, 0.4) * dark
    return (picture + noise * torch.randn(picture.shape, generator=generator)).clamp(0, 1)[
        :, None
    ], kind


def cells(count: int, seed: int, *, tested: int = 400, **more: Any) -> Split:
    """Return blood cells, normalised."""
    return normalised(apart(*slides(count, seed, **more), tested))


@functools.cache
def displays(count: int, seed: int, *, noise: float = 0.35) -> tuple[Any, Any]:
    """Return digits of seven segments, 13 by 13 pixels, moved by up to two, and their numbers."""
    generator = torch.Generator().manual_seed(seed)
    number = torch.randint(0, 10, (count,), generator=generator)
    glyph = torch.zeros(10, 9, 5)
    places = (
        *((0, slice(1, 4)), (slice(1, 4), 0), (slice(1, 4), 4), (4, slice(1, 4))),
        *((slice(5, 8), 0), (slice(5, 8), 4), (8, slice(1, 4))),
    )
    for digit, lit in enumerate(SEGMENTS):
        for is_lit, (down, across) in zip(lit, places, strict=True):
            glyph[digit, down, across] = float(is_lit)
    picture = torch.zeros(count, 13, 13)
    moves = torch.randint(-2, 3, (count, 2), generator=generator).tolist()
    for at, (down, across) in enumerate(moves):
        picture[at, 2 + down : 11 + down, 4 + across : 9 + across] = glyph[number[at]]
    bright = 0.7 + 0.5 * torch.rand(count, 1, 1, generator=generator)
    return (bright * picture + noise * torch.randn(picture.shape, generator=generator))[
        :, None
    ], number
