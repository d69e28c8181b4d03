"""Generated series, and the networks that read them."""

import functools
from typing import Any

import numpy as np
from torch import nn
from torch.nn import functional
from training.learnt_data import Split

from runs_tuned.second_held_out.shared.tables import split, unit


@functools.cache
def heat(count: int = 900, length: int = 20, seed: int = 67) -> Split:
    """Return three sensors ``(n, length, 3)`` of a furnace and how hot it will be."""
    rng = np.random.default_rng(seed)
    noise = rng.normal(size=(count, length, 3))
    state = np.zeros((count, 3))
    states = []
    for step in range(length):
        state = 0.8 * state + 0.6 * noise[:, step]
        states.append(state)
    x = np.stack(states, 1)
    later = 0.5 * x[:, -1, 0] + 0.9 * np.tanh(x[:, -1, 1]) + 0.5 * x[:, -3:, 2].mean(1)
    return split(x, unit(later + 0.1 * rng.normal(size=count))[:, None])


@functools.cache
def gestures(count: int = 800, length: int = 30, seed: int = 68) -> Split:
    """Return accelerations ``(n, length, 3)`` and which of four gestures they are."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(4, size=count)
    time = np.linspace(0, 6, length) * rng.uniform(0.8, 1.25, (count, 1))
    time += rng.uniform(0, 6, (count, 1))
    speed = np.array([1.0, 1.6, 1.0, 1.6])[kind][:, None]
    turn = np.array([1, 1, -1, -1])[kind][:, None]
    axes = np.sin(speed * time), turn * np.cos(speed * time), np.sin(3 * time)
    return split(np.stack(axes, 2) + 0.5 * rng.normal(size=(count, length, 3)), kind)


class Forecaster(nn.Module):
    """A recurrent layer and a head of its last state."""

    def __init__(
        self, outs: int = 1, width: int = 24, *, kind: Any = nn.GRU, drop: float = 0.0
    ) -> None:
        super().__init__()
        self.recurrent = kind(3, width, batch_first=True)
        self.dropout = nn.Dropout(drop)
        self.head = nn.Linear(width, outs)

    def forward(self, x: Any) -> Any:
        return self.head(self.dropout(self.recurrent(x)[0][:, -1]))


class Ripples(nn.Module):
    """Convolutions over time, the second one dilated, with layer norm, and a head."""

    def __init__(self, outs: int = 4, width: int = 16, drop: float = 0.1) -> None:
        super().__init__()
        self.first = nn.Conv1d(3, width, 5, padding=2)
        self.second = nn.Conv1d(width, width, 5, padding=4, dilation=2)
        self.norm = nn.LayerNorm(width)
        self.dropout = nn.Dropout(drop)
        self.head = nn.Linear(width, outs)

    def forward(self, x: Any) -> Any:
        x = functional.gelu(self.first(x.transpose(1, 2)))
        x = x + functional.gelu(self.second(x))
        return self.head(self.dropout(self.norm(x.mean(2))))
