"""Boosting: the loop of the detection suite's XGBoost runs, and what their hook saves."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import xgboost
from sklearn import datasets as bundled
from sklearn.model_selection import train_test_split

from smdebug.core.save_config import SaveConfig
from smdebug.xgboost import Hook

COLLECTIONS = ("metrics", "losses", "predictions", "labels", "feature_importance", "trees")


def table(name: str) -> Any:
    """Return features and targets of a bundled table."""
    return getattr(bundled, f"load_{name}")(return_X_y=True)


def train_booster(
    root: Path,
    train: Any,
    validation: Any,
    params: dict[str, Any],
    *,
    rounds: int,
    save_every: int = 1,
    patience: int | None = None,
    before: Iterable[Any] = (),
) -> Any:
    """Boost, save each nth round, and return the booster.

    Parameters
    ----------
    patience
        Rounds without a better validation until it is stopped.
    before
        Callbacks that come before the hook.
    """
    with Hook(
        root,
        include_collections=COLLECTIONS,
        save_config=SaveConfig(save_interval=save_every),
        train_data=train,
        validation_data=validation,
        hyperparameters=params,
        on_error="raise",
    ) as watching:
        return xgboost.train(
            params,
            train,
            rounds,
            evals=[(train, "train"), (validation, "validation")],
            early_stopping_rounds=patience,
            callbacks=[*before, watching],
            verbose_eval=False,
        )


def boost(
    root: Path,
    x: Any,
    y: Any,
    *,
    objective: str = "binary:logistic",
    rounds: int = 30,
    save_every: int = 1,
    stop_early: int | None = None,
    test: Any = None,
    weight: Any = None,
    **params: Any,
) -> int:
    """Train on three quarters of the rows and validate on the rest; return step 0."""
    chosen = None if objective.startswith("reg") else y
    x, test_x, y, test_y = train_test_split(x, y, test_size=0.25, random_state=0, stratify=chosen)
    train = xgboost.DMatrix(x, y, weight=None if weight is None else weight(y))
    other = xgboost.DMatrix(test_x, test_y) if test is None else test(test_x, test_y)
    classes = {"num_class": int(np.max(y)) + 1} if objective.startswith("multi") else {}
    given = {"objective": objective, "seed": 0, "nthread": 1, **classes, **params}
    train_booster(
        root, train, other, given, rounds=rounds, save_every=save_every, patience=stop_early
    )
    return 0
