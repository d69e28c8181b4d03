"""Tables: hives, grades of ore, cars, glaciers, and masses of tissue."""

import functools
from typing import Any

import numpy as np
import torch
from sklearn.datasets import load_breast_cancer
from training.learnt_data import Split

from runs_tuned.sixth_held_out.data_and_trees.shared.pictures import last_apart

MAKES, BODIES = 25, 6


def rows_of_hives(count: int, seed: int, noise: float = 0.7, lost: float = 0.4) -> tuple[Any, Any]:
    """Return 14 facts of hives, and which are lost in winter, of which a share is."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(count, 14))
    x[:, 9] = 0.7 * x[:, 2] + 0.7 * x[:, 9]
    danger = 1.1 * x[:, 0] - 0.9 * x[:, 1] + 0.8 * np.abs(x[:, 2]) + 0.6 * x[:, 3] * x[:, 4]
    danger = danger - 0.6 * np.tanh(2 * x[:, 5]) + 0.5 * x[:, 6] - 0.4 * x[:, 7] + 0.3 * x[:, 8]
    danger = danger + noise * rng.normal(size=count)
    return x, (danger > np.quantile(danger, 1 - lost)).astype(float)


def rows_of_ore(
    count: int, seed: int, noise: float = 0.3, shares: tuple[float, ...] = (3.0, 4.0, 3.0, 2.0)
) -> tuple[Any, Any]:
    """Return twelve measurements of ore, and its grade, by a sum with waves and products."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(count, 12)) @ (np.eye(12) + 0.2 * rng.normal(size=(12, 12)))
    worth = x[:, 0] + 0.7 * np.sin(1.5 * x[:, 1]) + 0.5 * x[:, 2] * x[:, 3] - 0.6 * x[:, 4]
    worth = worth + 0.5 * x[:, 5] + 0.4 * x[:, 6] - 0.3 * x[:, 7] + noise * rng.normal(size=count)
    limits = np.cumsum(shares)[:-1] / np.sum(shares)
    return x, np.digitize(worth, np.quantile(worth, limits)).astype(float)


def rows_of_cars(count: int, seed: int, noise: float = 0.3) -> tuple[Any, Any]:
    """Return makes, bodies and eight numbers of cars, and how much they burn."""
    rng = np.random.default_rng(seed)
    make, body = rng.integers(0, MAKES, count), rng.integers(0, BODIES, count)
    x = rng.normal(size=(count, 8))
    burnt = 0.6 * rng.normal(size=MAKES)[make] + rng.normal(size=BODIES)[body] + 0.9 * x[:, 0]
    burnt = burnt + 0.6 * np.maximum(x[:, 1], 0) - 0.5 * x[:, 2] + 0.4 * x[:, 3] * (body > 3)
    burnt = burnt + 0.4 * x[:, 4] - 0.3 * x[:, 5] + noise * rng.normal(size=count)
    return np.column_stack([make, body, x]), burnt


def rows_of_glaciers(count: int, seed: int, noise: float = 0.4) -> tuple[Any, Any]:
    """Return ten facts of glaciers, and how much of them melts."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1.7, 1.7, size=(count, 10))
    melt = np.exp(0.5 * x[:, 0]) + x[:, 1] * x[:, 2] + 0.6 * np.cos(2 * x[:, 3]) - 0.8 * x[:, 4]
    melt = melt + 0.5 * x[:, 5] - 0.4 * x[:, 6] + 0.4 * x[:, 7] + noise * rng.normal(size=count)
    return x, (melt - melt.mean()) / melt.std()


def rows_of_tissue() -> tuple[Any, Any]:
    """Return what is seen of masses without their size, and the logarithm of their area."""
    facts, _ = load_breast_cancer(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(facts))
    area = np.log(facts[order, 3])
    seen = [at for at in range(30) if at % 10 not in {0, 2, 3}]
    x = facts[order][:, seen]
    return (x - x.mean(0)) / x.std(0), (area - area.mean()) / area.std()


def as_split(rows: tuple[Any, Any], tested: int, *, classes: bool = False) -> Split:
    """Return tensors of rows, whose targets are classes or a column of numbers."""
    x, y = (torch.tensor(part, dtype=torch.float32) for part in rows)
    return last_apart(x, y.long() if classes else y[:, None], tested)


@functools.cache
def hives(count: int, seed: int, tested: int = 350, **more: float) -> Split:
    """Return hives and a column of whether they are lost."""
    return as_split(rows_of_hives(count, seed, **more), tested)


@functools.cache
def ore(count: int, seed: int, tested: int = 350, **more: Any) -> Split:
    """Return ore and its four grades."""
    return as_split(rows_of_ore(count, seed, **more), tested, classes=True)


@functools.cache
def cars(count: int, seed: int, tested: int = 350, **more: float) -> Split:
    """Return cars, their makes and bodies first, and what they burn."""
    return as_split(rows_of_cars(count, seed, **more), tested)


@functools.cache
def glaciers(count: int, seed: int, tested: int = 350, **more: float) -> Split:
    """Return glaciers and how much of them melts."""
    return as_split(rows_of_glaciers(count, seed, **more), tested)
