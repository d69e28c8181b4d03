"""Healthy trainings of tables: dense layers, embeddings, gates, several kinds of targets."""

import math
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.optim import lr_scheduler as rates
from training_runs import healthy

from runs_held_out.units.shared.data import (
    SOILS,
    claims,
    clicks,
    loans,
    power,
    soils,
    wines,
)
from runs_held_out.units.shared.loop import train
from runs_held_out.units.shared.networks import GatedBlock, WideAndDeep, layers, matrices


@healthy("late loans by two ReLU layers, Adam, as in a first tutorial")
def late_loans_by_adam(root: Path) -> int:
    torch.manual_seed(801)
    model = layers(9, 32, 16, 1)
    optimizer = torch.optim.Adam(model.parameters(), 2e-3)
    return train(root, model, loans(), nn.BCEWithLogitsLoss(), optimizer, epochs=5, seed=801)


@healthy("output of a power plant by layers with SiLU, AdamW, cosine with restarts")
def power_plant_with_restarts(root: Path) -> int:
    torch.manual_seed(802)
    model = layers(7, 64, 64, 1, act=nn.SiLU)
    optimizer = torch.optim.AdamW(model.parameters(), 4e-3, weight_decay=1e-2)
    restarts = rates.CosineAnnealingWarmRestarts(optimizer, 50, 2, 1e-5)
    data = power()
    return train(
        root, model, data, nn.MSELoss(), optimizer, scheduler=restarts, epochs=7, save_every=3
    )


@healthy("kinds of soil by layers with batch norm and dropout, Nesterov's momentum, one cycle")
def soils_in_one_cycle(root: Path) -> int:
    torch.manual_seed(803)
    model = layers(14, 64, 32, SOILS, norm=nn.BatchNorm1d, drop=0.2)
    optimizer = torch.optim.SGD(
        model.parameters(), 0.01, momentum=0.9, nesterov=True, weight_decay=5e-4
    )
    cycle = rates.OneCycleLR(optimizer, 0.1, epochs=5, steps_per_epoch=1600 // 32)
    loss = nn.CrossEntropyLoss()
    return train(root, model, soils(), loss, optimizer, scheduler=cycle, epochs=5, seed=803)


@healthy("clicks by a wide and deep model, Adam, decay of weights")
def clicks_wide_and_deep(root: Path) -> int:
    torch.manual_seed(804)
    model = WideAndDeep()
    optimizer = torch.optim.Adam(model.parameters(), 3e-3, weight_decay=1e-5)
    loss = nn.BCEWithLogitsLoss()
    return train(root, model, clicks(), loss, optimizer, epochs=5, batch=64, save_every=2, seed=804)


@healthy("late loans by self-normalising layers, alpha dropout, LeCun's initialisation, SGD")
def late_loans_by_selu(root: Path) -> int:
    torch.manual_seed(805)
    parts: list[Any] = []
    for ins, outs in ((9, 40), (40, 40), (40, 20)):
        parts += [nn.Linear(ins, outs), nn.SELU(), nn.AlphaDropout(0.05)]
    model = nn.Sequential(*parts, nn.Linear(20, 1))
    for layer in matrices(model):
        nn.init.kaiming_normal_(layer.weight, nonlinearity="linear")
        nn.init.zeros_(layer.bias)
    optimizer = torch.optim.SGD(model.parameters(), 0.003, momentum=0.9)
    data, loss = loans(2200, 8011), nn.BCEWithLogitsLoss()
    return train(root, model, data, loss, optimizer, epochs=5, batch=40, save_every=1, seed=805)


@healthy("output of a power plant by gated blocks, RAdam, halved on plateaus, patience of three")
def power_plant_by_gates(root: Path) -> int:
    torch.manual_seed(806)
    model = nn.Sequential(nn.Linear(7, 32), GatedBlock(32), GatedBlock(32), nn.Linear(32, 1))
    optimizer = torch.optim.RAdam(model.parameters(), 5e-3)
    plateaus = rates.ReduceLROnPlateau(optimizer, factor=0.5, patience=1)
    return train(
        root,
        model,
        power(2000, 8012),
        nn.SmoothL1Loss(),
        optimizer,
        epoch_scheduler=plateaus,
        epochs=8,
        patience=3,
        save_every=4,
        seed=806,
    )


@healthy("kinds of soil by tanh layers with Glorot's initialisation, RMSprop, a line down")
def soils_by_tanh(root: Path) -> int:
    torch.manual_seed(807)
    model = layers(14, 48, 32, SOILS, act=nn.Tanh)
    for layer in matrices(model):
        nn.init.xavier_uniform_(layer.weight, gain=5 / 3 if layer.out_features > SOILS else 1.0)
        nn.init.zeros_(layer.bias)
    optimizer = torch.optim.RMSprop(model.parameters(), 1e-3)
    line = rates.LinearLR(optimizer, 1.0, 0.1, 5 * (1600 // 32))
    data, loss = soils(2000, 8013), nn.CrossEntropyLoss()
    return train(root, model, data, loss, optimizer, scheduler=line, epochs=5, seed=807)


@healthy("vines of wines by a small ReLU layer, SGD with momentum and decay")
def vines_by_a_small_layer(root: Path) -> int:
    torch.manual_seed(808)
    model = layers(13, 16, 3)
    optimizer = torch.optim.SGD(model.parameters(), 0.02, momentum=0.9, weight_decay=1e-3)
    loss = nn.CrossEntropyLoss()
    return train(root, model, wines(), loss, optimizer, epochs=14, batch=16, save_every=1, seed=808)


@healthy("numbers of claims by layers with ELU and Poisson's loss, NAdam, clipped")
def claims_by_poisson(root: Path) -> int:
    torch.manual_seed(809)
    model = layers(8, 48, 24, 1, act=nn.ELU)
    optimizer = torch.optim.NAdam(model.parameters(), 1e-3)
    loss = nn.PoissonNLLLoss()
    return train(root, model, claims(), loss, optimizer, epochs=5, batch=48, clip=1.0, seed=809)


class Quantiles(nn.Module):
    """The pinball loss of three quantiles."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("shares", torch.tensor([0.1, 0.5, 0.9]))

    def forward(self, told: Any, target: Any) -> Any:
        below = target - told
        return torch.maximum(self.shares * below, (self.shares - 1) * below).mean()


@healthy("quantiles of the output of a power plant by ReLU layers with layer norm, AdamW, cosine")
def quantiles_of_power(root: Path) -> int:
    torch.manual_seed(810)
    model = layers(7, 64, 32, 3, norm=nn.LayerNorm)
    optimizer = torch.optim.AdamW(model.parameters(), 3e-3, weight_decay=1e-3)
    total = 6 * (1760 // 32)
    wave = lambda step: 0.5 * (1 + math.cos(math.pi * min(1.0, step / total)))
    cosine = rates.LambdaLR(optimizer, wave)
    return train(
        root, model, power(2200, 8014), Quantiles(), optimizer, scheduler=cosine, epochs=6, seed=810
    )
