"""Healthy trainings of houses, pumps, bicycles, ratings, articles and loans."""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import training_runs
from torch import nn
from torch.optim.lr_scheduler import (
    CosineAnnealingLR,
    MultiStepLR,
    OneCycleLR,
    ReduceLROnPlateau,
    StepLR,
)

from runs_tuned.seventh_held_out.losses_and_optimizers.shared.loops import (
    copies,
    cosine,
    linear,
    replicas,
    resumed,
    train,
)
from runs_tuned.seventh_held_out.losses_and_optimizers.shared.networks import (
    Factors,
    Staged,
    layers,
)
from runs_tuned.seventh_held_out.losses_and_optimizers.shared.tables import (
    articles,
    bicycles,
    houses,
    loans,
    pumps,
    ratings,
)

healthy = training_runs.healthy


def price_houses(root: Path, shuffled: int = 0) -> int:
    """Train layers on prices of houses, in the order of a seed."""
    torch.manual_seed(7000)
    model = layers(6, 48, 48, 1)
    optimizer = torch.optim.Adam(model.parameters(), 2e-3)
    return train(
        root,
        model,
        nn.MSELoss(),
        houses(2400, 7000),
        optimizer,
        steps=180,
        batch=64,
        save_every=2,
        scheduler=CosineAnnealingLR(optimizer, 180),
        seed=shuffled,
    )


@healthy("prices of houses by layers, Adam, a cosine for each batch")
def prices_of_houses(root: Path) -> int:
    return price_houses(root)


@healthy("prices of houses once more by the same seeds", other="prices_of_houses")
def prices_of_houses_repeated(root: Path) -> int:
    return price_houses(root)


@healthy("prices of houses, absolute errors smoothed (Huber), SGD with momentum, a rate in steps")
def prices_by_huber(root: Path) -> int:
    torch.manual_seed(7002)
    model = layers(6, 32, 32, 1, act=nn.Tanh)
    optimizer = torch.optim.SGD(model.parameters(), 0.03, momentum=0.9, weight_decay=1e-4)
    return train(
        root,
        model,
        nn.HuberLoss(),
        houses(2000, 7002),
        optimizer,
        steps=200,
        batch=50,
        by_epoch=StepLR(optimizer, 2, 0.5),
        valid_every=32,
    )


@healthy("prices of houses by a linear model, ridge by the optimizer's decay, SGD")
def prices_by_a_line(root: Path) -> int:
    torch.manual_seed(7004)
    model = nn.Linear(6, 1)
    return train(
        root,
        model,
        nn.MSELoss(),
        houses(1600, 7004),
        torch.optim.SGD(model.parameters(), 0.01, weight_decay=1e-3),
        steps=100,
        batch=32,
    )


def tell_pumps(
    root: Path, act: Callable[[], Any] = nn.GELU, *, is_seeded_late: bool = False
) -> int:
    """Train layers on pumps; the seed may come only after the model."""
    if is_seeded_late:
        torch.manual_seed(7999)
        model = layers(10, 40, 40, 4, act=act)
    torch.manual_seed(7010)
    if not is_seeded_late:
        model = layers(10, 40, 40, 4, act=act)
    return train(
        root,
        model,
        nn.CrossEntropyLoss(),
        pumps(1600, 7010),
        torch.optim.AdamW(model.parameters(), 3e-3),
        steps=120,
        save_every=2,
    )


@healthy("what ails pumps by layers with GELU, AdamW at one rate")
def pumps_by_layers(root: Path) -> int:
    return tell_pumps(root)


@healthy("what ails pumps once more by the same seeds", other="pumps_by_layers")
def pumps_by_layers_repeated(root: Path) -> int:
    return tell_pumps(root)


@healthy("what ails pumps, batch norm and dropout, one cycle of the rate, SGD with momentum")
def pumps_in_one_cycle(root: Path) -> int:
    torch.manual_seed(7012)
    model = layers(10, 64, 32, 4, norm=nn.BatchNorm1d, drop=0.1)
    optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)
    return train(
        root,
        model,
        nn.CrossEntropyLoss(label_smoothing=0.05),
        pumps(2400, 7012),
        optimizer,
        steps=210,
        batch=64,
        save_every=3,
        scheduler=OneCycleLR(optimizer, 0.1, total_steps=210),
        valid_every=30,
    )


@healthy(
    "what ails pumps: a backbone that told kinds 0 and 1 from the others, frozen under a new head, "
    "from step 60 on all of it, the backbone at a tenth of the rate"
)
def pumps_fine_tuned(root: Path) -> int:
    torch.manual_seed(7014)
    before = pumps(1500, 7013).relabelled(lambda kind: kind // 2)
    model = Staged(10, 48, 2)
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    for rows in torch.arange(len(before.x)).split(32):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(before.x[rows]), before.y[rows]).backward()
        optimizer.step()
    model.head = nn.Linear(48, 4)
    model.backbone.requires_grad_(False)
    optimizer = torch.optim.Adam(model.head.parameters(), 3e-3)

    def thaw(step: int) -> None:
        if step == 60:
            model.backbone.requires_grad_(True)
            optimizer.add_param_group({"params": list(model.backbone.parameters()), "lr": 3e-4})

    return train(
        root,
        model,
        nn.CrossEntropyLoss(),
        pumps(1600, 7014),
        optimizer,
        steps=160,
        before=thaw,
    )


@healthy("what ails pumps, eight small batches to an update, Adam; each second batch is saved")
def pumps_accumulated(root: Path) -> int:
    torch.manual_seed(7016)
    model = layers(10, 48, 48, 4)
    optimizer = torch.optim.Adam(model.parameters(), 1.5e-2)
    return train(
        root,
        model,
        nn.CrossEntropyLoss(),
        pumps(2400, 7016),
        optimizer,
        steps=320,
        batch=8,
        save_every=2,
        accumulate=8,
        scheduler=linear(optimizer, 2, 44),
        valid_every=80,
    )


@healthy(
    "rented bicycles by a Poisson likelihood, Adam, the rate falls once the validation is level"
)
def rented_bicycles(root: Path) -> int:
    torch.manual_seed(7020)
    model = layers(6, 32, 32, 1)
    optimizer = torch.optim.Adam(model.parameters(), 4e-3)
    return train(
        root,
        model,
        nn.PoissonNLLLoss(),
        bicycles(2400, 7020),
        optimizer,
        steps=200,
        batch=64,
        plateau=ReduceLROnPlateau(optimizer, factor=0.3, patience=1),
        valid_every=30,
    )


class _Pinball(nn.Module):
    """The loss of three quantiles."""

    def forward(self, outputs: Any, targets: Any) -> Any:
        over = targets - outputs
        share = torch.tensor([0.1, 0.5, 0.9])
        return torch.maximum(share * over, (share - 1) * over).mean()


@healthy("three quantiles of prices of houses, AdamW, warm-up and a line down, clipped")
def quantiles_of_prices(root: Path) -> int:
    torch.manual_seed(7022)
    model = layers(6, 48, 48, 3, act=nn.SiLU)
    optimizer = torch.optim.AdamW(model.parameters(), 4e-3)
    return train(
        root,
        model,
        _Pinball(),
        houses(2000, 7022),
        optimizer,
        steps=160,
        batch=40,
        clip=1.0,
        scheduler=linear(optimizer, 16, 165),
    )


@healthy("ratings of films by factors and biases, Adam with a little decay")
def ratings_of_films(root: Path) -> int:
    torch.manual_seed(7024)
    model = Factors()
    return train(
        root,
        model,
        nn.MSELoss(),
        ratings(7000, 7024),
        torch.optim.Adam(model.parameters(), 2e-2, weight_decay=1e-4),
        steps=180,
        batch=128,
        save_every=2,
    )


@healthy("subjects of articles, several to each, RMSprop, rates in steps by epoch")
def subjects_of_articles(root: Path) -> int:
    torch.manual_seed(7026)
    model = layers(40, 48, 5, drop=0.2)
    optimizer = torch.optim.RMSprop(model.parameters(), 2e-3)
    return train(
        root,
        model,
        nn.BCEWithLogitsLoss(),
        articles(1800, 7026),
        optimizer,
        steps=200,
        batch=36,
        save_every=2,
        by_epoch=MultiStepLR(optimizer, [2, 4], 0.3),
        valid_every=40,
    )


@healthy("loans that are paid back, those that are not weigh more, Adam, with early stopping")
def loans_paid_back(root: Path) -> int:
    torch.manual_seed(7028)
    model = layers(8, 32, 16, 1)
    data = loans(3000, 7028)
    share = float(data.y.mean())
    return train(
        root,
        model,
        nn.BCEWithLogitsLoss(pos_weight=torch.tensor((1 - share) / share)),
        data,
        torch.optim.Adam(model.parameters(), 3e-3),
        steps=300,
        batch=60,
        patience=3,
        valid_every=20,
    )


@healthy("prices of houses go on from a checkpoint with all of the state, Adam, a cosine")
def prices_go_on(root: Path) -> int:
    return resumed(
        root,
        lambda: layers(6, 48, 48, 1),
        nn.MSELoss(),
        houses(2400, 7030),
        functools.partial(torch.optim.Adam, lr=3e-3),
        lambda optimizer: CosineAnnealingLR(optimizer, 250),
        stops=((130, 149),),
        seed=7030,
        batch=48,
    )


@healthy("what ails pumps goes on twice, SGD with momentum, a rate in steps, each 2nd step logged")
def pumps_go_on_twice(root: Path) -> int:
    return resumed(
        root,
        lambda: layers(10, 48, 48, 4),
        nn.CrossEntropyLoss(),
        pumps(2000, 7032),
        functools.partial(torch.optim.SGD, lr=0.05, momentum=0.9),
        lambda optimizer: MultiStepLR(optimizer, [160, 260], 0.2),
        stops=((100, 118), (200, 230)),
        steps=320,
        log_every=2,
        seed=7032,
    )


@healthy("prices of houses on two workers, AdamW, warm-up and a cosine in the optimizer's rate")
def prices_on_two_workers(root: Path) -> int:
    torch.manual_seed(7034)
    schedules: list[Any] = []

    def optimizer(model: Any) -> Any:
        made = torch.optim.AdamW(model.parameters(), 4e-3)
        schedules.append(cosine(made, 10, 120))
        return made

    return replicas(
        root,
        copies(layers(6, 40, 40, 1)),
        nn.MSELoss,
        houses(2000, 7034),
        optimizer,
        steps=110,
        batch=24,
        after=lambda _: [each.step() for each in schedules],
    )
