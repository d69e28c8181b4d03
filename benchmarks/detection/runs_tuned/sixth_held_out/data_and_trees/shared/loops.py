"""Loops: a training with batches, steps and evaluations of one's own, and boosting of rows."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import torch
import xgboost
from torch import nn
from training.boosting import train_booster
from training.learnt_data import Split
from training.torch_loop import validate, watched


def study(
    root: Path,
    model: Any,
    fed: Iterable[Any],
    data: Split,
    optimizer: Any,
    *,
    steps: int,
    loss: Any = None,
    every: int = 2,
    validated: int = 14,
    clip: float = 0.0,
    onset_at: int = 0,
    precise: Any = torch.float32,
    examine: Callable[..., object] = validate,
    after: Callable[[int, float], object] = lambda _, __: None,
) -> int:
    """Train with what is fed, and return the global step of training step `onset_at`.

    Parameters
    ----------
    every, validated
        Steps between two that are saved, and between two evaluations by `examine`.
    precise
        The type of forward passes.
    after
        Called after each step with its number and its loss.
    """
    torch.set_num_threads(1)
    loss, onset = loss or nn.CrossEntropyLoss(), 0
    cast = torch.autocast("cpu", torch.bfloat16, enabled=precise is torch.bfloat16)
    with watched(root, model, losses=[loss], save_every=every) as watching:
        for step, (x, y) in zip(range(steps), fed, strict=False):
            if onset_at and step == onset_at:
                onset = watching.global_step + 1
            with cast:
                value = loss(model(x), y)
            optimizer.zero_grad()
            value.backward()
            if clip:
                nn.utils.clip_grad_norm_(model.parameters(), clip)
            optimizer.step()
            after(step, float(value.detach()))
            if (step + 1) % validated == 0:
                with cast:
                    examine(watching, model, loss, data)
    return onset


def matrices(x: Any, y: Any, tested: int, **more: Any) -> tuple[Any, Any]:
    """Return a matrix of the first rows, and of the last ones to validate with."""
    rows = slice(None, -tested), slice(-tested, None)
    learnt, other = (xgboost.DMatrix(x[part], y[part], **more) for part in rows)
    return learnt, other


def boosted(
    root: Path,
    pair: tuple[Any, Any],
    rounds: int,
    objective: str,
    *,
    every: int = 1,
    patience: int | None = None,
    before: Iterable[Any] = (),
    **params: Any,
) -> Any:
    """Boost with a matrix and validate with another; save each nth round; return the booster."""
    chosen = {"objective": objective, "seed": 23, "nthread": 1, **params}
    learnt, other = pair
    return train_booster(
        root,
        learnt,
        other,
        chosen,
        rounds=rounds,
        save_every=every,
        patience=patience,
        before=before,
    )
