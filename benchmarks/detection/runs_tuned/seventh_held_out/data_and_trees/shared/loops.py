"""Loops: epochs over a loader with an evaluation after each, Keras's fit, and boosting."""

import logging
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import torch
import xgboost
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from training.boosting import train_booster
from training.learnt_data import Split
from training.torch_loop import watched

from smdebug.core.modes import ModeKeys

_LOG = logging.getLogger(__name__)


def loader(data: Split, size: int, seed: int, **more: Any) -> Any:
    """Return shuffled batches of the rows to train with; the last small one is dropped."""
    generator = torch.Generator().manual_seed(seed)
    rows = TensorDataset(data.x, data.y)
    chosen = {"shuffle": True, "drop_last": True, **more}
    return DataLoader(rows, size, generator=generator, **chosen)


def validation(data: Split, size: int = 200) -> Any:
    """Return batches of the rows to validate with."""
    return DataLoader(TensorDataset(data.test_x, data.test_y), size)


def evaluated(watching: Any, model: Any, loss: Any, batches: Iterable[Any]) -> float:
    """Return the mean loss of batches that are evaluated with the model as it is."""
    watching.set_mode(ModeKeys.EVAL)
    losses, right, count = [], 0, 0
    with torch.no_grad():
        for x, y in batches:
            scores = model(x)
            losses.append(float(loss(scores, y)))
            if y.ndim == 1 and scores.ndim == 2:
                right += int((scores.argmax(1) == y).sum())
                count += len(y)
    watching.set_mode(ModeKeys.TRAIN)
    mean = sum(losses) / len(losses)
    _LOG.info("validation %.4f, %.3f right", mean, right / max(count, 1))
    return mean


def switched(watching: Any, model: Any, loss: Any, batches: Iterable[Any]) -> float:
    """Evaluate in evaluation mode, and go back to training."""
    model.eval()
    mean = evaluated(watching, model, loss, batches)
    model.train()
    return mean


def _end_epoch(scheduler: Any, loss: float) -> None:
    if isinstance(scheduler, torch.optim.lr_scheduler.ReduceLROnPlateau):
        scheduler.step(loss)
    elif scheduler:
        scheduler.step()


def _update(model: Any, optimizer: Any, clip: float, scheduler: Any) -> None:
    if clip:
        nn.utils.clip_grad_norm_(model.parameters(), clip)
    optimizer.step()
    optimizer.zero_grad()
    if scheduler:
        scheduler.step()


def train(
    root: Path,
    model: Any,
    batches: Any,
    tests: Any,
    optimizer: Any,
    *,
    epochs: int,
    loss: Any = None,
    per_step: Any = None,
    per_epoch: Any = None,
    every: int = 2,
    validated: int = 0,
    clip: float = 0.0,
    accumulate: int = 1,
    patience: int = 0,
    changed: Callable[[Any], Any] = lambda x: x,
    evaluate: Callable[..., float] = switched,
    before_epoch: Callable[[int, Any], object] = lambda _, __: None,
    after_step: Callable[[int, Any], object] = lambda _, __: None,
) -> int:
    """Train for epochs and evaluate after each; return 0.

    Parameters
    ----------
    per_step, per_epoch
        Schedulers to step after each update, and after each epoch (with the loss, if it wants it).
    every, validated
        Steps between two that are saved, and between two evaluations (0: an epoch).
    patience
        Evaluations without a lower loss after which it is stopped.
    changed
        Augments the inputs of a batch.
    before_epoch, after_step
        Called with the number of the epoch and the model, and with that of the step and the hook.
    """
    torch.set_num_threads(1)
    loss, step, best, waited = loss or nn.CrossEntropyLoss(), 0, float("inf"), 0
    with watched(root, model, losses=[loss], save_every=every) as watching:
        for epoch in range(epochs):
            before_epoch(epoch, model)
            total, mean = [], 0.0
            for x, y in batches:
                value = loss(model(changed(x)), y)
                (value / accumulate).backward()
                total.append(float(value.detach()))
                step += 1
                if step % accumulate == 0:
                    _update(model, optimizer, clip, per_step)
                after_step(step, watching)
                if validated and step % validated == 0:
                    mean = evaluate(watching, model, loss, tests)
            if not validated:
                mean = evaluate(watching, model, loss, tests)
            _LOG.info("epoch %d, training %.4f", epoch, sum(total) / len(total))
            _end_epoch(per_epoch, mean)
            best, waited = (mean, 0) if mean < best else (best, waited + 1)
            if patience and waited >= patience:
                break
    return 0


def matrices(x: Any, y: Any, tested: int, **more: Any) -> tuple[Any, Any]:
    """Return a matrix of the first rows, and one of the last rows to validate with."""
    parts = slice(None, -tested), slice(-tested, None)
    learnt, other = (xgboost.DMatrix(x[part], y[part], **more) for part in parts)
    return learnt, other


def boosted(
    root: Path,
    pair: tuple[Any, Any],
    rounds: int,
    objective: str,
    *,
    every: int = 1,
    patience: int | None = None,
    **params: Any,
) -> Any:
    """Boost with a matrix, validate with the other one, and return the booster."""
    chosen = {"objective": objective, "seed": 7, "nthread": 1, **params}
    return train_booster(root, *pair, chosen, rounds=rounds, save_every=every, patience=patience)
