"""Problems: generated data that no other runs learn from."""

import functools
from typing import Any

import numpy as np
import torch

SIGNS = 13  # ten digits, plus, equals, and an end


@functools.cache
def additions(count: int = 2000, seed: int = 61) -> tuple[Any, Any]:
    """Return sums such as ``37+25=062`` and their next signs; the task is not told: -100."""
    rng = np.random.default_rng(seed)
    first, second = rng.integers(10, 100, (2, count))
    texts = [f"{one}+{two}={one + two:03d}." for one, two in zip(first, second, strict=True)]
    tokens = torch.tensor([["0123456789+=.".index(sign) for sign in text] for text in texts])
    targets = tokens[:, 1:].clone()
    targets[:, :5] = -100
    return tokens[:, :-1], targets


@functools.cache
def stripes(count: int = 1000, size: int = 8, seed: int = 62) -> tuple[Any, Any]:
    """Return images ``(n, 1, size, size)`` of stripes, and which of six directions they have."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(6, size=count)
    angle, width = kind * np.pi / 6, rng.uniform(0.9, 1.6, count)
    row, column = np.mgrid[:size, :size]
    along = np.cos(angle)[:, None, None] * row + np.sin(angle)[:, None, None] * column
    phase = rng.uniform(0, 2 * np.pi, (count, 1, 1))
    images = np.sin(width[:, None, None] * along + phase) + 0.2 * rng.normal(size=along.shape)
    return torch.tensor(images[:, None], dtype=torch.float32), torch.tensor(kind)


@functools.cache
def pulses(count: int = 1200, length: int = 24, seed: int = 63) -> tuple[Any, Any]:
    """Return series of a high and a low pulse, and the place of the high one in four quarters."""
    rng = np.random.default_rng(seed)
    time = np.arange(length)
    place = rng.uniform(2, length - 2, (count, 1))
    gap, height = rng.uniform(3, 8, (count, 1)), rng.uniform(1, 2.5, (count, 1))
    values = height * np.exp(-((time - place) ** 2) / 2)
    values -= 0.6 * height * np.exp(-((time - place - gap) ** 2) / 6)
    values += 0.08 * rng.normal(size=values.shape)
    quarter = np.minimum(4 * place[:, 0] / length, 3).astype(int)
    return torch.tensor(values, dtype=torch.float32), torch.tensor(quarter)


@functools.cache
def baskets(count: int = 1500, goods: int = 30, habits: int = 5, seed: int = 64) -> Any:
    """Return which goods are in a basket; customers have some of a few habits."""
    rng = np.random.default_rng(seed)
    likes = np.where(rng.random((habits, goods)) < 0.25, 3.5, 0.0)
    has = rng.random((count, habits)) < 0.4
    chance = 1 / (1 + np.exp(2.2 - has @ likes))
    return torch.tensor(rng.random((count, goods)) < chance, dtype=torch.float32)


@functools.cache
def topics(count: int = 1200, words: int = 40, seed: int = 65) -> Any:
    """Return counts of words in documents on mixtures of four topics."""
    rng = np.random.default_rng(seed)
    of_topics = rng.dirichlet(np.full(words, 0.15), 4)
    shares = rng.dirichlet(np.full(4, 0.3), count)
    lengths = rng.integers(30, 80, (count, 1))
    return torch.tensor(rng.poisson(lengths * (shares @ of_topics)), dtype=torch.float32)


@functools.cache
def spirals(count: int = 2000, arms: int = 3, seed: int = 66) -> tuple[Any, Any]:
    """Return points on arms of a spiral, and the arm of each."""
    rng = np.random.default_rng(seed)
    arm = rng.integers(arms, size=count)
    radius = rng.uniform(0.3, 1.8, count)
    angle = 1.6 * radius + 2 * np.pi * arm / arms
    points = radius[:, None] * np.stack([np.cos(angle), np.sin(angle)], 1)
    points += 0.05 * rng.normal(size=points.shape)
    return torch.tensor(points, dtype=torch.float32), torch.tensor(arm)


@functools.cache
def regimes(count: int = 1500, seed: int = 67) -> tuple[Any, Any]:
    """Return six features, and a number that depends on them in another way in each third."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1.5, 1.5, (count, 6))
    third = np.digitize(x[:, 0], [-0.5, 0.5])
    ways = np.stack([2 * x[:, 1] - x[:, 2], np.sin(3 * x[:, 3]) + x[:, 4], -x[:, 1] * x[:, 5]], 1)
    y = ways[np.arange(count), third] + 0.1 * rng.normal(size=count)
    return torch.tensor(x, dtype=torch.float32), torch.tensor(y[:, None], dtype=torch.float32)
