"""Healthy boosted trees: loans, crops, trips, claims, demand, turbines, songs, digits."""

import functools
from pathlib import Path

import numpy as np
import training_runs
import xgboost
from sklearn.datasets import load_digits

from runs_held_out.data_and_trees.shared.loops import grow, parted
from runs_held_out.data_and_trees.shared.tables import (
    claims,
    crops,
    demand,
    loans,
    trips,
    turbines,
    with_lags,
)

healthy = functools.partial(training_runs.healthy, kind="boosted_trees")


@healthy("XGBoost, which loans are not paid back, a twentieth, rows and columns drawn, early stop")
def trees_of_unpaid_loans(root: Path) -> None:
    grow(
        root,
        parted(*loans(3000, 8051), 600),
        150,
        "binary:logistic",
        patience=20,
        save_every=2,
        eval_metric=["auc", "logloss"],
        max_depth=4,
        eta=0.05,
        subsample=0.8,
        colsample_bytree=0.8,
    )


@healthy("XGBoost's own depth, power of turbines, squared errors, 25 rounds at 0.15")
def trees_of_turbines_by_default(root: Path) -> None:
    grow(root, parted(*turbines(3000, 8052), 600), 25, "reg:squarederror", eta=0.15)


@healthy("XGBoost, five crops, chances of each, log loss, a tenth, depth 5, stopped early")
def trees_of_crops(root: Path) -> None:
    grow(
        root,
        parted(*crops(2400, 8053, noise=1.1), 500),
        80,
        "multi:softprob",
        patience=10,
        num_class=5,
        eval_metric="mlogloss",
        max_depth=5,
        eta=0.1,
        subsample=0.9,
        min_child_weight=2,
    )


@healthy("XGBoost, the logarithm of minutes of trips, zones as categories, histograms, early stop")
def trees_of_trips(root: Path) -> None:
    x, minutes = trips(2800, 8054)
    kinds = ["c", "c", *["q"] * 9]
    grow(
        root,
        parted(x, np.log(minutes), 600, feature_types=kinds, enable_categorical=True),
        120,
        "reg:squarederror",
        patience=12,
        save_every=2,
        tree_method="hist",
        max_depth=5,
        eta=0.1,
        colsample_bytree=0.7,
        reg_lambda=2.0,
    )


@healthy("XGBoost, what is claimed in a year, Tweedie's likelihood, depth 3, a twelfth, early stop")
def trees_of_yearly_claims(root: Path) -> None:
    grow(
        root,
        parted(*claims(3500, 8055), 900),
        60,
        "reg:tweedie",
        patience=12,
        tweedie_variance_power=1.5,
        max_depth=3,
        eta=0.08,
        subsample=0.7,
        min_child_weight=10,
    )


@healthy("XGBoost, demand of the next hour by weather, calendar and 24 hours before, depth 5")
def trees_of_demand(root: Path) -> None:
    grow(
        root,
        parted(*with_lags(*demand(2600, 8056), range(1, 25)), 500),
        60,
        "reg:squarederror",
        patience=10,
        eval_metric=["mae", "rmse"],
        max_depth=5,
        eta=0.1,
        subsample=0.8,
        colsample_bytree=0.4,
        min_child_weight=3,
    )


@healthy("XGBoost, songs that listeners play to the end, 90 evenings, ranked by pairs, depth 4")
def trees_of_songs(root: Path) -> None:
    rng = np.random.default_rng(8057)
    x = rng.normal(size=(2160, 12))
    liking = 0.8 * x[:, 0] + 0.6 * x[:, 1] * (x[:, 2] > 0) - 0.5 * x[:, 3] + 0.4 * np.abs(x[:, 4])
    liking = liking + 0.4 * x[:, 5] - 0.3 * x[:, 6] + 0.3 * x[:, 7] + 0.7 * rng.normal(size=2160)
    grade = np.digitize(liking, np.quantile(liking, [0.5, 0.8])).astype(float)
    grow(
        root,
        (
            xgboost.DMatrix(x[:1680], grade[:1680], qid=np.repeat(np.arange(70), 24)),
            xgboost.DMatrix(x[1680:], grade[1680:], qid=np.repeat(np.arange(20), 24)),
        ),
        50,
        "rank:ndcg",
        eval_metric="ndcg@8",
        max_depth=4,
        eta=0.1,
        subsample=0.8,
        min_child_weight=1,
    )


@healthy("XGBoost, scikit-learn's digits, depth 4, half of the pixels for each tree, early stop")
def trees_of_digits(root: Path) -> None:
    x, number = load_digits(return_X_y=True)
    order = np.random.default_rng(8058).permutation(len(number))
    grow(
        root,
        parted(x[order], number[order].astype(float), 450),
        40,
        "multi:softprob",
        patience=8,
        num_class=10,
        eval_metric=["merror", "mlogloss"],
        max_depth=4,
        eta=0.2,
        colsample_bytree=0.5,
        subsample=0.8,
    )


@healthy("XGBoost, a fifth of loans are not paid back: they weigh four times as much, by leaves")
def trees_of_weighed_loans(root: Path) -> None:
    grow(
        root,
        parted(*loans(3000, 8059, share=0.2), 600),
        100,
        "binary:logistic",
        patience=15,
        eval_metric="aucpr",
        scale_pos_weight=4.0,
        tree_method="hist",
        grow_policy="lossguide",
        max_leaves=16,
        max_depth=6,
        eta=0.07,
        reg_alpha=0.5,
        min_child_weight=5,
    )


@healthy("XGBoost, nine in ten of the turbines' power are below what is told: a quantile, depth 3")
def trees_of_a_quantile(root: Path) -> None:
    grow(
        root,
        parted(*turbines(2800, 8060), 600),
        70,
        "reg:quantileerror",
        quantile_alpha=0.9,
        tree_method="hist",
        max_depth=3,
        eta=0.15,
        subsample=0.8,
        save_every=2,
    )


@healthy("XGBoost, crops by columns that are drawn, 40 rounds, depth 4")
def trees_of_drawn_columns(root: Path) -> None:
    grow(
        root,
        parted(*crops(2000, 8061, noise=1.2), 400),
        40,
        "multi:softprob",
        num_class=5,
        eval_metric="mlogloss",
        max_depth=4,
        eta=0.1,
        subsample=0.8,
        colsample_bytree=0.6,
    )


@healthy("XGBoost, crops once more with the same seed", other="trees_of_drawn_columns")
def trees_of_drawn_columns_again(root: Path) -> None:
    trees_of_drawn_columns(root)
