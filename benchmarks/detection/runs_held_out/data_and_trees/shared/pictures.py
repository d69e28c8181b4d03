"""Pictures: signs in colours, woven cloth, and spectrograms of birds' calls."""

import functools
from typing import Any

import torch
from training.learnt_data import Split

SIGNS = ("red disc", "green disc", "square", "triangle", "cross", "ring")
CLOTHS = ("plain", "twill", "ribs", "plain with a hole")
CALLS = ("rising", "falling", "trill", "two tones", "clicks")


def parts(x: Any, y: Any, tested: int) -> Split:
    """Return the last rows as those to validate with."""
    return Split(x[:-tested], y[:-tested], x[-tested:], y[-tested:])


def standardised(data: Split) -> Split:
    """Return pictures less each channel's mean, by its deviation, of those to train with."""
    mean = data.x.mean((0, 2, 3), keepdim=True)
    deviation = data.x.std((0, 2, 3), keepdim=True)
    return data.of(lambda x: (x - mean) / deviation)


def kinds_of(count: int, shares: tuple[float, ...], generator: Any) -> Any:
    """Return kinds drawn with these shares."""
    return torch.multinomial(torch.tensor(shares), count, replacement=True, generator=generator)


@functools.cache
def signs(
    count: int,
    seed: int,
    *,
    size: int = 20,
    noise: float = 18.0,
    shares: tuple[float, ...] = (1.0,) * 6,
    bright: bool = False,
) -> tuple[Any, Any]:
    """Return signs before a ground of any colour, channels from 0 to 255, and their kinds.

    If it is `bright`, the ground is lighter than all signs, as the sky is.
    """
    generator = torch.Generator().manual_seed(seed)
    kind = kinds_of(count, shares, generator)

    def drawn(low: float, high: float, *shape: int) -> Any:
        return low + (high - low) * torch.rand(count, *shape, generator=generator)

    axis = torch.linspace(-1, 1, size)
    radius = drawn(0.45, 0.7, 1, 1)
    x = (axis - drawn(-0.25, 0.25, 1, 1)) / radius
    y = (axis[:, None] - drawn(-0.25, 0.25, 1, 1)) / radius
    away = (x**2 + y**2).sqrt()
    x, y = x.expand(count, size, size), y.expand(count, size, size)
    disc = away < 1
    square = (x.abs() < 0.85) & (y.abs() < 0.85)
    triangle = (y < 0.75) & (y > 2 * x.abs() - 1)
    cross = ((x.abs() < 0.3) | (y.abs() < 0.3)) & (x.abs() < 1) & (y.abs() < 1)
    ring = (away < 1.05) & (away > 0.6)
    shape = torch.stack([disc, disc, square, triangle, cross, ring], 1)
    there = shape[torch.arange(count), kind][:, None].float()
    colour = drawn(20, 110 if bright else 235, 3, 1, 1)
    red, green = torch.tensor([200.0, 50, 50]), torch.tensor([40.0, 130, 50])
    colour[kind == 0] = red[:, None, None]
    colour[kind == 1] = green[:, None, None]
    ground = drawn(180 if bright else 60, 230, 1, 1, 1) + drawn(-40, 40, 3, 1, 1)
    light = drawn(0.8, 1.15, 1, 1, 1)
    picture = light * (there * colour + (1 - there) * ground)
    picture = picture + noise * torch.randn(picture.shape, generator=generator)
    return picture.clamp(0, 255).round(), kind


def sign_data(count: int, seed: int, *, tested: int = 400, **more: Any) -> Split:
    """Return signs, standardised."""
    return standardised(parts(*signs(count, seed, **more), tested))


@functools.cache
def cloths(
    count: int,
    seed: int,
    *,
    size: int = 24,
    noise: float = 250.0,
    shares: tuple[float, ...] = (1.0,) * 4,
) -> tuple[Any, Any]:
    """Return woven cloth in grey from 0 to 4095, as a camera of 12 bits gives it, and its kind."""
    generator = torch.Generator().manual_seed(seed)
    kind = kinds_of(count, shares, generator)

    def drawn(low: float, high: float) -> Any:
        return low + (high - low) * torch.rand(count, 1, 1, generator=generator)

    axis = torch.arange(float(size))
    step, shift = 6.28 / drawn(3.5, 6), drawn(0, 6.28)
    across, down = (step * axis + shift).sin(), (step * axis[:, None] + shift).sin()
    plain = across * down
    twill = (step * (axis + axis[:, None]) + shift).sin()
    ribs = across.expand(count, size, size)
    place = (axis - drawn(6, size - 6)) ** 2 + (axis[:, None] - drawn(6, size - 6)) ** 2
    hole = torch.where(place < drawn(2, 4) ** 2, torch.tensor(-2.5), plain)
    pattern = torch.stack([plain, twill, ribs, hole], 1)[torch.arange(count), kind]
    grey = drawn(1800, 2800) + drawn(300, 600) * pattern
    grey = grey + noise * torch.randn(grey.shape, generator=generator)
    return grey.clamp(0, 4095).round()[:, None], kind


def cloth_data(count: int, seed: int, *, tested: int = 400, **more: Any) -> Split:
    """Return cloth, standardised."""
    return standardised(parts(*cloths(count, seed, **more), tested))


@functools.cache
def calls(count: int, seed: int, *, noise: float = 6.0) -> tuple[Any, Any]:
    """Return spectrograms of calls in decibels from -80 to 0, (1, 24, 32) each, and their kinds."""
    generator = torch.Generator().manual_seed(seed)
    kind = kinds_of(count, (1.0,) * 5, generator)

    def drawn(low: float, high: float) -> Any:
        return low + (high - low) * torch.rand(count, 1, 1, generator=generator)

    time, tone = torch.linspace(0, 1, 32), torch.arange(24.0)[:, None]
    low, span = drawn(4, 9), drawn(5, 10)

    def ridge(height: Any) -> Any:
        return torch.exp(-((tone - height) ** 2) / 2.5)

    rising, falling = ridge(low + span * time), ridge(low + span * (1 - time))
    trill = ridge(low + span / 2 + 2.5 * (drawn(20, 35) * time + drawn(0, 6.28)).sin())
    tones = (ridge(low) + ridge(low + span)).expand(count, 24, 32)
    clicks = ((time * drawn(4, 7) + drawn(0, 1)) % 1 < 0.2).float().expand(count, 24, 32) * 0.8
    loud = torch.stack([rising, falling, trill, tones, clicks], 1)[torch.arange(count), kind]
    length, begin = drawn(0.6, 1), drawn(0, 0.3)
    loud = loud * ((time > begin) & (time < begin + length)).float()
    decibels = -66 + drawn(22, 45) * loud
    decibels = decibels + noise * torch.randn(decibels.shape, generator=generator)
    return decibels.clamp(-80, 0)[:, None], kind


def call_data(count: int, seed: int, *, tested: int = 400, **more: Any) -> Split:
    """Return spectrograms, standardised."""
    return standardised(parts(*calls(count, seed, **more), tested))
