"""Data: digits, shapes, signals, points, sentences and tables."""

import functools
import math
from typing import Any, Final

import numpy as np
import torch
from sklearn.datasets import load_breast_cancer, load_digits, make_moons, make_swiss_roll

SIDE: Final = 16
SIGNAL: Final = 48
PAD: Final = 0
_NAMES: Final = ("anna", "ben", "carl", "dora", "eva", "finn", "greta", "hugo")
_VERBS: Final = ("sees", "likes", "feeds", "finds", "paints", "carries", "hears")
_SIZES: Final = ("small", "big", "old", "young", "tired", "happy")
_THINGS: Final = ("dog", "cat", "horse", "boat", "house", "tree", "bird", "lamp", "ball")
_ANIMALS: Final = ("dog", "cat", "horse", "bird")
_PLACES: Final = ("in the garden", "near the river", "at the station", "behind the school", "")
_ENDS: Final = (".", ".", ".", "!", " today.", " again.")


def _random(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def digits() -> tuple[Any, Any, Any, Any]:
    """Return digits (n, 1, 8, 8) from 0 to 1 and their labels, to train and to test with."""
    data = load_digits()
    x = torch.tensor(data.images, dtype=torch.float32)[:, None] / 16
    y = torch.tensor(data.target)
    order = torch.randperm(len(x), generator=_random(17))
    x, y = x[order], y[order]
    return x[:1400], y[:1400], x[1400:], y[1400:]


def shapes(count: int = 1200, seed: int = 0) -> tuple[Any, Any]:
    """Return pictures (1, 16, 16) of discs, squares, crosses and rings, 0 to 1, and the kind."""
    random = _random(seed)
    kind = torch.randint(4, (count,), generator=random)
    spots = torch.rand(3, count, 1, 1, generator=random)
    line = torch.arange(SIDE).float()
    y, x = torch.meshgrid(line, line, indexing="ij")
    x, y = (x - 5.5 - 4 * spots[0]).abs(), (y - 5.5 - 4 * spots[1]).abs()
    size = 2.5 + 2.5 * spots[2]
    far = (x**2 + y**2).sqrt()
    drawn = torch.stack(
        [
            size - far,
            size - torch.maximum(x, y),
            torch.minimum(size - torch.maximum(x, y), 1.2 - torch.minimum(x, y)),
            1.2 - (far - size).abs(),
        ],
        1,
    )[torch.arange(count), kind]
    noisy = drawn.clamp(-0.5, 0.5) + 0.5 + 0.04 * torch.randn(drawn.shape, generator=random)
    return noisy.clamp(0, 1)[:, None], kind


def signals(count: int = 1200, seed: int = 0) -> tuple[Any, Any]:
    """Return signals of 48 values (sines, squares, saws and chirps), standardised, and the kind."""
    random = _random(seed)
    kind = torch.randint(4, (count,), generator=random)
    speed, phase, loud = torch.rand(3, count, 1, generator=random)
    at = torch.arange(SIGNAL) / SIGNAL
    turns = (2 + 3 * speed) * at + phase
    sine = (2 * math.pi * turns).sin()
    all_kinds = torch.stack(
        [
            sine,
            (5 * sine).tanh(),
            2 * (turns % 1) - 1,
            (2 * math.pi * (turns + 2 * at**2)).sin(),
        ],
        1,
    )
    x = (0.7 + 0.6 * loud) * all_kinds[torch.arange(count), kind]
    x = x + 0.1 * torch.randn(x.shape, generator=random)
    return (x - x.mean()) / x.std(), kind


def moons(count: int = 2000) -> Any:
    """Return points of two moons, standardised."""
    x = torch.tensor(make_moons(count, noise=0.06, random_state=5)[0], dtype=torch.float32)
    return (x - x.mean(0)) / x.std(0)


def swiss_roll(count: int = 2000) -> Any:
    """Return points of a rolled band, in two dimensions, standardised."""
    x = make_swiss_roll(count, noise=0.3, random_state=5)[0][:, [0, 2]]
    tensor = torch.tensor(x, dtype=torch.float32)
    return (tensor - tensor.mean(0)) / tensor.std(0)


def ring(count: int = 2000, seed: int = 0) -> Any:
    """Return points of eight normal distributions on a circle, from -1 to 1."""
    random = _random(seed)
    angle = torch.randint(8, (count,), generator=random) * math.pi / 4
    centres = 0.7 * torch.stack([angle.cos(), angle.sin()], 1)
    return centres + 0.05 * torch.randn(count, 2, generator=random)


def tumours() -> tuple[Any, Any]:
    """Return 30 measurements of tumours, standardised by the first 480, and which are benign."""
    data = load_breast_cancer()
    x = torch.tensor(data.data, dtype=torch.float32)
    return (x - x[:480].mean(0)) / x[:480].std(0), torch.tensor(data.target)


def _sentence(rng: Any) -> str:
    name, verb, size, thing, place, end = (
        str(rng.choice(part)) for part in (_NAMES, _VERBS, _SIZES, _THINGS, _PLACES, _ENDS)
    )
    return " ".join(f"{name} {verb} the {size} {thing} {place}".split()) + end


@functools.cache
def characters(length: int = 40, count: int = 900, seed: int = 0) -> tuple[Any, int]:
    """Return windows of generated text as numbers of characters, (n, length + 1), and how many."""
    rng = np.random.default_rng(seed)
    text = " ".join(_sentence(rng) for _ in range(count * length // 25))
    table = {sign: number for number, sign in enumerate(sorted(set(text)))}
    numbers = torch.tensor([table[sign] for sign in text])
    starts = torch.arange(count) * (length - 3)
    return numbers[starts[:, None] + torch.arange(length + 1)], len(table)


@functools.cache
def words(count: int = 1000, length: int = 12, seed: int = 0) -> tuple[Any, Any, int]:
    """Return padded sentences as numbers of words, whether of an animal, and how many words.

    0 pads, 1 masks and 2 begins.
    """
    rng = np.random.default_rng(seed)
    lines = [_sentence(rng) for _ in range(count)]
    split = [line.rstrip(".!").split() for line in lines]
    table = {
        word: 3 + at for at, word in enumerate(sorted({word for line in split for word in line}))
    }
    rows = torch.zeros(count, length, dtype=torch.long)
    for row, line in zip(rows, split, strict=True):
        row[: len(line) + 1] = torch.tensor([2, *(table[word] for word in line)])
    animals = [any(word in _ANIMALS for word in line) for line in split]
    return rows, torch.tensor(animals).long(), 3 + len(table)


def sums(count: int = 2000, seed: int = 0) -> Any:
    """Return sums such as ``27+58=085`` as numbers of signs (10 is plus, 11 equals)."""
    random = _random(seed)
    pairs = torch.randperm(10000, generator=random)[:count]  # each at most once
    first, second = pairs // 100, pairs % 100
    total = first + second
    parts = [first // 10, first % 10, torch.full_like(first, 10), second // 10, second % 10]
    parts += [torch.full_like(first, 11), total // 100, total // 10 % 10, total % 10]
    return torch.stack(parts, 1)


def captions(count: int = 1200, seed: int = 0) -> tuple[Any, Any]:
    """Return pictures (1, 16, 16) of shapes, and captions: kind, side, height and size as words."""
    x, kind = shapes(count, seed)
    where = torch.rand(3, count, 1, 1, generator=_random_after_kinds(count, seed))[:, :, 0, 0]
    across, down, size = (where * 3).long().clamp(max=2)
    return x, torch.stack([kind, 4 + across, 7 + down, 10 + size], 1)


def _random_after_kinds(count: int, seed: int) -> torch.Generator:
    """Return the random numbers of `shapes` after those of the kinds."""
    random = _random(seed)
    torch.randint(4, (count,), generator=random)
    return random
