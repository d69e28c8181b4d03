"""Loops: epochs with evaluations, Keras's fit, and boosting."""

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


def shuffled(data: Split, size: int, seed: int, **more: Any) -> Any:
    """Return shuffled batches of the rows to train with, without the last small one."""
    chosen = {"shuffle": True, "drop_last": True, **more}
    generator = torch.Generator().manual_seed(seed)
    return DataLoader(TensorDataset(data.x, data.y), size, generator=generator, **chosen)


def held_back(data: Split, size: int = 100) -> Any:
    """Return batches of the rows to validate with."""
    return DataLoader(TensorDataset(data.test_x, data.test_y), size)


def evaluate(watching: Any, model: Any, loss: Any, batches: Iterable[Any]) -> float:
    """Return the mean loss of batches, with the model in evaluation mode."""
    watching.set_mode(ModeKeys.EVAL)
    model.eval()
    values, right, count = [], 0, 0
    with torch.no_grad():
        for x, y in batches:
            found = model(x)
            values.append(float(loss(found, y)))
            if y.ndim == 1 and found.ndim == 2:
                right, count = right + int((found.argmax(1) == y).sum()), count + len(y)
    model.train()
    watching.set_mode(ModeKeys.TRAIN)
    mean = sum(values) / len(values)
    _LOG.info("  validation %.4f, right %.3f", mean, right / max(1, count))
    return mean


class Steps:
    """An optimizer's steps: clipped, accumulated and scheduled if asked for."""

    def __init__(
        self, model: Any, optimizer: Any, *, schedule: Any = None, clip: float = 0, gather: int = 1
    ) -> None:
        self.model, self.optimizer, self.schedule = model, optimizer, schedule
        self.clip, self.gather, self.number = clip, gather, 0

    def take(self, value: Any) -> None:
        """Go down a loss."""
        (value / self.gather).backward()
        self.number += 1
        if self.number % self.gather:
            return
        if self.clip:
            nn.utils.clip_grad_norm_(self.model.parameters(), self.clip)
        self.optimizer.step()
        self.optimizer.zero_grad()
        if self.schedule:
            self.schedule.step()


def learn(
    root: Path,
    model: Any,
    batches: Any,
    tests: Any,
    optimizer: Any,
    *,
    epochs: int,
    loss: Any = None,
    each_step: Any = None,
    each_epoch: Any = None,
    on_plateau: Any = None,
    save_every: int = 2,
    check_every: int = 0,
    clip: float = 0.0,
    gather: int = 1,
    patience: int = 0,
    augment: Callable[[Any], Any] = lambda x: x,
) -> int:
    """Train for epochs, evaluate after each (or each `check_every` steps), and return step 0.

    Parameters
    ----------
    each_step, each_epoch, on_plateau
        Schedulers.
    gather
        Batches that are accumulated for an update.
    patience
        Epochs without a lower validation loss until it is stopped (0: never).
    """
    torch.set_num_threads(1)
    loss, best, waited = loss or nn.CrossEntropyLoss(), float("inf"), 0
    steps = Steps(model, optimizer, schedule=each_step, clip=clip, gather=gather)
    with watched(root, model, losses=[loss], save_every=save_every) as watching:
        model.train()
        for epoch in range(epochs):
            seen, mean = [], 0.0
            for x, y in batches:
                value = loss(model(augment(x)), y)
                steps.take(value)
                seen.append(float(value.detach()))
                if check_every and steps.number % check_every == 0:
                    mean = evaluate(watching, model, loss, tests)
            _LOG.info("epoch %d, training %.4f", epoch, sum(seen) / len(seen))
            mean = mean if check_every else evaluate(watching, model, loss, tests)
            for scheduler, given in ((each_epoch, ()), (on_plateau, (mean,))):
                if scheduler:
                    scheduler.step(*given)
            best, waited = (mean, 0) if mean < best else (best, waited + 1)
            if patience and waited >= patience:
                break
    return 0


def adamw(model: Any, rate: float, decay: float = 0.01) -> Any:
    """Return AdamW that decays neither biases nor norms."""
    told = [one for one in model.parameters() if one.requires_grad]
    groups = [
        {"params": [one for one in told if one.ndim > 1], "weight_decay": decay},
        {"params": [one for one in told if one.ndim <= 1], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW([group for group in groups if group["params"]], rate)


def warm_then_cosine(optimizer: Any, warm: int, steps: int) -> Any:
    """Return a schedule of a short warm-up and a cosine."""
    rates = torch.optim.lr_scheduler
    return rates.SequentialLR(
        optimizer,
        [
            rates.LinearLR(optimizer, 0.1, total_iters=warm),
            rates.CosineAnnealingLR(optimizer, steps - warm),
        ],
        [warm],
    )


def warm_then_line(optimizer: Any, warm: int, steps: int) -> Any:
    """Return a schedule of a short warm-up and a line to zero."""
    return torch.optim.lr_scheduler.LambdaLR(
        optimizer,
        lambda step: min((step + 1) / warm, max(0.0, (steps - step) / (steps - warm))),
    )


def parted(x: Any, y: Any, tested: int, **more: Any) -> tuple[Any, Any]:
    """Return a matrix of the first rows to train with, and one of the last to validate with."""
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
    patience: int | None = None,
    **params: Any,
) -> Any:
    """Boost with a matrix, validate with the other one, and return the booster."""
    chosen = {"objective": objective, "seed": 11, "nthread": 1, **params}
    booster = train_booster(
        root, *pair, chosen, rounds=rounds, save_every=save_every, patience=patience
    )
    _LOG.info("train %s", booster.eval(pair[0]))
    _LOG.info("validation %s, rounds %d", booster.eval(pair[1]), booster.num_boosted_rounds())
    return booster
