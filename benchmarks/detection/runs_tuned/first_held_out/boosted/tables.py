"""Generated tables, and the loop that grows trees on them."""

from pathlib import Path
from typing import Any

import numpy as np
import xgboost
from sklearn.datasets import make_classification, make_friedman1
from training.boosting import train_booster

Table = tuple[Any, Any]


def grow(
    root: Path,
    train: Any,
    validation: Any,
    rounds: int = 40,
    *,
    save_every: int = 1,
    stop_early: int | None = None,
    **params: Any,
) -> int:
    """Boost on one matrix, and evaluate both; return step 0."""
    chosen = {"seed": 1, "nthread": 1, **params}
    train_booster(
        root, train, validation, chosen, rounds=rounds, save_every=save_every, patience=stop_early
    )
    return 0


def halves(x: Any, y: Any, share: float = 0.7, **more: Any) -> tuple[Any, Any]:
    """Return matrices of the first rows and of the others; `more` holds values of each row."""
    cut = int(share * len(x))
    parts = (slice(cut), slice(cut, None))
    return tuple(
        xgboost.DMatrix(x[part], y[part], **{name: values[part] for name, values in more.items()})
        for part in parts
    )


def friedman(count: int = 900, noise: float = 1.0, seed: int = 21) -> Table:
    """Return ten features and Friedman's first function of five of them, with noise."""
    x, y = make_friedman1(count, 10, noise=noise, random_state=seed)
    return x, y


def claims(count: int = 1200, seed: int = 22) -> Table:
    """Return eight features of drivers and the number of their claims."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(count, 8))
    rate = np.exp(0.2 + 0.5 * x[:, 0] - 0.4 * np.abs(x[:, 1]) + 0.3 * (x[:, 2] > 0.5) * x[:, 3])
    return x, rng.poisson(rate).astype(float)


def houses(count: int = 800, seed: int = 23) -> Table:
    """Return twelve features of houses and the logarithm of their prices."""
    rng = np.random.default_rng(seed)
    size = rng.lognormal(4.6, 0.4, count)
    age = rng.uniform(0, 90, count)
    distance = rng.exponential(8.0, count)
    x = np.column_stack([size, age, distance, rng.normal(size=(count, 9))])
    price = np.log(size) - 0.006 * age - 0.03 * distance + 0.15 * x[:, 3] + 0.1 * x[:, 4] * x[:, 5]
    return x, price + 0.12 * rng.normal(size=count)


def classes(number: int = 2, seed: int = 24, **more: Any) -> Table:
    """Return twenty features, eight of which tell a class."""
    chosen: dict[str, Any] = {"n_samples": 900, "class_sep": 1.0, "flip_y": 0.03} | more
    x, y = make_classification(
        n_features=20,
        n_informative=8,
        n_redundant=3,
        n_classes=number,
        n_clusters_per_class=2,
        random_state=seed,
        **chosen,
    )
    return x, y


def results_of_queries(queries: int = 70, seed: int = 25) -> tuple[Any, Any, Any]:
    """Return twelve features of results, their relevance of 0 to 4, and their queries."""
    rng = np.random.default_rng(seed)
    query = np.repeat(np.arange(queries), 14)
    x = rng.normal(size=(len(query), 12))
    score = x[:, 0] + 0.7 * x[:, 1] * x[:, 2] + 0.5 * np.tanh(2 * x[:, 3]) + 0.4 * x[:, 4]
    score += 0.7 * rng.normal(size=len(query))
    return x, np.digitize(score, [-0.5, 0.6, 1.4, 2.2]), query


def lifetimes(count: int = 900, seed: int = 26) -> Table:
    """Return ten features and times of survival; negative ones are censored."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(count, 10))
    risk = 0.7 * x[:, 0] + 0.5 * np.maximum(x[:, 1], 0) - 0.4 * x[:, 2]
    time, end = rng.exponential(10 * np.exp(-risk)), rng.exponential(18.0, count)
    return x, np.where(time < end, time, -end)
