"""Tables: customers who leave, flats, bicycles that are hired, and searches."""

import functools
from typing import Any

import numpy as np
import torch
from training.learnt_data import Split

from runs_tuned.seventh_held_out.data_and_trees.shared.pictures import apart

DISTRICTS, TARIFFS = 20, 5


def rows_of_leavers(
    count: int, seed: int, noise: float = 0.6, share: float = 0.3
) -> tuple[Any, Any]:
    """Return 12 facts of customers, and which of them leave."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(count, 12))
    x[:, 5] = 0.6 * x[:, 0] + 0.8 * x[:, 5]
    wish = 0.9 * x[:, 0] - 0.8 * x[:, 1] + 0.7 * x[:, 2] * (x[:, 3] > 0) + 0.6 * np.abs(x[:, 4])
    wish = wish + 0.5 * x[:, 6] - 0.5 * x[:, 7] + 0.4 * np.sin(2 * x[:, 8]) + 0.3 * x[:, 9]
    wish = wish + noise * rng.normal(size=count)
    return x, (wish > np.quantile(wish, 1 - share)).astype(float)


def rows_of_flats(count: int, seed: int, noise: float = 0.25) -> tuple[Any, Any]:
    """Return districts, tariffs and nine numbers of flats, and the logarithm of their price."""
    rng = np.random.default_rng(seed)
    district, tariff = rng.integers(0, DISTRICTS, count), rng.integers(0, TARIFFS, count)
    x = rng.normal(size=(count, 9))
    worth = 0.6 * rng.normal(size=DISTRICTS)[district] + 0.3 * rng.normal(size=TARIFFS)[tariff]
    worth = worth + 0.7 * x[:, 0] + 0.4 * np.maximum(x[:, 1], -0.5) - 0.4 * x[:, 2]
    worth = worth + 0.3 * x[:, 3] * x[:, 4] + 0.3 * x[:, 5] - 0.25 * x[:, 6] + 0.2 * x[:, 7]
    return np.column_stack([district, tariff, x]), worth + noise * rng.normal(size=count)


def rows_of_faults(
    count: int, seed: int, kinds: int = 4, apart_by: float = 1.2, noise: float = 1.0
) -> tuple[Any, Any]:
    """Return ten measurements of machines, and which kind of fault they have."""
    rng = np.random.default_rng(seed)
    centre = apart_by * rng.normal(size=(kinds, 2, 10))
    kind = rng.integers(0, kinds, count)
    x = centre[kind, rng.integers(0, 2, count)] + noise * rng.normal(size=(count, 10))
    return x, kind.astype(float)


def rows_of_hires(count: int, seed: int) -> tuple[Any, Any]:
    """Return ten facts of hours, and how many bicycles are hired in them."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(count, 10))
    hour = rng.integers(0, 24, count)
    x[:, 0] = hour
    rush = np.exp(-((hour - 8) ** 2) / 6) + np.exp(-((hour - 17) ** 2) / 8)
    mean = 0.7 + 1.1 * rush + 0.4 * x[:, 1] - 0.3 * np.abs(x[:, 2]) + 0.3 * x[:, 3]
    mean = mean - 0.25 * x[:, 4] + 0.2 * x[:, 5] * x[:, 6] + 0.15 * x[:, 7]
    return x, rng.poisson(np.exp(mean)).astype(float)


def rows_of_searches(searches: int, each: int, seed: int, grades: int = 4) -> tuple[Any, Any]:
    """Return 12 facts of the results of searches, and how well they fit, from 0 on."""
    rng = np.random.default_rng(seed)
    count = searches * each
    x = rng.normal(size=(count, 12))
    fit = 0.9 * x[:, 0] + 0.7 * x[:, 1] - 0.6 * x[:, 2] + 0.5 * x[:, 3] * x[:, 4] + 0.5 * x[:, 5]
    fit = fit + 0.4 * np.maximum(x[:, 6], x[:, 7]) + 0.3 * x[:, 8] + 0.7 * rng.normal(size=count)
    limits = np.quantile(fit, np.linspace(0.5, 0.95, grades - 1))
    return x, np.digitize(fit, limits).astype(float)


def as_split(rows: tuple[Any, Any], tested: int, *, classes: bool = False) -> Split:
    """Return rows scaled by those to train with; targets are classes or a column of numbers."""
    x, y = (torch.tensor(part, dtype=torch.float32) for part in rows)
    data = apart(x, y.long() if classes else y[:, None], tested)
    mean, deviation = data.x.mean(0), data.x.std(0)
    return data.of(lambda found: (found - mean) / deviation)


@functools.cache
def leavers(count: int, seed: int, tested: int = 400, *, classes: bool = False, **more: Any) -> Any:
    """Return customers, and a column (or the class) of whether they leave."""
    return as_split(rows_of_leavers(count, seed, **more), tested, classes=classes)


@functools.cache
def faults(count: int, seed: int, tested: int = 400, **more: Any) -> Any:
    """Return measurements of machines, and their kinds of fault."""
    return as_split(rows_of_faults(count, seed, **more), tested, classes=True)


@functools.cache
def flats(count: int, seed: int, tested: int = 400, **more: Any) -> Split:
    """Return flats, districts and tariffs first, and their prices, scaled."""
    x, price = rows_of_flats(count, seed, **more)
    price = (price - price[:-tested].mean()) / price[:-tested].std()
    facts, y = (torch.tensor(part, dtype=torch.float32) for part in (x, price))
    return apart(facts, y[:, None], tested)
