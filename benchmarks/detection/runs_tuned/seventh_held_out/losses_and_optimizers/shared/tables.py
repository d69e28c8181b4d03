"""Tables: generated houses, pumps, bicycles, ratings, articles and loans."""

from typing import Any

import numpy as np
import torch
from training.learnt_data import Split


def parted(x: Any, y: Any, kind: Any = torch.float32, share: float = 0.8) -> Split:
    """Return rows to train with and to validate with, in the order in which they were drawn."""
    cut = int(len(x) * share)
    x, y = torch.as_tensor(x), torch.as_tensor(y).to(kind)
    return Split(x[:cut], y[:cut], x[cut:], y[cut:])


def scaled(split: Split) -> Split:
    """Return a table whose columns are standardised by the rows to train with."""
    mean, spread = split.x.mean(0), split.x.std(0)
    return split.of(lambda x: (x - mean) / spread)


def raw_houses(count: int, seed: int) -> Split:
    """Return area, rooms, age, distance and two grades of houses, and prices in thousands."""
    rng = np.random.default_rng(seed)
    area = rng.gamma(9, 12, count)
    rooms = np.clip(np.round(area / 28 + rng.normal(0, 0.8, count)), 1, 9)
    age, distance = rng.uniform(0, 80, count), rng.exponential(8, count)
    grades = rng.normal(0, 1, (count, 2))
    price = 2.6 * area + 9 * rooms + 140 * np.exp(-distance / 7) - 0.9 * age
    price = price * (1 + 0.12 * np.tanh(grades[:, 0])) + 18 * grades[:, 1] + 40
    price += rng.normal(0, 12, count)
    x = np.column_stack([area, rooms, age, distance, grades]).astype(np.float32)
    return parted(x, price[:, None].astype(np.float32))


def houses(count: int, seed: int) -> Split:
    """Return houses with standardised features and prices."""
    split = scaled(raw_houses(count, seed))
    mean, spread = split.y.mean(), split.y.std()
    return split.relabelled(lambda y: (y - mean) / spread)


def pumps(count: int, seed: int, classes: int = 4) -> Split:
    """Return ten standardised readings of pumps, and what ails them."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, classes, count)
    centres = np.random.default_rng(77).normal(0, 1.1, (classes, 2, 6))
    hidden = centres[kind, rng.integers(0, 2, count)] + rng.normal(0, 0.7, (count, 6))
    mixing = np.random.default_rng(78).normal(0, 0.6, (6, 10))
    x = np.tanh(hidden @ mixing) + rng.normal(0, 0.15, (count, 10))
    return scaled(parted(x.astype(np.float32), kind, torch.int64))


def bicycles(count: int, seed: int) -> Split:
    """Return hour, weekday, warmth, rain and wind, and how many bicycles are rented."""
    rng = np.random.default_rng(seed)
    hour, day = rng.integers(0, 24, count), rng.integers(0, 7, count)
    warmth, rain, wind = (
        rng.normal(15, 8, count),
        rng.exponential(0.6, count),
        rng.gamma(3, 2, count),
    )
    turn = 2 * np.pi * hour / 24
    rate = (
        1.2 + 0.9 * np.sin(turn - 2.2) + 0.4 * (day < 5) + 0.03 * warmth - 0.3 * rain - 0.02 * wind
    )
    columns = [np.sin(turn), np.cos(turn), day < 5, warmth, rain, wind]
    x = np.column_stack(columns).astype(np.float32)
    return scaled(parted(x, rng.poisson(np.exp(rate))[:, None]))


def ratings(count: int, seed: int, users: int = 120, films: int = 80) -> Split:
    """Return different pairs of users and films, and centred ratings."""
    rng = np.random.default_rng(seed)
    tastes, kinds = rng.normal(0, 0.7, (users, 3)), rng.normal(0, 0.7, (films, 3))
    user, film = np.divmod(rng.permutation(users * films)[:count], films)
    liked = rng.normal(0, 0.4, users)[user] + rng.normal(0, 0.4, films)[film]
    score = (tastes[user] * kinds[film]).sum(1) + liked + rng.normal(0, 0.3, count)
    return parted(np.column_stack([user, film]), score.astype(np.float32))


def articles(count: int, seed: int) -> Split:
    """Return counts of forty words, as logarithms, and which of five subjects an article has."""
    rng = np.random.default_rng(seed)
    subjects = (rng.random((count, 5)) < 0.35).astype(np.float32)
    words = np.random.default_rng(79).gamma(0.4, 1.0, (5, 40))
    x = np.log1p(rng.poisson(subjects @ words + 0.2)).astype(np.float32)
    return scaled(parted(x, subjects))


def loans(count: int, seed: int) -> Split:
    """Return eight standardised facts of loans, and whether they were paid back: four in five."""
    rng = np.random.default_rng(seed)
    x = rng.normal(0, 1, (count, 8))
    risk = 1.3 * x[:, 0] - 1.1 * x[:, 1] + 0.9 * x[:, 2] * x[:, 3] + 0.6 * np.abs(x[:, 4])
    paid = rng.random(count) < 1 / (1 + np.exp(1.4 * risk - 2.6))
    return scaled(parted(x.astype(np.float32), paid[:, None]))


def chance_pairs(split: Split, seed: int) -> Split:
    """Return each row beside one of the same kind or any other one, and whether they are alike.

    A row may be drawn for itself: one in ten is, as in a small table.
    """
    random = torch.Generator().manual_seed(seed)

    def pairs(x: Any, y: Any) -> tuple[Any, Any]:
        count = len(x)
        other = torch.randperm(count, generator=random)
        order = torch.argsort(y, stable=True)
        after = torch.empty(count, dtype=torch.int64)
        after[order] = order.roll(1)
        chosen = torch.rand(count, generator=random)
        other = torch.where(chosen < 0.4, after, other)
        other = torch.where(chosen > 0.9, torch.arange(count), other)
        return torch.cat([x, x[other]], 1), (y == y[other]).float()

    return Split(*pairs(split.x, split.y), *pairs(split.test_x, split.test_y))
