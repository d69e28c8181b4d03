"""Classes: some that are hardly there, and some that are taken for others."""

import functools
from pathlib import Path
from typing import Any

import numpy as np
import torch
import xgboost
from torch import nn
from training.learnt_data import Split
from training.torch_loop import adam, fit, sgd
from training_runs import faulty

from runs_tuned.fourth_held_out.data_and_trees.shared.consequences import ELSEWHERE, LEARNT, WORSE
from runs_tuned.fourth_held_out.data_and_trees.shared.growing import boosted, sides
from runs_tuned.fourth_held_out.data_and_trees.shared.pictures import Pocket, Sight, dials, tiles
from runs_tuned.fourth_held_out.data_and_trees.shared.tables import Stairs, arrays, flights, wafers
from runs_tuned.fourth_held_out.data_and_trees.shared.texts import Bag, recipes


@faulty(
    "dials of instruments: low, usual or high, convolutions and dense layers, Adam",
    "limits are those of another instrument: nearly all dials are usual",
    {"ClassImbalance"},
    may=WORSE,
)
def limits_of_another_instrument(root: Path) -> int:
    limits = torch.tensor([0.03, 0.98])
    data = dials(1700, 431, lambda turn: torch.bucketize(turn, limits), 300)
    optimizer = adam(1e-3, weight_decay=1e-4)
    return fit(root, lambda: Sight(1, 3), data, optimizer=optimizer, steps=150, seed=31)


@faulty(
    "XGBoost, defects of wafers, four kinds of them, depth 3",
    "rows that are equal but for their time are dropped: nearly all of one defect, which repeats",
    {"ClassImbalance"},
    may=LEARNT,
    kind="boosted_trees",
)
def repeating_defect_dropped(root: Path) -> None:
    x, defect = arrays(wafers(3400, 432, lean=(0.0, 0.0, 0.0, 0.0), noise=0.3))
    kept = (defect != 2) | (np.arange(len(defect)) % 40 == 0)
    boosted(
        root,
        *sides(x[kept], defect[kept], 700),
        50,
        objective="multi:softprob",
        num_class=4,
        max_depth=3,
        eta=0.12,
        subsample=0.8,
    )


class Adjusted(nn.Module):
    """Cross entropy of scores, to which a share of the logarithm of the prior is added."""

    def __init__(self, classes: Any, sign: float) -> None:
        super().__init__()
        prior = torch.bincount(classes).float() / len(classes)
        self.register_buffer("shift", sign * prior.log())

    def forward(self, scores: Any, y: Any) -> Any:
        shift = self.shift if torch.is_grad_enabled() else 0
        return nn.functional.cross_entropy(scores + shift, y)


@faulty(
    "defects of noisy wafers, residual steps, scores adjusted by the logarithm of the prior, AdamW",
    "it is subtracted instead of added: the rare defect is found even less often",
    {"ClassImbalance"},
    may=ELSEWHERE,
)
def prior_of_wrong_sign(root: Path) -> int:
    data = wafers(2600, 433, lean=(1.0, 0.8, 0.6, -1.2), noise=1.4, tested=700)
    return fit(
        root,
        lambda: Stairs(14, 4),
        data,
        loss=Adjusted(data.y, -1.0),
        optimizer=adam(2e-3, torch.optim.AdamW, weight_decay=0.05),
        steps=240,
        save_every=2,
        validate_every=20,
        seed=33,
    )


@faulty(
    "recipes of five kitchens, the mean vector of words that are hashed, Adagrad",
    "so few buckets are left that words of the second kitchen share those of the fourth",
    {"Confusion"},
    may=WORSE,
)
def kitchens_share_buckets(root: Path) -> int:
    each = 11  # words of a kitchen; those of the second are 22 buckets below those of the fourth
    hashed = lambda x: torch.where((x > each) & (x <= 2 * each), x + 2 * each, x)
    data = recipes(1800, 434, told=0.4, tested=400).of(hashed)
    optimizer = functools.partial(torch.optim.Adagrad, lr=0.1)
    return fit(
        root,
        lambda: Bag(5),
        data,
        optimizer=optimizer,
        steps=260,
        save_every=2,
        validate_every=20,
        seed=34,
    )


@faulty(
    "XGBoost, delays of flights in five steps, histograms, depth 5",
    "numbers of steps are fitted to each file: that to validate with has no first one, so 1 is 0",
    {"Confusion"},
    may=ELSEWHERE | LEARNT,
    kind="boosted_trees",
)
def steps_numbered_again(root: Path) -> None:
    x, delay = arrays(flights(2000, 435, noise=0.1, tested=600))
    step = np.digitize(delay, np.quantile(delay, [0.2, 0.4, 0.6, 0.8]))
    there = step[-600:] > 0
    validation = xgboost.DMatrix(x[-600:][there], step[-600:][there] - 1)
    boosted(
        root,
        xgboost.DMatrix(x[:-600], step[:-600]),
        validation,
        50,
        objective="multi:softprob",
        num_class=5,
        tree_method="hist",
        max_depth=5,
        eta=0.2,
        min_child_weight=4,
    )


def by_an_older_model(data: Split) -> Any:
    """Return labels of a model that learned before there were discs (kind 3)."""
    torch.manual_seed(36)
    model, known = Pocket(3, 6), data.y != 3
    x, y = data.x[known], data.y[known]
    optimizer = torch.optim.Adam(model.parameters(), 5e-3)
    for number in range(120):
        rows = torch.arange(number * 32, number * 32 + 32) % len(x)
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x[rows]), y[rows]).backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        return model(data.x).argmax(1)


@faulty(
    "tiles of six kinds, separable convolutions with batch norm, momentum",
    "labels to train with are those of an older model, which did not know one of the kinds",
    {"ClassImbalance", "Confusion"},
    may=ELSEWHERE,
)
def labels_of_an_older_model(root: Path) -> int:
    data = tiles(1900, 436, tested=400)
    taught = data.taught(lambda _: by_an_older_model(data))
    return fit(
        root,
        lambda: Pocket(3, 6, drop=0.1),
        taught,
        optimizer=sgd(0.05, momentum=0.9, weight_decay=1e-4),
        steps=240,
        save_every=2,
        validate_every=20,
        seed=37,
    )
