"""Healthy trainings of series: recurrent layers, causal and wide convolutions, attention."""

from pathlib import Path

import torch
from torch import nn
from torch.optim import lr_scheduler as rates
from training_runs import healthy

from runs_held_out.units.shared.data import (
    BEATS,
    GESTURES,
    WINDOW,
    beats,
    gestures,
    warmth,
)
from runs_held_out.units.shared.loop import train
from runs_held_out.units.shared.networks import Causal, Encoder, Inception, LastState


@healthy("the next temperature by an LSTM over a day, Adam, clipped")
def next_temperature_by_lstm(root: Path) -> int:
    torch.manual_seed(821)
    model = LastState(nn.LSTM, 1, 1)
    optimizer = torch.optim.Adam(model.parameters(), 5e-3)
    return train(
        root, model, warmth(), nn.MSELoss(), optimizer, clip=1.0, epochs=5, save_every=2, seed=821
    )


@healthy("gestures by two GRU layers with dropout between them, AdamW, a tenth for the last epochs")
def gestures_by_gru(root: Path) -> int:
    torch.manual_seed(822)
    model = LastState(nn.GRU, 3, GESTURES, 24, num_layers=2, dropout=0.2)
    optimizer = torch.optim.AdamW(model.parameters(), 3e-3, weight_decay=1e-2)
    falling = rates.MultiStepLR(optimizer, [4], 0.1)
    data, loss = gestures(1400, 0.9), nn.CrossEntropyLoss()
    return train(
        root,
        model,
        data,
        loss,
        optimizer,
        epoch_scheduler=falling,
        clip=5.0,
        epochs=5,
        save_every=3,
        seed=822,
    )


@healthy("the next temperature by causal convolutions with weight norm, Adam, rate falls by epochs")
def next_temperature_by_causal_convolutions(root: Path) -> int:
    torch.manual_seed(823)
    blocks = (Causal(16, 2**depth) for depth in range(3))
    model = nn.Sequential(nn.Conv1d(1, 16, 1), *blocks, nn.Flatten(), nn.Linear(16 * 24, 1))
    optimizer = torch.optim.Adam(model.parameters(), 2e-3)
    falling = rates.StepLR(optimizer, 2, 0.5)
    data = warmth(1500, 24, 8211).of(lambda x: x.transpose(1, 2))
    return train(
        root,
        model,
        data,
        nn.L1Loss(),
        optimizer,
        epoch_scheduler=falling,
        epochs=5,
        save_every=4,
        seed=823,
    )


@healthy("heartbeats by convolutions of three widths with batch norm, Adam, patience of two")
def heartbeats_by_inception(root: Path) -> int:
    torch.manual_seed(824)
    model = nn.Sequential(
        *(Inception(1), Inception(24), nn.AdaptiveAvgPool1d(1), nn.Flatten()),
        nn.Linear(24, BEATS),
    )
    optimizer = torch.optim.Adam(model.parameters(), 2e-3)
    data, loss = beats(1500, 0.35), nn.CrossEntropyLoss()
    return train(root, model, data, loss, optimizer, patience=2, epochs=6, save_every=3, seed=824)


@healthy("gestures by a transformer over moments, AdamW, warm-up and a line down, clipped")
def gestures_by_transformer(root: Path) -> int:
    torch.manual_seed(825)
    model, total = Encoder(GESTURES, WINDOW, 3), 5 * (1120 // 32)
    optimizer = torch.optim.AdamW(model.parameters(), 2e-3, weight_decay=0.01)
    line = rates.LambdaLR(optimizer, lambda at: min((at + 1) / 18, (total - at) / (total - 18)))
    data, loss = gestures(1400, 0.9, 8212), nn.CrossEntropyLoss()
    return train(
        root,
        model,
        data,
        loss,
        optimizer,
        scheduler=line,
        clip=1.0,
        epochs=5,
        save_every=4,
        seed=825,
    )
