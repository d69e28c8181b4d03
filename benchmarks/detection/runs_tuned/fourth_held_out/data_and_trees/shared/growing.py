"""Growing: rounds of boosting on rows of one's own choice, watched by a hook."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import xgboost
from training.boosting import train_booster


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
    return train_booster(
        root,
        train,
        validation,
        given,
        rounds=rounds,
        save_every=save_every,
        patience=patience,
        before=more,
    )
