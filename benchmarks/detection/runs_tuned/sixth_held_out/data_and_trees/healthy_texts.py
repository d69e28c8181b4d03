"""Healthy trainings on texts: languages, tags of orders, opinions, logs."""

import functools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import nn
from training.learnt_data import Split
from training.torch_loop import adam, batches, fit, sgd
from training_runs import healthy

from runs_tuned.sixth_held_out.data_and_trees.shared.loops import study
from runs_tuned.sixth_held_out.data_and_trees.shared.networks import (
    Around,
    BagOfPairs,
    BothWays,
    Encoder,
    Spans,
)
from runs_tuned.sixth_held_out.data_and_trees.shared.texts import (
    EVENTS,
    IGNORED,
    LETTERS,
    WORDS,
    languages,
    logs,
    opinions,
    orders,
)


@healthy("letters of five languages, convolutions over two to four, a third dropped, AdamW")
def languages_by_spans(root: Path) -> int:
    return fit(
        root,
        lambda: Spans(LETTERS, 5, drop=0.3),
        languages(1800, 6201),
        optimizer=adam(4e-3, torch.optim.AdamW, weight_decay=0.02),
        steps=160,
        validate_every=16,
        seed=621,
    )


@healthy("letters of six languages, twice as many texts of two, the mean of pairs, Adagrad")
def languages_by_pairs(root: Path) -> int:
    return fit(
        root,
        lambda: BagOfPairs(LETTERS, 6),
        languages(2600, 6202, kinds=6, shares=(2.0, 2.0, 1.0, 1.0, 1.0, 1.0)),
        optimizer=functools.partial(torch.optim.Adagrad, lr=0.1),
        steps=170,
        batch=48,
        save_every=3,
        validate_every=17,
        seed=622,
    )


@healthy("words of orders with four tags, an LSTM in both directions, a rate that falls, Adam")
def orders_both_ways(root: Path) -> int:
    return fit(
        root,
        lambda: BothWays(WORDS, 4, each=True),
        orders(1500, 6203),
        loss=nn.CrossEntropyLoss(ignore_index=IGNORED),
        optimizer=adam(8e-3),
        schedule=lambda step: 0.985**step,
        steps=150,
        clip=1.0,
        validate_every=15,
        seed=623,
    )


def of_equal_length(data: Split, size: int, seed: int) -> Iterator[Any]:
    """Yield batches of texts sorted by length in pools of eight batches, cut to the longest."""
    for x, y in batches(data, 8 * size, seed):
        length = (x > 0).sum(1)
        groups = length.argsort().split(size)
        for at in torch.randperm(len(groups), generator=torch.Generator().manual_seed(seed)):
            rows = groups[at]
            most = int(length[rows].amax())
            yield x[rows, :most], y[rows, :most]


@healthy("words of orders with four tags, gated convolutions, batches of like length, warm-up")
def orders_of_like_length(root: Path) -> int:
    torch.manual_seed(624)
    model, data = Around(WORDS, 4), orders(1700, 6204)
    optimizer = torch.optim.AdamW(model.parameters(), 4e-3, weight_decay=0.01)
    warm = torch.optim.lr_scheduler.LinearLR(optimizer, 0.1, 1.0, 15)
    return study(
        root,
        model,
        of_equal_length(data, 32, 624),
        data,
        optimizer,
        loss=nn.CrossEntropyLoss(ignore_index=IGNORED),
        steps=150,
        clip=1.0,
        validated=15,
        after=lambda *_: warm.step(),
    )


@healthy("opinions: bad, even or good, which a not turns; self-attention, a falling rate, AdamW")
def opinions_by_attention(root: Path) -> int:
    return fit(
        root,
        lambda: Encoder(WORDS, 3, 32, drop=0.1),
        opinions(4500, 6205),
        loss=nn.CrossEntropyLoss(label_smoothing=0.05),
        optimizer=adam(3e-3, torch.optim.AdamW, weight_decay=0.02),
        schedule=lambda step: 1 - step / 220,
        steps=200,
        batch=40,
        clip=1.0,
        save_every=4,
        validate_every=20,
        seed=625,
    )


@healthy("opinions, convolutions over two to four words, momentum, validated with 120 rows")
def opinions_by_spans(root: Path) -> int:
    return fit(
        root,
        lambda: Spans(WORDS, 3, 32, drop=0.1, norm=True),
        opinions(4000, 6206, tested=120),
        optimizer=sgd(0.05, momentum=0.9, weight_decay=1e-4),
        schedule=lambda step: 0.988**step,
        steps=240,
        batch=48,
        clip=1.0,
        save_every=3,
        validate_every=20,
        seed=626,
    )


@healthy("events of servers before four failures, an LSTM in both directions, RMSprop, padded")
def failures_in_logs(root: Path) -> int:
    return fit(
        root,
        lambda: BothWays(EVENTS, 4, 20),
        logs(1900, 6207),
        optimizer=functools.partial(torch.optim.RMSprop, lr=4e-3),
        schedule=lambda step: 0.4 ** (step // 80),
        steps=130,
        clip=1.0,
        validate_every=13,
        seed=627,
    )
