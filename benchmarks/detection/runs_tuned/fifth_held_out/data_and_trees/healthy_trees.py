"""Healthy boosted trees: turbines, patients, rooms, rents, offers, nights, lines."""

import functools
from pathlib import Path
from typing import Any

import numpy as np
import training_runs
import xgboost

from runs_tuned.fifth_held_out.data_and_trees.shared.rounds import grow, parted
from runs_tuned.fifth_held_out.data_and_trees.shared.tables import (
    houses,
    matrices,
    patients,
    turbines,
)

healthy = functools.partial(training_runs.healthy, kind="boosted_trees")


@healthy("XGBoost, failures of turbines as raw margins, approximate splits, at most ten leaves")
def trees_of_turbines(root: Path) -> None:
    x, failed = matrices(turbines(1700, 501, tested=400))
    grow(
        root,
        parted(x, failed, 400),
        60,
        "binary:logitraw",
        eval_metric=["auc", "error@0.0"],
        tree_method="approx",
        grow_policy="lossguide",
        max_leaves=10,
        max_depth=5,
        eta=0.1,
        min_child_weight=4,
        subsample=0.7,
    )


@healthy("XGBoost, four kinds of patients, five to two, the class alone, errors and log loss")
def trees_of_patients(root: Path) -> None:
    x, kind = matrices(patients(1800, 502, shares=(5.0, 4.0, 3.0, 2.0), tested=450))
    grow(
        root,
        parted(x, kind, 450),
        45,
        "multi:softmax",
        num_class=4,
        eval_metric=["merror", "mlogloss"],
        max_depth=3,
        eta=0.12,
        colsample_bynode=0.6,
        max_bin=32,
    )


def shares_of_rooms(root: Path, **more: Any) -> None:
    """Boost shares of rooms that are let, always by one seed."""
    rng = np.random.default_rng(503)
    x = rng.normal(size=(1600, 13))
    score = x[:, 0] - 0.7 * x[:, 1] + 0.6 * np.sin(2 * x[:, 2]) + 0.5 * x[:, 3] * (x[:, 4] > 0)
    share = 1 / (1 + np.exp(0.8 - score - 0.4 * rng.normal(size=1600)))
    grow(
        root,
        parted(x, share, 400),
        50,
        "reg:logistic",
        max_depth=4,
        eta=0.12,
        subsample=0.8,
        colsample_bytree=0.7,
        **more,
    )


@healthy("XGBoost, shares of rooms that are let, by logistic regression, rows and columns sampled")
def trees_of_rooms(root: Path) -> None:
    shares_of_rooms(root)


@healthy("XGBoost, shares of rooms that are let, on the next day", other="trees_of_rooms")
def trees_of_rooms_next_day(root: Path) -> None:
    shares_of_rooms(root)


@healthy("XGBoost, rents and prices of houses at once, every second round, depth 4")
def trees_of_rents(root: Path) -> None:
    x, price = matrices(houses(1500, 504, tested=350))
    rng = np.random.default_rng(504)
    rent = 0.6 * price + 0.5 * np.abs(x[:, 6]) - 0.3 * x[:, 7] + 0.2 * rng.normal(size=1500)
    grow(
        root,
        parted(x, np.column_stack([price, rent]), 350),
        70,
        "reg:squarederror",
        save_every=2,
        eval_metric=["mae", "rmse"],
        max_depth=4,
        eta=0.1,
        reg_lambda=3.0,
        colsample_bylevel=0.8,
    )


@healthy("XGBoost, offers of 90 visitors ranked by the gain of five, top pairs, stopped early")
def trees_of_offers(root: Path) -> None:
    rng = np.random.default_rng(505)
    x = rng.normal(size=(1800, 14))
    liked = x[:, 0] + 0.8 * x[:, 1] * x[:, 2] + 0.5 * np.abs(x[:, 3]) + 0.7 * rng.normal(size=1800)
    grade = np.digitize(liked, np.quantile(liked, [0.5, 0.75, 0.92]))
    learnt = xgboost.DMatrix(x[:1400], grade[:1400], qid=np.repeat(np.arange(70), 20))
    other = xgboost.DMatrix(x[1400:], grade[1400:], qid=np.repeat(np.arange(20), 20))
    grow(
        root,
        (learnt, other),
        60,
        "rank:ndcg",
        stop_after=12,
        eval_metric=["ndcg@5"],
        lambdarank_pair_method="topk",
        lambdarank_num_pair_per_sample=8,
        max_depth=3,
        eta=0.1,
    )


@healthy("XGBoost, numbers of calls for help in a night by DART, a twentieth of the trees dropped")
def trees_of_nights(root: Path) -> None:
    rng = np.random.default_rng(506)
    x = rng.normal(size=(1700, 10))
    rate = np.exp(1.2 + 0.5 * x[:, 0] - 0.3 * x[:, 1] + 0.3 * np.abs(x[:, 2]) * (x[:, 3] > 0))
    grow(
        root,
        parted(x, rng.poisson(rate), 400),
        60,
        "count:poisson",
        booster="dart",
        rate_drop=0.05,
        skip_drop=0.5,
        sample_type="weighted",
        max_depth=3,
        eta=0.12,
    )


@healthy("XGBoost, prices of houses by a linear booster, absolute errors beside squared ones")
def lines_of_houses(root: Path) -> None:
    x, price = matrices(houses(1400, 507, tested=350))
    grow(
        root,
        parted(x, price, 350),
        40,
        "reg:squarederror",
        booster="gblinear",
        updater="shotgun",
        feature_selector="shuffle",
        eval_metric=["mae", "rmse"],
        eta=0.08,
        reg_lambda=0.01,
    )
