"""Healthy boosted trees: leavers, faults, flats, hires, searches, patients."""

import functools
from pathlib import Path

import numpy as np
import training_runs
import xgboost
from sklearn.datasets import load_breast_cancer, load_diabetes

from runs_tuned.seventh_held_out.data_and_trees.shared.loops import boosted, matrices
from runs_tuned.seventh_held_out.data_and_trees.shared.tables import (
    rows_of_faults,
    rows_of_flats,
    rows_of_hires,
    rows_of_leavers,
    rows_of_searches,
)

healthy = functools.partial(training_runs.healthy, kind="boosted_trees")


@healthy("XGBoost, customers who leave, XGBoost's own depth, a tenth, stopped early by log loss")
def trees_leavers_default_depth(root: Path) -> None:
    boosted(
        root,
        matrices(*rows_of_leavers(3000, 4001), 600),
        200,
        "binary:logistic",
        patience=15,
        eval_metric="logloss",
        eta=0.1,
        subsample=0.8,
        colsample_bytree=0.8,
    )


@healthy("XGBoost, a fifth of customers leave, weighed by scale_pos_weight, area, stopped early")
def trees_leavers_weighed(root: Path) -> None:
    boosted(
        root,
        matrices(*rows_of_leavers(3000, 4002, share=0.2), 600),
        150,
        "binary:logistic",
        patience=12,
        eval_metric=["auc", "logloss"],
        scale_pos_weight=4.0,
        max_depth=4,
        eta=0.1,
        min_child_weight=3,
    )


@healthy("XGBoost, five kinds of faults of machines, chances of each, depth 5, stopped early")
def trees_of_faults(root: Path) -> None:
    boosted(
        root,
        matrices(*rows_of_faults(2200, 4003, kinds=5), 500),
        100,
        "multi:softprob",
        patience=10,
        num_class=5,
        eval_metric=["merror", "mlogloss"],
        max_depth=5,
        eta=0.2,
        subsample=0.8,
    )


@healthy("XGBoost, prices of flats, districts as kinds, squared errors, histograms, stopped early")
def trees_of_flats(root: Path) -> None:
    boosted(
        root,
        matrices(
            *rows_of_flats(2600, 4004),
            600,
            feature_types=["c", "c", *["q"] * 9],
            enable_categorical=True,
        ),
        180,
        "reg:squarederror",
        patience=10,
        every=2,
        tree_method="hist",
        max_depth=4,
        eta=0.1,
        subsample=0.8,
        colsample_bytree=0.7,
    )


@healthy("XGBoost, prices of flats, absolute errors, leaves by gain, 31 of them, depth 6 at most")
def trees_of_flats_by_leaves(root: Path) -> None:
    boosted(
        root,
        matrices(*rows_of_flats(2400, 4005), 500),
        60,
        "reg:absoluteerror",
        eval_metric="mae",
        tree_method="hist",
        grow_policy="lossguide",
        max_leaves=31,
        max_depth=6,
        eta=0.1,
        subsample=0.7,
        min_child_weight=5,
    )


@healthy("XGBoost, bicycles hired in an hour, Poisson's likelihood, depth 5, stopped early")
def trees_of_hired_bicycles(root: Path) -> None:
    boosted(
        root,
        matrices(*rows_of_hires(2600, 4006), 500),
        150,
        "count:poisson",
        patience=12,
        every=2,
        max_depth=5,
        eta=0.1,
        subsample=0.8,
        colsample_bytree=0.8,
        min_child_weight=3,
    )


@healthy("XGBoost, results of 110 searches in four grades, ranked by gains, depth 4, stopped early")
def trees_rank_by_grades(root: Path) -> None:
    x, grade = rows_of_searches(110, 20, 4007)
    boosted(
        root,
        (
            xgboost.DMatrix(x[:1600], grade[:1600], qid=np.repeat(np.arange(80), 20)),
            xgboost.DMatrix(x[1600:], grade[1600:], qid=np.repeat(np.arange(30), 20)),
        ),
        100,
        "rank:ndcg",
        patience=15,
        eval_metric="ndcg@10",
        max_depth=4,
        eta=0.1,
        subsample=0.8,
    )


@healthy("XGBoost, clicks on results of 120 searches, ranked by pairs, depth 3")
def trees_rank_by_pairs(root: Path) -> None:
    x, clicked = rows_of_searches(120, 15, 4008, grades=2)
    boosted(
        root,
        (
            xgboost.DMatrix(x[:1350], clicked[:1350], qid=np.repeat(np.arange(90), 15)),
            xgboost.DMatrix(x[1350:], clicked[1350:], qid=np.repeat(np.arange(30), 15)),
        ),
        40,
        "rank:pairwise",
        eval_metric=["map", "ndcg@5"],
        max_depth=3,
        eta=0.1,
        min_child_weight=1,
    )


@healthy("XGBoost, breast cancer of scikit-learn, depth 3, rows and columns drawn, stopped early")
def trees_of_tumours(root: Path) -> None:
    facts, kind = load_breast_cancer(return_X_y=True)
    order = np.random.default_rng(4009).permutation(len(kind))
    boosted(
        root,
        matrices(facts[order], kind[order].astype(float), 150),
        120,
        "binary:logistic",
        patience=10,
        eval_metric=["error", "logloss"],
        max_depth=3,
        eta=0.1,
        subsample=0.7,
        colsample_bytree=0.5,
    )


@healthy("XGBoost, the progression of diabetes, slow, depth 3, strong penalties, stopped early")
def trees_of_progression(root: Path) -> None:
    facts, progression = load_diabetes(return_X_y=True)
    order = np.random.default_rng(4010).permutation(len(progression))
    boosted(
        root,
        matrices(facts[order], progression[order], 110),
        150,
        "reg:squarederror",
        patience=15,
        max_depth=3,
        eta=0.05,
        subsample=0.7,
        colsample_bytree=0.6,
        reg_lambda=5,
        min_child_weight=5,
    )
