"""Rounds: boosting of two matrices, watched by a hook."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import xgboost
from training.boosting import train_booster


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
    train_booster(
        root,
        *pair,
        chosen,
        rounds=rounds,
        save_every=save_every,
        patience=stop_after,
        before=before,
    )
