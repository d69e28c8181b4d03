"""Healthy trainings on pictures: boards, blooms, whales, digits."""

import copy
import functools
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import nn
from training.learnt_data import Split
from training.torch_loop import adam, batches, fit, sgd, validate
from training_runs import healthy

from runs_tuned.sixth_held_out.data_and_trees.shared.loops import study
from runs_tuned.sixth_held_out.data_and_trees.shared.networks import Listener, Stacked, mobile
from runs_tuned.sixth_held_out.data_and_trees.shared.pictures import (
    blooms,
    boards,
    pairs_of_digits,
    whales,
)


@healthy("boards of four kinds, convolutions that see all before them, Nesterov, a cosine")
def boards_by_stacked_layers(root: Path) -> int:
    return fit(
        root,
        lambda: Stacked(1, 4, drop=0.1),
        boards(1800, 6101),
        optimizer=sgd(0.03, momentum=0.9, nesterov=True, weight_decay=5e-4),
        schedule=lambda step: 0.05 + 0.95 * (0.5 + 0.5 * math.cos(math.pi * step / 170)),
        steps=170,
        clip=2.0,
        validate_every=17,
        seed=611,
    )


def turned(data: Split, size: int, seed: int) -> Iterator[Any]:
    """Yield shuffled batches of square pictures, each batch turned by some quarters."""
    generator = torch.Generator().manual_seed(seed)
    for x, y in batches(data, size, seed):
        yield x.rot90(int(torch.randint(0, 4, (1,), generator=generator)), (2, 3)), y


@healthy("boards, straight ones thrice as many as split ones, turned, inverted steps, bfloat16")
def boards_turned(root: Path) -> int:
    torch.manual_seed(612)
    model = mobile(1, 4)
    data = boards(1900, 6102, shares=(3.0, 2.0, 1.5, 1.0))
    return study(
        root,
        model,
        turned(data, 36, 612),
        data,
        torch.optim.AdamW(model.parameters(), 4e-3, weight_decay=0.02),
        steps=160,
        precise=torch.bfloat16,
        validated=16,
    )


def cropped(data: Split, size: int, seed: int) -> Iterator[Any]:
    """Yield shuffled batches of pictures, of which a square of chance is filled with the mean."""
    generator = torch.Generator().manual_seed(seed)
    for x, y in batches(data, size, seed):
        down, right = torch.randint(0, 15, (2,), generator=generator).tolist()
        hidden = x.clone()
        hidden[:, :, down : down + 5, right : right + 5] = 0
        yield hidden, y


@healthy("blooms of six kinds, squares of them hidden, inverted steps, smoothed labels, one cycle")
def blooms_partly_hidden(root: Path) -> int:
    torch.manual_seed(613)
    model, data = mobile(3, 6, 16), blooms(1700, 6103)
    optimizer = torch.optim.AdamW(model.parameters(), 5e-3)
    cycle = torch.optim.lr_scheduler.OneCycleLR(optimizer, 8e-3, total_steps=170)
    return study(
        root,
        model,
        cropped(data, 32, 613),
        data,
        optimizer,
        loss=nn.CrossEntropyLoss(label_smoothing=0.05),
        steps=168,
        after=lambda *_: cycle.step(),
    )


@healthy("blooms, convolutions that see all before them, a moving average is validated, Adam")
def blooms_by_an_average(root: Path) -> int:
    torch.manual_seed(614)
    model, data = Stacked(3, 6, 12), blooms(1600, 6104, tested=300, noise=0.4)
    average = torch.optim.swa_utils.AveragedModel(
        model, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.9)
    )

    def by_average(watching: Any, _: Any, loss: Any, rows: Split) -> None:
        own = copy.deepcopy(model.state_dict())
        model.load_state_dict(average.module.state_dict())
        validate(watching, model, loss, rows)
        model.load_state_dict(own)

    return study(
        root,
        model,
        batches(data, 32, 614),
        data,
        torch.optim.Adam(model.parameters(), 1.5e-3),
        steps=160,
        clip=1.0,
        validated=16,
        examine=by_average,
        after=lambda *_: average.update_parameters(model),
    )


@healthy("calls of whales of five kinds, convolutions and a GRU, every third step saved, NAdam")
def whales_by_a_listener(root: Path) -> int:
    return fit(
        root,
        lambda: Listener(5),
        whales(1600, 6105),
        optimizer=adam(4e-3, torch.optim.NAdam),
        steps=165,
        clip=2.0,
        save_every=3,
        validate_every=15,
        seed=615,
    )


@healthy("calls of whales, four rises to a click, weights of classes, inverted steps, RMSprop")
def whales_of_unequal_kinds(root: Path) -> int:
    shares = (4.0, 3.0, 2.0, 2.0, 1.0)
    return fit(
        root,
        lambda: mobile(1, 5, 14),
        whales(2000, 6106, shares=shares, tested=400),
        loss=nn.CrossEntropyLoss(torch.tensor([0.6, 0.7, 1.0, 1.0, 1.5])),
        optimizer=functools.partial(torch.optim.RMSprop, lr=1.5e-3),
        schedule=lambda step: 0.3 ** (step // 70),
        steps=180,
        validate_every=18,
        validate_batch=80,
        seed=616,
    )


@healthy("two digits side by side: the left one larger, the right one, or equal; AdamW, warm-up")
def larger_of_two_digits(root: Path) -> int:
    return fit(
        root,
        lambda: Stacked(1, 3, 14, drop=0.1),
        pairs_of_digits(4500, 6107),
        optimizer=adam(3e-3, torch.optim.AdamW, weight_decay=0.02),
        schedule=lambda step: min(1.0, (step + 1) / 15) * 0.5 ** (step // 90),
        steps=260,
        batch=48,
        save_every=4,
        validate_every=20,
        seed=617,
    )
