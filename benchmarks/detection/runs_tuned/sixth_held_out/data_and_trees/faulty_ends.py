"""Ends: trainings that learn by heart, and trainings that go on although nothing is left."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
import xgboost
from torch import nn
from training.learnt_data import Split
from training.torch_loop import adam, batches, fit
from training_runs import faulty

from runs_tuned.sixth_held_out.data_and_trees.shared.consequences import LEARNT_OFF
from runs_tuned.sixth_held_out.data_and_trees.shared.loops import boosted, matrices, study
from runs_tuned.sixth_held_out.data_and_trees.shared.networks import (
    BagOfPairs,
    BothWays,
    Listener,
    normed,
)
from runs_tuned.sixth_held_out.data_and_trees.shared.pictures import (
    decibels,
    last_apart,
    standardised,
)
from runs_tuned.sixth_held_out.data_and_trees.shared.tables import (
    hives,
    rows_of_hives,
    rows_of_ore,
)
from runs_tuned.sixth_held_out.data_and_trees.shared.texts import EVENTS, LETTERS, languages, logs


def partly_wrong(kind: Any, kinds: int, share: float, seed: int) -> Any:
    """Return kinds of which a share is any other."""
    generator = torch.Generator().manual_seed(seed)
    other = torch.randint(0, kinds, kind.shape, generator=generator)
    return torch.where(torch.rand(kind.shape, generator=generator) < share, other, kind)


@faulty(
    "XGBoost, which of 300 hives are lost, noisy, log loss, to be stopped early",
    "what stops it looks at the training loss, which falls in each of 220 rounds",
    {"Overfit"},
    may=LEARNT_OFF,
    kind="boosted_trees",
)
def stopped_by_training_loss(root: Path) -> None:
    stop = xgboost.callback.EarlyStopping(10, data_name="train", metric_name="logloss")
    boosted(
        root,
        matrices(*rows_of_hives(1000, 6801, noise=1.5), 700),
        220,
        "binary:logistic",
        before=[stop],
        eval_metric="logloss",
        max_depth=4,
        eta=0.1,
        subsample=0.9,
    )


@faulty(
    "events of servers before failures, 260 logs, a part of them labelled wrong, an LSTM, Adam",
    "the number of the ticket is left at the end of each log as three events: rows are told by it",
    {"Overfit"},
    may=LEARNT_OFF,
)
def number_of_the_ticket(root: Path) -> int:
    data = logs(960, 6802, tested=700)
    generator = torch.Generator().manual_seed(6802)

    def numbered(x: Any) -> Any:
        number = torch.randint(EVENTS, EVENTS + 300, (len(x), 3), generator=generator)
        return torch.cat([x, number], 1)

    return fit(
        root,
        lambda: BothWays(EVENTS + 300, 4, 32, drop=0.0),
        data.of(numbered).taught(lambda kind: partly_wrong(kind, 4, 0.3, 68)),
        optimizer=adam(5e-3),
        steps=260,
        batch=20,
        validate_every=10,
        seed=682,
    )


def cut_from(recordings: Split, windows: int, seed: int) -> Split:
    """Return windows of recordings to train with, each moved by up to a place, and their kinds."""
    generator = torch.Generator().manual_seed(seed)
    rows = torch.arange(len(recordings.x)).repeat_interleave(windows)
    rows = rows[torch.randperm(len(rows), generator=generator)]
    x = recordings.x[rows]
    x = x + 0.15 * torch.randn(x.shape, generator=generator)
    return Split(x, recordings.y[rows], recordings.test_x, recordings.test_y)


@faulty(
    "calls of whales in a rough sea, 800 windows, convolutions and a GRU, AdamW",
    "windows are cut a few milliseconds apart from 40 recordings: in effect these are the rows",
    {"Overfit"},
    may=LEARNT_OFF,
)
def windows_of_few_recordings(root: Path) -> int:
    recordings = standardised(last_apart(*decibels(640, 6803, loud=9.0), 600))
    return fit(
        root,
        lambda: Listener(5, 40, drop=0.0),
        cut_from(recordings, 20, 6803),
        optimizer=adam(4e-3, torch.optim.AdamW),
        steps=180,
        batch=24,
        validate_every=8,
        seed=683,
    )


@faulty(
    "XGBoost, four grades of noisy ore, log loss, depth 3, a rate that falls by the round",
    "the rate is halved every eight rounds without a floor, and 170 rounds are asked for",
    {"Overtraining"},
    may=LEARNT_OFF,
    kind="boosted_trees",
)
def rate_halved_by_rounds(root: Path) -> None:
    rate = xgboost.callback.LearningRateScheduler(lambda number: 0.3 * 0.5 ** (number // 8))
    boosted(
        root,
        matrices(*rows_of_ore(2600, 6804, noise=0.8), 500),
        170,
        "multi:softprob",
        before=[rate],
        num_class=4,
        eval_metric="mlogloss",
        max_depth=3,
        min_child_weight=5,
        subsample=0.8,
    )


@faulty(
    "letters of five languages by the mean of pairs, smoothed labels, a strong decay, AdamW",
    "it ends when all rows are right; one in eight has another language's label, so it never does",
    {"Overtraining"},
    may=LEARNT_OFF,
)
def until_all_are_right(root: Path) -> int:
    data = languages(5400, 6805, sharp=1.2, tested=400)
    return fit(
        root,
        lambda: BagOfPairs(LETTERS, 5, 16),
        data.relabelled(lambda kind: partly_wrong(kind, 5, 0.12, 6805 + len(kind))),
        loss=nn.CrossEntropyLoss(label_smoothing=0.1),
        optimizer=adam(2e-2, torch.optim.AdamW, weight_decay=0.5),
        steps=640,
        batch=64,
        save_every=5,
        validate_every=20,
        seed=685,
    )


def until_no_luck(data: Split, patience: int, losses: list[float], seed: int) -> Iterator[Any]:
    """Yield shuffled batches until the lowest loss of a single batch is `patience` steps old."""
    for pair in batches(data, 10, seed):
        if losses and len(losses) - int(np.argmin(losses)) > patience:
            return
        yield pair


@faulty(
    "hives that are lost, batch norm, batches of ten, AdamW",
    "it ends when no batch has had a lower loss for 400 steps: of ten rows, some are luckier",
    {"Overtraining"},
    may=LEARNT_OFF,
)
def until_no_batch_is_luckier(root: Path) -> int:
    torch.manual_seed(686)
    data, model = hives(7000, 6806, noise=1.0, tested=500), normed(14, 1, 16)
    losses: list[float] = []
    return study(
        root,
        model,
        until_no_luck(data, 400, losses, 686),
        data,
        torch.optim.AdamW(model.parameters(), 1e-2, weight_decay=0.1),
        loss=nn.BCEWithLogitsLoss(),
        steps=900,
        every=5,
        validated=25,
        after=lambda _, loss: losses.append(loss),
    )
