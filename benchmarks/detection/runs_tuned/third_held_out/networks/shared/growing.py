"""Growing: the loop of this folder's boosted trees."""

from pathlib import Path
from typing import Any

import numpy as np
import xgboost
from training.boosting import train_booster


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
    train_booster(
        root, train, validation, chosen, rounds=rounds, save_every=save_every, patience=stop_early
    )
    return 0
