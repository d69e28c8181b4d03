"""Signals: generated heartbeats, household loads, steps of walkers, and pictures of shapes."""

from typing import Any

import numpy as np
import torch
from training.learnt_data import Split

from runs_tuned.seventh_held_out.losses_and_optimizers.shared.tables import parted


def heartbeats(count: int, seed: int, length: int = 64) -> Split:
    """Return records ``(n, 1, length)``, each standardised, and one of three rhythms."""
    rng = np.random.default_rng(seed)
    rhythm = rng.integers(0, 3, count)
    x = rng.normal(0, 0.12, (count, length))
    at = np.arange(length)
    for row, kind in enumerate(rhythm):
        place, gap = rng.uniform(0, 10), rng.uniform(11, 15) * (0.62 if kind == 1 else 1.0)
        while place < length:
            x[row] += np.exp(-(((at - place) / 1.1) ** 2)) - 0.2 * np.exp(
                -(((at - place - 3) / 1.5) ** 2)
            )
            place += gap * (rng.uniform(0.55, 1.45) if kind == 2 else rng.uniform(0.95, 1.05))
    x = (x - x.mean(1, keepdims=True)) / x.std(1, keepdims=True)
    return parted(x[:, None].astype(np.float32), rhythm, torch.int64)


def loads(count: int, seed: int, window: int = 24, ahead: int = 1) -> Split:
    """Return windows of a household's hourly load ``(n, window, 1)``, and what follows.

    The last fifth of the hours validates; the load is standardised by the hours before.
    """
    rng = np.random.default_rng(seed)
    hour = np.arange(count + window + ahead)
    load = 1.0 + 0.5 * np.sin(2 * np.pi * hour / 24) + 0.25 * np.sin(4 * np.pi * hour / 24 + 1)
    drift = np.zeros(len(hour))
    for at in range(1, len(hour)):
        drift[at] = 0.9 * drift[at - 1] + rng.normal(0, 0.07)
    load += drift + rng.normal(0, 0.04, len(hour))
    cut = int(len(load) * 0.8)
    load = ((load - load[:cut].mean()) / load[:cut].std()).astype(np.float32)

    def windows(part: Any) -> tuple[Any, Any]:
        starts = range(len(part) - window - ahead + 1)
        x = np.stack([part[at : at + window] for at in starts])
        y = np.stack([part[at + window : at + window + ahead] for at in starts])
        return torch.tensor(x)[..., None], torch.tensor(y)

    return Split(*windows(load[:cut]), *windows(load[cut:]))


def walks(count: int, seed: int, length: int = 30) -> Split:
    """Return three axes of acceleration ``(n, length, 3)``, and one of four ways to move."""
    rng = np.random.default_rng(seed)
    way = rng.integers(0, 4, count)
    speed = np.array([0.0, 0.5, 0.9, 0.5])[way] * rng.uniform(0.85, 1.15, count)
    force = np.array([0.1, 0.8, 1.6, 0.9])[way] * rng.uniform(0.8, 1.2, count)
    turn = speed[:, None] * np.arange(length) + rng.uniform(0, 6.28, (count, 1))
    axes = [np.sin(turn), np.cos(2 * turn), np.where((way == 3)[:, None], np.sin(turn / 2), 0.3)]
    x = force[:, None, None] * np.stack(axes, 2) + rng.normal(0, 0.35, (count, length, 3))
    return parted(x.astype(np.float32), way, torch.int64)


def shapes(count: int, seed: int, size: int = 12, noise: float = 0.25) -> Split:
    """Return standardised pictures ``(n, 1, size, size)`` of a disc, ring, square or cross."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, 4, count)
    rows, columns = np.mgrid[:size, :size]
    x = np.zeros((count, 1, size, size))
    for number, shape in enumerate(kind):
        top, left = rng.uniform(4, size - 5, 2)
        wide = rng.uniform(2.4, 4.2)
        down, right = np.abs(rows - top), np.abs(columns - left)
        far = np.hypot(down, right)
        drawn = (
            far < wide,
            np.abs(far - wide) < 0.9,
            np.maximum(down, right) < wide * 0.9,
            (np.minimum(down, right) < 0.9) & (far < wide),
        )[shape]
        x[number, 0] = drawn * rng.uniform(0.6, 1.0)
    x += rng.normal(0, noise, x.shape)
    split = parted(x.astype(np.float32), kind, torch.int64)
    mean, spread = split.x.mean(), split.x.std()
    return split.of(lambda pixels: (pixels - mean) / spread)
