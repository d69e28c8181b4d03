"""Generated series: sales, movements, heartbeats and rooms; networks that read them."""

import functools
from typing import Any

import numpy as np
import torch
from torch import nn
from training.learnt_data import Split

from runs_tuned.seventh_held_out.units.shared.tables import tensor

MOVES, BEATS = 5, 4


@functools.cache
def sales(days: int = 1800, window: int = 28, noise: float = 0.15, seed: int = 7301) -> Split:
    """Return windows of daily sales ``(n, window, 1)`` and those of the day after ``(n, 1)``.

    The last days are those that are not trained with; all are scaled by the first ones.
    """
    rng = np.random.default_rng(seed)
    day = np.arange(days + window)
    week = np.random.default_rng(51).normal(0, 0.8, 7)[day % 7]
    year = 0.6 * np.sin(2 * np.pi * day / 365 + rng.uniform(0, 6))
    drift = np.zeros(len(day))
    for at in range(1, len(day)):
        drift[at] = 0.9 * drift[at - 1] + 0.2 * rng.normal()
    sold = 40 + 9 * (week + year + drift + noise * rng.normal(size=len(day)))
    cut = int(0.8 * days)
    sold = (sold - sold[:cut].mean()) / sold[:cut].std()
    x = np.lib.stride_tricks.sliding_window_view(sold, window)[:-1, :, None].copy()
    y = sold[window:, None]
    return Split(tensor(x[:cut]), tensor(y[:cut]), tensor(x[cut:]), tensor(y[cut:]))


def scaled(x: Any, y: Any, share: float = 0.78) -> Split:
    """Return series ``(n, length, channels)``, scaled by channel as far as trained."""
    cut = int(share * len(x))
    x = (x - x[:cut].mean((0, 1))) / x[:cut].std((0, 1))
    return Split(tensor(x[:cut]), tensor(y[:cut]), tensor(x[cut:]), tensor(y[cut:]))


@functools.cache
def movements(count: int = 1300, noise: float = 0.5, seed: int = 7302) -> Split:
    """Return three accelerations ``(n, 32, 3)`` of a person, and what he does."""
    rng = np.random.default_rng(seed)
    move, time = rng.integers(MOVES, size=count), np.arange(32)[None, :, None]
    pace = np.array([0.0, 0.35, 0.6, 0.6, 1.1])[move] * rng.uniform(0.9, 1.1, count)
    force = np.array([0.05, 0.6, 1.0, 0.5, 1.3])[move] * rng.uniform(0.8, 1.2, count)
    lean = np.random.default_rng(52).normal(0, 0.5, (MOVES, 3))[move]
    phase = rng.uniform(0, 6.28, (count, 1, 1)) + np.array([0.0, 1.2, 2.4])
    wave = force[:, None, None] * np.sin(pace[:, None, None] * time + phase)
    return scaled(lean[:, None] + wave + noise * rng.normal(size=wave.shape), move)


@functools.cache
def heartbeats(count: int = 1300, noise: float = 0.12, seed: int = 7303) -> Split:
    """Return a heartbeat ``(n, 48, 1)``, and which of four kinds it is."""
    rng = np.random.default_rng(seed)
    kind, time = rng.integers(BEATS, size=count), np.arange(48)[None]
    shift = rng.uniform(-3, 3, (count, 1))

    def wave(at: float, width: Any, height: Any) -> Any:
        return np.reshape(height, (-1, 1)) * np.exp(
            -((time - at - shift) ** 2) / (2 * np.reshape(width, (-1, 1)) ** 2)
        )

    early = np.array([0.25, 0.25, 0.0, 0.25])[kind]
    wide = np.array([1.3, 3.2, 1.4, 1.3])[kind]
    late = np.array([0.35, -0.3, 0.3, 0.05])[kind]
    x = wave(12, np.full(count, 2.5), early) + wave(22, wide, rng.uniform(0.8, 1.2, count))
    x += wave(35, np.full(count, 4.0), late) + noise * rng.normal(size=x.shape)
    return scaled(x[..., None], kind)


@functools.cache
def rooms(count: int = 1400, length: int = 24, seed: int = 7304) -> Split:
    """Return heating, sun and cold by hours ``(n, length, 3)``; warmth, ``(n, length, 1)``."""
    rng = np.random.default_rng(seed)
    heat = np.repeat(rng.uniform(0, 1, (count, length // 4)), 4, 1)
    sun = np.clip(np.sin(np.arange(length) * 0.26 + rng.uniform(0, 6, (count, 1))), 0, 1)
    cold = rng.normal(0, 1, (count, 1)) + 0.1 * rng.normal(size=(count, length)).cumsum(1)
    warmth, state = np.zeros((count, length)), np.zeros(count)
    for at in range(length):
        state = 0.75 * state + 0.6 * np.sqrt(heat[:, at]) + 0.4 * sun[:, at] - 0.12 * cold[:, at]
        warmth[:, at] = state + 0.08 * rng.normal(size=count)
    warmth = (warmth - warmth.mean()) / warmth.std()
    return scaled(np.stack([heat, sun, cold], 2), warmth[..., None])


class Forecaster(nn.Module):
    """A recurrent layer, and a linear one on its last output (or on all of them)."""

    def __init__(
        self, cell: Any, ins: int, outs: int, width: int = 32, *, last: bool = True, **more: Any
    ) -> None:
        super().__init__()
        self.cell = cell(ins, width, batch_first=True, **more)
        self.head = nn.Linear(width * (2 if more.get("bidirectional") else 1), outs)
        self.last = last

    def forward(self, x: Any) -> Any:
        found, _ = self.cell(x)
        return self.head(found[:, -1] if self.last else found)


class Causal(nn.Module):
    """A dilated convolution that sees the past, twice, added to what came in."""

    def __init__(self, width: int, dilation: int, drop: float = 0.1) -> None:
        super().__init__()
        self.padding = 2 * dilation
        self.conv1 = nn.Conv1d(width, width, 3, dilation=dilation)
        self.conv2 = nn.Conv1d(width, width, 3, dilation=dilation)
        self.relu1, self.relu2, self.drop = nn.ReLU(), nn.ReLU(), nn.Dropout(drop)

    def forward(self, x: Any) -> Any:
        out = self.relu1(self.conv1(nn.functional.pad(x, (self.padding, 0))))
        out = self.drop(out)
        out = self.relu2(self.conv2(nn.functional.pad(out, (self.padding, 0))))
        return x + self.drop(out)


class TemporalConvolutions(nn.Module):
    """Causal blocks of growing dilation, and a linear layer on the last place."""

    def __init__(self, ins: int, outs: int, width: int = 20) -> None:
        super().__init__()
        self.stem = nn.Conv1d(ins, width, 1)
        self.blocks = nn.Sequential(*(Causal(width, dilation) for dilation in (1, 2, 4, 8)))
        self.head = nn.Linear(width, outs)

    def forward(self, x: Any) -> Any:
        return self.head(self.blocks(self.stem(x.transpose(1, 2)))[..., -1])


class ConvNet(nn.Module):
    """Convolutions along time with batch norm, and a linear layer on their mean."""

    def __init__(self, ins: int, outs: int, widths: Any = (24, 32, 32)) -> None:
        super().__init__()
        parts: list[Any] = []
        for width, kernel in zip(widths, (7, 5, 3), strict=True):
            parts += [nn.Conv1d(ins, width, kernel, padding=kernel // 2, bias=False)]
            parts += [nn.BatchNorm1d(width), nn.ReLU()]
            ins = width
        self.body, self.head = nn.Sequential(*parts), nn.Linear(ins, outs)

    def forward(self, x: Any) -> Any:
        return self.head(self.body(x.transpose(1, 2)).mean(2))


class SeriesTransformer(nn.Module):
    """Steps of a series are tokens with sines as positions; encoder layers and a head."""

    def __init__(self, ins: int, outs: int, length: int, width: int = 32) -> None:
        super().__init__()
        self.stem = nn.Linear(ins, width)
        time, at = torch.arange(length)[:, None], torch.arange(0, width, 2)
        angle = time / 100 ** (at / width)
        waves = torch.stack([angle.sin(), angle.cos()], 2).flatten(1)
        self.register_buffer("waves", waves)
        layer = nn.TransformerEncoderLayer(width, 4, 64, 0.1, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(width, outs)

    def forward(self, x: Any) -> Any:
        return self.head(self.encoder(self.stem(x) + self.waves).mean(1))
