"""Healthy trainings of series: recurrent layers, convolutions along time, attention."""

from pathlib import Path

import torch
from torch import nn
from torch.optim import lr_scheduler as schedules
from training_runs import healthy

from runs_tuned.seventh_held_out.units.shared.loop import train
from runs_tuned.seventh_held_out.units.shared.series import (
    BEATS,
    MOVES,
    ConvNet,
    Forecaster,
    SeriesTransformer,
    TemporalConvolutions,
    heartbeats,
    movements,
    rooms,
    sales,
)
from runs_tuned.seventh_held_out.units.shared.tables import dense


@healthy("sales of the next day by an LSTM, Adam, clipped, the rate is halved after two epochs")
def sales_by_lstm(root: Path) -> int:
    torch.manual_seed(41)
    model = Forecaster(nn.LSTM, 1, 1)
    optimizer = torch.optim.Adam(model.parameters(), 5e-3)
    return train(
        root,
        model,
        sales(),
        loss=nn.MSELoss(),
        optimizer=optimizer,
        by_epoch=schedules.StepLR(optimizer, 2, 0.5),
        epochs=5,
        clip=1.0,
        seed=41,
    )


@healthy("sales of the next day by three dense layers on the window, AdamW, halved where level")
def sales_by_dense_layers(root: Path) -> int:
    torch.manual_seed(42)
    model = nn.Sequential(nn.Flatten(), *dense(28, 64, 48, 1, drop=0.05))
    optimizer = torch.optim.AdamW(model.parameters(), 2e-3)
    return train(
        root,
        model,
        sales(2000, 28, 0.2, 7342),
        loss=nn.L1Loss(),
        optimizer=optimizer,
        by_epoch=schedules.ReduceLROnPlateau(optimizer, factor=0.5, patience=1),
        epochs=5,
        seed=42,
    )


@healthy("movements by a GRU of two layers with dropout, RMSprop, clipped")
def movements_by_gru(root: Path) -> int:
    torch.manual_seed(43)
    model = Forecaster(nn.GRU, 3, MOVES, 24, num_layers=2, dropout=0.1)
    optimizer = torch.optim.RMSprop(model.parameters(), 2e-3)
    return train(
        root,
        model,
        movements(),
        loss=nn.CrossEntropyLoss(),
        optimizer=optimizer,
        epochs=5,
        clip=1.0,
        seed=43,
    )


@healthy("movements by convolutions along time with batch norm, momentum, one cosine")
def movements_by_convolutions(root: Path) -> int:
    torch.manual_seed(44)
    model = ConvNet(3, MOVES)
    optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9, weight_decay=5e-4)
    return train(
        root,
        model,
        movements(1300, 0.7, 7344),
        loss=nn.CrossEntropyLoss(),
        optimizer=optimizer,
        by_step=schedules.CosineAnnealingLR(optimizer, 4 * (1014 // 32)),
        epochs=4,
        save_every=1,
        seed=44,
    )


@healthy("heartbeats by temporal convolutions with dilation, Adam")
def heartbeats_by_temporal_convolutions(root: Path) -> int:
    torch.manual_seed(45)
    model = TemporalConvolutions(1, BEATS)
    optimizer = torch.optim.Adam(model.parameters(), 2e-3)
    loss = nn.CrossEntropyLoss()
    return train(root, model, heartbeats(), loss=loss, optimizer=optimizer, epochs=5, seed=45)


@healthy("heartbeats by a transformer encoder with norms behind its layers, AdamW, warm-up, cosine")
def heartbeats_by_transformer(root: Path) -> int:
    torch.manual_seed(46)
    model = SeriesTransformer(1, BEATS, 48)
    optimizer = torch.optim.AdamW(model.parameters(), 2e-3, weight_decay=0.01)
    steps = 5 * (1014 // 32)
    rise = schedules.LinearLR(optimizer, 0.1, 1.0, 20)
    fall = schedules.CosineAnnealingLR(optimizer, steps - 20, 1e-5)
    return train(
        root,
        model,
        heartbeats(1300, 0.1, 7346),
        loss=nn.CrossEntropyLoss(),
        optimizer=optimizer,
        by_step=schedules.SequentialLR(optimizer, [rise, fall], [20]),
        epochs=5,
        clip=1.0,
        save_every=4,
        seed=46,
    )


@healthy("warmth of rooms at each hour by a plain recurrent layer with tanh, SGD, clipped")
def rooms_by_plain_recurrent_layer(root: Path) -> int:
    torch.manual_seed(47)
    model = Forecaster(nn.RNN, 3, 1, 24, last=False)
    nn.init.orthogonal_(model.cell.weight_hh_l0)
    optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9)
    return train(
        root,
        model,
        rooms(),
        loss=nn.MSELoss(),
        optimizer=optimizer,
        epochs=5,
        clip=0.5,
        seed=47,
    )
