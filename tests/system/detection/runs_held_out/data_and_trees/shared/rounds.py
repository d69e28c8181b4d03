"""Rounds: boosting of two matrices, watched by a hook."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import xgboost
from training.boosting import COLLECTIONS

from smdebug.core.save_config import SaveConfig
from smdebug.xgboost import Hook


def parted(x: Any, y: Any, tested: int, **more: Any) -> tuple[Any, Any]:
    """Return matrices of the first rows, and of the last ones to validate with."""
    return (
        xgboost.DMatrix(x[:-tested], y[:-tested], **more),
        xgboost.DMatrix(x[-tested:], y[-tested:], **more),
    )


def grow(
    root: Path,
    pair: tuple[Any, Any],
    rounds: int,
    objective: str,
    *,
    save_every: int = 1,
    stop_after: int | None = None,
    before: Iterable[Any] = (),
    **params: Any,
) -> None:
    """Boost with all that rules read saved each nth round; `before` are callbacks of the user."""
    chosen = {"objective": objective, "seed": 11, "nthread": 1, **params}
    learnt, other = pair
    with Hook(
        root,
        include_collections=COLLECTIONS,
        save_config=SaveConfig(save_interval=save_every),
        train_data=learnt,
        validation_data=other,
        hyperparameters=chosen,
        on_error="raise",
    ) as watching:
        xgboost.train(
            chosen,
            learnt,
            rounds,
            evals=[(learnt, "train"), (other, "validation")],
            early_stopping_rounds=stop_after,
            callbacks=[*before, watching],
            verbose_eval=False,
        )
