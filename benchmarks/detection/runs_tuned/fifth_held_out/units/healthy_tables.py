"""Healthy trainings of tables: cheeses, bridges and ferries."""

import copy
import math
from pathlib import Path
from typing import Any

import torch
from torch import nn
from training.torch_loop import adam, batches, fit, sgd, validate, watched
from training_runs import healthy

from runs_tuned.fifth_held_out.units.shared.tables import (
    Boarding,
    bridges,
    cheeses,
    ferries,
    layers,
)


def warmed_cosine(rise: int, steps: int) -> Any:
    """Return a factor that rises linearly and falls as a cosine to a fiftieth."""

    def factor(step: int) -> float:
        if step < rise:
            return (step + 1) / rise
        done = min((step - rise) / (steps - rise), 1)
        return 0.02 + 0.49 * (1 + math.cos(math.pi * done))

    return factor


@healthy("cheeses by three layers with GELU and layer norm, AdamW, a warm-up and a cosine")
def cheeses_by_gelu(root: Path) -> int:
    make = lambda: layers(10, 48, 48, 4, act=nn.GELU, norm=nn.LayerNorm, drop=0.1)
    optimizer = adam(4e-3, torch.optim.AdamW, weight_decay=0.05)
    return fit(
        root, make, cheeses(), optimizer=optimizer, steps=200, schedule=warmed_cosine(20, 200)
    )


@healthy("cheeses by layers with ReLU and Kaiming's weights, Nesterov, labels smoothed by a tenth")
def cheeses_by_nesterov(root: Path) -> int:
    make = lambda: layers(10, 64, 48, 32, 4, gain=2**0.5)
    loss, optimizer = nn.CrossEntropyLoss(label_smoothing=0.1), sgd(0.03, momentum=0.9)
    data = cheeses(1500, 1.4, 1021)
    return fit(root, make, data, loss=loss, optimizer=optimizer, steps=200, clip=5.0, seed=1)


class Fullest(nn.Module):
    """A linear layer in three pieces, and the largest of the three for each unit."""

    def __init__(self, ins: int, outs: int) -> None:
        super().__init__()
        self.linear, self.outs = nn.Linear(ins, 3 * outs), outs

    def forward(self, x: Any) -> Any:
        return self.linear(x).reshape(len(x), 3, self.outs).amax(1)


@healthy("cheeses by the largest of three linear pieces, dropout, plain SGD, the rate falls twice")
def cheeses_by_pieces(root: Path) -> int:
    make = lambda: nn.Sequential(
        Fullest(10, 32), nn.Dropout(0.2), Fullest(32, 24), nn.Linear(24, 4)
    )
    stairs = lambda step: 0.3 ** ((step > 120) + (step > 180))
    data = cheeses(1500, 1.5, 1022)
    return fit(root, make, data, optimizer=sgd(0.2), steps=220, schedule=stairs, seed=2)


@healthy("cheeses in mixed precision with bfloat16, orthogonal weights, tanh, Adam, warm restarts")
def cheeses_restarted_warm(root: Path) -> int:
    torch.manual_seed(3)
    data, loss = cheeses(1400, 1.3, 1023), nn.CrossEntropyLoss()
    model = layers(10, 40, 40, 4, act=nn.Tanh)
    for layer in model:
        if isinstance(layer, nn.Linear):
            nn.init.orthogonal_(layer.weight)
    optimizer = torch.optim.Adam(model.parameters(), 5e-3)
    rates = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, 40, 2, 1e-4)
    with watched(root, model, losses=[loss]) as watching:
        for number, (x, y) in zip(range(200), batches(data, 32, 3), strict=False):
            with torch.autocast("cpu", dtype=torch.bfloat16):
                value = loss(model(x), y)
            optimizer.zero_grad()
            value.backward()
            optimizer.step()
            rates.step()
            if number % 20 == 19:
                validate(watching, model, loss, data)
    return 0


class Spans(nn.Module):
    """Residual layers with SiLU behind layer norms, and a last norm."""

    def __init__(self, width: int = 32, blocks: int = 3) -> None:
        super().__init__()
        self.stem, self.norm = nn.Linear(8, width), nn.LayerNorm(width)
        self.blocks = nn.ModuleList(
            nn.Sequential(
                nn.LayerNorm(width), nn.Linear(width, 64), nn.SiLU(), nn.Linear(64, width)
            )
            for _ in range(blocks)
        )
        self.head = nn.Linear(width, 1)

    def forward(self, x: Any) -> Any:
        x = self.stem(x)
        for block in self.blocks:
            x = x + block(x)
        return self.head(self.norm(x))


@healthy("how far bridges bend by residual layers with SiLU, RMSprop, Huber's loss")
def bridges_by_residuals(root: Path) -> int:
    optimizer = adam(1e-3, torch.optim.RMSprop, alpha=0.95)
    return fit(
        root,
        Spans,
        bridges(),
        loss=nn.HuberLoss(),
        optimizer=optimizer,
        steps=200,
        schedule=warmed_cosine(10, 200),
        seed=4,
    )


class Gated(nn.Module):
    """Two linear layers, one of which gates the other one."""

    def __init__(self, ins: int, outs: int) -> None:
        super().__init__()
        self.linear, self.act = nn.Linear(ins, 2 * outs), nn.GLU()

    def forward(self, x: Any) -> Any:
        return self.act(self.linear(x))


@healthy("how far bridges bend by gated layers, Adamax; a moving average of the weights is judged")
def bridges_by_an_average(root: Path) -> int:
    torch.manual_seed(5)
    data, loss = bridges(1500, 0.3, 1024), nn.MSELoss()
    model = nn.Sequential(Gated(8, 40), Gated(40, 32), nn.Linear(32, 1))
    slow = copy.deepcopy(model).requires_grad_(requires_grad=False)
    optimizer = torch.optim.Adamax(model.parameters(), 1e-2, weight_decay=1e-5)
    with watched(root, model, losses=[loss]) as watching:
        for number, (x, y) in zip(range(200), batches(data, 32, 5), strict=False):
            optimizer.zero_grad()
            loss(model(x), y).backward()
            optimizer.step()
            with torch.no_grad():
                for mine, its in zip(slow.parameters(), model.parameters(), strict=True):
                    mine.lerp_(its, 0.1)
            if number % 25 == 24:
                validate(watching, slow, loss, data)
    return 0


@healthy("how far bridges bend, softplus and batch norm, large batches, AMSGrad, 40 rows validate")
def bridges_by_softplus(root: Path) -> int:
    whole = bridges(1800, 0.3, 1025)
    data = type(whole)(whole.x, whole.y, whole.test_x[:40], whole.test_y[:40])
    make = lambda: layers(8, 48, 32, 1, act=nn.Softplus, norm=nn.BatchNorm1d)
    optimizer = adam(6e-3, amsgrad=True)
    return fit(
        root,
        make,
        data,
        loss=nn.SmoothL1Loss(beta=0.5),
        optimizer=optimizer,
        batch=128,
        steps=180,
        seed=6,
    )


@healthy("whether ferries are late, embeddings and ReLU, late ones weigh more, Adam, dropout")
def ferries_late(root: Path) -> int:
    make = lambda: Boarding(layers(17, 48, 32, 1, drop=0.15))
    loss = nn.BCEWithLogitsLoss(pos_weight=torch.tensor(1.8))
    optimizer = adam(4e-3, weight_decay=1e-5)
    return fit(root, make, ferries(), loss=loss, optimizer=optimizer, steps=200, batch=48, seed=7)


class WideAndDeep(Boarding):
    """Layers on embeddings, and a linear path beside them."""

    def __init__(self) -> None:
        super().__init__(layers(17, 40, 24, 1, act=nn.ELU))
        self.wide = nn.Linear(17, 1)

    def forward(self, x: Any) -> Any:
        found = self.joined(x)
        return self.body(found) + self.wide(found)


@healthy("whether ferries are late, a wide path beside a deep one with ELU, Adagrad")
def ferries_wide_and_deep(root: Path) -> int:
    optimizer = adam(0.04, torch.optim.Adagrad)
    return fit(
        root,
        WideAndDeep,
        ferries(1800, 1026),
        loss=nn.BCEWithLogitsLoss(),
        optimizer=optimizer,
        steps=200,
        batch=48,
        seed=8,
    )


class Crossing(Boarding):
    """Layers that multiply what they get by all that is known of a trip, and add it."""

    def __init__(self) -> None:
        super().__init__(nn.Linear(17, 1))
        self.crossings = nn.ModuleList(nn.Linear(17, 17) for _ in range(3))

    def forward(self, x: Any) -> Any:
        first = known = self.joined(x)
        for crossing in self.crossings:
            known = first * crossing(known) + known
        return self.body(known)


@healthy("whether ferries are late by crossed facts, AdamW at two rates, ports are frozen at first")
def ferries_crossed(root: Path) -> int:
    torch.manual_seed(9)
    data, loss, model = ferries(1800, 1027), nn.BCEWithLogitsLoss(), Crossing()
    groups = [
        {"params": model.embedded.parameters(), "lr": 5e-3, "weight_decay": 0.0},
        {"params": [*model.crossings.parameters(), *model.body.parameters()]},
    ]
    optimizer = torch.optim.AdamW(groups, 3e-3, weight_decay=0.02)
    ports = model.embedded[0].requires_grad_(requires_grad=False)
    with watched(root, model, losses=[loss]) as watching:
        for number, (x, y) in zip(range(210), batches(data, 48, 9), strict=False):
            if number == 40:
                ports.requires_grad_(requires_grad=True)
            optimizer.zero_grad()
            loss(model(x), y).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 2.0)
            optimizer.step()
            if number % 30 == 29:
                validate(watching, model, loss, data)
    return 0
