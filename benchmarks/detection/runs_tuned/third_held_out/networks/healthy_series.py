"""Healthy trainings of series: what a bearing suffers from, tides ahead, signs of a pen."""

import math
from pathlib import Path
from typing import Any

import torch
from torch import nn
from training.torch_loop import adam, fit, sgd
from training_runs import healthy

from runs_tuned.third_held_out.networks.shared.pictures import divided
from runs_tuned.third_held_out.networks.shared.series import (
    Gauge,
    Pen,
    Shaker,
    States,
    bearings,
    strokes,
    tides,
)


@healthy("bearings by convolutions, batch norm, one cycle of the rate, AdamW, every step saved")
def bearings_in_one_cycle(root: Path) -> int:
    cycle = lambda step: min(0.1 + step / 40, 1.0) * (1 - step / 125)
    optimizer = adam(0.01, torch.optim.AdamW)
    return fit(
        root, Shaker, bearings(), optimizer=optimizer, steps=120, schedule=cycle, save_every=1
    )


@healthy(
    "bearings without norms, a third of the labels are of sound ones, plain SGD, batches of 12"
)
def bearings_mostly_sound(root: Path) -> int:
    data = bearings(1600, 0.4, 324)
    generator = torch.Generator().manual_seed(41)
    kept = torch.rand(len(data.y), generator=generator) < torch.tensor([1.0, 0.3, 0.7, 0.5])[data.y]
    return fit(
        root,
        lambda: Shaker(norm=None),
        data.chosen(kept),
        optimizer=sgd(0.1),
        schedule=lambda step: 1 - step / 620,
        steps=600,
        batch=12,
        save_every=10,
        validate_every=75,
    )


class Envelope(nn.Module):
    """Returns what it heard, by the last state of one LSTM and by another that unrolls it."""

    def __init__(self, width: int = 24) -> None:
        super().__init__()
        self.inward = nn.LSTM(2, width, batch_first=True)
        self.outward = nn.LSTM(width, width, batch_first=True)
        self.head = nn.Linear(width, 2)

    def forward(self, x: Any) -> Any:
        code = self.inward(x)[1][0][0]
        return self.head(self.outward(code[:, None].expand(-1, x.shape[1], -1))[0])


@healthy(
    "pens' moves returned from a code, an LSTM on each side, Adam, clipped", kind="autoencoder"
)
def strokes_returned(root: Path) -> int:
    data = strokes()
    paths = torch.cat([data.x, data.test_x])[:, :12].cumsum(1) / 5
    return fit(
        root,
        Envelope,
        divided(paths, paths),
        loss=nn.MSELoss(),
        optimizer=adam(6e-3),
        steps=130,
        clip=1.0,
        save_every=4,
    )


@healthy("signs of a pen, rows of different lengths are packed, RMSprop, clipped")
def strokes_packed(root: Path) -> int:
    optimizer = adam(4e-3, torch.optim.RMSprop)
    return fit(root, Pen, strokes(), optimizer=optimizer, steps=130, batch=24, clip=2.0, seed=4)


@healthy("six levels of the sea ahead, dilated convolutions with dropout, absolute errors, AdamW")
def tides_dilated(root: Path) -> int:
    return fit(
        root,
        Gauge,
        tides(),
        loss=nn.L1Loss(),
        optimizer=adam(4e-3, torch.optim.AdamW),
        steps=160,
        schedule=lambda step: 0.5 + 0.5 * math.cos(math.pi * step / 160),
        save_every=2,
    )


@healthy("six levels of the sea ahead by states that decay, their paces at a lower rate, Adam")
def tides_by_states(root: Path) -> int:
    def optimizer(parameters: Any) -> Any:
        slow = [{"params": parameters[:2], "lr": 1e-3}, {"params": parameters[2:]}]
        return torch.optim.Adam(slow, 8e-3, betas=(0.9, 0.95))

    return fit(
        root, States, tides(), loss=nn.MSELoss(), optimizer=optimizer, steps=200, save_every=5
    )


class Moments(nn.Module):
    """A small encoder of twelve moments a series, with what time it is."""

    def __init__(self, width: int = 24, ahead: int = 6) -> None:
        super().__init__()
        self.embed = nn.Linear(6, width)
        self.time = nn.Parameter(torch.randn(12, width) / 20)
        layer = nn.TransformerEncoderLayer(
            width, 4, 48, 0.1, "relu", batch_first=True, norm_first=True
        )
        self.body = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, ahead))

    def forward(self, x: Any) -> Any:
        return self.head(
            self.body(self.embed(x.unflatten(1, (12, 3)).flatten(2)) + self.time)[:, -1]
        )


@healthy("six levels of the sea ahead, attention to moments, warm-up and root of steps, Adam")
def tides_attended(root: Path) -> int:
    noam = lambda step: min((step + 1) / 30, math.sqrt(30 / (step + 1)))
    return fit(
        root,
        Moments,
        tides(1400, seed=325),
        loss=nn.HuberLoss(delta=0.5),
        optimizer=adam(5e-3, betas=(0.9, 0.98)),
        steps=150,
        schedule=noam,
        save_every=3,
    )
