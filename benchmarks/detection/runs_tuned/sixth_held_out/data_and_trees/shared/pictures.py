"""Pictures: sawn boards, blooms, voices of whales and pairs of digits."""

import functools
from typing import Any

import numpy as np
import torch
from sklearn.datasets import load_digits
from training.learnt_data import Split


def last_apart(x: Any, y: Any, tested: int) -> Split:
    """Return the last rows as those to validate with."""
    return Split(x[:-tested], y[:-tested], x[-tested:], y[-tested:])


def standardised(data: Split) -> Split:
    """Return pictures less the mean of each channel, by its deviation, of those to train with."""
    mean = data.x.mean((0, 2, 3), keepdim=True)
    deviation = data.x.std((0, 2, 3), keepdim=True)
    return data.of(lambda x: (x - mean) / deviation)


def _polar(count: int, size: int, generator: Any, tilt: float) -> tuple[Any, Any]:
    """Return radius and angle of each pixel of pictures that are turned, moved and tilted."""
    axis = torch.linspace(-1, 1, size)
    rows, columns = torch.meshgrid(axis, axis, indexing="ij")
    moved = 0.15 * torch.randn(2, count, 1, 1, generator=generator)
    turn = 2 * torch.pi * torch.rand(count, 1, 1, generator=generator)
    flat = 1 + tilt * torch.rand(count, 1, 1, generator=generator)
    across, down = columns - moved[0], rows - moved[1]
    x = across * turn.cos() + down * turn.sin()
    y = (down * turn.cos() - across * turn.sin()) * flat
    return (x * x + y * y).sqrt(), torch.atan2(y, x)


@functools.cache
def light_of_boards(
    count: int,
    seed: int,
    *,
    shares: tuple[float, ...] = (1.0, 1.0, 1.0, 1.0),
    noise: float = 0.6,
    size: int = 18,
) -> tuple[Any, Any]:
    """Return light on sawn boards: straight grain, rings, grain with a knot, or with a split."""
    generator = torch.Generator().manual_seed(seed)
    kind = torch.multinomial(torch.tensor(shares), count, replacement=True, generator=generator)
    radius, angle = _polar(count, size, generator, 0.1)
    across = radius * angle.sin()
    often = 9 + 5 * torch.rand(count, 1, 1, generator=generator)
    phase = 6.3 * torch.rand(count, 1, 1, generator=generator)
    straight = (often * across + phase).cos()
    rings = (often * radius + phase).cos()
    knot = straight - 2.2 * (-(radius**2) / 0.07).exp()
    split = straight + 2.5 * (-(across**2) / 0.008).exp()
    grain = torch.stack([straight, rings, knot, split])[kind, torch.arange(count)]
    shade = 0.4 * torch.randn(count, 1, 1, generator=generator)
    spots = noise * torch.randn(grain.shape, generator=generator)
    return (120 + 25 * (grain + shade + spots))[:, None], kind


def boards(count: int, seed: int, *, tested: int = 350, **more: Any) -> Split:
    """Return boards of four kinds, standardised."""
    return standardised(last_apart(*light_of_boards(count, seed, **more), tested))


@functools.cache
def colours_of_blooms(
    count: int, seed: int, *, noise: float = 0.13, size: int = 20, kinds: int = 6
) -> tuple[Any, Any]:
    """Return blooms from 0 to 1 in three channels: three, five or eight petals, two hearts."""
    generator = torch.Generator().manual_seed(seed)
    kind = torch.randint(0, kinds, (count,), generator=generator)
    radius, angle = _polar(count, size, generator, 0.1)
    petals = torch.tensor([3.0, 5.0, 8.0])[kind // 2][:, None, None]
    reach = 0.55 + 0.28 * (petals * angle).cos()
    inside = torch.sigmoid(25 * (reach - radius))[:, None]
    heart = torch.sigmoid(25 * (0.22 - radius))[:, None]
    tint = 0.5 + 0.45 * torch.rand(count, 3, 1, 1, generator=generator)
    middle = torch.where(
        (kind % 2 == 0)[:, None], torch.tensor([0.95, 0.85, 0.2]), torch.tensor([0.3, 0.15, 0.1])
    )[:, :, None, None]
    grass = torch.tensor([0.08, 0.2, 0.05])[:, None, None]
    picture = grass + inside * (tint - grass)
    picture = picture + heart * (middle - picture)
    return (picture + noise * torch.randn(picture.shape, generator=generator)).clamp(0, 1), kind


def blooms(count: int, seed: int, *, tested: int = 350, **more: Any) -> Split:
    """Return blooms of six kinds, standardised."""
    return standardised(last_apart(*colours_of_blooms(count, seed, **more), tested))


@functools.cache
def decibels(
    count: int, seed: int, *, loud: float = 22.0, shares: tuple[float, ...] = (1.0,) * 5
) -> tuple[Any, Any]:
    """Return 16 tones over 24 times of five calls: rises, falls, arches, hums and clicks."""
    generator = torch.Generator().manual_seed(seed)
    kind = torch.multinomial(torch.tensor(shares), count, replacement=True, generator=generator)
    time = torch.linspace(-1, 1, 24)
    base = 7.5 + 1.5 * torch.randn(count, 1, generator=generator)
    steep = 3 + 2.5 * torch.rand(count, 1, generator=generator)
    level = base + 0 * time
    tracks = torch.stack(
        [base + steep * time, base - steep * time, base + steep * (0.5 - time**2), level, level]
    )[kind, torch.arange(count)]
    tones = torch.arange(16.0)[:, None]
    near = (-((tones - tracks[:, None]) ** 2) / 1.5).exp()
    near = (
        near
        + 0.7 * (-((tones - tracks[:, None] - 5) ** 2) / 1.5).exp() * (kind == 3)[:, None, None]
    )
    phase = torch.randint(0, 6, (count, 1, 1), generator=generator)
    beats = ((torch.arange(24) + phase) % 6 == 0).float() * (1 + 0 * tones)
    call = torch.where((kind == 4)[:, None, None], beats, near)
    sea = 6 * torch.randn(count, 16, 24, generator=generator)
    quiet = 4 * torch.randn(count, 1, 1, generator=generator)
    return (-60 - tones + quiet + sea + loud * call)[:, None], kind


def whales(count: int, seed: int, *, tested: int = 350, **more: Any) -> Split:
    """Return calls of whales of five kinds, standardised."""
    return standardised(last_apart(*decibels(count, seed, **more), tested))


@functools.cache
def pairs_of_digits(count: int, seed: int, *, tested: int = 300) -> Split:
    """Return two digits of scikit-learn side by side: left larger, right larger, or equal."""
    rng = np.random.default_rng(seed)
    pictures, number = load_digits(return_X_y=True)
    apart = len(number) * 3 // 4

    def paired(low: int, high: int, rows: int) -> tuple[Any, Any]:
        left, right = rng.integers(low, high, (2, rows))
        side = np.concatenate([pictures[left], pictures[right]], 1).reshape(rows, 2, 8, 8)
        order = np.sign(number[right] - number[left])
        return side.transpose(0, 2, 1, 3).reshape(rows, 1, 8, 16), np.where(order < 0, 0, order + 0)

    (x, y), (test_x, test_y) = (
        paired(0, apart, count),
        paired(apart, len(number), tested),
    )
    tensors = [torch.tensor(part, dtype=torch.float32) for part in (x, test_x)]
    return standardised(Split(tensors[0], torch.tensor(y), tensors[1], torch.tensor(test_y)))
