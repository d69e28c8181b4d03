"""Healthy trainings of tables: minerals, kilns, recipes and villages."""

import math
from pathlib import Path
from typing import Any

import torch
from torch import nn
from training.torch_loop import adam, batches, fit, sgd, validate, watched
from training_runs import healthy

from runs_tuned.fourth_held_out.units.shared.tables import (
    Bag,
    Regions,
    kilns,
    minerals,
    plain,
    recipes,
    villages,
)


@healthy("minerals and their kinds, batch norm, SGD with momentum, the rate falls in two steps")
def minerals_by_stairs(root: Path) -> int:
    make = lambda: plain(12, 48, 32, 5, norm=nn.BatchNorm1d)
    stairs = lambda step: 0.2 ** (step // 80)
    optimizer = sgd(0.05, momentum=0.9, weight_decay=1e-4)
    return fit(root, make, minerals(), optimizer=optimizer, steps=220, schedule=stairs)


@healthy("minerals and their kinds, scaled exponential units with their own dropout, NAdam")
def minerals_by_selu(root: Path) -> int:
    def make() -> Any:
        model = plain(
            12, 40, 40, 40, 5, between=lambda: nn.Sequential(nn.SELU(), nn.AlphaDropout(0.05))
        )
        for layer in model:
            if isinstance(layer, nn.Linear):
                nn.init.normal_(layer.weight, 0, layer.in_features**-0.5)
        return model

    optimizer = adam(2e-3, torch.optim.NAdam)
    return fit(root, make, minerals(1400, 921), optimizer=optimizer, steps=200, seed=1)


@healthy("minerals, one kind three times rarer than the others and weighed up, AdamW, clipped")
def minerals_one_kind_rare(root: Path) -> int:
    make = lambda: plain(12, 48, 48, 5, between=nn.GELU, drop=0.1)
    loss = nn.CrossEntropyLoss(torch.tensor([1.0, 1.0, 1.0, 1.0, 2.0]))
    optimizer = adam(3e-3, torch.optim.AdamW, weight_decay=0.02)
    data = minerals(1600, 922, 0.33)
    return fit(root, make, data, loss=loss, optimizer=optimizer, steps=220, clip=1.0, seed=2)


@healthy("a network of minerals learns other ones of the same kinds further, at a lower rate")
def minerals_gone_on(root: Path) -> int:
    def make() -> Any:
        model = plain(12, 48, 32, 5, norm=nn.LayerNorm)
        optimizer = torch.optim.Adam(model.parameters(), 3e-3)
        for _, (x, y) in zip(range(120), batches(before, 32, 3), strict=False):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
        return model

    before, data = minerals(1600, 923), minerals(1600, 923).of(lambda x: 0.8 * x + 0.3)
    return fit(root, make, data, optimizer=adam(8e-4), steps=180, validate_every=30, seed=3)


@healthy("hardness of pots, GELU, AdamW, cosine with a warm restart at step 80")
def kilns_restarted_warm(root: Path) -> int:
    def rate(step: int) -> float:
        done = step / 80 if step < 80 else (step - 80) / 160
        return 0.05 + 0.475 * (1 + math.cos(math.pi * min(done, 1)))

    make = lambda: plain(10, 48, 48, 1, between=nn.GELU)
    optimizer = adam(5e-3, torch.optim.AdamW, weight_decay=0.01)
    return fit(
        root,
        make,
        kilns(),
        loss=nn.MSELoss(),
        optimizer=optimizer,
        steps=240,
        schedule=rate,
        save_every=3,
        seed=4,
    )


@healthy("hardness of pots, robust loss, Adam, evaluated by a moving average of the weights")
def kilns_by_their_average(root: Path) -> int:
    torch.manual_seed(5)
    data, loss = kilns(1500, 0.4, 924), nn.HuberLoss()
    model = plain(10, 40, 40, 1)
    average = torch.optim.swa_utils.AveragedModel(
        model, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.97)
    )
    optimizer = torch.optim.Adam(model.parameters(), 4e-3)
    with watched(root, model, losses=[loss]) as watching:
        for number, (x, y) in zip(range(200), batches(data, 40, 5), strict=False):
            optimizer.zero_grad()
            loss(model(x), y).backward()
            optimizer.step()
            average.update_parameters(model)
            if number % 25 == 24:
                validate(watching, average, loss, data)
    return 0


@healthy("hardness of pots, two layers of sigmoids, Adam, large batches, no validation")
def kilns_by_sigmoids(root: Path) -> int:
    make = lambda: plain(10, 32, 32, 1, between=nn.Sigmoid)
    return fit(
        root,
        make,
        kilns(1600, 0.25, 925),
        loss=nn.MSELoss(),
        optimizer=adam(0.02),
        steps=260,
        batch=200,
        validate_every=0,
        seed=6,
    )


@healthy("hardness of pots, weight norm, Adadelta, batches of 24, evaluated on 20 rows")
def kilns_by_weight_norm(root: Path) -> int:
    def make() -> Any:
        model = plain(10, 40, 40, 1, between=nn.Softplus)
        for at in (0, 2):
            nn.utils.parametrizations.weight_norm(model[at])
        return model

    data = kilns(1500, 0.3, 926)
    few = type(data)(data.x, data.y, data.test_x[:20], data.test_y[:20])
    optimizer = adam(0.5, torch.optim.Adadelta)
    return fit(root, make, few, loss=nn.MSELoss(), optimizer=optimizer, steps=280, batch=24, seed=7)


@healthy("recipes by the mean of their ingredients, most of which are rare, Adagrad")
def recipes_by_adagrad(root: Path) -> int:
    optimizer = adam(0.06, torch.optim.Adagrad)
    return fit(root, Bag, recipes(), optimizer=optimizer, steps=240, batch=48, seed=8)


@healthy("recipes, labels smoothed, dropout, layer norm, AdamW with a linear warm-up and fall")
def recipes_smoothed(root: Path) -> int:
    rate = lambda step: min((step + 1) / 25, (241 - step) / 216)
    return fit(
        root,
        lambda: Bag(norm=True, drop=0.2),
        recipes(1600, 12, 927),
        loss=nn.CrossEntropyLoss(label_smoothing=0.1),
        optimizer=adam(4e-3, torch.optim.AdamW, weight_decay=0.05),
        steps=240,
        schedule=rate,
        save_every=4,
        seed=9,
    )


@healthy("regions of villages by those that are linked with them, dropout, Adam, weights decay")
def villages_by_neighbours(root: Path) -> int:
    make = lambda: Regions(own=False, drop=0.3)
    optimizer = adam(0.01, weight_decay=5e-4)
    return fit(root, make, villages()[2], optimizer=optimizer, steps=120, batch=240, seed=10)


@healthy("regions of villages by themselves and their neighbours, small batches, norm, RMSprop")
def villages_in_batches(root: Path) -> int:
    make = lambda: Regions(norm=True)
    optimizer = adam(1e-3, torch.optim.RMSprop, momentum=0.5)
    return fit(root, make, villages()[2], optimizer=optimizer, steps=150, batch=24, seed=11)
