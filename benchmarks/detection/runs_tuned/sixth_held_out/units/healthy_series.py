"""Healthy trainings of series: pulses, swings, dances, and digits in columns."""

from pathlib import Path
from typing import Any

import torch
from torch import nn
from training.torch_loop import adam, fit, sgd
from training_runs import healthy

from runs_tuned.sixth_held_out.units.shared.series import (
    FIGURES,
    Dancer,
    Follower,
    Reel,
    dances,
    digits_in_columns,
    pulses,
    swings,
)


@healthy("pulses by convolutions with batch norm and GELU, AdamW, the rate falls twice")
def pulses_by_gelu(root: Path) -> int:
    stairs = lambda step: 0.3 ** ((step > 80) + (step > 130))
    make = lambda: Reel(norm=nn.BatchNorm1d, act=nn.GELU)
    optimizer = adam(4e-3, torch.optim.AdamW, weight_decay=0.05)
    return fit(root, make, pulses(), optimizer=optimizer, steps=160, schedule=stairs, seed=31)


@healthy("pulses by convolutions with instance norm and ReLU, momentum, 40 rows validate")
def pulses_by_instance_norm(root: Path) -> int:
    whole = pulses(1200, 0.5, 2121)
    data = type(whole)(whole.x, whole.y, whole.test_x[:40], whole.test_y[:40])
    make = lambda: Reel(norm=lambda width: nn.InstanceNorm1d(width, affine=True))
    return fit(
        root, make, data, optimizer=sgd(0.05, momentum=0.9), steps=160, save_every=4, seed=32
    )


class Beats(nn.Module):
    """A two-layer LSTM over frames of a pulse; the mean over time."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.LSTM(12, 24, num_layers=2, batch_first=True, dropout=0.1)
        self.head = nn.Linear(24, 4)

    def forward(self, x: Any) -> Any:
        frames = x.unflatten(2, (12, 6)).transpose(1, 2).flatten(2)
        return self.head(self.cell(frames)[0].mean(1))


@healthy("pulses in twelve frames by an LSTM of two layers, Adam, clipped")
def pulses_by_two_lstms(root: Path) -> int:
    data, optimizer = pulses(1200, 0.35, 2122), adam(1e-2)
    return fit(root, Beats, data, optimizer=optimizer, steps=200, clip=1.0, save_every=3, seed=33)


@healthy("speed of swings at each time by a GRU, RMSprop, clipped")
def swings_by_gru(root: Path) -> int:
    return fit(
        root,
        Follower,
        swings(),
        loss=nn.MSELoss(),
        optimizer=adam(4e-3, torch.optim.RMSprop),
        steps=170,
        clip=1.0,
        seed=34,
    )


@healthy("speed of swings at each time by a plain recurrent layer with ReLU, Adam, rates decay")
def swings_by_plain_recurrence(root: Path) -> int:
    def make() -> Any:
        model = Follower(nn.RNN, 32, nonlinearity="relu")
        with torch.no_grad():
            model.cell.weight_hh_l0.copy_(0.8 * torch.eye(32))
        return model

    return fit(
        root,
        make,
        swings(900, 24, 0.12, 2123),
        loss=nn.MSELoss(),
        optimizer=adam(3e-3),
        steps=170,
        clip=1.0,
        schedule=lambda step: 0.992**step,
        seed=35,
    )


class Backward(nn.Module):
    """Convolutions that see only what came before, each added to what it sees."""

    def __init__(self, width: int = 20) -> None:
        super().__init__()
        self.stem, self.head = nn.Conv1d(2, width, 1), nn.Conv1d(width, 1, 1)
        self.looks = nn.ModuleList(nn.Conv1d(width, width, 3, dilation=far) for far in (1, 2, 4))
        self.act = nn.ReLU()

    def forward(self, x: Any) -> Any:
        x = self.stem(x.transpose(1, 2))
        for look in self.looks:
            past = nn.functional.pad(x, (2 * look.dilation[0], 0))
            x = x + self.act(look(past))
        return self.head(x).transpose(1, 2)


@healthy("speed of swings at each time by convolutions of the past, Adam, three batches an update")
def swings_by_the_past(root: Path) -> int:
    return fit(
        root,
        Backward,
        swings(900, 28, 0.15, 2124),
        loss=nn.SmoothL1Loss(),
        optimizer=adam(1e-2),
        steps=240,
        batch=16,
        accumulate=3,
        save_every=3,
        seed=36,
    )


@healthy("figures of dances by a layer of attention, AdamW, a warm-up, a tenth dropped")
def dances_attended(root: Path) -> int:
    make = lambda: Dancer(
        nn.TransformerEncoderLayer(24, 4, 48, 0.1, "relu", batch_first=True, norm_first=True)
    )
    return fit(
        root,
        make,
        dances(2400, 2125),
        optimizer=adam(1.5e-3, torch.optim.AdamW),
        steps=160,
        schedule=lambda step: min(1.0, (step + 1) / 20),
        clip=1.0,
        save_every=3,
        seed=37,
    )


class Pairs(nn.Module):
    """Convolutions over neighbouring steps."""

    def __init__(self, width: int = 24) -> None:
        super().__init__()
        self.body = nn.Sequential(
            *(nn.Conv1d(width, 40, 3, padding=1), nn.ReLU()),
            *(nn.Conv1d(40, width, 3, padding=1), nn.ReLU()),
        )

    def forward(self, x: Any) -> Any:
        return self.body(x.transpose(1, 2)).transpose(1, 2)


@healthy("figures of dances by convolutions over neighbouring steps, RAdam")
def dances_by_neighbours(root: Path) -> int:
    make = lambda: Dancer(Pairs(), outs=FIGURES)
    optimizer = adam(6e-3, torch.optim.RAdam)
    return fit(root, make, dances(), optimizer=optimizer, steps=160, save_every=4, seed=38)


class Columns(nn.Module):
    """A bidirectional GRU over the columns of a digit; its mean over them."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.GRU(8, 24, batch_first=True, bidirectional=True)
        self.norm, self.head = nn.LayerNorm(48), nn.Linear(48, 10)

    def forward(self, x: Any) -> Any:
        return self.head(self.norm(self.cell(x)[0].mean(1)))


@healthy("digits column by column by a bidirectional GRU with layer norm, AMSGrad, clipped")
def digits_by_columns(root: Path) -> int:
    optimizer = adam(8e-3, amsgrad=True)
    data = digits_in_columns()
    return fit(root, Columns, data, optimizer=optimizer, steps=150, batch=48, clip=1.0, seed=39)
