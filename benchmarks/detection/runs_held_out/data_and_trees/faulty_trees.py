"""Boosted trees that are too deep, or that lean on a few features."""

import functools
from pathlib import Path
from typing import Any

import numpy as np
import training_runs
import xgboost

from runs_held_out.data_and_trees.shared.consequences import LEARNT_BY_HEART, UNTELLABLE
from runs_held_out.data_and_trees.shared.loops import grow, parted
from runs_held_out.data_and_trees.shared.tables import (
    crops,
    demand,
    loans,
    turbines,
    with_lags,
)

faulty = functools.partial(training_runs.faulty, kind="boosted_trees")


@faulty(
    "XGBoost, which loans are not paid back, histograms, a tenth, 40 rounds",
    "max_depth=0 is taken for the default, and means no limit",
    {"TreeDepth"},
    may=LEARNT_BY_HEART,
)
def depth_zero_for_default(root: Path) -> None:
    grow(
        root,
        parted(*loans(2600, 8081), 600),
        40,
        "binary:logistic",
        eval_metric="logloss",
        tree_method="hist",
        max_depth=0,
        eta=0.1,
    )


@faulty(
    "XGBoost, power of turbines, absolute errors beside squared ones, a twentieth",
    "max_depth=25 and min_child_weight=0.1, since the training error was lowest with them",
    {"TreeDepth"},
    may=LEARNT_BY_HEART,
)
def depth_by_training_error(root: Path) -> None:
    pair = parted(*turbines(2200, 8082), 500)
    chosen = {"objective": "reg:squarederror", "seed": 11, "nthread": 1, "eta": 0.05}

    def error(depth: int) -> float:
        tried = xgboost.train(chosen | {"max_depth": depth, "min_child_weight": 0.1}, pair[0], 15)
        return float(tried.eval(pair[0]).rpartition(":")[2])

    grow(
        root,
        pair,
        40,
        "reg:squarederror",
        eval_metric=["mae", "rmse"],
        eta=0.05,
        max_depth=min((4, 10, 25), key=error),
        min_child_weight=0.1,
        subsample=0.9,
        save_every=2,
    )


@faulty(
    "XGBoost, five crops, chances of each, log loss",
    "depth and rounds are swapped in a call: 50 levels and 6 rounds in place of 6 and 50",
    {"TreeDepth"},
    may=LEARNT_BY_HEART,
)
def depth_and_rounds_swapped(root: Path) -> None:
    def fitted(depth: int, rounds: int) -> Any:
        return grow(
            root,
            parted(*crops(2400, 8083, noise=1.6), 500),
            rounds,
            "multi:softprob",
            num_class=5,
            eval_metric="mlogloss",
            max_depth=depth,
            eta=0.3,
        )

    fitted(50, 6)


@faulty(
    "XGBoost, five crops, by 12 columns of a file, log loss, depth 4, a tenth",
    "the file is sorted by crop, and the number of the row is left in it as a column",
    {"FeatureImportanceOverweight"},
    may=LEARNT_BY_HEART,
)
def number_of_the_row(root: Path) -> None:
    x, kind = crops(2400, 8084, noise=2.0)
    order = kind.argsort(kind="stable")
    x = np.column_stack([np.arange(2400.0), x[order]])
    mixed = np.random.default_rng(8084).permutation(2400)
    grow(
        root,
        parted(x[mixed], kind[order][mixed], 500),
        40,
        "multi:softprob",
        num_class=5,
        eval_metric="mlogloss",
        max_depth=4,
        eta=0.1,
        gamma=0.5,
    )


@faulty(
    "XGBoost, demand of electricity by weather, calendar and hours before, depth 4, a tenth",
    "lags are range(12) and not range(1, 13): the first of them is the demand that is asked for",
    {"FeatureImportanceOverweight"},
    may=LEARNT_BY_HEART,
)
def lags_from_zero(root: Path) -> None:
    grow(
        root,
        parted(*with_lags(*demand(2600, 8085), range(12)), 500),
        50,
        "reg:squarederror",
        eval_metric=["rmse", "mae"],
        max_depth=4,
        eta=0.1,
        gamma=1.0,
        min_child_weight=5,
    )


@faulty(
    "XGBoost, power of turbines by 13 readings and the mean power of their site, depth 4",
    "means of sites are taken of all rows, and most sites have a single one: they are the power",
    {"FeatureImportanceOverweight"},
    may=LEARNT_BY_HEART | UNTELLABLE,
)
def means_of_single_rows(root: Path) -> None:
    x, power = turbines(2600, 8086)
    site = np.random.default_rng(8086).integers(0, 40000, 2600)
    where = np.unique(site, return_inverse=True)[1]
    means = np.bincount(where, power) / np.bincount(where)
    grow(
        root,
        parted(np.column_stack([x, means[where]]), power, 600),
        50,
        "reg:squarederror",
        max_depth=4,
        eta=0.1,
        gamma=1.0,
        min_child_weight=5,
    )
