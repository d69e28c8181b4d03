"""XGBoost with several objectives: faulty and healthy."""

import functools
from pathlib import Path
from typing import Any

import numpy as np
import training_runs
import xgboost

from runs_tuned.first_held_out.boosted.tables import grow, halves
from runs_tuned.second_held_out.shared.consequences import EASY, IDLE

healthy = functools.partial(training_runs.healthy, kind="boosted_trees")
faulty = functools.partial(training_runs.faulty, kind="boosted_trees")


def sales(count: int = 1000, noise: float = 0.5, seed: int = 81) -> tuple[Any, Any]:
    """Return fifteen facts of a day, and what was sold: about one."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(count, 15))
    sold = 0.6 * x[:, 0] + 0.5 * np.sin(2 * x[:, 1]) + 0.3 * x[:, 2] * x[:, 3] + 0.4 * (x[:, 4] > 0)
    return x, 1 + sold + 0.2 * x[:, 5:9].sum(1) + noise * rng.normal(size=count)


def kinds(count: int = 900, classes: int = 4, seed: int = 82) -> tuple[Any, Any]:
    """Return twelve features and one of four kinds, which overlap."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(classes, size=count)
    centres = rng.normal(0, 0.8, (classes, 12))
    return centres[kind] + rng.normal(size=(count, 12)), kind


@healthy("XGBoost, sales of a day, squared errors, rows and columns sampled, every tenth round")
def trees_of_sales(root: Path) -> int:
    return grow(
        root,
        *halves(*sales()),
        120,
        save_every=10,
        objective="reg:squarederror",
        max_depth=4,
        eta=0.06,
        subsample=0.7,
        colsample_bytree=0.6,
    )


@healthy("XGBoost, visits of an hour, Poisson regression, depth 3")
def trees_of_visits(root: Path) -> int:
    x, sold = sales(seed=83)
    visits = np.random.default_rng(84).poisson(np.exp(0.5 * sold))
    return grow(
        root, *halves(x, visits.astype(float)), 40, objective="count:poisson", max_depth=3, eta=0.12
    )


@healthy("XGBoost, four kinds by softmax, depth 3, a penalty of large leaves")
def trees_of_kinds(root: Path) -> int:
    return grow(
        root,
        *halves(*kinds()),
        30,
        objective="multi:softmax",
        num_class=4,
        max_depth=3,
        eta=0.15,
        **{"lambda": 4},
    )


@healthy("XGBoost, offers of 60 searches, ranked in pairs, depth 3")
def trees_of_searches(root: Path) -> int:
    x, sold = sales(840, seed=85)
    search = np.repeat(np.arange(60), 14)
    grade = np.digitize(sold, [0.5, 1.3, 2.2])
    cut = 14 * 45
    parts = (slice(cut), slice(cut, None))
    matrices = [xgboost.DMatrix(x[part], grade[part], qid=search[part]) for part in parts]
    return grow(root, *matrices, 30, objective="rank:pairwise", max_depth=3, eta=0.1)


@healthy("XGBoost, the median of sales by quantile regression, stopped early")
def trees_of_medians(root: Path) -> int:
    return grow(
        root,
        *halves(*sales(seed=86)),
        80,
        stop_early=6,
        objective="reg:quantileerror",
        quantile_alpha=0.5,
        max_depth=3,
        eta=0.15,
    )


@healthy("XGBoost, two kinds by DART, a tenth of the trees is dropped, histograms")
def trees_that_are_dropped(root: Path) -> int:
    x, kind = kinds(classes=2, seed=87)
    return grow(
        root,
        *halves(x, kind),
        35,
        objective="binary:logistic",
        booster="dart",
        rate_drop=0.1,
        max_depth=4,
        eta=0.2,
        tree_method="hist",
    )


@faulty(
    "XGBoost, the ninth decile of sales by quantile regression",
    "the depth of 11 is the end of a search that was scored by the rows to train with",
    {"TreeDepth", "Overfit"},
    may=EASY,
)
def end_of_a_search(root: Path) -> int:
    return grow(
        root,
        *halves(*sales(seed=88)),
        25,
        objective="reg:quantileerror",
        quantile_alpha=0.9,
        max_depth=11,
        eta=0.2,
    )


@faulty(
    "XGBoost, four kinds by forests of leaves",
    "leaves are limited to 200 instead of 20, and nothing limits the depth",
    {"TreeDepth"},
    may=EASY,
)
def leaves_without_limit(root: Path) -> int:
    return grow(
        root,
        *halves(*kinds(seed=89)),
        15,
        objective="multi:softprob",
        num_class=4,
        grow_policy="lossguide",
        tree_method="hist",
        max_depth=0,
        max_leaves=200,
        min_child_weight=0.1,
        eta=0.2,
    )


@faulty(
    "XGBoost, sales of a day, those of the day before are a feature",
    "the shift of the days is 0 in place of 1: the sales of the day itself are the feature",
    {"FeatureImportanceOverweight"},
    may=EASY,
)
def shift_of_no_day(root: Path) -> int:
    x, sold = sales(seed=90)
    known = np.column_stack([x, sold])
    return grow(
        root,
        *halves(known, sold),
        25,
        objective="reg:squarederror",
        max_depth=3,
        eta=0.2,
        gamma=0.02,
    )


@faulty(
    "XGBoost, visits of an hour on 150 hours, Poisson regression",
    "300 rounds at a fast rate without early stopping or penalties",
    {"Overfit"},
    may=EASY,
)
def rounds_without_end(root: Path) -> int:
    x, sold = sales(300, seed=91)
    visits = np.random.default_rng(92).poisson(np.exp(0.5 * sold)).astype(float)
    return grow(
        root,
        *halves(x, visits, 0.5),
        150,
        objective="count:poisson",
        max_depth=4,
        eta=0.3,
        max_delta_step=2,
    )


@faulty(
    "XGBoost, one of seven is positive, and positives are weighted",
    "the weight is positives by negatives, 1 / 6, instead of the inverse: none is ever found",
    {"ClassImbalance"},
    may=IDLE,
)
def weight_upside_down(root: Path) -> int:
    rng = np.random.default_rng(93)
    x = rng.normal(size=(2400, 10))
    score = x[:, 0] + 0.7 * x[:, 1] * x[:, 2] + 1.1 * rng.normal(size=2400)
    positive = (score > np.quantile(score, 6 / 7)).astype(int)
    return grow(
        root,
        *halves(x, positive),
        25,
        objective="binary:logistic",
        max_depth=3,
        eta=0.1,
        scale_pos_weight=1 / 6,
    )
