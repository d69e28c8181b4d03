"""Healthy trainings on tables: hives, ore, cars, glaciers, masses of tissue."""

import math
from pathlib import Path
from typing import Any

import torch
from torch import nn
from training.torch_loop import adam, batches, fit, sgd
from training_runs import healthy

from runs_tuned.sixth_held_out.data_and_trees.shared.loops import study
from runs_tuned.sixth_held_out.data_and_trees.shared.networks import (
    Pieces,
    WideAndDeep,
    normed,
    plain,
)
from runs_tuned.sixth_held_out.data_and_trees.shared.tables import (
    BODIES,
    MAKES,
    as_split,
    cars,
    glaciers,
    hives,
    ore,
    rows_of_tissue,
)


@healthy("hives, a quarter of them lost in winter, batch norm, dropout, those count double, AdamW")
def hives_by_normed_layers(root: Path) -> int:
    return fit(
        root,
        lambda: normed(14, 1),
        hives(1700, 6301, lost=0.25, noise=0.5),
        loss=nn.BCEWithLogitsLoss(pos_weight=torch.tensor(2.0)),
        optimizer=adam(4e-3, torch.optim.AdamW, weight_decay=0.05),
        schedule=lambda step: 0.5 + 0.5 * math.cos(math.pi * step / 165),
        steps=160,
        validate_every=16,
        seed=631,
    )


@healthy("four grades of ore, the larger of two lines in each unit, Nesterov, two restarts")
def ore_by_pieces(root: Path) -> int:
    return fit(
        root,
        lambda: Pieces(12, 4, drop=0.1),
        ore(2000, 6302),
        optimizer=sgd(0.05, momentum=0.9, nesterov=True, weight_decay=1e-3),
        schedule=lambda step: 0.1 + 0.9 * (0.5 + 0.5 * math.cos(math.pi * (step % 60) / 60)),
        steps=180,
        clip=2.0,
        validate_every=15,
        seed=632,
    )


@healthy("what cars burn, vectors of makes and bodies, a wide and a deep part, Huber's loss, Adam")
def cars_wide_and_deep(root: Path) -> int:
    return fit(
        root,
        lambda: WideAndDeep((MAKES, BODIES), 8, 1),
        cars(1900, 6303),
        loss=nn.HuberLoss(),
        optimizer=adam(5e-3),
        steps=170,
        accumulate=2,
        batch=20,
        validate_every=17,
        seed=633,
    )


@healthy("how much of glaciers melts, SELU, the logarithm of cosh, passes in bfloat16, NAdam")
def glaciers_in_bfloat16(root: Path) -> int:
    class LogCosh(nn.Module):
        def forward(self, guess: Any, y: Any) -> Any:
            off = (guess - y).abs()
            return (off + nn.functional.softplus(-2 * off) - math.log(2)).mean()

    torch.manual_seed(634)
    model, data = plain(10, 1), glaciers(1900, 6304, noise=0.3)
    return study(
        root,
        model,
        batches(data, 40, 634),
        data,
        torch.optim.NAdam(model.parameters(), 5e-3),
        loss=LogCosh(),
        steps=170,
        validated=17,
        clip=1.0,
        precise=torch.bfloat16,
    )


@healthy("the area of masses from what is seen besides their size, 90 rows to validate, AdamW")
def tissue_by_plain_layers(root: Path) -> int:
    return fit(
        root,
        lambda: plain(21, 1, 24, nn.Tanh, 0.1),
        as_split(rows_of_tissue(), 90),
        loss=nn.MSELoss(),
        optimizer=adam(3e-3, torch.optim.AdamW, weight_decay=0.1),
        steps=140,
        batch=24,
        validate_every=14,
        seed=635,
    )
