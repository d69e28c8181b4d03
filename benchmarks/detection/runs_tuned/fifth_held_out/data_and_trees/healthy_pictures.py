"""Healthy trainings on pictures: cells, flags and land; flipped, warmed up, cast or frozen."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import nn
from training.learnt_data import Split
from training.torch_loop import adam, batches, fit, sgd
from training_runs import healthy

from runs_tuned.fifth_held_out.data_and_trees.shared.loops import learn
from runs_tuned.fifth_held_out.data_and_trees.shared.pictures import (
    Lens,
    Mosaic,
    Slim,
    cells,
    flags,
    land,
    slopes,
)


@healthy("cells of five kinds, a residual block, Nesterov momentum, the rate goes up and down")
def cells_through_a_lens(root: Path) -> int:
    return fit(
        root,
        lambda: Lens(3, 5),
        cells(1500, 521),
        optimizer=sgd(0.04, momentum=0.9, nesterov=True, weight_decay=5e-4),
        schedule=lambda step: min((step + 15) / 55, (165 - step) / 125),
        steps=150,
        validate_every=15,
        seed=11,
    )


@healthy("flags of six orders, patches whose places are mixed, a warm-up and a cosine, AdamW")
def flags_as_a_mosaic(root: Path) -> int:
    return fit(
        root,
        lambda: Mosaic(3, 6, 40, drop=0.1),
        flags(1500, 522, noise=0.15),
        optimizer=adam(3e-3, torch.optim.AdamW, weight_decay=0.05),
        schedule=lambda step: min((step + 1) / 12, 0.5 + 0.5 * math.cos(math.pi * step / 150)),
        steps=140,
        clip=1.0,
        validate_every=14,
        seed=12,
    )


@healthy("land of four kinds, convolutions with leaky units, forward passes in bfloat16, Adam")
def land_in_bfloat16(root: Path) -> int:
    torch.manual_seed(13)
    data, model = land(1500, 523, noise=1.6), Slim(1, 4, 25)
    return learn(
        root,
        model,
        batches(data, 32, 13),
        data,
        optimizer=torch.optim.Adam(model.parameters(), 2e-3),
        steps=140,
        cast=torch.bfloat16,
        validate_every=14,
    )


@healthy("how steep the land is, convolutions, squared errors, validated in small batches, Adam")
def slopes_of_land(root: Path) -> int:
    return fit(
        root,
        lambda: Slim(1, 1, 25, drop=0.05),
        slopes(1400, 524, noise=0.8),
        loss=nn.MSELoss(),
        optimizer=adam(2e-3),
        steps=140,
        validate_every=20,
        validate_batch=75,
        seed=14,
    )


def flipped(data: Split, size: int, seed: int) -> Iterator[Any]:
    """Yield shuffled batches of pictures, each flipped or turned upside down by chance."""
    generator = torch.Generator().manual_seed(seed)
    for x, y in batches(data, size, seed):
        coins = torch.rand(2, len(x), 1, 1, 1, generator=generator) < 0.5
        sideways = torch.where(coins[0], x.flip(3), x)
        yield torch.where(coins[1], sideways.flip(2), sideways), y


@healthy("cells of five kinds, flipped by chance, smoothed labels, a residual block, AdamW")
def cells_flipped(root: Path) -> int:
    torch.manual_seed(15)
    data, model = cells(1500, 525), Lens(3, 5, 16, drop=0.1)
    return learn(
        root,
        model,
        flipped(data, 32, 15),
        data,
        optimizer=torch.optim.AdamW(model.parameters(), 2e-3, weight_decay=0.01),
        loss=nn.CrossEntropyLoss(label_smoothing=0.1),
        steps=150,
        clip=5.0,
    )


def stem_of_flags() -> Any:
    """Return a network that has learned flags, with a frozen stem and a new head."""
    torch.manual_seed(16)
    model, data = Slim(3, 6, 12, drop=0.1), flags(900, 526)
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    for _, (x, y) in zip(range(70), batches(data, 32, 16), strict=False):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    model.tell[3] = nn.Linear(32, 4)
    for parameter in model.see[0].parameters():
        parameter.requires_grad_(requires_grad=False)
    return model


@healthy("flags with four orders of another collection, the first layer frozen, Adam")
def flags_by_a_frozen_stem(root: Path) -> int:
    data = flags(2200, 527, tested=600, noise=0.15)
    few, few_tested = data.y < 4, data.test_y < 4
    data = Split(data.x[few], data.y[few], data.test_x[few_tested], data.test_y[few_tested])
    return fit(
        root, stem_of_flags, data, optimizer=adam(1.5e-3), steps=130, validate_every=13, seed=17
    )
