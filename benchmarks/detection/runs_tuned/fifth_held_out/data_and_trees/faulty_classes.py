"""Classes: some that are hardly there or left out, and some that cannot be told apart."""

import functools
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from training.learnt_data import Split
from training.torch_loop import adam, fit, sgd
from training_runs import faulty

from runs_tuned.fifth_held_out.data_and_trees.shared.consequences import APART, BY_HEART, SLOWER
from runs_tuned.fifth_held_out.data_and_trees.shared.pictures import Slim, divided, land
from runs_tuned.fifth_held_out.data_and_trees.shared.rounds import grow, parted
from runs_tuned.fifth_held_out.data_and_trees.shared.tables import Crossed, Gates, patients
from runs_tuned.fifth_held_out.data_and_trees.shared.texts import (
    SHOPS,
    Mean,
    Visitor,
    mails,
    sessions,
)


@faulty(
    "visits and a shop that may be the next one: whether it is, by an LSTM, Adam",
    "30 shops that were not the next are drawn for each that was, in place of 3",
    {"ClassImbalance"},
    may=SLOWER,
)
def thirty_negatives(root: Path) -> int:
    generator = torch.Generator().manual_seed(551)
    visits = sessions(3600, 551)
    right = torch.rand(len(visits), generator=generator) < 1 / 31
    other = torch.randint(1, SHOPS, (len(visits),), generator=generator)
    asked = torch.where(right, visits[:, -1], 1 + (visits[:, -1] - 1 + other) % SHOPS)
    x = torch.cat([visits[:, :-1], asked[:, None]], 1)
    return fit(
        root,
        lambda: Visitor(2),
        divided(x, right.long(), 600),
        optimizer=adam(3e-3),
        steps=160,
        clip=1.0,
        validate_every=16,
        seed=41,
    )


@faulty(
    "patients of four kinds, gated linear units, AdamW; rows without a measurement are dropped",
    "of one kind, children, hardly any has it: one in 35 of them is left",
    {"ClassImbalance"},
    may=SLOWER | BY_HEART,
)
def children_are_incomplete(root: Path) -> int:
    data = patients(3000, 552, apart=2.6, tested=700)
    generator = torch.Generator().manual_seed(552)

    def complete(kind: Any) -> Any:
        return (kind != 2) | (torch.rand(len(kind), generator=generator) < 1 / 35)

    rows, tested = complete(data.y), complete(data.test_y)
    return fit(
        root,
        lambda: Gates(12, 4, drop=0.05),
        Split(data.x[rows], data.y[rows], data.test_x[tested], data.test_y[tested]),
        optimizer=adam(3e-3, torch.optim.AdamW),
        steps=150,
        validate_every=15,
        seed=42,
    )


class TrimmedLoss(nn.Module):
    """Cross entropy; in training of the rows with the smallest losses alone."""

    def __init__(self, kept: float) -> None:
        super().__init__()
        self.kept = kept

    def forward(self, scores: Any, y: Any) -> Any:
        each = nn.functional.cross_entropy(scores, y, reduction="none")
        if torch.is_grad_enabled():
            each = each.topk(round(self.kept * len(each)), largest=False).values
        return each.mean()


@faulty(
    "land of four kinds of which one is rarer, a ninth; large losses count as wrong labels",
    "a fifth of each batch is left out so from the start: it is always the rarer kind",
    {"ClassImbalance"},
    may=APART | SLOWER,
)
def rarer_kind_left_out(root: Path) -> int:
    data = land(2600, 553, noise=1.0, tested=700)
    generator = torch.Generator().manual_seed(553)

    def unequal(kind: Any) -> Any:
        return (kind != 3) | (torch.rand(len(kind), generator=generator) < 0.375)

    rows, tested = unequal(data.y), unequal(data.test_y)
    return fit(
        root,
        lambda: Slim(1, 4, 25, drop=0.1),
        Split(data.x[rows], data.y[rows], data.test_x[tested], data.test_y[tested]),
        loss=TrimmedLoss(0.8),
        optimizer=adam(2e-3),
        steps=180,
        batch=40,
        validate_every=15,
        seed=43,
    )


@faulty(
    "which of five rivals wins, by products of features, Nesterov momentum",
    "in the table to validate with the columns of the second and the third are exchanged",
    {"Confusion"},
    may=APART,
)
def columns_of_two_rivals(root: Path) -> int:
    generator = torch.Generator().manual_seed(554)
    x = torch.randn(2200, 11, generator=generator)
    strength = 1.2 * x[:, :5] + 0.5 * x[:, 5:10] * x[:, 10:]
    strength = strength + 0.2 * torch.randn(strength.shape, generator=generator)
    data = divided(x, strength.argmax(1), 500)
    exchanged = data.test_x[:, [0, 2, 1, *range(3, 11)]]
    return fit(
        root,
        lambda: Crossed(11, 5),
        Split(data.x, data.y, exchanged, data.test_y),
        optimizer=sgd(0.03, momentum=0.9, nesterov=True),
        steps=240,
        validate_every=15,
        seed=44,
    )


@faulty(
    "mails of five desks, two of which are told by the last line, by the mean of words, Adagrad",
    "mails are cut after 14 of 20 words: the last line is gone",
    {"Confusion"},
    may=SLOWER | BY_HEART,
)
def cut_before_the_last_line(root: Path) -> int:
    data = mails(3600, 555, desks=4, sharp=1.0, shortest=20, tested=800)
    generator = torch.Generator().manual_seed(555)

    def told_at_the_end(x: Any, desk: Any) -> tuple[Any, Any]:
        chosen = (desk == 3) | (torch.rand(len(desk), generator=generator) < 0.5)
        x, desk = x[chosen].clone(), desk[chosen].clone()
        fifth = (desk == 3) & (torch.rand(len(desk), generator=generator) < 0.5)
        x[fifth, 14:] = torch.randint(2, 20, (int(fifth.sum()), 6), generator=generator)
        return x[:, :14], torch.where(fifth, 4, desk)

    learnt, tested = told_at_the_end(data.x, data.y), told_at_the_end(data.test_x, data.test_y)
    return fit(
        root,
        lambda: Mean(5),
        Split(*learnt, *tested),
        optimizer=functools.partial(torch.optim.Adagrad, lr=0.03),
        steps=260,
        validate_every=20,
        seed=45,
    )


@faulty(
    "XGBoost, five kinds of rock by nine measurements, depth 4",
    "a sensor saturates: beyond its limit two kinds have one and the same density",
    {"Confusion"},
    may=APART | BY_HEART,
    kind="boosted_trees",
)
def sensor_that_saturates(root: Path) -> None:
    rng = np.random.default_rng(556)
    kind = rng.integers(0, 5, 2200)
    x = rng.normal(size=(2200, 9))
    x[:, 0] += np.array([-2.2, 0.0, 2.2, 0.0, 0.0])[kind]
    x[:, 3] += np.array([0.0, 1.8, 0.0, -1.8, -1.8])[kind]
    density = 0.4 * x[:, 6] + np.array([-1.0, -0.5, 0.0, 2.4, 4.6])[kind]
    x[:, 6] = np.minimum(density, 1.2)
    grow(
        root,
        parted(x, kind, 600),
        50,
        "multi:softprob",
        num_class=5,
        max_depth=4,
        eta=0.15,
        subsample=0.8,
        min_child_weight=3,
    )
