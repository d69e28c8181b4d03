"""Generated series: bearings that shake, tides, strokes of a pen; and their networks."""

import functools
import math
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from training.learnt_data import Split

from runs_tuned.third_held_out.networks.shared.pictures import divided

BEARINGS = 4
STROKES = 5


@functools.cache
def bearings(count: int = 1000, noise: float = 0.6, seed: int = 321) -> Split:
    """Return how a bearing shakes in two directions, 64 times, and what it suffers from.

    It is sound, or has a damaged inner ring, outer ring or ball.
    """
    generator = torch.Generator().manual_seed(seed)
    rand = functools.partial(torch.rand, generator=generator)
    kind = torch.randint(BEARINGS, (count,), generator=generator)
    time = torch.arange(64.0)
    turn = torch.sin(math.tau * (time / 32 * (1 + 0.1 * rand(count, 1)) + rand(count, 1)))
    period = torch.tensor([1e9, 7.0, 11.0, 16.0])[kind][:, None]
    knock = torch.exp(-(((time + 16 * rand(count, 1)) % period) / 1.5)) * (kind > 0)[:, None]
    x = torch.stack([turn + 2 * knock, 0.6 * turn.roll(8, 1) + knock], 1)
    x = x + noise * torch.randn(x.shape, generator=generator)
    return divided((x - x.mean((0, 2), keepdim=True)) / x.std((0, 2), keepdim=True), kind)


@functools.cache
def tides(count: int = 1000, noise: float = 0.25, ahead: int = 6, seed: int = 322) -> Split:
    """Return 36 levels of the sea and the wind, and the six levels after them."""
    generator = torch.Generator().manual_seed(seed)
    start = 5000 * torch.rand(count, 1, generator=generator)
    time = start + torch.arange(36.0 + ahead)
    level = torch.sin(math.tau * time / 12.4) + 0.5 * torch.sin(math.tau * time / 25.8)
    wind = torch.randn(count, 36 + ahead, generator=generator).cumsum(1) / 6
    level = level + 0.3 * wind + noise * torch.randn(level.shape, generator=generator)
    return divided(torch.stack([level, wind], 2)[:, :36], level[:, 36:])


@functools.cache
def strokes(count: int = 900, seed: int = 323) -> Split:
    """Return how a pen moves, 12 to 40 times and then not at all, and the sign that it draws."""
    generator = torch.Generator().manual_seed(seed)
    rand = functools.partial(torch.rand, generator=generator)
    sign = torch.randint(STROKES, (count,), generator=generator)
    length = torch.randint(12, 41, (count, 1), generator=generator)
    part = torch.arange(40.0) / length
    turns = torch.tensor([0.0, 0.5, 1.0, 1.5, -1.0])[sign][:, None]
    angle = math.tau * (turns * part + 0.12 * rand(count, 1))
    x = torch.stack([angle.cos(), angle.sin()], 2)
    x = x + 0.5 * torch.randn(x.shape, generator=generator)
    return divided(x * (part < 1)[:, :, None], sign)


class Pen(nn.Module):
    """Follows a pen by a GRU, and tells the sign from its last state."""

    def __init__(self, width: int = 24, outs: int = STROKES) -> None:
        super().__init__()
        self.gru = nn.GRU(2, width, batch_first=True)
        self.head = nn.Linear(width, outs)

    def forward(self, x: Any) -> Any:
        lengths = (x.abs().sum(2) > 0).sum(1)
        packed = nn.utils.rnn.pack_padded_sequence(
            x, lengths, batch_first=True, enforce_sorted=False
        )
        return self.head(self.gru(packed)[1][0])


class Shaker(nn.Module):
    """Tells bearings by convolutions over time."""

    def __init__(self, width: int = 16, outs: int = BEARINGS, norm: Any = nn.BatchNorm1d) -> None:
        super().__init__()
        parts: list[Any] = []
        for ins in (2, width, width):
            parts += [nn.Conv1d(ins, width, 5, stride=2, padding=2)]
            parts += [norm(width)] if norm else []
            parts += [nn.ReLU()]
        self.body = nn.Sequential(*parts)
        self.head = nn.Linear(width, outs)

    def forward(self, x: Any) -> Any:
        return self.head(self.body(x).mean(2))


class Gauge(nn.Module):
    """Forecasts tides by causal convolutions that see ever further back."""

    def __init__(self, width: int = 16, ahead: int = 6, drop: float = 0.1) -> None:
        super().__init__()
        ins = (2, width, width)
        self.layers = nn.ModuleList(
            nn.Conv1d(each, width, 3, dilation=3**n) for n, each in enumerate(ins)
        )
        self.drop, self.head = nn.Dropout(drop), nn.Linear(width, ahead)

    def forward(self, x: Any) -> Any:
        x = x.transpose(1, 2)
        for number, layer in enumerate(self.layers):
            x = self.drop(functional.gelu(layer(functional.pad(x, (2 * 3**number, 0)))))
        return self.head(x[:, :, -1])


class States(nn.Module):
    """Sixteen numbers that decay and rotate, each at its own pace, and what is read from them."""

    def __init__(self, ahead: int = 6) -> None:
        super().__init__()
        self.pace = nn.Parameter(torch.linspace(-3, 0, 16))
        self.turn = nn.Parameter(torch.linspace(0.05, 1.0, 16))
        self.write, self.head = nn.Linear(2, 16), nn.Linear(32, ahead)

    def forward(self, x: Any) -> Any:
        back = torch.arange(x.shape[1] - 1, -1, -1.0)[:, None]
        fade = torch.exp(-self.pace.exp() * back)
        written = self.write(x)
        parts = [written * fade * part(self.turn * back) for part in (torch.cos, torch.sin)]
        return self.head(torch.cat(parts, 2).sum(1))
