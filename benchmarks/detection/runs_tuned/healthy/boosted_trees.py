"""Healthy trainings of XGBoost: one of two, one of several, regression; stopped in time."""

import functools
from pathlib import Path

import numpy as np
import training_runs
from training.boosting import boost, table

healthy = functools.partial(training_runs.healthy, kind="boosted_trees")


@healthy("XGBoost, breast cancer, trees of depth 3")
def boosted_cancer(root: Path) -> int:
    return boost(root, *table("breast_cancer"), max_depth=3, eta=0.2)


@healthy("XGBoost, digits in ten classes, depth 4, a class for each tree")
def boosted_digits(root: Path) -> int:
    return boost(
        root,
        *table("digits"),
        objective="multi:softmax",
        max_depth=4,
        eta=0.3,
        rounds=40,
        save_every=4,
    )


@healthy("XGBoost, wine in three classes, chances of each, rows and columns sampled")
def boosted_wine(root: Path) -> int:
    return boost(
        root,
        *table("wine"),
        objective="multi:softprob",
        max_depth=3,
        subsample=0.8,
        colsample_bytree=0.6,
        rounds=20,
    )


@healthy("XGBoost, iris in three classes: four features")
def boosted_iris(root: Path) -> int:
    return boost(root, *table("iris"), objective="multi:softmax", max_depth=2, rounds=12, eta=0.2)


@healthy("XGBoost, diabetes, regression, stopped early")
def boosted_diabetes(root: Path) -> int:
    return boost(
        root,
        *table("diabetes"),
        objective="reg:squarederror",
        max_depth=2,
        eta=0.05,
        rounds=60,
        stop_early=5,
        subsample=0.7,
        save_every=2,
        reg_lambda=5,
    )


@healthy("XGBoost, breast cancer, its defaults (depth 6), stopped early")
def boosted_defaults(root: Path) -> int:
    return boost(root, *table("breast_cancer"), rounds=40, stop_early=3)


@healthy("XGBoost, breast cancer, unequal classes of equal weight")
def boosted_weighted(root: Path) -> int:
    x, y = table("breast_cancer")
    rows = (y == 1) | (np.cumsum(y == 0) % 3 == 0)
    return boost(
        root,
        x[rows],
        y[rows],
        max_depth=2,
        eta=0.3,
        rounds=25,
        stop_early=2,
        scale_pos_weight=0.3,
    )


@healthy("XGBoost, digits of even and odd number, leaves by loss, at most 12")
def boosted_by_leaves(root: Path) -> int:
    x, y = table("digits")
    return boost(
        root,
        x,
        y % 2,
        tree_method="hist",
        grow_policy="lossguide",
        max_leaves=12,
        max_depth=4,
        rounds=40,
        save_every=2,
    )


def noisy_table(features: int, noise: float, count: int = 600) -> tuple[np.ndarray, np.ndarray]:
    """Return rows of a few features, and a target that one linear part of them explains."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(count, features))
    return x, x @ np.linspace(1.0, 0.3, features) + noise * rng.normal(size=count)


@healthy("XGBoost, three features, default depth, noisy classes, stopped early")
def boosted_three_features(root: Path) -> int:
    x, y = noisy_table(3, 1.0)
    return boost(root, x, (y > 0).astype(int), rounds=30, stop_early=3)


@healthy("XGBoost, two features, regression with noise, default depth, stopped early")
def boosted_two_features(root: Path) -> int:
    x, y = noisy_table(2, 1.0)
    return boost(root, x, y, objective="reg:squarederror", eta=0.1, rounds=40, stop_early=4)


@healthy("XGBoost, eight features of noise, a slow rate, stopped early")
def boosted_noise(root: Path) -> int:
    x, y = noisy_table(8, 3.0)
    return boost(
        root, x, y, objective="reg:squarederror", eta=0.05, max_depth=3, rounds=40, stop_early=5
    )


@healthy("XGBoost, wine, default depth, evaluated on 45 rows")
def boosted_wine_defaults(root: Path) -> int:
    return boost(root, *table("wine"), objective="multi:softprob", rounds=20, stop_early=3)


@healthy("XGBoost, five features, classes of one in ten, default depth")
def boosted_rare_class(root: Path) -> int:
    x, y = noisy_table(5, 0.5, 1200)
    return boost(root, x, (y > 1.8).astype(int), rounds=25, stop_early=3)
