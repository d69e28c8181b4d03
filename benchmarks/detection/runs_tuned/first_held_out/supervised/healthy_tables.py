"""Healthy trainings on tables: quantiles, counts, mixtures, categories, soft targets."""

import functools
import math
from pathlib import Path
from typing import Any

import torch
from torch import nn
from training.torch_loop import adam, batches, fit, sgd, validate, watched
from training_runs import healthy

from runs_tuned.first_held_out.supervised.generated_data import (
    counts,
    customers,
    forest_table,
    friedman,
    inverse_problem,
    table,
)
from runs_tuned.first_held_out.supervised.networks import (
    Embedded,
    Mixture,
    MixtureLoss,
    PinballLoss,
)
from smdebug.core.modes import ModeKeys


class Regressor(nn.Module):
    """Two hidden layers with an activation of one's choice."""

    def __init__(self, ins: int, outs: int, act: Any, width: int = 32) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(ins, width), nn.Linear(width, width // 2)
        self.last, self.act = nn.Linear(width // 2, outs), act

    def forward(self, x: Any) -> Any:
        return self.last(self.act(self.second(self.act(self.first(x)))))


@healthy("Friedman's function, three quantiles, NAdam, a rate that goes up and down in cycles")
def friedman_quantiles(root: Path) -> int:
    def rate(step: int) -> float:
        return 0.1 + 0.9 * abs((step % 60) / 30 - 1)

    return fit(
        root,
        lambda: Regressor(10, 3, nn.ReLU()),
        friedman(),
        loss=PinballLoss(),
        optimizer=adam(5e-3, kind=torch.optim.NAdam),
        schedule=rate,
        steps=240,
        save_every=3,
    )


@healthy("counts, Poisson regression with a hidden layer, losses below zero, averaged SGD")
def counts_poisson(root: Path) -> int:
    return fit(
        root,
        lambda: nn.Sequential(nn.Linear(8, 24), nn.Softplus(), nn.Linear(24, 1)),
        counts(),
        loss=nn.PoissonNLLLoss(),
        optimizer=functools.partial(torch.optim.ASGD, lr=0.02),
        clip=5.0,
        batch=40,
        steps=300,
        save_every=4,
        validate_every=30,
    )


@healthy("one number, and the several that it may come from: a mixture of densities, Adam")
def inverse_mixture(root: Path) -> int:
    return fit(
        root,
        Mixture,
        inverse_problem(),
        loss=MixtureLoss(),
        optimizer=adam(0.01, betas=(0.9, 0.99)),
        batch=64,
        steps=180,
        save_every=3,
        validate_every=20,
    )


@healthy("customers, embeddings of rare towns, one in five stays, Adagrad")
def customers_embedded(root: Path) -> int:
    return fit(
        root,
        Embedded,
        customers(),
        loss=nn.BCEWithLogitsLoss(pos_weight=torch.tensor([2.0])),
        optimizer=functools.partial(torch.optim.Adagrad, lr=0.03),
        steps=180,
        save_every=3,
        validate_every=30,
    )


@healthy("a table of three classes, logistic regression by L-BFGS: many losses to an update")
def table_second_order(root: Path) -> int:
    torch.manual_seed(4)
    data, loss = table(), nn.CrossEntropyLoss()
    model = nn.Linear(12, 3)
    optimizer = torch.optim.LBFGS(
        model.parameters(), max_iter=5, history_size=8, line_search_fn="strong_wolfe"
    )

    def closure() -> Any:
        optimizer.zero_grad()
        value = loss(model(data.x), data.y) + 1e-3 * model.weight.square().sum()
        value.backward()
        return value

    with watched(root, model, losses=[loss], save_every=1) as watching:
        for _ in range(3):
            optimizer.step(closure)
            validate(watching, model, loss, data)
    return 0


class SoftTargetLoss(nn.Module):
    """The divergence from the chances of a teacher."""

    def forward(self, logits: Any, chances: Any) -> Any:
        return nn.functional.kl_div(logits.log_softmax(1), chances, reduction="batchmean")


@healthy("a table of three classes, taught by the chances of a random forest, Adamax, warm-up")
def table_taught_by_a_forest(root: Path) -> int:
    def rate(step: int) -> float:
        return min(1.0, (step + 1) / 30) * 0.5 * (1 + math.cos(math.pi * step / 250))

    return fit(
        root,
        lambda: Regressor(12, 3, nn.Mish()),
        forest_table(),
        loss=SoftTargetLoss(),
        optimizer=adam(0.01, kind=torch.optim.Adamax),
        schedule=rate,
        batch=50,
        steps=250,
        save_every=5,
        validate_every=50,
    )


@healthy("Friedman's function, small batches, AMSGrad, stopped early with a patience of three")
def friedman_stopped(root: Path) -> int:
    torch.manual_seed(6)
    data, loss = friedman(), nn.SmoothL1Loss()
    model = Regressor(10, 1, nn.LeakyReLU(0.1), 24)
    optimizer = torch.optim.AdamW(model.parameters(), 4e-3, amsgrad=True, weight_decay=0.3)
    best, patience = math.inf, 0
    with watched(root, model, losses=[loss], save_every=5) as watching:
        for step, (x, y) in zip(range(1000), batches(data, 16), strict=False):
            loss(model(x), y).backward()
            optimizer.step()
            optimizer.zero_grad()
            if (step + 1) % 40 == 0:
                watching.set_mode(ModeKeys.EVAL)
                with torch.no_grad():
                    latest = float(loss(model(data.test_x), data.test_y))
                watching.set_mode(ModeKeys.TRAIN)
                patience = 0 if latest < best else patience + 1
                best = min(best, latest)
                if patience == 3:
                    break
    return 0


@healthy("a table of four classes, margins instead of entropy, resilient propagation, full batches")
def table_margins(root: Path) -> int:
    data = table(classes=4, flip=0.0)
    return fit(
        root,
        lambda: Regressor(12, 4, nn.Hardtanh()),
        data,
        loss=nn.MultiMarginLoss(),
        optimizer=functools.partial(torch.optim.Rprop, lr=1e-3),
        batch=len(data.x),
        steps=80,
        save_every=1,
        validate_every=10,
    )


@healthy("a table whose features are screened by a penalty: proximal steps set weights to zero")
def table_sparse(root: Path) -> int:
    def proximal(optimizer: Any) -> None:
        optimizer.step()
        with torch.no_grad():
            weight = optimizer.param_groups[0]["params"][0]
            weight.copy_(weight.sign() * (weight.abs() - 1e-3).clamp(min=0))

    return fit(
        root,
        lambda: nn.Sequential(nn.Linear(12, 24), nn.PReLU(), nn.Linear(24, 3)),
        table(),
        optimizer=sgd(0.02, momentum=0.5),
        update=proximal,
        steps=160,
        save_every=4,
    )
