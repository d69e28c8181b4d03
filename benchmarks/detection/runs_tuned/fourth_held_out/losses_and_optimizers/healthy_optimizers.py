"""Healthy trainings with schedules, frozen parts, adapters, and optimizers around optimizers."""

import copy
import functools
from pathlib import Path
from typing import Any

import torch
import training_runs
from torch import nn
from torch.nn import functional

from runs_tuned.fourth_held_out.losses_and_optimizers.shared.lessons import (
    CARDS,
    LETTERS,
    addresses,
    decks,
    dice,
    plaids,
)
from runs_tuned.fourth_held_out.losses_and_optimizers.shared.loops import cosine, dealt, learn, of
from runs_tuned.fourth_held_out.losses_and_optimizers.shared.networks import Mixer, Weaver, Writer
from runs_tuned.fourth_held_out.losses_and_optimizers.shared.restarts import Adapted

healthy = training_runs.healthy
of_language = functools.partial(healthy, kind="language_model")


@healthy("woven patterns by convolutions with batch norm, SGD in one cycle, momentum against it")
def plaids_in_one_cycle(root: Path) -> int:
    torch.manual_seed(770)
    model = nn.Sequential(Weaver(over_batch=True, outs=24), nn.Dropout(0.2), nn.Linear(24, 5))
    optimizer = torch.optim.SGD(model.parameters(), 0.06, momentum=0.95, weight_decay=1e-3)

    def before(step: int) -> None:
        optimizer.param_groups[0]["momentum"] = 0.95 - 0.1 * min(step / 50, (180 - step) / 130)

    return learn(
        root,
        model,
        of(model, nn.CrossEntropyLoss()),
        dealt(*plaids(900, 770), size=32, seed=770),
        optimizer,
        steps=170,
        save_every=2,
        schedule=lambda step: 0.04 + 0.96 * min(step / 50, (180 - step) / 130),
        before=before,
        held_out=plaids(120, 771),
    )


@healthy(
    "a mixer of woven patterns learns noisier ones of few pictures; its trunk thaws at step 40"
)
def trunk_thaws_for_noisy_plaids(root: Path) -> int:
    torch.manual_seed(771)
    model = Mixer()
    taught = torch.optim.Adam(model.parameters(), 4e-3)
    for _, (x, y) in zip(range(150), dealt(*plaids(600, 771, 0.3), size=24), strict=False):
        taught.zero_grad()
        functional.cross_entropy(model(x), y).backward()
        taught.step()
    taught.zero_grad()
    model.head = nn.Linear(24, 5)
    nn.init.normal_(model.head.weight, std=0.01)
    trunk = [one for name, one in model.named_parameters() if not name.startswith("head")]
    for parameter in trunk:
        parameter.requires_grad_(requires_grad=False)

    def before(step: int) -> None:
        if step == 40:
            for parameter in trunk:
                parameter.requires_grad_(requires_grad=True)

    return learn(
        root,
        model,
        of(model, nn.CrossEntropyLoss()),
        dealt(*plaids(400, 772, 0.6), size=20, seed=772),
        torch.optim.AdamW(
            [
                {"params": trunk, "lr": 3e-4},
                {"params": model.head.parameters(), "lr": 5e-3},
            ]
        ),
        steps=150,
        save_every=2,
        before=before,
        held_out=plaids(50, 773, 0.6),
    )


@of_language("a trained decoder learns other addresses by low-rank adapters (LoRA), Adam, clipped")
def adapters_for_addresses(root: Path) -> int:
    torch.manual_seed(773)
    model = Adapted(Writer(len(LETTERS)), rank=4)
    x, y = addresses(900, 773)
    table = torch.arange(len(LETTERS))
    table[:6] = table[:6][torch.randperm(6, generator=dice(773))]
    model.teach(dealt(x[:400], y[:400], size=24, seed=773), 140)
    return learn(
        root,
        model,
        lambda batch: functional.cross_entropy(model(table[batch[0]]), table[batch[1]]),
        dealt(x[400:], y[400:], size=20, seed=774),
        torch.optim.Adam([one for one in model.parameters() if one.requires_grad], 4e-3),
        steps=150,
        save_every=2,
        schedule=cosine(10, 160, 0.1),
        clip=1.0,
    )


@of_language("a decoder of addresses, four batches to an update, AdamW, clipped at 1, dropout")
def addresses_accumulated(root: Path) -> int:
    torch.manual_seed(774)
    model = Writer(len(LETTERS), depth=1, drop=0.05)
    return learn(
        root,
        model,
        of(model, nn.CrossEntropyLoss()),
        dealt(*addresses(1000, 774), size=8, seed=774),
        torch.optim.AdamW(model.parameters(), 8e-3),
        steps=400,
        save_every=4,
        accumulate=4,
        schedule=cosine(10, 110),
        clip=1.0,
        held_out=addresses(32, 775),
        validate_every=100,
    )


@healthy(
    "hands of cards are put in order by an encoder, Adam with lookahead each five steps, a rate "
    "that falls with the root of the step after its warm-up"
)
def cards_with_lookahead(root: Path) -> int:
    torch.manual_seed(775)
    model = Writer(CARDS, 24, ahead=True, length=8)
    slow = copy.deepcopy(model)

    def after(step: int) -> None:
        if (step + 1) % 5 == 0:
            with torch.no_grad():
                for kept, fast in zip(slow.parameters(), model.parameters(), strict=True):
                    fast.copy_(kept.lerp_(fast, 0.5))

    def rate(step: int) -> Any:
        return min((step + 1) / 20, (20 / (step + 1)) ** 0.5)

    return learn(
        root,
        model,
        of(model, nn.CrossEntropyLoss()),
        dealt(*decks(900, 775), size=32, seed=775),
        torch.optim.Adam(model.parameters(), 0.012),
        steps=240,
        save_every=2,
        schedule=rate,
        after=after,
        clip=1.0,
    )
