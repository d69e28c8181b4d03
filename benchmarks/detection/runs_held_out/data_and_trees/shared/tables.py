"""Tables: loans, crops, trips, claims, demand by the hour, and turbines."""

from typing import Any

import numpy as np
import torch
from training.learnt_data import Split

from runs_held_out.data_and_trees.shared.pictures import parts


def loans(count: int, seed: int, *, noise: float = 0.8, share: float = 0.3) -> tuple[Any, Any]:
    """Return 14 facts of loans, and which of them are not paid back."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(count, 14))
    x[:, 9] = 0.7 * x[:, 1] + 0.7 * x[:, 9]
    risk = 0.8 * x[:, 0] - 0.7 * x[:, 1] + 0.6 * np.maximum(x[:, 2], 0) - 0.5 * x[:, 3] * x[:, 4]
    risk = risk + 0.5 * np.tanh(2 * x[:, 5]) - 0.5 * x[:, 6] + 0.4 * np.abs(x[:, 7]) + 0.3 * x[:, 8]
    risk = risk + 0.3 * x[:, 10] + noise * rng.normal(size=count)
    return x, (risk > np.quantile(risk, 1 - share)).astype(float)


def crops(
    count: int, seed: int, *, kinds: int = 5, noise: float = 1.0, fields: int = 88
) -> tuple[Any, Any]:
    """Return 11 measurements of soils from above, and which crop grows there."""
    rng = np.random.default_rng(seed)
    centre = 1.1 * np.random.default_rng(fields).normal(size=(kinds, 3, 11))
    kind = rng.integers(0, kinds, count)
    x = centre[kind, rng.integers(0, 3, count)] + noise * rng.normal(size=(count, 11))
    return x, kind.astype(float)


def trips(count: int, seed: int, *, noise: float = 0.25) -> tuple[Any, Any]:
    """Return zones of start and end, an hour and eight numbers of trips, and their minutes."""
    rng = np.random.default_rng(seed)
    city = np.random.default_rng(99).normal(size=(16, 2))
    start, end, hour = (rng.integers(0, most, count) for most in (16, 16, 24))
    x = rng.normal(size=(count, 8))
    way = np.sqrt(((city[start] - city[end]) ** 2).sum(1))
    rush = np.exp(-((hour - 8) ** 2) / 8) + np.exp(-((hour - 18) ** 2) / 8)
    slow = 1.6 + 0.5 * way + 0.5 * rush + 0.3 * x[:, 0] - 0.25 * x[:, 1]
    slow = slow + 0.25 * np.maximum(x[:, 2], 0) + 0.15 * x[:, 3] * x[:, 4] + 0.15 * x[:, 5]
    minutes = np.exp(slow + noise * rng.normal(size=count))
    return np.column_stack([start, end, hour, x]), minutes


def claims(count: int, seed: int) -> tuple[Any, Any]:
    """Return 12 facts of policies, and what is claimed in a year: mostly nothing."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(count, 12))
    often = 0.4 * x[:, 0] - 0.3 * x[:, 1] + 0.3 * np.abs(x[:, 2]) + 0.2 * x[:, 3] - 0.6
    much = 0.3 * x[:, 4] + 0.3 * x[:, 0] - 0.2 * x[:, 5] + 0.2 * x[:, 6] * x[:, 7]
    number = rng.poisson(np.exp(often))
    return x, rng.gamma(np.maximum(2.0 * number, 1e-9), 0.5 * np.exp(much))


def turbines(count: int, seed: int, *, noise: float = 0.4) -> tuple[Any, Any]:
    """Return 13 readings of turbines, and their power, about 0 and with a deviation of about 1."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(count, 13))
    power = np.tanh(1.2 * x[:, 0]) + 0.5 * np.cos(1.5 * x[:, 1]) + 0.4 * x[:, 2] * x[:, 3]
    power = power - 0.4 * np.maximum(x[:, 4], 0) + 0.35 * x[:, 5] + 0.3 * x[:, 6] - 0.3 * x[:, 7]
    power = power + 0.2 * x[:, 8] ** 2 + noise * rng.normal(size=count)
    return x, (power - power.mean()) / power.std()


def demand(hours: int, seed: int) -> tuple[Any, Any]:
    """Return the demand of electricity by the hour, and six numbers of weather and calendar."""
    rng = np.random.default_rng(seed)
    hour = np.arange(hours)
    weather = np.zeros((hours, 3))
    for at in range(1, hours):
        weather[at] = 0.9 * weather[at - 1] + 0.4 * rng.normal(size=3)
    slow = np.zeros(hours)
    for at in range(1, hours):
        slow[at] = 0.7 * slow[at - 1] + 0.5 * rng.normal()
    day, week = hour % 24, (hour // 24) % 7
    level = 1.2 * np.sin(6.28 * (day - 7) / 24) + 0.5 * np.sin(12.57 * day / 24) - 0.7 * (week > 4)
    level = level + 0.5 * weather[:, 0] - 0.3 * np.abs(weather[:, 1]) + slow
    return level, np.column_stack([weather, day, week, rng.normal(size=hours)])


def with_lags(level: Any, known: Any, lags: Any) -> tuple[Any, Any]:
    """Return what is known with the demand of earlier hours, and the demand, without a begin."""
    lags = list(lags)
    shifted = np.column_stack([np.roll(level, lag) for lag in lags])
    begin = max(lags)
    return np.column_stack([known, shifted])[begin:], level[begin:]


def scaled(rows: tuple[Any, Any], tested: int, *, classes: bool = False) -> Split:
    """Return rows scaled by those to train with; targets are classes or a column of numbers."""
    x, y = (torch.tensor(part, dtype=torch.float32) for part in rows)
    data = parts(x, y.long() if classes else y[:, None], tested)
    mean, deviation = data.x.mean(0), data.x.std(0)
    return data.of(lambda found: (found - mean) / deviation)
