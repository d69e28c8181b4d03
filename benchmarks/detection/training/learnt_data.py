"""Datasets: what the trainings of the detection suite learn from, split and as tensors."""

import functools
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import torch
from sklearn import datasets as bundled
from sklearn.model_selection import train_test_split

TOKENS = 24  # 0 is padding
LENGTH = 16


@dataclass(frozen=True, slots=True)
class Split:
    """Inputs and targets to train with, and to validate with."""

    x: Any
    y: Any
    test_x: Any
    test_y: Any

    def of(self, change: Any) -> Self:
        """Return it with all inputs changed by a function."""
        return type(self)(change(self.x), self.y, change(self.test_x), self.test_y)

    def relabelled(self, change: Any) -> Self:
        """Return it with all targets changed by a function."""
        return type(self)(self.x, change(self.y), self.test_x, change(self.test_y))

    def taught(self, change: Any) -> Self:
        """Return it with the targets to train with changed by a function."""
        return type(self)(self.x, change(self.y), self.test_x, self.test_y)

    def chosen(self, rows: Any) -> Self:
        """Return it with these rows to train with."""
        return type(self)(self.x[rows], self.y[rows], self.test_x, self.test_y)


def _split(x: Any, y: Any, *, classes: bool, test: float = 0.25) -> Split:
    x, test_x, y, test_y = train_test_split(
        x, y, test_size=test, random_state=0, stratify=y if classes else None
    )
    kind = torch.int64 if classes else torch.float32
    return Split(
        torch.tensor(x, dtype=torch.float32),
        torch.tensor(y, dtype=kind),
        torch.tensor(test_x, dtype=torch.float32),
        torch.tensor(test_y, dtype=kind),
    )


def _standardised(split: Split) -> Split:
    mean, deviation = split.x.mean(0), split.x.std(0) + 1e-6
    return split.of(lambda x: (x - mean) / deviation)


@functools.cache
def pixels() -> Split:
    """Return digits of shape ``(n, 1, 8, 8)`` with pixels of 0 to 255, in 10 classes."""
    found = bundled.load_digits()
    return _split(found.images[:, None] * (255 / 16), found.target, classes=True)


@functools.cache
def images() -> Split:
    """Return digits of shape ``(n, 1, 8, 8)``, mean 0 and deviation 1 over all pixels."""
    split = pixels()
    mean, deviation = split.x.mean(), split.x.std()
    return split.of(lambda x: (x - mean) / deviation)


@functools.cache
def digits() -> Split:
    """Return digits of shape ``(n, 64)``, mean 0 and deviation 1 over all pixels."""
    return images().of(lambda x: x.flatten(1))


@functools.cache
def coloured() -> Split:
    """Return digits of shape ``(n, 3, 8, 8)``, each channel of another contrast, mean 0."""
    contrast = torch.tensor([1.0, 0.8, 1.2]).reshape(1, 3, 1, 1)
    return images().of(lambda x: x * contrast)


@functools.cache
def table(name: str) -> Split:
    """Return iris, wine or breast_cancer with standardised features."""
    found = getattr(bundled, f"load_{name}")()
    return _standardised(_split(found.data, found.target, classes=True))


@functools.cache
def diabetes() -> Split:
    """Return 10 features and the progression of a disease ``(n, 1)``, both standardised."""
    found = bundled.load_diabetes()
    split = _standardised(_split(found.data, found.target[:, None], classes=False))
    mean, deviation = split.y.mean(), split.y.std()
    return split.relabelled(lambda y: (y - mean) / deviation)


@functools.cache
def sentences(count: int = 1200, shortest: int = 9, length: int = LENGTH) -> Split:
    """Return token sequences ``(n, length)``: has it more tokens below 12, or from 12 on?

    Each has `shortest` to `LENGTH` tokens; the rest of it is padding, token 0.
    """
    rng = np.random.default_rng(7)
    tokens = np.zeros((count, length), np.int64)
    kind = np.zeros(count, np.int64)
    for at in range(count):
        size = int(rng.integers(shortest, min(LENGTH, length) + 1))
        kind[at] = rng.integers(2)
        low = rng.random(size) < (0.2 if kind[at] else 0.8)
        tokens[at, :size] = np.where(low, rng.integers(1, 12, size), rng.integers(12, TOKENS, size))
    x, test_x, y, test_y = map(
        torch.tensor, train_test_split(tokens, kind, random_state=0, stratify=kind)
    )
    return Split(x, y, test_x, test_y)


@functools.cache
def texts(count: int = 800) -> Split:
    """Return sequences of tokens and their next tokens, both ``(n, LENGTH)``.

    Mostly the next token is the last one times three plus one: a language easily learnt.
    """
    rng = np.random.default_rng(11)
    tokens = rng.integers(1, TOKENS, (count, LENGTH + 1))
    for at in range(LENGTH):
        follows = 1 + (3 * tokens[:, at]) % (TOKENS - 1)
        tokens[:, at + 1] = np.where(rng.random(count) < 0.9, follows, tokens[:, at + 1])
    tokens = torch.tensor(tokens)
    cut = count * 3 // 4
    ins, outs = tokens[:, :-1], tokens[:, 1:]
    return Split(ins[:cut], outs[:cut], ins[cut:], outs[cut:])


@functools.cache
def waves(count: int = 600, length: int = 20) -> Split:
    """Return noisy sine waves ``(n, length, 1)`` and the value that follows, ``(n, 1)``."""
    rng = np.random.default_rng(13)
    phase, speed = rng.uniform(0, 6.28, (count, 1)), rng.uniform(0.2, 0.5, (count, 1))
    wave = np.sin(phase + speed * np.arange(length + 1)) + rng.normal(0, 0.02, (count, length + 1))
    return _split(wave[:, :-1, None], wave[:, -1:], classes=False)


def imbalanced(split: Split, small: int, one_in: int) -> Split:
    """Keep one in so many samples of a class, of those to train with and of the others."""

    def kept(x: Any, y: Any) -> tuple[Any, Any]:
        rare = torch.cumsum(y == small, 0) % one_in == 0
        rows = (y != small) | rare
        return x[rows], y[rows]

    return Split(*kept(split.x, split.y), *kept(split.test_x, split.test_y))


def random_labels(classes: int, seed: int = 0) -> Any:
    """Return a function that replaces labels by random ones."""
    generator = torch.Generator().manual_seed(seed)
    return lambda y: torch.randint(0, classes, y.shape, generator=generator)
