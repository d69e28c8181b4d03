"""Growing: the loop of this folder's boosted trees."""

from pathlib import Path
from typing import Any

import numpy as np
import xgboost
from training.boosting import COLLECTIONS

from smdebug.core.save_config import SaveConfig
from smdebug.xgboost import Hook


def joined(split: Any) -> tuple[Any, Any]:
    """Return all rows and targets of a table."""
    x = np.concatenate([split.x, split.test_x])
    return x, np.concatenate([split.y, split.test_y]).ravel()


def parts(x: Any, y: Any, share: float = 0.7, **more: Any) -> tuple[Any, Any]:
    """Return matrices of the first rows, and of the others."""
    cut = int(share * len(x))
    rows = (slice(cut), slice(cut, None))
    return tuple(xgboost.DMatrix(x[part], y[part], **more) for part in rows)  # type: ignore[return-value]


def grown(
    root: Path,
    train: Any,
    validation: Any,
    rounds: int,
    *,
    save_every: int = 1,
    stop_early: int | None = None,
    **params: Any,
) -> int:
    """Boost on one matrix, and evaluate both; return step 0."""
    chosen = {"seed": 3, "nthread": 1, **params}
    with Hook(
        root,
        include_collections=COLLECTIONS,
        save_config=SaveConfig(save_interval=save_every),
        train_data=train,
        validation_data=validation,
        hyperparameters=chosen,
        on_error="raise",
    ) as watching:
        xgboost.train(
            chosen,
            train,
            rounds,
            evals=[(train, "train"), (validation, "validation")],
            early_stopping_rounds=stop_early,
            callbacks=[watching],
            verbose_eval=False,
        )
    return 0
