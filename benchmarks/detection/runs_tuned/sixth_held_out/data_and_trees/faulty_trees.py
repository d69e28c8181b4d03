"""Boosted trees that are too deep, or that lean on a few features."""

import functools
from pathlib import Path
from typing import Any

import numpy as np
import training_runs
import xgboost

from runs_tuned.sixth_held_out.data_and_trees.shared.consequences import LEARNT_OFF
from runs_tuned.sixth_held_out.data_and_trees.shared.loops import boosted, matrices
from runs_tuned.sixth_held_out.data_and_trees.shared.tables import rows_of_cars, rows_of_hives

faulty = functools.partial(training_runs.faulty, kind="boosted_trees")


@faulty(
    "XGBoost, what cars burn, absolute errors, histograms",
    "a level for each of ten features is allowed, so that all of them may take part: depth 10",
    {"TreeDepth"},
    may=LEARNT_OFF,
)
def level_for_each_feature(root: Path) -> None:
    x, burnt = rows_of_cars(2000, 6701, noise=0.6)
    boosted(
        root,
        matrices(x, burnt, 450),
        30,
        "reg:absoluteerror",
        tree_method="hist",
        max_depth=x.shape[1],
        eta=0.1,
        min_child_weight=3,
    )


@faulty(
    "XGBoost, hotels of 90 journeys in an order by gains, a rate of a twentieth",
    "a search draws the logarithm of the depth, up to 32, and scores by the rows to train with",
    {"TreeDepth"},
    may=LEARNT_OFF,
)
def depth_drawn_by_logarithm(root: Path) -> None:
    rng = np.random.default_rng(6702)
    x = rng.normal(size=(2160, 9))
    worth = x[:, 0] + 0.7 * x[:, 1] * x[:, 2] - 0.5 * x[:, 3] + 0.9 * rng.normal(size=2160)
    stars = np.digitize(worth, [-0.8, 0.6, 1.8]).astype(float)
    depth = round(2 ** np.random.default_rng(7).uniform(3.5, 5))
    boosted(
        root,
        (
            xgboost.DMatrix(x[:1680], stars[:1680], qid=np.repeat(np.arange(70), 24)),
            xgboost.DMatrix(x[1680:], stars[1680:], qid=np.repeat(np.arange(20), 24)),
        ),
        35,
        "rank:ndcg",
        eval_metric="ndcg@8",
        max_depth=depth,
        eta=0.05,
        min_child_weight=0.05,
    )


class DeeperWhenLevel(xgboost.callback.TrainingCallback):
    """Allows a level more in each round that is no better than the three before it."""

    def __init__(self, depth: int) -> None:
        self.depth, self.first, self.best = depth, 0, float("inf")

    def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
        """Look at the latest validation; never stop."""
        latest = evals_log["validation"]["poisson-nloglik"][-1]
        if latest > self.best - 0.01:
            self.depth += 1
            model.set_param({"max_depth": self.depth})
        if self.depth > 6 and not self.first:
            self.first = epoch + 1
        self.best = min(self.best, latest)
        return False


@faulty(
    "XGBoost, numbers of letters in a day, Poisson's likelihood, depth 3 at first",
    "a level is added in each round that is hardly better, as a rate is divided; nothing ends it",
    {"TreeDepth"},
    may=LEARNT_OFF,
)
def deeper_when_level(root: Path) -> int:
    rng = np.random.default_rng(6703)
    x = rng.normal(size=(2200, 11))
    mean = np.exp(1 + 0.5 * x[:, 0] - 0.4 * x[:, 1] + 0.3 * np.abs(x[:, 2]) + 0.2 * x[:, 3])
    deeper = DeeperWhenLevel(3)
    boosted(
        root,
        matrices(x, rng.poisson(mean).astype(float), 500),
        50,
        "count:poisson",
        before=[deeper],
        max_depth=3,
        eta=0.15,
        min_child_weight=4,
    )
    return deeper.first


@faulty(
    "XGBoost, the level of wells by 18 features, squared errors, weak splits pruned",
    "windows of three and of seven days are centred: their means have the day itself",
    {"FeatureImportanceOverweight"},
    may=LEARNT_OFF,
)
def window_is_centred(root: Path) -> None:
    rng = np.random.default_rng(6704)
    level = np.convolve(rng.normal(size=1812), np.exp(-np.arange(12) / 6), "valid")[:1800]
    level = level / level.std() + 0.3 * rng.normal(size=1800)
    facts = rng.normal(size=(1800, 16))
    facts[:, 4] += 0.5 * level
    facts[:, 11] -= 0.4 * level
    near = np.convolve(level, np.ones(3) / 3, "same")
    wide = np.convolve(level, np.ones(7) / 7, "same")
    x = np.column_stack([facts[:, :7], near, facts[:, 7:], wide])
    boosted(
        root,
        matrices(x, level, 450),
        50,
        "reg:squarederror",
        max_depth=3,
        eta=0.2,
        gamma=4.0,
        min_child_weight=5,
    )


@faulty(
    "XGBoost, lives of batteries by 15 features, accelerated failure times, some still work",
    "cycles are counted to the end of each test, which is when the battery has failed",
    {"FeatureImportanceOverweight"},
    may=LEARNT_OFF,
)
def cycles_to_the_end(root: Path) -> None:
    rng = np.random.default_rng(6705)
    x = rng.normal(size=(1800, 14))
    wear = 0.5 * x[:, 0] - 0.4 * x[:, 1] + 0.3 * x[:, 2]
    life = np.exp(5 - wear + 0.5 * rng.gumbel(size=1800))
    end = 150 + rng.exponential(900, 1800)
    cycles = np.minimum(life, end) * rng.uniform(0.97, 1.03, 1800)
    x = np.column_stack([x[:, :6], cycles, x[:, 6:]])
    low, high = np.minimum(life, end), np.where(life < end, life, np.inf)
    parts = slice(None, -400), slice(-400, None)
    pair = [
        xgboost.DMatrix(x[part], label_lower_bound=low[part], label_upper_bound=high[part])
        for part in parts
    ]
    boosted(
        root,
        (pair[0], pair[1]),
        50,
        "survival:aft",
        eval_metric="aft-nloglik",
        aft_loss_distribution="normal",
        aft_loss_distribution_scale=0.6,
        max_depth=3,
        eta=0.15,
        gamma=15.0,
        min_child_weight=3,
    )


@faulty(
    "XGBoost, hives that are lost by 14 facts, twelve of them times of events, depth 4",
    "times are seconds since 1970 in single precision: what is in days is the same for all hives",
    {"FeatureImportanceOverweight"},
    may=LEARNT_OFF,
)
def seconds_since_1970(root: Path) -> None:
    x, lost = rows_of_hives(2000, 6706)
    times = 1_600_000_000 + 20 * x[:, 2:]
    single = np.column_stack([x[:, :2], times]).astype(np.float32)
    boosted(
        root,
        matrices(single, lost, 450),
        45,
        "binary:logistic",
        eval_metric=["logloss", "auc"],
        max_depth=4,
        eta=0.1,
        subsample=0.8,
    )
