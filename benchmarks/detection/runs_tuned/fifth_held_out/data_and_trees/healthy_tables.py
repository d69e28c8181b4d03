"""Healthy trainings on tables: unequal kinds, clipped, weighed, restarted, averaged."""

import copy
import functools
import math
from pathlib import Path
from typing import Any

import torch
from sklearn.datasets import load_breast_cancer
from torch import nn
from training.torch_loop import adam, batches, fit, sgd, validate
from training_runs import healthy

from runs_tuned.fifth_held_out.data_and_trees.shared.loops import learn
from runs_tuned.fifth_held_out.data_and_trees.shared.pictures import divided
from runs_tuned.fifth_held_out.data_and_trees.shared.tables import (
    Crossed,
    Gates,
    houses,
    layered,
    patients,
    turbines,
)


@healthy("patients of four kinds, five to one, gated linear units, AdamW, a cosine")
def patients_by_gates(root: Path) -> int:
    return fit(
        root,
        lambda: Gates(12, 4),
        patients(1500, 511, shares=(5.0, 3.0, 2.0, 1.0), apart=2.8),
        optimizer=adam(5e-3, torch.optim.AdamW, weight_decay=0.02),
        schedule=lambda step: 0.5 + 0.5 * math.cos(math.pi * step / 160),
        steps=150,
        validate_every=15,
        seed=1,
    )


def crosses_of_houses(root: Path, forgets_at: int = 0) -> int:
    """Learn prices with Adam, which may forget its moments; always by one seed."""
    torch.manual_seed(2)
    data, model = houses(1500, 512), Crossed(11, 1)
    optimizer = torch.optim.Adam(model.parameters(), 3e-3, betas=(0.9, 0.99))

    def after_step(step: int) -> None:
        if forgets_at and step == forgets_at - 1:
            optimizer.state.clear()

    return learn(
        root,
        model,
        batches(data, 32, 2),
        data,
        optimizer=optimizer,
        loss=nn.SmoothL1Loss(),
        steps=150,
        clip=2.0,
        first=forgets_at,
        after_step=after_step,
    )


@healthy("prices of houses by products of features, Huber's errors, clipped, Adam")
def houses_by_crosses(root: Path) -> int:
    return crosses_of_houses(root)


@healthy("failures of turbines, a fifth, weighed double, batch norm, 60 rows to validate with")
def turbines_weighed_double(root: Path) -> int:
    return fit(
        root,
        lambda: layered(15, 24, 24, 1, norm=True, drop=0.1),
        turbines(1100, 513, share=0.2, tested=60),
        loss=nn.BCEWithLogitsLoss(pos_weight=torch.tensor(2.0)),
        optimizer=adam(4e-3, weight_decay=1e-4),
        steps=140,
        validate_every=14,
        seed=3,
    )


@healthy("patients of three kinds, two tanh layers, RMSprop, the rate restarts every 50 steps")
def patients_with_restarts(root: Path) -> int:
    return fit(
        root,
        lambda: layered(12, 20, 20, 3, unit=nn.Tanh),
        patients(1400, 514, shares=(1.0, 1.0, 1.0)),
        optimizer=functools.partial(torch.optim.RMSprop, lr=2e-3),
        schedule=lambda step: 0.1 + 0.9 * (0.5 + 0.5 * math.cos(math.pi * (step % 50) / 50)),
        steps=150,
        validate_every=15,
        seed=4,
    )


@healthy("prices of houses, gated linear units, a moving average of the weights is validated")
def houses_on_average(root: Path) -> int:
    torch.manual_seed(5)
    data, model = houses(1400, 515, noise=0.4), Gates(11, 1, drop=0.05)
    average = torch.optim.swa_utils.AveragedModel(
        model, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.93)
    )

    def evaluate(watching: Any, _: Any, loss: Any, rows: Any) -> None:
        learnt = copy.deepcopy(model.state_dict())
        model.load_state_dict(average.module.state_dict())
        validate(watching, model, loss, rows)
        model.load_state_dict(learnt)

    return learn(
        root,
        model,
        batches(data, 32, 5),
        data,
        optimizer=torch.optim.AdamW(model.parameters(), 3e-3),
        loss=nn.MSELoss(),
        steps=160,
        validate_every=16,
        evaluate=evaluate,
        after_step=lambda _: average.update_parameters(model),
    )


@healthy("breast cancer by eight principal components, a small hidden layer, Nesterov momentum")
def tumours_by_components(root: Path) -> int:
    facts, kind = load_breast_cancer(return_X_y=True)
    x = torch.tensor(facts, dtype=torch.float32)
    x = (x - x.mean(0)) / x.std(0)
    torch.manual_seed(6)
    axes = torch.linalg.svd(x, full_matrices=False)[2][:8]
    order = torch.randperm(len(x))
    data = divided((x @ axes.T)[order], torch.tensor(kind)[order], 140)
    return fit(
        root,
        lambda: layered(8, 10, 2),
        data,
        optimizer=sgd(0.01, momentum=0.9, nesterov=True, weight_decay=1e-3),
        steps=110,
        batch=16,
        validate_every=11,
        seed=6,
    )
