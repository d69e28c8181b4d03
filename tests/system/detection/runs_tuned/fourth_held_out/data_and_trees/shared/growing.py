"""Growing: rounds of boosting on rows of one's own choice, watched by a hook."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import xgboost
from training.boosting import COLLECTIONS

from smdebug.core.save_config import SaveConfig
from smdebug.xgboost import Hook


def sides(x: Any, y: Any, tested: int, **more: Any) -> tuple[Any, Any]:
    """Return matrices of the first rows and of the last ones, which are tested."""
    return (
        xgboost.DMatrix(x[:-tested], y[:-tested], **more),
        xgboost.DMatrix(x[-tested:], y[-tested:], **more),
    )


def boosted(
    root: Path,
    train: Any,
    validation: Any,
    rounds: int,
    *,
    objective: str,
    save_every: int = 1,
    patience: int | None = None,
    more: Iterable[Any] = (),
    **params: Any,
) -> Any:
    """Boost, save each nth round, and return the booster.

    Parameters
    ----------
    patience
        Rounds without a better validation until it is stopped.
    more
        Callbacks that come before the hook.
    """
    given = {"objective": objective, "seed": 4, "nthread": 1, **params}
    with Hook(
        root,
        include_collections=COLLECTIONS,
        save_config=SaveConfig(save_interval=save_every),
        train_data=train,
        validation_data=validation,
        hyperparameters=given,
        on_error="raise",
    ) as watching:
        return xgboost.train(
            given,
            train,
            rounds,
            evals=[(train, "train"), (validation, "validation")],
            early_stopping_rounds=patience,
            callbacks=[*more, watching],
            verbose_eval=False,
        )
