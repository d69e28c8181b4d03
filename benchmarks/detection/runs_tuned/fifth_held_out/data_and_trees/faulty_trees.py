"""Boosted trees that are too deep, or that lean on a few features."""

import functools
from pathlib import Path
from typing import Any

import numpy as np
import training_runs
import xgboost

from runs_tuned.fifth_held_out.data_and_trees.shared.consequences import BY_HEART
from runs_tuned.fifth_held_out.data_and_trees.shared.rounds import grow, parted
from runs_tuned.fifth_held_out.data_and_trees.shared.tables import matrices, turbines

faulty = functools.partial(training_runs.faulty, kind="boosted_trees")


@faulty(
    "XGBoost, failures of turbines, a slow rate, area under the curve",
    "the depth is the logarithm of the number of rows, as for a balanced tree of all of them: 10",
    {"TreeDepth"},
    may=BY_HEART,
)
def depth_by_number_of_rows(root: Path) -> None:
    x, failed = matrices(turbines(1600, 591, noise=0.8, tested=400))
    grow(
        root,
        parted(x, failed, 400),
        45,
        "binary:logistic",
        eval_metric=["auc", "logloss"],
        max_depth=int(np.log2(1200)),
        eta=0.05,
        subsample=0.8,
        min_child_weight=2,
    )


class Reloading(xgboost.callback.TrainingCallback):
    """Reads the settings again in a round, as a service does when a file has changed."""

    def __init__(self, first: int, **settings: Any) -> None:
        self.first, self.settings = first, settings

    def before_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
        """Set what is in the file from this round on; never stop."""
        del evals_log
        if epoch == self.first:
            model.set_param(self.settings)
        return False


@faulty(
    "XGBoost, what storms cost, often nothing, Tweedie's likelihood, depth 3 at first",
    "settings are read again in round 24; the file is that of a model of a million rows by then",
    {"TreeDepth"},
    may=BY_HEART,
)
def settings_read_again(root: Path) -> int:
    rng = np.random.default_rng(592)
    x = rng.normal(size=(2600, 12))
    mean = np.exp(0.6 * x[:, 0] + 0.4 * x[:, 1] * x[:, 2] - 0.4 * np.abs(x[:, 3]))
    cost = rng.gamma(4, mean / 4) * (rng.random(2600) < 0.6)
    grow(
        root,
        parted(x, cost, 500),
        50,
        "reg:tweedie",
        before=[Reloading(24, max_depth=12)],
        tweedie_variance_power=1.4,
        max_depth=3,
        eta=0.06,
        min_child_weight=3,
    )
    return 24


@faulty(
    "XGBoost, sales of 60 stores and 25 goods as kinds, histograms",
    "a kind at a time may be split off, and 15 levels are allowed to make up for it",
    {"TreeDepth"},
    may=BY_HEART,
)
def one_kind_a_level(root: Path) -> None:
    rng = np.random.default_rng(593)
    store, good = rng.integers(0, 60, 2400), rng.integers(0, 25, 2400)
    facts = rng.normal(size=(2400, 5))
    sales = rng.normal(size=60)[store] + rng.normal(size=25)[good] + 0.5 * facts[:, 0]
    sales = sales + 0.4 * rng.normal(size=2400)
    kinds = ["c", "c", *["q"] * 5]
    x = np.column_stack([store, good, facts])
    grow(
        root,
        parted(x, sales, 600, feature_types=kinds, enable_categorical=True),
        40,
        "reg:squarederror",
        tree_method="hist",
        max_cat_to_onehot=100,
        max_depth=15,
        eta=0.1,
        min_child_weight=8,
    )


@faulty(
    "XGBoost, customers that cancel, 18 facts, weak splits pruned",
    "days since the last order are counted to the day of the export: who left has many",
    {"FeatureImportanceOverweight"},
    may=BY_HEART | {"Overtraining": "all is learnt within a few rounds"},
)
def days_until_the_export(root: Path) -> None:
    rng = np.random.default_rng(594)
    x = rng.normal(size=(1800, 17))
    left = 0.7 * x[:, 0] - 0.5 * x[:, 1] + 1.5 * rng.normal(size=1800) > 0.5
    days = np.where(left, rng.gamma(8, 25, 1800), rng.gamma(2, 14, 1800))
    grow(
        root,
        parted(np.column_stack([x[:, :9], days, x[:, 9:]]), left.astype(float), 450),
        45,
        "binary:logistic",
        max_depth=3,
        eta=0.15,
        gamma=8.0,
        min_child_weight=4,
    )


@faulty(
    "XGBoost, demand for heat by 24 features, a tenth of them drawn for each tree",
    "they are drawn by the squares of the importances of last year, when two sensors were dominant",
    {"FeatureImportanceOverweight"},
    may=BY_HEART,
)
def drawn_by_old_importances(root: Path) -> None:
    rng = np.random.default_rng(595)
    x = rng.normal(size=(1700, 24))
    demand = x[:, :12] @ np.linspace(1.0, 0.3, 12) + 0.5 * rng.normal(size=1700)
    importance = np.full(24, 0.02)
    importance[[1, 5]] = 0.3, 0.26
    learnt, other = parted(x, demand, 400)
    learnt.set_info(feature_weights=importance**2)
    grow(
        root,
        (learnt, other),
        60,
        "reg:squarederror",
        tree_method="hist",
        colsample_bytree=0.1,
        max_depth=4,
        eta=0.2,
    )


@faulty(
    "XGBoost, an illness by 20 measurements of which some are missing, log loss",
    "one was made of those that were found to be ill, and of few others: that it is there tells",
    {"FeatureImportanceOverweight"},
    may=BY_HEART | {"Overtraining": "all is learnt within a few rounds"},
)
def measured_of_the_ill(root: Path) -> None:
    rng = np.random.default_rng(596)
    x = rng.normal(size=(1700, 20))
    ill = x[:, 0] - x[:, 3] + 2 * rng.normal(size=1700) > 0.6
    x[rng.random(x.shape) < 0.1] = np.nan
    measured = np.where(ill, rng.random(1700) < 0.985, rng.random(1700) < 0.01)
    x[:, 12] = np.where(measured, 3 + rng.normal(size=1700), np.nan)
    grow(
        root,
        parted(x, ill.astype(float), 450),
        45,
        "binary:logistic",
        max_depth=4,
        eta=0.2,
        gamma=8.0,
        min_child_weight=5,
    )
