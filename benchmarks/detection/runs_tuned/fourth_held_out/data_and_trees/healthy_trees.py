"""Healthy boosted trees: defects, delays, customers, calls, low water, answers, yields, seeds."""

import functools
from pathlib import Path

import numpy as np
import training_runs
import xgboost

from runs_tuned.fourth_held_out.data_and_trees.shared.growing import boosted, sides
from runs_tuned.fourth_held_out.data_and_trees.shared.tables import arrays, flights, leavers, wafers

healthy = functools.partial(training_runs.healthy, kind="boosted_trees")


@healthy("XGBoost, defects of wafers, five kinds of them, one rarer, depth 5, stopped early")
def trees_of_defects(root: Path) -> None:
    x, defect = arrays(wafers(1500, 401, lean=(0.3, 0.0, 0.0, 0.2, -0.6), noise=0.3))
    boosted(
        root,
        *sides(x, defect, 400),
        60,
        patience=6,
        objective="multi:softprob",
        num_class=5,
        max_depth=5,
        eta=0.12,
        subsample=0.8,
        min_child_weight=4,
    )


def delays(root: Path, x: np.ndarray, delay: np.ndarray) -> None:
    """Boost the absolute errors of delays, half of the columns a level, always by one seed."""
    boosted(
        root,
        *sides(x, delay, 300),
        50,
        objective="reg:absoluteerror",
        tree_method="hist",
        max_depth=4,
        eta=0.15,
        colsample_bylevel=0.5,
    )


@healthy("XGBoost, delays of flights, absolute errors, half of the columns a level")
def trees_of_delays(root: Path) -> None:
    delays(root, *arrays(flights(1500, 402)))


@healthy(
    "XGBoost, delays of flights, absolute errors, computed on another day",
    other="trees_of_delays",
)
def trees_of_delays_once_more(root: Path) -> None:
    delays(root, *arrays(flights(1500, 402)))


@healthy("XGBoost, customers of whom one in seven leaves, leavers count thrice, precision, depth 3")
def trees_of_leavers(root: Path) -> None:
    x, leaves = arrays(leavers(2000, 403, share=1 / 7, tested=500))
    boosted(
        root,
        *sides(x, leaves, 500),
        70,
        save_every=2,
        objective="binary:logistic",
        eval_metric=["aucpr", "logloss"],
        scale_pos_weight=3.0,
        max_depth=3,
        eta=0.08,
        reg_lambda=5.0,
    )


@healthy("XGBoost, calls in shifts of different length, whose logarithm is the margin, Poisson")
def trees_of_calls(root: Path) -> None:
    rng = np.random.default_rng(404)
    x = rng.normal(size=(1600, 10))
    hours = rng.uniform(1, 9, 1600)
    rate = np.exp(0.5 * x[:, 0] - 0.4 * np.abs(x[:, 1]) + 0.3 * (x[:, 2] > 0) * x[:, 3])
    train, test = sides(x, rng.poisson(rate * hours).astype(float), 400)
    train.set_base_margin(np.log(hours[:-400]))
    test.set_base_margin(np.log(hours[-400:]))
    boosted(
        root,
        train,
        test,
        60,
        patience=8,
        objective="count:poisson",
        max_depth=3,
        eta=0.08,
        min_child_weight=10,
    )


@healthy("XGBoost, low water of a river, the fifth part and the median at once, depth 3")
def trees_of_low_water(root: Path) -> None:
    rng = np.random.default_rng(405)
    x = rng.normal(size=(1500, 8))
    level = 2 + x[:, 0] + 0.6 * np.sin(2 * x[:, 1]) + 0.5 * x[:, 2] * (x[:, 3] > 0)
    level = level + (0.4 + 0.2 * np.abs(x[:, 4])) * rng.normal(size=1500)
    boosted(
        root,
        *sides(x, level, 400),
        60,
        save_every=2,
        objective="reg:quantileerror",
        quantile_alpha=[0.2, 0.5],
        tree_method="hist",
        max_depth=3,
        eta=0.12,
    )


@healthy("XGBoost, answers to 120 questions of which some help, ranked in pairs by precision")
def trees_of_answers(root: Path) -> None:
    rng = np.random.default_rng(406)
    x = rng.normal(size=(1800, 9))
    score = x[:, 0] + 0.7 * x[:, 1] * (x[:, 2] > 0) - 0.5 * x[:, 3] + 0.6 * rng.normal(size=1800)
    train, test = sides(x, (score > 0.9).astype(float), 450)
    train.set_group([15] * 90)
    test.set_group([15] * 30)
    boosted(
        root,
        train,
        test,
        50,
        objective="rank:map",
        lambdarank_pair_method="topk",
        lambdarank_num_pair_per_sample=6,
        max_depth=3,
        eta=0.1,
        min_child_weight=1.0,
    )


@healthy("XGBoost, yields of fields, at most eight leaves, a rate that falls by the round")
def trees_of_yields(root: Path) -> None:
    rng = np.random.default_rng(407)
    x = rng.normal(size=(1400, 15))
    x[rng.random(x.shape) < 0.1] = np.nan
    known = np.nan_to_num(x)
    crop = 3 + known[:, 0] - 0.7 * known[:, 1] ** 2 + 0.5 * known[:, 2] * known[:, 3]
    falling = xgboost.callback.LearningRateScheduler(lambda number: 0.25 * 0.97**number)
    boosted(
        root,
        *sides(x, crop + 0.6 * rng.normal(size=1400), 350),
        70,
        more=[falling],
        patience=10,
        objective="reg:squarederror",
        tree_method="hist",
        grow_policy="lossguide",
        max_leaves=8,
        max_depth=6,
        subsample=0.7,
    )


@healthy("XGBoost, three sorts of seeds by six lengths, stumps of two levels, a small table")
def trees_of_seeds(root: Path) -> None:
    rng = np.random.default_rng(408)
    sort = rng.integers(0, 3, 420)
    centres = np.array([[5.2, 3.1, 1.4], [5.9, 3.6, 2.2], [6.5, 3.2, 3.0]])
    lengths = centres[sort] + 0.35 * rng.normal(size=(420, 3))
    more = lengths @ rng.normal(size=(3, 3)) + 0.4 * rng.normal(size=(420, 3))
    boosted(
        root,
        *sides(np.column_stack([lengths, more]), sort, 120),
        40,
        patience=5,
        objective="multi:softmax",
        eval_metric="mlogloss",
        num_class=3,
        max_depth=2,
        eta=0.15,
        subsample=0.7,
        colsample_bytree=0.7,
    )
