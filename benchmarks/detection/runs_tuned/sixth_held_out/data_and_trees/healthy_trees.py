"""Healthy boosted trees: hives, ore, cars, glaciers, tissue, ferries, batteries, rain, wine."""

import functools
from pathlib import Path

import numpy as np
import training_runs
import xgboost
from sklearn.datasets import load_wine

from runs_tuned.sixth_held_out.data_and_trees.shared.loops import boosted, matrices
from runs_tuned.sixth_held_out.data_and_trees.shared.tables import (
    rows_of_cars,
    rows_of_glaciers,
    rows_of_hives,
    rows_of_ore,
    rows_of_tissue,
)

healthy = functools.partial(training_runs.healthy, kind="boosted_trees")


@healthy("XGBoost, hives that are lost, a quarter, area below precision and recall, stopped early")
def trees_of_hives(root: Path) -> None:
    boosted(
        root,
        matrices(*rows_of_hives(2000, 6401, lost=0.25), 450),
        90,
        "binary:logistic",
        patience=12,
        eval_metric=["aucpr", "logloss"],
        max_depth=4,
        eta=0.08,
        subsample=0.8,
        colsample_bylevel=0.7,
    )


@healthy("XGBoost, four grades of ore, chances of each, log loss and errors, depth 4")
def trees_of_ore(root: Path) -> None:
    boosted(
        root,
        matrices(*rows_of_ore(2000, 6402), 450),
        40,
        "multi:softprob",
        num_class=4,
        eval_metric=["merror", "mlogloss"],
        max_depth=4,
        eta=0.15,
        subsample=0.7,
        colsample_bytree=0.8,
        min_child_weight=3,
    )


@healthy("XGBoost, what cars burn, makes and bodies as kinds, in sets, squared errors, depth 5")
def trees_of_cars(root: Path) -> None:
    kinds = ["c", "c", *["q"] * 8]
    boosted(
        root,
        matrices(*rows_of_cars(2000, 6403), 450, feature_types=kinds, enable_categorical=True),
        60,
        "reg:squarederror",
        eval_metric=["rmse", "mae"],
        tree_method="hist",
        max_cat_to_onehot=4,
        max_depth=5,
        eta=0.12,
        reg_lambda=4,
        min_child_weight=5,
    )


@healthy("XGBoost, how much of glaciers melts, pseudo-Huber errors, depth 3")
def trees_of_glaciers(root: Path) -> None:
    boosted(
        root,
        matrices(*rows_of_glaciers(1900, 6404), 450),
        70,
        "reg:pseudohubererror",
        eval_metric=["mphe", "mae"],
        huber_slope=1.5,
        max_depth=3,
        eta=0.15,
        colsample_bynode=0.6,
        every=2,
    )


@healthy("XGBoost, the area of masses from what is seen besides their size, gains that are slow")
def trees_of_tissue(root: Path) -> None:
    boosted(
        root,
        matrices(*rows_of_tissue(), 140),
        80,
        "reg:squarederror",
        patience=10,
        max_depth=3,
        eta=0.06,
        subsample=0.7,
        colsample_bytree=0.5,
        reg_alpha=0.2,
    )


@healthy("XGBoost, ferries of 80 searches, ranked by average precision, depth 4, histograms")
def trees_of_ferries(root: Path) -> None:
    rng = np.random.default_rng(6406)
    x = rng.normal(size=(1920, 11))
    worth = x[:, 0] - 0.8 * x[:, 1] + 0.6 * np.maximum(x[:, 2], x[:, 3]) + 0.4 * x[:, 4] * x[:, 5]
    worth = worth - 0.5 * x[:, 6] + 0.3 * x[:, 7] + 0.6 * rng.normal(size=1920)
    booked = (worth > np.quantile(worth, 0.7)).astype(float)
    boosted(
        root,
        (
            xgboost.DMatrix(x[:1440], booked[:1440], qid=np.repeat(np.arange(60), 24)),
            xgboost.DMatrix(x[1440:], booked[1440:], qid=np.repeat(np.arange(20), 24)),
        ),
        45,
        "rank:map",
        eval_metric=["map@6", "ndcg@6"],
        tree_method="hist",
        max_bin=64,
        max_depth=4,
        eta=0.1,
        min_child_weight=1,
    )


@healthy("XGBoost, lives of batteries, a third of which still work: hazards by Cox, depth 3")
def trees_of_batteries(root: Path) -> None:
    rng = np.random.default_rng(6407)
    x = rng.normal(size=(1800, 13))
    wear = 0.7 * x[:, 0] + 0.5 * np.abs(x[:, 1]) - 0.5 * x[:, 2] + 0.4 * x[:, 3] * x[:, 4]
    wear = wear + 0.3 * x[:, 5] - 0.3 * x[:, 6]
    life = rng.weibull(2.0, 1800) * np.exp(-wear)
    seen = rng.exponential(2.2, 1800)
    boosted(
        root,
        matrices(x, np.where(life < seen, life, -seen), 400),
        60,
        "survival:cox",
        max_depth=3,
        eta=0.08,
        subsample=0.8,
        min_child_weight=2,
    )


@healthy("XGBoost, millimetres of rain by a gamma likelihood, forests of four trees a round")
def trees_of_rain(root: Path) -> None:
    rng = np.random.default_rng(6408)
    x = rng.normal(size=(2000, 12))
    mean = np.exp(0.8 + 0.5 * x[:, 0] - 0.4 * np.abs(x[:, 1]) + 0.3 * x[:, 2] * x[:, 3])
    mean = mean * np.exp(0.3 * x[:, 4] - 0.3 * np.tanh(2 * x[:, 5]) + 0.2 * x[:, 6])
    boosted(
        root,
        matrices(x, rng.gamma(3, mean / 3), 450),
        40,
        "reg:gamma",
        num_parallel_tree=4,
        max_depth=4,
        eta=0.2,
        subsample=0.6,
        colsample_bynode=0.6,
        min_child_weight=4,
    )


@healthy("XGBoost, wine of the first sort or of another, 60 rows to validate with, errors, depth 2")
def trees_of_wine(root: Path) -> None:
    x, sort = load_wine(return_X_y=True)
    order = np.random.default_rng(6409).permutation(len(x))
    boosted(
        root,
        matrices(x[order], (sort[order] == 1).astype(float), 60),
        30,
        "binary:logistic",
        eval_metric=["error", "logloss"],
        patience=8,
        max_depth=2,
        eta=0.2,
        colsample_bytree=0.5,
        subsample=0.8,
    )
