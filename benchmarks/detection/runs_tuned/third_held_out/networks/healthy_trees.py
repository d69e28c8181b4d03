"""Healthy boosted trees: claims, crops with gaps, prices, lifetimes, kinds of branches."""

import functools
from pathlib import Path

import numpy as np
import training_runs
import xgboost

from runs_tuned.third_held_out.networks.shared.growing import grown, joined, parts
from runs_tuned.third_held_out.networks.shared.tables import hires, loans, orders, soils

healthy = functools.partial(training_runs.healthy, kind="boosted_trees")


@healthy("XGBoost, what is claimed: mostly nothing, Tweedie's likelihood, depth 3")
def trees_of_claims(root: Path) -> int:
    rng = np.random.default_rng(341)
    x = rng.normal(size=(1600, 9))
    risk = np.exp(0.4 * x[:, 0] - 0.3 * x[:, 1] + 0.3 * (x[:, 2] > 0.5) - 0.3)
    claimed = rng.poisson(risk) * rng.gamma(2, 0.5, 1600)
    data = parts(x, claimed)
    return grown(
        root, *data, 40, objective="reg:tweedie", tweedie_variance_power=1.4, max_depth=3, eta=0.07
    )


@healthy("XGBoost, crops of soils, one measurement in four is missing, half of the columns a tree")
def trees_of_soils(root: Path) -> int:
    x, crop = joined(soils())
    x = np.where(np.random.default_rng(342).random(x.shape) < 0.25, np.nan, x)
    return grown(
        root,
        *parts(x, crop),
        35,
        objective="multi:softprob",
        num_class=4,
        max_depth=4,
        eta=0.15,
        colsample_bytree=0.5,
        min_child_weight=3,
    )


@healthy("XGBoost, prices by a gamma likelihood, rows sampled, every fifth round")
def trees_of_prices(root: Path) -> int:
    rng = np.random.default_rng(343)
    x = rng.normal(size=(1500, 12))
    level = np.exp(0.5 * x[:, 0] + 0.3 * np.sin(2 * x[:, 1]) + 0.2 * x[:, 2] * x[:, 3])
    price = level * rng.gamma(6, 1 / 6, 1500)
    return grown(
        root,
        *parts(x, price),
        80,
        save_every=5,
        objective="reg:gamma",
        max_depth=4,
        eta=0.06,
        subsample=0.8,
    )


@healthy("XGBoost, lifetimes of pumps, some still run: accelerated failure times, depth 2")
def trees_of_lifetimes(root: Path) -> int:
    rng = np.random.default_rng(344)
    x = rng.normal(size=(1200, 8))
    log = 1.0 + 0.6 * x[:, 0] - 0.4 * np.abs(x[:, 1]) + 0.4 * rng.normal(size=1200)
    lived, watched = np.exp(log), rng.exponential(8.0, 1200)
    upper = np.where(lived <= watched, lived, np.inf)
    cut = slice(0, 840), slice(840, None)
    matrices = []
    for rows in cut:
        matrix = xgboost.DMatrix(x[rows])
        matrix.set_float_info("label_lower_bound", np.minimum(lived, watched)[rows])
        matrix.set_float_info("label_upper_bound", upper[rows])
        matrices.append(matrix)
    return grown(
        root,
        *matrices,
        60,
        objective="survival:aft",
        eval_metric="aft-nloglik",
        aft_loss_distribution="normal",
        aft_loss_distribution_scale=0.5,
        max_depth=2,
        eta=0.1,
    )


@healthy("XGBoost, loans not paid back, branches and trades as kinds, stopped early, log loss")
def trees_of_loans(root: Path) -> int:
    x, unpaid = joined(loans())
    return grown(
        root,
        *parts(x, unpaid, feature_types=["c", "c", *["q"] * 6], enable_categorical=True),
        80,
        stop_early=5,
        objective="binary:logistic",
        tree_method="hist",
        max_depth=3,
        eta=0.1,
        max_cat_to_onehot=4,
    )


@healthy("XGBoost, lateness of orders, pseudo-Huber errors, absolute values of leaves cost")
def trees_of_orders(root: Path) -> int:
    x, late = joined(orders())
    return grown(
        root,
        *parts(x, late),
        50,
        objective="reg:pseudohubererror",
        tree_method="hist",
        max_depth=4,
        eta=0.1,
        reg_alpha=0.5,
    )


@healthy("XGBoost, hires of bicycles, squares of logarithms, interactions are limited, depth 3")
def trees_of_hires(root: Path) -> int:
    x, hired = joined(hires())
    return grown(
        root,
        *parts(x, hired),
        45,
        save_every=3,
        objective="reg:squaredlogerror",
        base_score=2.0,
        max_depth=3,
        eta=0.1,
        interaction_constraints="[[0, 1], [2, 3, 4, 5, 6, 7]]",
    )
