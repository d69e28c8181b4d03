"""Healthy trainings of tables: wafers, flights and customers, and chances, counts or spreads."""

from pathlib import Path
from typing import Any

import torch
from torch import nn
from training.torch_loop import adam, batches, fit, sgd, validate, watched
from training_runs import healthy

from runs_tuned.fourth_held_out.data_and_trees.shared.tables import (
    Ports,
    Stairs,
    flights,
    leavers,
    plain,
    wafers,
)


@healthy("defects of wafers, the rarest one in twelve, classes weighed by roots, dropout, AdamW")
def wafers_weighed(root: Path) -> int:
    data = wafers(1900, 481, lean=(0.5, 0.2, 0.0, -0.5), noise=0.3)
    count = torch.bincount(data.y).float()
    return fit(
        root,
        lambda: Stairs(14, 4, 32),
        data,
        loss=nn.CrossEntropyLoss(weight=(count.mean() / count).sqrt()),
        optimizer=adam(3e-3, torch.optim.AdamW, weight_decay=0.05),
        steps=200,
        save_every=4,
        validate_every=25,
        seed=81,
    )


@healthy(
    "delays of flights, vectors of airports, Mish, absolute errors, a rate that falls by level"
)
def flights_by_level(root: Path) -> None:
    torch.manual_seed(82)
    data, model, loss = flights(2000, 482), Ports(), nn.L1Loss()
    optimizer = torch.optim.NAdam(model.parameters(), 0.01)
    falls = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.3, patience=2)
    with watched(root, model, losses=[loss], save_every=4) as watching:
        for step, (x, y) in zip(range(260), batches(data, 32, 82), strict=False):
            optimizer.zero_grad()
            loss(model(x), y).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 2.0)
            optimizer.step()
            if (step + 1) % 20 == 0:
                validate(watching, model, loss, data)
                with torch.no_grad():
                    error = (model(data.test_x) - data.test_y).abs().mean()
                falls.step(error)


@healthy("customers of whom one in five leaves, leavers count double, batch norm, RMSprop")
def leavers_count_double(root: Path) -> int:
    make = lambda: nn.Sequential(
        nn.BatchNorm1d(16),
        nn.Linear(16, 32),
        nn.BatchNorm1d(32),
        nn.LeakyReLU(0.1),
        nn.Dropout(0.2),
        nn.Linear(32, 1),
    )
    optimizer = adam(3e-3, torch.optim.RMSprop, weight_decay=1e-4)
    return fit(
        root,
        make,
        leavers(1900, 483, share=0.2),
        loss=nn.BCEWithLogitsLoss(pos_weight=torch.tensor(2.0)),
        optimizer=optimizer,
        steps=200,
        save_every=4,
        validate_every=25,
        seed=83,
    )


class Spread(nn.Module):
    """Gaussian negative log-likelihood of a mean and the logarithm of a variance."""

    def __init__(self) -> None:
        super().__init__()
        self.loss = nn.GaussianNLLLoss()

    def forward(self, both: Any, y: Any) -> Any:
        return self.loss(both[:, :1], y, both[:, 1:].exp())


@healthy("delays of flights with their spread, SELU, Gaussian likelihood, clipped, Adam")
def flights_with_spread(root: Path) -> int:
    data = flights(2000, 484).of(
        lambda x: torch.cat(
            [nn.functional.one_hot(x[:, :2].long(), 12).flatten(1).float(), x[:, 2:]], 1
        )
    )
    return fit(
        root,
        lambda: plain(32, 32, 24, 2, between=nn.SELU),
        data,
        loss=Spread(),
        optimizer=adam(2e-3),
        steps=220,
        clip=1.0,
        save_every=4,
        validate_every=20,
        seed=84,
    )


@healthy(
    "wafers with five defects, a tenth of the labels wrong, to be stopped early, restarts, SGD"
)
def wafers_stopped_early(root: Path) -> None:
    torch.manual_seed(85)
    generator = torch.Generator().manual_seed(485)
    whole = wafers(2100, 485, noise=0.2)
    wrong = torch.rand(len(whole.y), generator=generator) < 0.1
    drawn = torch.randint(0, 5, (len(whole.y),), generator=generator)
    data = whole.taught(lambda y: torch.where(wrong, drawn, y))
    model, loss = Stairs(14, 5, 24, 1), nn.CrossEntropyLoss()
    optimizer = sgd(0.06, momentum=0.9, weight_decay=1e-3)(model.parameters())
    restarts = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, 40, 2, 2e-3)
    best, waited = float("inf"), 0
    with watched(root, model, losses=[loss], save_every=4) as watching:
        for step, (x, y) in zip(range(280), batches(data, 32, 85), strict=False):
            optimizer.zero_grad()
            loss(model(x), y).backward()
            optimizer.step()
            restarts.step()
            if (step + 1) % 14 == 0:
                validate(watching, model, loss, data)
                model.eval()
                with torch.no_grad():
                    value = loss(model(data.test_x), data.test_y).item()
                model.train()
                waited = 0 if value < best else waited + 1
                best = min(best, value)
                if waited == 4:
                    break
