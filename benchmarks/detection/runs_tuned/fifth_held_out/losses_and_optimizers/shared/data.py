"""Data: flags, cells, quakes, journeys by taxi, teas, orbits, texts, patches of a photograph."""

import functools
import itertools
import math
from typing import Any, Final

import numpy as np
import torch
from sklearn.datasets import load_digits, load_sample_image

MONTHS: Final = (
    *("january", "february", "march", "april", "may", "june", "july", "august"),
    *("september", "october", "november", "december"),
)
SIGNS: Final = "\n abcdefghijklmnopqrstuvwxyz0123456789-+=;>"
COLOURS: Final = torch.tensor(
    [[1, 0, 0], [0, 0, 1], [0, 0.7, 0], [1, 0.9, 0], [1, 1, 1], [0.1, 0.1, 0.1]]
)
STITCHES: Final = 14
TEA_LEVELS: Final = (6, 8, 5, 10)


def chance(seed: int) -> torch.Generator:
    """Return random numbers of a seed."""
    return torch.Generator().manual_seed(seed)


def flags(count: int, seed: int, noise: float = 0.25) -> tuple[Any, Any, Any]:
    """Return pictures of flags, how they are divided (six ways), and the colour of the field."""
    random = chance(seed)
    down, across = torch.meshgrid(torch.arange(12), torch.arange(16), indexing="ij")
    layouts = torch.stack(
        [
            (down // 4 == 1),
            (across // 5 == 1),
            ((down - 6).abs() < 2) | ((across - 5).abs() < 2),
            (down * 16 > across * 12),
            ((down - 5.5) ** 2 + (across - 7.5) ** 2 < 14),
            (down < 6) & (across < 8),
        ]
    ).float()
    layout = torch.randint(6, (count,), generator=random)
    field = torch.randint(6, (count,), generator=random)
    other = (field + torch.randint(1, 6, (count,), generator=random)) % 6
    mask = layouts[layout][:, None]
    pictures = COLOURS[field][:, :, None, None] * (1 - mask)
    pictures = pictures + COLOURS[other][:, :, None, None] * mask
    pictures = (pictures - 0.5) / 0.4 + noise * torch.randn(pictures.shape, generator=random)
    return pictures, layout, field


def cells(count: int, seed: int) -> tuple[Any, Any]:
    """Return pictures of cells under a microscope, and how many there are."""
    random = chance(seed)
    number = torch.poisson(torch.full((count,), 6.0), generator=random).clamp(1, 14)
    places = torch.rand(count, 14, 2, generator=random) * 14 + 1
    lit = (torch.arange(14) < number[:, None]).float()
    down, across = torch.meshgrid(torch.arange(16.0), torch.arange(16.0), indexing="ij")
    far = (down - places[..., :1, None]).pow(2) + (across - places[..., 1:, None]).pow(2)
    pictures = (lit[..., None, None] * torch.exp(-far / 2)).sum(1, keepdim=True)
    return pictures + 0.15 * torch.randn(pictures.shape, generator=random), number


def quakes(count: int, seed: int, noise: float = 0.3) -> tuple[Any, Any, Any, Any]:
    """Return records of two axes, the arrival of a wave, its kind (of three), and its direction."""
    random = chance(seed)
    time = torch.arange(96.0)
    arrival = 16 + 56 * torch.rand(count, generator=random)
    kind = torch.randint(3, (count,), generator=random)
    angle = 2 * math.pi * torch.rand(count, generator=random)
    loud = 0.8 + 0.6 * torch.rand(count, generator=random)
    after = (time - arrival[:, None]).clamp(min=0)
    pitch = torch.tensor([0.25, 0.55, 1.1])[kind][:, None]
    wave = 2 * loud[:, None] * torch.exp(-after / 18) * torch.sin(pitch * after)
    direction = torch.stack([angle.cos(), angle.sin()], 1)
    records = direction[:, :, None] * wave[:, None]
    records = records + noise * torch.randn(records.shape, generator=random)
    return records, ((arrival - 44) / 16)[:, None], kind, direction


def rides(count: int, seed: int, noise: float = 0.15) -> tuple[Any, Any]:
    """Return eleven features of journeys by taxi, and the logarithm of the minutes they took."""
    random = chance(seed)
    ends = torch.randn(count, 4, generator=random)
    hour = 24 * torch.rand(count, generator=random)
    rain = (torch.rand(count, generator=random) < 0.25).float()
    far = (ends[:, :2] - ends[:, 2:]).norm(dim=1)
    rush = torch.exp(-((hour - 8).pow(2)) / 4) + torch.exp(-((hour - 17).pow(2)) / 6)
    rest = torch.randn(count, 4, generator=random)
    minutes = 1.2 + 0.9 * (0.4 + far).log() + 0.6 * rush + 0.25 * rain * (far > 1.5)
    minutes = minutes + 0.15 * rest[:, 0] + noise * torch.randn(count, generator=random)
    turn = hour * math.pi / 12
    x = torch.cat([ends, torch.stack([turn.sin(), turn.cos(), rain], 1), rest], 1)
    return x, minutes[:, None]


def teas(count: int, seed: int) -> tuple[Any, Any, Any]:
    """Return four words and six numbers about teas, and their grade: five, 10 to 30 % each."""
    rule, random = chance(77), chance(seed)
    words = torch.stack([torch.randint(n, (count,), generator=random) for n in TEA_LEVELS], 1)
    numbers = torch.randn(count, 6, generator=random)
    score = sum(torch.randn(n, generator=rule)[words[:, at]] for at, n in enumerate(TEA_LEVELS))
    score = score + numbers[:, 0] * numbers[:, 1] + 1.5 * numbers[:, 2].sin() + numbers[:, 3]
    score = (score + 0.3 * torch.randn(count, generator=random)) / 2.7
    return words, numbers, torch.bucketize(score, torch.tensor([-1.1, -0.5, 0.25, 1.0]))


def orbits(count: int, seed: int, steps: int = 40) -> Any:
    """Return places and speeds of bodies around a sun, in small steps of time."""
    random = chance(seed)
    place = torch.randn(count, 2, generator=random)
    place = (
        place
        / place.norm(dim=1, keepdim=True)
        * (0.8 + 0.6 * torch.rand(count, 1, generator=random))
    )
    speed = torch.stack([-place[:, 1], place[:, 0]], 1)
    speed = speed * (0.8 + 0.4 * torch.rand(count, 1, generator=random))
    rows = []
    for _ in range(steps):
        rows.append(torch.cat([place, speed], 1))
        for _ in range(5):
            speed = speed - 0.03 * place / (place.norm(dim=1, keepdim=True).pow(3) + 0.05)
            place = place + 0.03 * speed
    return torch.stack(rows, 1)


def knitting(count: int, seed: int, length: int = 28) -> tuple[Any, Any]:
    """Return stitches that depend on the two before them, and those that follow."""
    rule, random = chance(78), chance(seed)
    table = torch.randint(STITCHES, (STITCHES, STITCHES, 3), generator=rule)
    rows = torch.randint(STITCHES, (count, length + 1), generator=random)
    for at in range(2, length + 1):
        pick = torch.multinomial(torch.tensor([0.75, 0.2, 0.05]), count, True, generator=random)
        rows[:, at] = table[rows[:, at - 2], rows[:, at - 1], pick]
    return rows[:, :-1], rows[:, 1:]


def _spelled(lines: list[str], length: int) -> tuple[Any, Any]:
    text = torch.tensor([[SIGNS.index(sign) for sign in line.ljust(length + 1)] for line in lines])
    return text[:, :-1], text[:, 1:]


def dates(count: int, seed: int, *, is_day_first: bool = True) -> tuple[Any, Any]:
    """Return dates in words and then in numbers, and the signs that follow each sign."""
    random = np.random.default_rng(seed)
    days, months = random.integers(1, 29, count), random.integers(12, size=count)
    lines = []
    for day, month, year in zip(days, months, random.integers(1950, 2030, count), strict=True):
        words = f"{day} {MONTHS[month]}" if is_day_first else f"{MONTHS[month]} {day}"
        lines.append(f"{words} {year}>{year}-{month + 1:02d}-{day:02d}\n")
    return _spelled(lines, 29)


def sums(count: int, seed: int) -> tuple[Any, Any]:
    """Return three sums to a line, and the signs that follow each sign."""
    pairs = np.random.default_rng(seed).integers(1, 60, (count, 3, 2))
    lines = ["".join(f"{a}+{b}={a + b};" for a, b in row) for row in pairs]
    return _spelled(lines, 29)


@functools.cache
def pixels_in_turn() -> tuple[Any, Any]:
    """Return pixels of digits in four shades behind the digit they show, and those that follow."""
    pictures, labels = load_digits(return_X_y=True)
    shades = torch.tensor(pictures // 4.25, dtype=torch.long)
    rows = torch.cat([torch.tensor(labels)[:, None] + 4, shades], 1)
    return rows[:, :-1], rows[:, 1:]


@functools.cache
def patches(side: int = 8) -> Any:
    """Return patches of a photograph, standardised together, in an order drawn once."""
    picture = load_sample_image("china.jpg").mean(2)
    down, across = (range(0, size - side, 2 * side) for size in picture.shape)
    cut = [picture[y : y + side, x : x + side] for y, x in itertools.product(down, across)]
    rows = torch.tensor(np.stack(cut), dtype=torch.float32).flatten(1)
    rows = (rows - rows.mean()) / rows.std()
    return rows[torch.randperm(len(rows), generator=chance(79))]
