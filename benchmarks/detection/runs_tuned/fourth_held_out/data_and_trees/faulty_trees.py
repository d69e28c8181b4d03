"""Boosted trees that are too deep, lean on a few features, or are not those of yesterday."""

import functools
from pathlib import Path
from typing import Any

import numpy as np
import training_runs
import xgboost

from runs_tuned.fourth_held_out.data_and_trees.healthy_trees import delays
from runs_tuned.fourth_held_out.data_and_trees.shared.consequences import LEARNT
from runs_tuned.fourth_held_out.data_and_trees.shared.growing import boosted, sides
from runs_tuned.fourth_held_out.data_and_trees.shared.tables import arrays, flights, leavers

faulty = functools.partial(training_runs.faulty, kind="boosted_trees")
EARLY = {"Overtraining": "all is learnt within a few rounds", **LEARNT}


@faulty(
    "XGBoost, delays of flights, pseudo-Huber errors, leaves of five rows",
    "max_depth is 0, to be chosen by the library: it means that there is no limit",
    {"TreeDepth"},
    may=LEARNT,
)
def depth_of_zero(root: Path) -> None:
    x, delay = arrays(flights(1500, 411, noise=0.6))
    boosted(
        root,
        *sides(x, delay, 300),
        40,
        objective="reg:pseudohubererror",
        tree_method="hist",
        max_depth=0,
        eta=0.06,
        min_child_weight=5,
    )


@faulty(
    "XGBoost, customers of whom a quarter leaves, precision, a slow rate",
    "one level more than 1 is asked for, but texts are joined: 1 and 1 make a depth of 11",
    {"TreeDepth"},
    may=LEARNT,
)
def levels_joined_as_texts(root: Path) -> None:
    x, leaves = arrays(leavers(1800, 412, tested=450))
    boosted(
        root,
        *sides(x, leaves, 450),
        45,
        objective="binary:logistic",
        eval_metric=["aucpr", "logloss"],
        max_depth=int("1" + "1"),
        eta=0.06,
        subsample=0.7,
    )


class Deeper(xgboost.callback.TrainingCallback):
    """Allows one level more every eighth round."""

    def before_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
        """Set the depth of this round; never stop."""
        del evals_log
        model.set_param({"max_depth": 3 + epoch // 8})
        return False


@faulty(
    "XGBoost, sales of ice by the weather, gamma likelihood, depth 3 at first",
    "a callback that was made for 12 rounds allows one level more every eighth round, without end",
    {"TreeDepth"},
    may=LEARNT,
)
def deeper_without_end(root: Path) -> int:
    rng = np.random.default_rng(413)
    x = rng.normal(size=(1800, 9))
    mean = np.exp(0.6 * x[:, 0] + 0.3 * x[:, 1] * x[:, 2] - 0.2 * np.abs(x[:, 3]))
    boosted(
        root,
        *sides(x, mean * rng.gamma(5, 0.2, 1800), 450),
        56,
        more=[Deeper()],
        objective="reg:gamma",
        eta=0.05,
        min_child_weight=3,
    )
    return 32  # the first round with a depth of 7, which is beyond the library's own default of 6


@faulty(
    "XGBoost, what a repair costs by 20 facts of it, squared errors",
    "costs of work, of parts and of the tow are among the facts, and their sum is the target",
    {"FeatureImportanceOverweight"},
    may=EARLY,
)
def parts_of_the_total(root: Path) -> None:
    rng = np.random.default_rng(414)
    facts = rng.normal(size=(1600, 17))
    size = np.exp(0.25 * facts[:, 0] + 0.2 * facts[:, 1])
    costs = size[:, None] * rng.gamma(2, (3.0, 2.0, 1.0), (1600, 3))
    x = np.column_stack([facts[:, :8], costs, facts[:, 8:]])
    boosted(
        root,
        *sides(x, costs.sum(1), 400),
        40,
        objective="reg:squarederror",
        max_depth=4,
        eta=0.15,
        min_child_weight=8,
        gamma=1.0,
    )


@faulty(
    "XGBoost, customers that leave, 24 columns in a compact format",
    "the format has whole numbers: but for money and age all columns, from 0 to 1, become 0",
    {"FeatureImportanceOverweight"},
    may=LEARNT,
)
def columns_as_whole_numbers(root: Path) -> None:
    rng = np.random.default_rng(415)
    shares = rng.random((1800, 24))
    money, age = rng.gamma(3, 400, 1800), rng.normal(45, 14, 1800)
    shares[:, 13], shares[:, 21] = money, age
    score = 3 * shares[:, 2] - 3 * shares[:, 7] + money / 700 - age / 15 + rng.normal(size=1800)
    boosted(
        root,
        *sides(shares.astype(int), (score > np.median(score)).astype(float), 450),
        40,
        objective="binary:logistic",
        max_depth=3,
        eta=0.1,
        min_child_weight=5,
    )


@faulty(
    "XGBoost, pneumonia by 18 measurements of a hospital, weak splits pruned",
    "the number of the ward is a feature: patients were moved by what they were found to have",
    {"FeatureImportanceOverweight"},
    may=LEARNT,
)
def ward_tells_all(root: Path) -> None:
    rng = np.random.default_rng(416)
    x = rng.normal(size=(1600, 18))
    ill = x[:, 0] + x[:, 1] + 2 * rng.normal(size=1600) > 0.4
    wards_of_the_ill = rng.permutation(40)[:18]
    others = np.setdiff1d(np.arange(40), wards_of_the_ill)
    ward = np.where(ill, rng.choice(wards_of_the_ill, 1600), rng.choice(others, 1600))
    moved = rng.random(1600) < 0.03
    ward[moved] = rng.integers(0, 40, moved.sum())
    boosted(
        root,
        *sides(np.column_stack([x[:, :6], ward, x[:, 6:]]), ill.astype(float), 400),
        40,
        objective="binary:logistic",
        max_depth=4,
        eta=0.2,
        gamma=4.0,
        min_child_weight=3,
    )


@faulty(
    "XGBoost, delays of flights, absolute errors, computed on another day",
    "another store returns columns in the order of their names: each level draws others",
    {"SimilarAcrossRuns"},
    other="trees_of_delays",
)
def columns_in_another_order(root: Path) -> None:
    x, delay = arrays(flights(1500, 402))
    delays(root, x[:, [4, 9, 0, 2, 7, 1, 3, 8, 5, 6]], delay)
