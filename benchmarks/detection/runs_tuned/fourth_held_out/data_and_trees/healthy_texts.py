"""Healthy trainings of texts: kitchens of recipes and how hot they are."""

import functools
from pathlib import Path

import torch
from torch import nn
from training.learnt_data import Split
from training.torch_loop import adam, batches, fit, validate, watched
from training_runs import healthy

from runs_tuned.fourth_held_out.data_and_trees.shared.texts import (
    Bag,
    Cook,
    Phrases,
    recipes,
    spiced,
)


@healthy("recipes of five kitchens, convolutions over three words, words dropped, AdamW")
def recipes_with_words_dropped(root: Path) -> None:
    torch.manual_seed(91)
    data, model, loss = recipes(1700, 491), Phrases(5, drop=0.4), nn.CrossEntropyLoss()
    optimizer = torch.optim.AdamW(model.parameters(), 3e-3, weight_decay=0.05)
    generator = torch.Generator().manual_seed(91)
    with watched(root, model, losses=[loss], save_every=3) as watching:
        for step, (x, y) in zip(range(200), batches(data, 32, 91), strict=False):
            dropped = torch.rand(x.shape, generator=generator) < 0.1
            optimizer.zero_grad()
            loss(model(torch.where(dropped, 0, x)), y).backward()
            optimizer.step()
            if (step + 1) % 25 == 0:
                validate(watching, model, loss, data)


@healthy("how hot a recipe is, a recurrent layer with attention, clipped, a warm-up, 40 to test")
def heat_of_recipes(root: Path) -> int:
    whole = spiced(1900, 492)
    data = Split(whole.x, whole.y, whole.test_x[:40], whole.test_y[:40])
    return fit(
        root,
        lambda: Cook(1),
        data,
        loss=nn.MSELoss(),
        optimizer=adam(5e-3, torch.optim.AdamW),
        steps=200,
        clip=1.0,
        save_every=4,
        validate_every=20,
        schedule=lambda step: min(1.0, (step + 1) / 20) * 0.5 ** (step / 100),
        seed=92,
    )


@healthy("recipes of six kitchens, two in three of the first three, the mean word, Adagrad")
def kitchens_unequal(root: Path) -> int:
    whole = recipes(2400, 493, kitchens=6, told=0.35)
    kept = (whole.y < 3) | (torch.arange(len(whole.y)) % 2 == 0)
    data = Split(whole.x[kept], whole.y[kept], whole.test_x, whole.test_y)
    optimizer = functools.partial(torch.optim.Adagrad, lr=0.08)
    return fit(
        root,
        lambda: Bag(6),
        data,
        optimizer=optimizer,
        steps=220,
        accumulate=2,
        batch=24,
        save_every=4,
        validate_every=22,
        seed=93,
    )


@healthy("recipes of four kitchens, 300 of them, dropout of half, ended while validation falls")
def few_recipes(root: Path) -> int:
    data = recipes(500, 494, kitchens=4, told=0.4, tested=200)
    return fit(
        root,
        lambda: Phrases(4, 32, drop=0.5),
        data,
        optimizer=adam(2e-3),
        steps=120,
        batch=20,
        save_every=2,
        validate_every=15,
        seed=94,
    )
