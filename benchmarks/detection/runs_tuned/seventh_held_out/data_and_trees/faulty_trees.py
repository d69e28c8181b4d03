"""Boosted trees that are too deep, or that lean on a few features."""

import functools
from pathlib import Path

import numpy as np
import training_runs
import xgboost

from runs_tuned.seventh_held_out.data_and_trees.shared.consequences import BY_HEART, ELSEWHERE
from runs_tuned.seventh_held_out.data_and_trees.shared.loops import boosted, matrices
from runs_tuned.seventh_held_out.data_and_trees.shared.tables import (
    rows_of_faults,
    rows_of_flats,
    rows_of_leavers,
    rows_of_searches,
)

faulty = functools.partial(training_runs.faulty, kind="boosted_trees")


@faulty(
    "XGBoost, five kinds of faults of machines, log loss, a tenth",
    "max_depth=15 is taken over from a random forest, which needs deep trees",
    {"TreeDepth"},
    may=BY_HEART,
)
def depth_of_a_random_forest(root: Path) -> None:
    boosted(
        root,
        matrices(*rows_of_faults(2200, 6001, kinds=5, noise=1.5), 500),
        30,
        "multi:softprob",
        num_class=5,
        eval_metric="mlogloss",
        max_depth=15,
        eta=0.1,
        subsample=0.8,
        min_child_weight=0,
    )


@faulty(
    "XGBoost, prices of flats, histograms, leaves by gain, squared errors",
    "num_leaves=200 of LightGBM became max_leaves, and its max_depth=-1 became 0: no limit",
    {"TreeDepth"},
    may=BY_HEART,
)
def parameters_of_lightgbm(root: Path) -> None:
    boosted(
        root,
        matrices(*rows_of_flats(2600, 6002), 600),
        40,
        "reg:squarederror",
        tree_method="hist",
        grow_policy="lossguide",
        max_leaves=200,
        max_depth=0,
        eta=0.1,
    )


@faulty(
    "XGBoost, results of 100 searches in four grades, ranked by pairs, rows drawn",
    "a grid of depths from 3 to 12 is searched by the training score: the deepest one wins",
    {"TreeDepth"},
    may=BY_HEART,
)
def best_depth_by_training_score(root: Path) -> None:
    x, grade = rows_of_searches(100, 20, 6003)
    pair = (
        xgboost.DMatrix(x[:1500], grade[:1500], qid=np.repeat(np.arange(75), 20)),
        xgboost.DMatrix(x[1500:], grade[1500:], qid=np.repeat(np.arange(25), 20)),
    )
    chosen = {"objective": "rank:pairwise", "seed": 7, "nthread": 1, "eval_metric": "ndcg@10"}
    chosen |= {"eta": 0.1, "subsample": 0.8, "min_child_weight": 0.1}

    def score(depth: int) -> float:
        tried = xgboost.train(chosen | {"max_depth": depth}, pair[0], 10)
        return float(tried.eval(pair[0]).rpartition(":")[2])

    best = max((3, 6, 9, 12), key=score)
    boosted(
        root,
        pair,
        40,
        "rank:pairwise",
        eval_metric="ndcg@10",
        max_depth=best,
        eta=0.1,
        subsample=0.8,
        min_child_weight=0.1,
    )


@faulty(
    "XGBoost, customers who leave, by 16 facts, log loss, depth 4, a rate of 0.2",
    "one fact is the number of calls in the month after: customers who have left make none",
    {"FeatureImportanceOverweight"},
    may=BY_HEART,
)
def calls_of_the_month_after(root: Path) -> None:
    rng = np.random.default_rng(6004)
    x, leaves = rows_of_leavers(2400, 6004)
    calls = np.where(leaves > 0, 0, 1 + rng.poisson(6, 2400))
    x = np.column_stack([x, calls, rng.normal(size=(2400, 3))])
    boosted(
        root,
        matrices(x, leaves, 500),
        40,
        "binary:logistic",
        eval_metric=["logloss", "auc"],
        max_depth=4,
        eta=0.2,
    )


@faulty(
    "XGBoost, prices of flats by 15 facts, squared errors, depth 3, a tenth",
    "the price in another currency was left among the facts: the model only converts it",
    {"FeatureImportanceOverweight"},
    may=BY_HEART,
)
def price_in_another_currency(root: Path) -> None:
    rng = np.random.default_rng(6005)
    x, price = rows_of_flats(2200, 6005)
    x = np.column_stack([x, rng.normal(size=(2200, 3)), 1.08 * price])
    boosted(
        root,
        matrices(x, price, 500),
        45,
        "reg:squarederror",
        eval_metric=["rmse", "mae"],
        max_depth=3,
        eta=0.1,
        min_child_weight=5,
    )


@faulty(
    "XGBoost, customers who leave, by 14 facts of two tables that are joined, depth 4",
    "keys of the tables differ by a blank, so the join finds none: twelve facts are empty",
    {"FeatureImportanceOverweight"},
    may=BY_HEART | ELSEWHERE,
)
def join_that_finds_none(root: Path) -> None:
    rng = np.random.default_rng(6006)
    facts, leaves = rows_of_leavers(2600, 6006)
    own = 0.6 * leaves[:, None] + rng.normal(size=(2600, 2))
    x = np.column_stack([np.full_like(facts, np.nan), own])
    boosted(
        root,
        matrices(x, leaves, 500),
        50,
        "binary:logistic",
        every=2,
        eval_metric="logloss",
        max_depth=4,
        eta=0.1,
        gamma=1.0,
        subsample=0.8,
        min_child_weight=5,
    )
