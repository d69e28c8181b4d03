"""Generated series: pulses, swings and dances; digits in columns; networks over time."""

import functools
from typing import Any

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn
from training.learnt_data import Split

from runs_tuned.sixth_held_out.units.shared.tables import parted

PULSES = 4
STEPS, FIGURES, LONGEST = 16, 4, 20  # step 0 is padding


@functools.cache
def pulses(count: int = 1200, noise: float = 0.5, seed: int = 2021) -> Split:
    """Return a pulse from two places ``(n, 2, 72)``: even, skipping, fast or double."""
    rng = np.random.default_rng(seed)
    kind, time = rng.integers(PULSES, size=count), np.arange(72)
    begin = rng.uniform(0, 10, (count, 1))
    gap = np.array([14.0, 14.0, 9.0, 14.0])[kind][:, None] * rng.uniform(0.92, 1.08, (count, 1))
    skipped = rng.integers(1, 4, (count, 1))
    signal = np.zeros((count, 72))
    for beat in range(9):
        since = time - begin - beat * gap
        height = 1.0 - ((kind == 1)[:, None] & (beat == skipped))
        signal += height * np.exp(-((since / 1.5) ** 2))
        signal += 0.8 * (kind == 3)[:, None] * np.exp(-(((since - 5) / 1.5) ** 2))
    both = np.stack([signal, 0.7 * np.roll(signal, 2, 1)], 1)
    both += noise * 0.6 * rng.normal(size=both.shape)
    both -= both.mean((0, 2), keepdims=True)
    return parted(both / both.std((0, 2), keepdims=True), kind)


@functools.cache
def swings(count: int = 800, length: int = 26, noise: float = 0.15, seed: int = 2022) -> Split:
    """Return push and angle of a swing ``(n, length, 2)``, and its speed at each time."""
    rng = np.random.default_rng(seed)
    push = np.repeat(rng.normal(size=(count, -(-length // 4))), 4, 1)[:, :length]
    stiff, angle = rng.uniform(0.15, 0.35, count), rng.normal(size=count)
    speed, seen, told = np.zeros(count), [], []
    for moment in range(length):
        speed = 0.93 * speed - stiff * np.sin(angle) + 0.12 * push[:, moment]
        angle = angle + 0.6 * speed
        seen.append(angle)
        told.append(speed)
    angles, speeds = np.stack(seen, 1), np.stack(told, 1)
    angles = angles / angles.std() + noise * rng.normal(size=angles.shape)
    return parted(np.stack([push, angles], 2), speeds[..., None] / speeds.std())


@functools.cache
def dances(count: int = 1400, seed: int = 2023) -> Split:
    """Return steps of a dance ``(n, 20)``, padded at the end, and the figure it is full of."""
    rng = np.random.default_rng(seed)
    figure, size = rng.integers(FIGURES, size=count), rng.integers(15, LONGEST + 1, (count, 1))
    steps = rng.integers(1, STEPS, (count, LONGEST))
    for _ in range(4):  # a figure is one step behind another
        place = rng.integers(0, 13, count)
        rows = np.arange(count)
        steps[rows, place] = 2 + 2 * figure
        steps[rows, place + 1] = 3 + 3 * ((figure + 1) % FIGURES)
    return parted(steps * (np.arange(LONGEST) < size), figure)


@functools.cache
def digits_in_columns() -> Split:
    """Return digits as eight moments of eight numbers ``(n, 8, 8)``, from left to right."""
    bundled = load_digits()
    order = np.random.default_rng(16).permutation(len(bundled.target))
    images = bundled.images[order].swapaxes(1, 2)
    return parted((images - images.mean()) / images.std(), bundled.target[order])


class Reel(nn.Module):
    """Convolutions over time with strides, the mean over time, and a linear layer."""

    def __init__(
        self, width: int = 20, norm: Any = None, act: Any = nn.ReLU, size: int = 7
    ) -> None:
        super().__init__()
        parts: list[Any] = []
        for ins, outs, stride in ((2, width, 2), (width, width, 2), (width, 2 * width, 1)):
            parts.append(nn.Conv1d(ins, outs, size, stride, size // 2))
            parts += [norm(outs)] if norm else []
            parts.append(act())
        self.body = nn.Sequential(*parts, nn.AdaptiveAvgPool1d(3), nn.Flatten())
        self.head = nn.Linear(6 * width, PULSES)

    def forward(self, x: Any) -> Any:
        return self.head(self.body(x))


class Follower(nn.Module):
    """A recurrent layer, and a linear layer at each time."""

    def __init__(self, cell: Any = nn.GRU, width: int = 24, ins: int = 2, **more: Any) -> None:
        super().__init__()
        self.cell = cell(ins, width, batch_first=True, **more)
        self.head = nn.Linear(width, 1)

    def forward(self, x: Any) -> Any:
        return self.head(self.cell(x)[0])


class Dancer(nn.Module):
    """Embeds steps, mixes them by `mixer`, and averages those that are not padding."""

    def __init__(self, mixer: Any, width: int = 24, outs: int = FIGURES) -> None:
        super().__init__()
        self.embedded = nn.Embedding(STEPS, width, padding_idx=0)
        self.places = nn.Parameter(0.3 * torch.randn(LONGEST, width))
        self.mixer, self.head = mixer, nn.Linear(width, outs)

    def forward(self, steps: Any) -> Any:
        real = (steps > 0).float()[..., None]
        x = self.mixer(self.embedded(steps) + self.places)
        return self.head((x * real).sum(1) / real.sum(1))
