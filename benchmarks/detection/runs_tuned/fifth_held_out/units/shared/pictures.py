"""Generated pictures and series: galaxies, coins, tremors and batteries; pairs of digits."""

import functools
from typing import Any

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn
from training.learnt_data import Split

from runs_tuned.fifth_held_out.units.shared.tables import cut

GALAXIES = 4
TREMORS = 4


@functools.cache
def galaxies(count: int = 1100, noise: float = 1.3, seed: int = 1011) -> Split:
    """Return light ``(n, 1, 16, 16)`` of a spiral, a ring, a disc or one seen from its edge."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(GALAXIES, size=count)
    at = np.linspace(-1, 1, 16)
    shift = rng.uniform(-0.15, 0.15, (2, count, 1, 1))
    turn = rng.uniform(0, 6.28, (count, 1, 1))
    x, y = at[None, None] - shift[0], at[None, :, None] - shift[1]
    x, y = x * np.cos(turn) + y * np.sin(turn), y * np.cos(turn) - x * np.sin(turn)
    far, angle = np.hypot(x, y), np.arctan2(y, x)
    looks = [
        np.exp(-2 * far) * (1 + np.cos(2 * angle - 7 * far)),
        np.exp(-(((far - 0.6) / 0.15) ** 2)),
        1.2 * np.exp(-((far / 0.5) ** 2)),
        1.2 * np.exp(-((x / 0.7) ** 2) - (y / 0.15) ** 2),
    ]
    light = np.stack(looks, 1)[np.arange(count), kind] * rng.uniform(0.7, 1.4, (count, 1, 1))
    light = light / light.std() + noise * rng.normal(size=light.shape)
    return cut(((light - light.mean()) / light.std())[:, None], kind)


@functools.cache
def coins(count: int = 900, seed: int = 1012) -> Split:
    """Return pictures ``(n, 1, 18, 18)`` of coins of two sizes, and what they are worth."""
    rng = np.random.default_rng(seed)
    at = np.arange(18)
    light, worth = np.zeros((count, 18, 18)), np.zeros((count, 1))
    for _ in range(6):
        there, large = rng.random((count, 1, 1)) < 0.55, rng.random((count, 1, 1)) < 0.4
        x, y = rng.uniform(3, 15, (2, count, 1, 1))
        far = np.hypot(at[None, None] - x, at[None, :, None] - y)
        light = np.maximum(light, there / (1 + np.exp(4 * (far - 1.4 - 1.3 * large))))
        worth += (there * (1 + 2 * large))[:, 0]
    light = light + 0.1 * rng.normal(size=light.shape)
    light = (light - light.mean()) / light.std()
    return cut(light[:, None], (worth - worth.mean()) / worth.std())


@functools.cache
def tremors(count: int = 1100, noise: float = 1.5, seed: int = 1013) -> Split:
    """Return two components ``(n, 2, 96)`` of a near quake, a far one, a blast or a lorry."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(TREMORS, size=count)
    time = np.arange(96)

    def burst(begin: Any, fade: Any, speed: Any) -> Any:
        since = time - begin
        phase = rng.uniform(0, 6.28, (count, 1))
        return (since > 0) * np.exp(-since.clip(0) / fade) * np.sin(speed * since + phase)

    begin = rng.uniform(10, 30, (count, 1))
    pick = [row[:, None] for row in np.array([[1.2, 0.5, 1.6, 0.9], [12, 30, 8, 60]])[:, kind]]
    speed, fade = pick[0] * rng.uniform(0.9, 1.1, (count, 1)), pick[1]
    first = burst(begin, fade, speed)
    gap = np.where(kind == 0, 15, 35)[:, None]
    second = 1.6 * (kind < 2)[:, None] * burst(begin + gap, fade, 0.6 * speed)
    x = np.stack([first + 0.3 * second, 0.3 * first + second], 1)
    x = x / x.std() + noise * rng.normal(size=x.shape)
    return cut(x / x.std(), kind)


@functools.cache
def batteries(count: int = 700, length: int = 30, seed: int = 1014) -> Split:
    """Return current and voltage ``(n, length, 2)`` of a battery, and its charge at each time."""
    rng = np.random.default_rng(seed)
    current = np.repeat(rng.normal(size=(count, -(-length // 5))), 5, 1)[:, :length]
    size = rng.uniform(0.8, 1.2, (count, 1))
    charge = rng.uniform(-1, 1, (count, 1)) + np.cumsum(current, 1) / (6 * size)
    voltage = np.tanh(charge) + 0.4 * current + 0.25 * rng.normal(size=current.shape)
    return cut(np.stack([current, voltage / voltage.std()], 2), charge[..., None] / charge.std())


@functools.cache
def pairs_of_digits(count: int = 1500, seed: int = 1015) -> Split:
    """Return two digits ``(n, 2, 8, 8)``, and whether the first one is the greater."""
    rng, digits = np.random.default_rng(seed), load_digits()
    rows = rng.integers(len(digits.target), size=(2 * count, 2))
    rows = rows[digits.target[rows[:, 0]] != digits.target[rows[:, 1]]][:count]
    first, second = digits.target[rows].T
    return cut((digits.images[rows] - 4.9) / 6.0, (first > second)[:, None].astype(float))


class Scope(nn.Module):
    """Three convolutions, the mean over all places, and a linear layer."""

    def __init__(
        self, outs: int = GALAXIES, width: int = 16, norm: Any = None, act: Any = nn.ReLU
    ) -> None:
        super().__init__()
        parts: list[Any] = []
        for ins, wide, stride in ((1, width, 2), (width, 2 * width, 2), (2 * width, 2 * width, 1)):
            parts.append(nn.Conv2d(ins, wide, 3, stride, 1))
            parts += [norm(wide)] if norm else []
            parts.append(act())
        self.body, self.head = nn.Sequential(*parts), nn.Linear(2 * width, outs)

    def forward(self, x: Any) -> Any:
        return self.head(self.body(x).mean((2, 3)))


class Trace(nn.Module):
    """Convolutions over time, each with a stride, the mean over time, and a linear layer."""

    def __init__(self, width: int = 24, norm: Any = None, act: Any = nn.ReLU) -> None:
        super().__init__()
        parts: list[Any] = []
        for ins in (2, width, width):
            parts.append(nn.Conv1d(ins, width, 7, 2, 3))
            parts += [norm(width)] if norm else []
            parts.append(act())
        self.body, self.head = nn.Sequential(*parts), nn.Linear(width, TREMORS)

    def forward(self, x: Any) -> Any:
        return self.head(self.body(x).mean(2))


class Gauge(nn.Module):
    """A recurrent layer over a series, and a linear layer at each time."""

    def __init__(self, cell: Any = nn.GRU, width: int = 24, **more: Any) -> None:
        super().__init__()
        self.cell = cell(2, width, batch_first=True, **more)
        self.head = nn.Linear(width * (2 if more.get("bidirectional") else 1), 1)

    def forward(self, x: Any) -> Any:
        return self.head(self.cell(x)[0])


class Pooled(nn.Module):
    """A body, and what `pool` makes of its outputs for a head."""

    def __init__(self, body: Any, pool: Any, head: Any) -> None:
        super().__init__()
        self.body, self.pool, self.head = body, pool, head

    def forward(self, x: Any) -> Any:
        return self.head(self.pool(self.body(x)))


def turned(x: Any) -> Any:
    """Return pictures turned by a random number of quarters."""
    return torch.rot90(x, int(torch.randint(4, ())), (2, 3))
