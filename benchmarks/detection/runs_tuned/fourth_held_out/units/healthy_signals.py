"""Healthy trainings of signals: calls, strides, rivers, flocks and digits line by line."""

import math
from pathlib import Path
from typing import Any

import torch
from torch import nn
from training.torch_loop import adam, batches, fit, sgd, validate, watched
from training_runs import healthy

from runs_tuned.fourth_held_out.units.shared.signals import (
    Ear,
    Flock,
    Memory,
    Pace,
    calls,
    flocks,
    lines_of_digits,
    rivers,
    strides,
)


@healthy("calls of birds, convolutions with batch norm, Nesterov momentum, one cycle of the rate")
def calls_in_one_cycle(root: Path) -> int:
    def rate(step: int) -> float:
        rise = min(step / 45, 1)
        fall = max(step - 45, 0) / 105
        return 0.04 + 0.96 * rise if step < 45 else 0.001 + 0.4995 * (1 + math.cos(math.pi * fall))

    optimizer = sgd(0.15, momentum=0.9, nesterov=True)
    make = lambda: Ear(norm=nn.BatchNorm2d)
    return fit(root, make, calls(), optimizer=optimizer, steps=150, schedule=rate)


@healthy("calls of birds, each mixed with another one and so its label, group norm, AdamW")
def calls_mixed(root: Path) -> int:
    torch.manual_seed(12)
    data, loss = calls(1100, 0.4, 931), nn.CrossEntropyLoss()
    model = Ear(norm=lambda width: nn.GroupNorm(4, width), act=nn.SiLU)
    optimizer = torch.optim.AdamW(model.parameters(), 4e-3)
    chance = torch.distributions.Beta(0.4, 0.4)
    with watched(root, model, losses=[loss], save_every=3) as watching:
        for number, (x, y) in zip(range(160), batches(data, 32, 12), strict=False):
            share, other = chance.sample(), torch.randperm(len(x))
            hot = nn.functional.one_hot(y, 5).float()
            mixed = share * hot + (1 - share) * hot[other]
            optimizer.zero_grad()
            loss(model(share * x + (1 - share) * x[other]), mixed).backward()
            optimizer.step()
            if number % 20 == 19:
                validate(watching, model, loss, data)
    return 0


@healthy("calls of birds in mixed precision with bfloat16, Adam, no norms, clipped")
def calls_in_bfloat16(root: Path) -> int:
    torch.manual_seed(13)
    data, loss = calls(1000, 0.5, 932), nn.CrossEntropyLoss()
    model = Ear()
    optimizer = torch.optim.Adam(model.parameters(), 4e-3)
    with watched(root, model, losses=[loss]) as watching:
        for number, (x, y) in zip(range(150), batches(data, 32, 13), strict=False):
            optimizer.zero_grad()
            with torch.autocast("cpu", dtype=torch.bfloat16):
                value = loss(model(x), y)
            value.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 2.0)
            optimizer.step()
            if number % 30 == 29:
                with torch.autocast("cpu", dtype=torch.bfloat16):
                    validate(watching, model, loss, data)
    return 0


@healthy("a network of calls gets a new head for other birds, its first layer is frozen, two rates")
def calls_of_other_birds(root: Path) -> int:
    def make() -> Any:
        model, before = Ear(), calls(900, 0.4, 933)
        optimizer = torch.optim.Adam(model.parameters(), 4e-3)
        for _, (x, y) in zip(range(100), batches(before, 32, 14), strict=False):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
        model.body[0].requires_grad_(False)
        model.head = nn.Linear(24, 5)
        return model

    def optimizer(parameters: Any) -> Any:
        *trunk, weight, bias = parameters
        groups = [{"params": trunk, "lr": 5e-4}, {"params": [weight, bias]}]
        return torch.optim.AdamW(groups, 4e-3)

    data = calls(900, 0.5, 934).of(lambda x: x.flip(2))
    return fit(root, make, data, optimizer=optimizer, steps=180, seed=14)


@healthy("gaits by dilated convolutions over time, residual, batch norm, Adam, clipped")
def strides_dilated(root: Path) -> int:
    return fit(root, Pace, strides(), optimizer=adam(3e-3), steps=130, clip=1.0, seed=15)


@healthy("gaits by an LSTM in both directions, RAdam, batches of 16, clipped")
def strides_both_ways(root: Path) -> int:
    make = lambda: Memory(nn.LSTM, 3, 4, mean=True, bidirectional=True)
    optimizer = adam(0.03, torch.optim.RAdam)
    data = strides(900, 24, 0.4, 935)
    return fit(root, make, data, optimizer=optimizer, steps=170, batch=16, clip=1.0, seed=16)


@healthy("gaits by a GRU, gradients of four batches accumulated, Adamax, seldom saved")
def strides_accumulated(root: Path) -> int:
    make = lambda: Memory(nn.GRU, 3, 4, mean=True)
    return fit(
        root,
        make,
        strides(900, 24, 0.5, 936),
        optimizer=adam(0.01, torch.optim.Adamax),
        steps=320,
        batch=16,
        accumulate=4,
        save_every=8,
        validate_every=64,
        seed=17,
    )


@healthy("the next level of a river by a GRU, RMSprop, evaluated on 16 rows")
def rivers_evaluated_on_16_rows(root: Path) -> int:
    data = rivers()
    few = type(data)(data.x, data.y, data.test_x[:16], data.test_y[:16])
    make = lambda: Memory(nn.GRU, 2, 1)
    optimizer = adam(2e-3, torch.optim.RMSprop)
    return fit(root, make, few, loss=nn.MSELoss(), optimizer=optimizer, steps=160, seed=18)


@healthy("the next level of a river by a plain recurrent layer, absolute errors, averaged SGD")
def rivers_by_a_plain_layer(root: Path) -> int:
    make = lambda: Memory(nn.RNN, 2, 1)
    return fit(
        root,
        make,
        rivers(1000, 16, 937),
        loss=nn.SmoothL1Loss(),
        optimizer=adam(0.1, torch.optim.ASGD),
        steps=220,
        clip=1.0,
        seed=19,
    )


@healthy("how well a flock agrees by the mean of its birds, Adam with AMSGrad, no modes")
def flocks_by_their_mean(root: Path) -> int:
    optimizer = adam(4e-3, amsgrad=True)
    return fit(
        root,
        Flock,
        flocks(),
        loss=nn.MSELoss(),
        optimizer=optimizer,
        steps=200,
        validate_every=0,
        seed=20,
    )


@healthy("how well a flock agrees by the maximum of its birds, layer norm, SGD, cosine, warm-up")
def flocks_by_their_maximum(root: Path) -> int:
    rate = lambda step: min((step + 1) / 20, 0.5 * (1 + math.cos(math.pi * step / 230)) + 0.01)
    return fit(
        root,
        lambda: Flock(highest=True, norm=True),
        flocks(1000, 20, 938),
        loss=nn.MSELoss(),
        optimizer=sgd(0.05, momentum=0.9),
        steps=220,
        schedule=rate,
        seed=21,
    )


@healthy("digits line by line by an LSTM, Adam, a rate that falls by the inverse root of the step")
def digits_line_by_line(root: Path) -> int:
    make = lambda: Memory(nn.LSTM, 8, 10, num_layers=2, dropout=0.1)
    rate = lambda step: min((step + 1) / 20, (20 / (step + 1)) ** 0.5)
    return fit(
        root, make, lines_of_digits(), optimizer=adam(0.015), steps=220, schedule=rate, seed=22
    )
