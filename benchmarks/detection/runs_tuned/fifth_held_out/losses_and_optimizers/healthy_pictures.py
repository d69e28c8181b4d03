"""Healthy trainings of flags, cells, and patches of a photograph."""

from pathlib import Path
from typing import Any

import torch
import training_runs
from torch import nn
from torch.nn import functional
from torch.optim.swa_utils import AveragedModel

from runs_tuned.fifth_held_out.losses_and_optimizers.shared.data import (
    cells,
    chance,
    flags,
    patches,
)
from runs_tuned.fifth_held_out.losses_and_optimizers.shared.loops import by, practice, served, waned
from runs_tuned.fifth_held_out.losses_and_optimizers.shared.networks import (
    channel_wise,
    folded,
    layers,
)

healthy = training_runs.healthy


@healthy(
    "layouts of flags by residual convolutions with batch norm, mirrored at random, labels "
    "smoothed, momentum, one cycle of the rate"
)
def flags_in_one_cycle(root: Path) -> int:
    torch.manual_seed(1520)
    model, random = folded(3, 6), chance(1520)
    x, layout, _ = flags(1000, 1520, 1.5)

    def objective(batch: Any) -> Any:
        turn = torch.rand(len(batch[0]), 1, 1, 1, generator=random) < 0.3
        pictures = torch.where(turn, batch[0].flip(2), batch[0])
        return functional.cross_entropy(model(pictures), batch[1], label_smoothing=0.1)

    return practice(
        root,
        model,
        objective,
        served(x, layout, size=24, seed=1520),
        torch.optim.SGD(model.parameters(), 0.08, momentum=0.9, weight_decay=5e-4),
        steps=200,
        save_every=2,
        schedule=lambda step: 0.04 + 0.96 * min(step / 60, (200 - step) / 140),
        test=flags(60, 1521, 1.5)[:2],
    )


@healthy(
    "colours of the field of flags, convolutions of each channel apart, blocks are skipped now "
    "and then, labels smoothed, AdamW, the rate restarts twice"
)
def fields_with_restarts(root: Path) -> int:
    torch.manual_seed(1522)
    model = channel_wise(3, 6, skipped=0.1)
    x, _, field = flags(1000, 1522, 2.0)
    test, _, colour = flags(60, 1523, 2.0)
    wave = waned(0, 70, 0.02)
    return practice(
        root,
        model,
        by(model, nn.CrossEntropyLoss(label_smoothing=0.1)),
        served(x, field, size=24, seed=1522),
        torch.optim.AdamW(model.parameters(), 4e-3, weight_decay=0.05),
        steps=210,
        save_every=2,
        schedule=lambda step: wave(step % 70),
        test=(test, colour),
    )


@healthy("cells are counted, the loss of Poisson counts, small batches, Adam, weights averaged")
def cells_under_glass(root: Path) -> int:
    torch.manual_seed(1524)
    model = folded(1, 1, 8)
    average = AveragedModel(model)
    loss = nn.PoissonNLLLoss(full=True)

    def counted(net: Any) -> Any:
        return lambda batch: loss(net(batch[0])[:, 0] + 1.0, batch[1])

    def after(step: int) -> None:
        if step >= 180:
            average.update_parameters(model)

    return practice(
        root,
        model,
        counted(model),
        served(*cells(900, 1524), size=12, seed=1524),
        torch.optim.Adam(model.parameters(), 2e-3),
        steps=280,
        save_every=2,
        schedule=lambda step: 1.0 if step < 180 else 0.5,
        after=after,
        test=cells(60, 1525),
        tested=counted(model),
    )


@healthy(
    "a new head on fields of inverted pictures by convolutions that learnt upright ones; norms "
    "stay in evaluation, all thaws at step 70 at a tenth of the rate, Nesterov momentum"
)
def flags_thawed(root: Path) -> int:
    torch.manual_seed(1526)
    model = folded(3, 6)
    x, _, field = flags(900, 1526, 2.0)
    test, _, colour = flags(60, 1528, 2.0)
    taught = torch.optim.Adam(model.parameters(), 3e-3)
    for _, batch in zip(range(70), served(x, field, size=24, seed=1526), strict=False):
        by(model)(batch).backward()
        taught.step()
        taught.zero_grad()
    model[-1] = nn.Linear(80, 6)
    nn.init.normal_(model[-1].weight, std=0.01)
    model[:-1].requires_grad_(requires_grad=False)

    def objective(batch: Any) -> Any:
        model[:-1].eval()
        return functional.cross_entropy(model(batch[0]), batch[1])

    def before(step: int) -> None:
        if step == 70:
            model[:-1].requires_grad_(requires_grad=True)

    groups = [
        {"params": model[:-1].parameters(), "lr": 4e-4},
        {"params": model[-1].parameters(), "lr": 4e-3},
    ]
    return practice(
        root,
        model,
        objective,
        served(-x, field, size=24, seed=1527),
        torch.optim.SGD(groups, momentum=0.9, nesterov=True),
        steps=190,
        before=before,
        test=(-test, colour),
    )


@healthy(
    "patches of a photograph are cleaned of noise, layers with a narrow middle, Adam, the rate "
    "falls along a line after two thirds",
    kind="autoencoder",
)
def patches_cleaned(root: Path) -> int:
    torch.manual_seed(1529)
    model, random = layers(64, 48, 16, 48, 64), chance(1529)
    rows = patches()

    def objective(batch: Any) -> Any:
        noise = 0.2 * torch.randn(batch[0].shape, generator=random)
        return functional.mse_loss(model(batch[0] + noise), batch[0])

    return practice(
        root,
        model,
        objective,
        served(rows[:900], size=24, seed=1529),
        torch.optim.Adam(model.parameters(), 2e-3),
        steps=300,
        save_every=2,
        schedule=lambda step: min(1.0, (310 - step) / 100),
        test=(rows[900:],),
    )


@healthy(
    "hidden quarters of patches are filled in from the rest, the loss is taken on them, RAdam",
    kind="autoencoder",
)
def patches_filled_in(root: Path) -> int:
    torch.manual_seed(1530)
    model = layers(128, 96, 64, act=nn.GELU, drop=0.05)
    rows, random = patches(), chance(1530)

    def objective(batch: Any) -> Any:
        spots = torch.rand(len(batch[0]), 2, 2, generator=random).argsort(1).argsort(2) < 1
        hidden = spots.repeat_interleave(4, 1).repeat_interleave(4, 2).flatten(1).float()
        filled = model(torch.cat([batch[0] * (1 - hidden), hidden], 1))
        return ((filled - batch[0]).pow(2) * hidden).sum() / hidden.sum()

    return practice(
        root,
        model,
        objective,
        served(rows[:900], size=32, seed=1530),
        torch.optim.RAdam(model.parameters(), 3e-3, weight_decay=1e-4),
        steps=260,
        save_every=2,
        test=(rows[900:],),
    )


@healthy(
    "fields of faded flags, each update at the worst place nearby (SAM), momentum, rate in stairs"
)
def flags_at_the_worst_place(root: Path) -> int:
    torch.manual_seed(1532)
    model = channel_wise(3, 6, 12)
    x, _, field = flags(900, 1532, 2.5)
    test, _, colour = flags(60, 1533, 2.5)
    optimizer = torch.optim.SGD(model.parameters(), 0.025, momentum=0.9)
    batch: list[Any] = []

    def objective(served_batch: Any) -> Any:
        batch[:] = served_batch
        return functional.cross_entropy(model(batch[0]), batch[1], label_smoothing=0.1)

    def update() -> None:
        parameters = list(model.parameters())
        norm = torch.stack([each.grad.norm() for each in parameters]).norm() + 1e-12
        moves = [0.03 * each.grad / norm for each in parameters]
        with torch.no_grad():
            for parameter, move in zip(parameters, moves, strict=True):
                parameter.add_(move)
        there = functional.cross_entropy(model(batch[0]), batch[1], label_smoothing=0.1)
        gradients = torch.autograd.grad(there, parameters)
        with torch.no_grad():
            for parameter, move in zip(parameters, moves, strict=True):
                parameter.sub_(move)
        for parameter, gradient in zip(parameters, gradients, strict=True):
            parameter.grad = gradient
        optimizer.step()

    return practice(
        root,
        model,
        objective,
        served(x, field, size=20, seed=1532),
        optimizer,
        steps=180,
        save_every=2,
        schedule=lambda step: 1.0 if step < 100 else 0.3,
        update=update,
        test=(test, colour),
    )
