"""Data: names, recipes, brackets, dates, glyphs, households, points and tables."""

import functools
import math
from typing import Any, Final

import torch
from sklearn import datasets as bundled

PAD: Final = 0
LETTERS: Final = 28  # padding, an end, and 26 letters
NAME: Final = 14
RECIPE_WORDS: Final = 40
RECIPE: Final = 20
SIGNS: Final = 9
STRING: Final = 24
DATE_SIGNS: Final = 36
HOURS: Final = 24
SIDE: Final = 12


def _random(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def _choice(options: Any, random: Any) -> Any:
    return options[int(torch.randint(len(options), (), generator=random))]


@functools.cache
def names(count: int = 1200, seed: int = 0) -> Any:
    """Return names of two to four syllables, an end (1), and padding (0): (count, 14)."""
    random = _random(seed)
    starts = ["b", "d", "k", "l", "m", "n", "r", "s", "t", "v", "st", "br", "j", "ch"]
    vowels, ends = ["a", "e", "i", "o", "u", "ia", "ei"], ["", "", "n", "r", "l", "s"]
    rows = torch.zeros(count, NAME, dtype=torch.long)
    for row in rows:
        word = ""
        for _ in range(int(torch.randint(2, 4, (), generator=random))):
            word += _choice(starts, random) + _choice(vowels, random)
        word += _choice(ends, random)
        signs = [*[ord(letter) - 95 for letter in word][: NAME - 1], 1]
        row[: len(signs)] = torch.tensor(signs)
    return rows


@functools.cache
def recipes(count: int = 1200, seed: int = 0) -> tuple[Any, Any]:
    """Return sentences of a recipe, 20 words with padding, and the kind of dish (of 4).

    A sentence: a number (1 to 6), a unit, what is taken (four kinds of six), what is done to it.
    """
    random = _random(seed)
    kinds = torch.randint(4, (count,), generator=random)
    rows = torch.zeros(count, RECIPE, dtype=torch.long)
    for row, kind in zip(rows, kinds.tolist(), strict=True):
        words: list[int] = []
        for _ in range(int(torch.randint(2, 5, (), generator=random))):
            from_kind = kind if torch.rand((), generator=random) < 0.8 else (kind + 1) % 4
            thing = 6 * from_kind + int(torch.rand((), generator=random) ** 2 * 6)
            number = int(torch.randint(1, 6, (), generator=random))
            unit = 6 + thing % 4  # fits the thing
            deed = 34 + (thing // 2 + number) % 6
            words += [number, unit, 10 + thing, deed]
        row[: len(words)] = torch.tensor(words)
    return rows, kinds


@functools.cache
def brackets(count: int = 1200, seed: int = 0) -> Any:
    """Return strings of nested brackets of four kinds, (count, 24): 1 to 4 open, 5 to 8 close."""
    random = _random(seed)
    rows = torch.zeros(count, STRING, dtype=torch.long)
    for row in rows:
        depth: list[int] = []
        for at in range(STRING):
            may_open = len(depth) < min(6, STRING - at)
            if not depth or (may_open and torch.rand((), generator=random) < 0.5):
                depth.append(int(torch.randint(1, 5, (), generator=random)))
                row[at] = depth[-1]
            else:
                row[at] = depth.pop() + 4
    return rows


@functools.cache
def dates(count: int = 1200, seed: int = 0) -> tuple[Any, Any]:
    """Return dates as people write them (8 signs) and as machines do (begin, and 8 signs).

    Signs: 1 to 10 are digits, 11 to 22 months, 23 to 28 stops, 30 is the begin.
    """
    random = _random(seed)
    day = torch.randint(1, 29, (count,), generator=random)
    month = torch.randint(12, (count,), generator=random)
    year = torch.randint(1950, 2030, (count,), generator=random)
    style = torch.randint(3, (count,), generator=random)
    tens, ones = 1 + day // 10, 1 + day % 10
    years = [1 + year // 10**place % 10 for place in (3, 2, 1, 0)]
    stop, begin = 23 + style, torch.full((count,), 30)
    first = torch.stack([tens, ones, stop, 11 + month, *years], 1)
    second = torch.stack([11 + month, tens, ones, stop, *years], 1)
    source = torch.where((style == 1)[:, None], second, first)
    number = month + 1
    target = [begin, *years, 1 + number // 10, 1 + number % 10, tens, ones]
    return source, torch.stack(target, 1)


@functools.cache
def glyphs(count: int = 1200, seed: int = 0) -> tuple[Any, Any]:
    """Return pictures (1, 12, 12), from 0 to 1, and what they show: ring, cross, bar or box."""
    random = _random(seed)
    kind = torch.randint(4, (count,), generator=random)
    x0, y0, size, turn = torch.rand(4, count, 1, 1, generator=random)
    line = torch.linspace(-1, 1, SIDE)
    y, x = torch.meshgrid(line, line, indexing="ij")
    x, y = x - 0.5 * (x0 - 0.5), y - 0.5 * (y0 - 0.5)
    angle, size = (turn - 0.5) * math.pi / 2, 0.5 + 0.3 * size
    x, y = x * angle.cos() - y * angle.sin(), x * angle.sin() + y * angle.cos()
    ring = 0.15 - ((x**2 + y**2).sqrt() - size).abs()
    bar = torch.minimum(0.18 - x.abs(), size - y.abs())
    cross = torch.maximum(bar, torch.minimum(0.18 - y.abs(), size - x.abs()))
    box = 0.8 * size - torch.maximum(x.abs(), y.abs())
    drawn = torch.stack([ring, cross, bar, box])[kind, torch.arange(count)]
    drawn = torch.sigmoid(14 * drawn) + 0.03 * torch.randn(drawn.shape, generator=random)
    return drawn.clamp(0, 1)[:, None], kind


@functools.cache
def households(count: int = 1200, seed: int = 0) -> tuple[Any, Any]:
    """Return the power in watts of a day's 24 hours, and the kind of household (of 3)."""
    random = _random(seed)
    kind = torch.randint(3, (count, 1), generator=random)
    hour = torch.arange(HOURS)
    shift = 1.5 * torch.randn(count, 2, generator=random)
    size = 0.6 + 0.8 * torch.rand(count, 3, generator=random)
    morning = 900 * size[:, [0]] * (-((hour - 7 - shift[:, [0]]) ** 2) / 4).exp()
    evening = 1500 * size[:, [1]] * (-((hour - 19 - shift[:, [1]]) ** 2) / 8).exp()
    noon = 1200 * size[:, [2]] * (-((hour - 13) ** 2) / 9).exp()
    watts = 250 + morning * (kind != 2) + evening * (kind != 1) + noon * (kind != 0)
    watts = watts * (1 + 0.08 * torch.randn(watts.shape, generator=random))
    return watts, kind[:, 0]


def standardised(x: Any) -> Any:
    """Return columns of mean 0 and deviation 1."""
    return (x - x.mean(0)) / x.std(0)


@functools.cache
def s_curve(count: int = 1500) -> Any:
    """Return points of an S in three dimensions, standardised."""
    rows, _ = bundled.make_s_curve(count, noise=0.05, random_state=0)
    return standardised(torch.tensor(rows, dtype=torch.float32))


@functools.cache
def blobs(count: int = 1500) -> Any:
    """Return points of six groups on a ring, (count, 2)."""
    angle = 2 * torch.pi * torch.arange(6) / 6
    centers = 1.5 * torch.stack([angle.cos(), angle.sin()], 1)
    rows, _ = bundled.make_blobs(count, centers=centers.numpy(), cluster_std=0.15, random_state=0)
    return torch.tensor(rows, dtype=torch.float32)


@functools.cache
def table(name: str) -> tuple[Any, Any]:
    """Return a bundled table as it was measured, and its classes."""
    x, y = getattr(bundled, f"load_{name}")(return_X_y=True)
    return torch.tensor(x, dtype=torch.float32), torch.tensor(y)


@functools.cache
def handwriting() -> tuple[Any, Any]:
    """Return digits (64 pixels from 0 to 1) and what they are."""
    x, y = bundled.load_digits(return_X_y=True)
    return torch.tensor(x / 16, dtype=torch.float32), torch.tensor(y)
