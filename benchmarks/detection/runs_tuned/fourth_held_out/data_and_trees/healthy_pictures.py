"""Healthy trainings of pictures: dials and tiles, turned, mixed, tagged, frozen or few."""

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import nn
from training.learnt_data import Split
from training.torch_loop import adam, batches, fit, sgd, validate, watched
from training_runs import healthy

from runs_tuned.fourth_held_out.data_and_trees.shared.pictures import (
    Pocket,
    Sight,
    Viewer,
    dials,
    directions,
    tiles,
)


def warm_then_cosine(steps: int, warm: int = 12, later: int = 0) -> Callable[[int], float]:
    """Return a warm-up, and a half cosine to a hundredth."""

    def factor(step: int) -> float:
        if step < warm + later:
            return max(1, step + 1 - later) / warm
        progress = (step - warm - later) / (steps - warm)
        return 0.01 + 0.99 * (1 + math.cos(math.pi * min(1, progress))) / 2

    return factor


def sight_of_dials(root: Path, later: int = 0) -> int:
    """Learn the direction of hands, always by one seed."""
    return fit(
        root,
        lambda: Sight(1, 2),
        dials(1300, 471, directions),
        loss=nn.SmoothL1Loss(),
        optimizer=adam(3e-3, torch.optim.AdamW),
        steps=150,
        save_every=3,
        validate_every=25,
        schedule=warm_then_cosine(150, later=later),
        seed=71,
    )


@healthy("directions of the hands of dials, ELU, smooth absolute errors, a warm-up and a cosine")
def hands_of_dials(root: Path) -> int:
    return sight_of_dials(root)


def telephone(root: Path, change: Callable[[Any], Any] = lambda x: x) -> int:
    """Learn tiles by a network for telephones, always by one seed."""
    return fit(
        root,
        lambda: Pocket(3, 6),
        tiles(1300, 472).of(change),
        loss=nn.CrossEntropyLoss(label_smoothing=0.1),
        optimizer=sgd(0.08, momentum=0.9, nesterov=True, weight_decay=5e-4),
        steps=150,
        save_every=3,
        validate_every=30,
        schedule=lambda step: min(1.0, (step + 1) / 40) if step < 60 else 1 - (step - 60) / 95,
        seed=72,
    )


@healthy("tiles of six kinds on a telephone, batch norm, labels smoothed, one cycle of the rate")
def tiles_on_a_telephone(root: Path) -> int:
    return telephone(root)


def mixed(data: Split, batch: int, seed: int) -> Iterator[Any]:
    """Yield batches whose pictures and labels are mixed with those of other rows."""
    generator = torch.Generator().manual_seed(seed)
    for x, y in batches(data, batch, seed):
        share = 0.5 + 0.5 * torch.rand(len(x), generator=generator)
        other = torch.randperm(len(x), generator=generator)
        one_hot = nn.functional.one_hot(y, 6).float()
        parts = share[:, None, None, None], share[:, None]
        yield (
            parts[0] * x + (1 - parts[0]) * x[other],
            parts[1] * one_hot + (1 - parts[1]) * one_hot[other],
        )


@healthy("tiles of six kinds, pictures and labels mixed in pairs, group norm, RAdam")
def tiles_mixed(root: Path) -> None:
    torch.manual_seed(73)
    data, model, loss = tiles(1300, 473), Viewer(3, 6), nn.CrossEntropyLoss()
    optimizer = torch.optim.RAdam(model.parameters(), 8e-3)
    with watched(root, model, losses=[loss], save_every=3) as watching:
        for step, (x, y) in zip(range(240), mixed(data, 32, 73), strict=False):
            optimizer.zero_grad()
            loss(model(x), y).backward()
            optimizer.step()
            if (step + 1) % 30 == 0:
                validate(watching, model, loss, data)


@healthy("three tags of tiles by binary cross entropy, turned and mirrored, 16 tiles to validate")
def tags_of_tiles(root: Path) -> None:
    torch.manual_seed(74)
    tags = torch.tensor([[1.0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 0, 1], [0, 1, 1], [1, 0, 1]])
    data = tiles(900, 474, tested=16).relabelled(lambda kind: tags[kind])
    model, loss = Viewer(3, 3, drop=0.2), nn.BCEWithLogitsLoss()
    optimizer = torch.optim.AdamW(model.parameters(), 4e-3)
    generator = torch.Generator().manual_seed(74)
    with watched(root, model, losses=[loss], save_every=3) as watching:
        for step, (x, y) in zip(range(180), batches(data, 32, 74), strict=False):
            mirrored = torch.rand(len(x), 1, 1, 1, generator=generator) < 0.5
            optimizer.zero_grad()
            loss(model(torch.where(mirrored, x.flip(3), x.transpose(2, 3))), y).backward()
            optimizer.step()
            if (step + 1) % 15 == 0:
                validate(watching, model, loss, data)


def frozen_viewer() -> Any:
    """Return a network that has learned four kinds, with a new head; the rest is frozen."""
    torch.manual_seed(475)
    model, data = Viewer(3, 4, 16), tiles(1200, 475, kinds=4)
    optimizer = torch.optim.Adam(model.parameters(), 4e-3)
    for number in range(70):
        rows = torch.arange(number * 32, number * 32 + 32) % len(data.x)
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(data.x[rows]), data.y[rows]).backward()
        optimizer.step()
    model.requires_grad_(requires_grad=False)
    model.head = nn.Linear(32, 6)
    return model


@healthy("six kinds of tiles by a network that knows four: only the new head learns, AdamW")
def tiles_by_a_new_head(root: Path) -> int:
    return fit(
        root,
        frozen_viewer,
        tiles(900, 476),
        optimizer=adam(0.02, torch.optim.AdamW),
        steps=150,
        save_every=3,
        validate_every=25,
        seed=75,
    )


@healthy("tiles in bfloat16 by autocast, rare checks (one in 14), weights averaged, momentum")
def tiles_in_bfloat16(root: Path) -> None:
    torch.manual_seed(76)
    whole = tiles(1900, 477, tested=300)
    kept = (whole.y != 2) | (torch.arange(len(whole.y)) % 5 < 2)
    data = Split(whole.x[kept], whole.y[kept], whole.test_x, whole.test_y)
    model, loss = Pocket(3, 6, drop=0.1), nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9, weight_decay=1e-4)
    average = {name: value.clone() for name, value in model.state_dict().items()}
    with watched(root, model, losses=[loss], save_every=3) as watching:
        for step, (x, y) in zip(range(160), batches(data, 32, 76), strict=False):
            optimizer.zero_grad()
            with torch.autocast("cpu", dtype=torch.bfloat16):
                value = loss(model(x), y)
            value.backward()
            optimizer.step()
            for name, value in model.state_dict().items():
                if value.is_floating_point():
                    average[name].lerp_(value, 0.1)
            if (step + 1) % 32 == 0:
                own = {name: value.clone() for name, value in model.state_dict().items()}
                model.load_state_dict(average)
                validate(watching, model, loss, data)
                model.load_state_dict(own)
