"""The loop of these trainings: epochs of shuffled batches, an evaluation after each."""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.optim.lr_scheduler import ReduceLROnPlateau
from torch.utils.data import DataLoader, TensorDataset
from training.learnt_data import Split
from training.torch_loop import watched

from smdebug.core.modes import ModeKeys


def evaluate(watching: Any, model: Any, loss: Any, data: Split, size: int = 256) -> float:
    """Return the mean loss of rows that are not trained with."""
    watching.set_mode(ModeKeys.EVAL)
    model.eval()
    total = 0.0
    with torch.no_grad():
        for x, y in DataLoader(TensorDataset(data.test_x, data.test_y), size):
            total += float(loss(model(x), y)) * len(x)
    model.train()
    watching.set_mode(ModeKeys.TRAIN)
    return total / len(data.test_x)


def loader(data: Split, batch: int, seed: int, *, drop_last: bool = True) -> Any:
    """Return shuffled batches of the rows to train with."""
    chance = torch.Generator().manual_seed(seed)
    rows = TensorDataset(data.x, data.y)
    return DataLoader(rows, batch, shuffle=True, drop_last=drop_last, generator=chance)


class Patience:
    """Keeps the best weights, and says when a number of evaluations brought nothing better."""

    def __init__(self, model: Any, patience: int) -> None:
        self.model, self.patience = model, patience
        self.best, self.weights, self.waited = float("inf"), None, 0

    def is_over(self, value: float) -> bool:
        """Return whether it is time to stop."""
        self.waited += 1
        if value < self.best:
            self.best, self.waited = value, 0
            self.weights = copy.deepcopy(self.model.state_dict())
        return bool(self.patience) and self.waited >= self.patience


def train(
    root: Path,
    model: Any,
    data: Split,
    *,
    loss: Any,
    optimizer: Any,
    epochs: int = 5,
    batch: int = 32,
    save_every: int = 2,
    by_step: Any = None,
    by_epoch: Any = None,
    clip: float = 0.0,
    accumulate: int = 1,
    patience: int = 0,
    backward: Callable[[Any], object] = lambda value: value.backward(),
    update: Callable[[], object] | None = None,
    before: Callable[[int], object] = lambda _step: None,
    after: Callable[[int], object] = lambda _step: None,
    begins: int = -1,
    seed: int = 0,
    drop_last: bool = True,
) -> int:
    """Train a model, evaluate it after each epoch, and return the step at which its fault begins.

    Parameters
    ----------
    by_step, by_epoch
        Schedulers that are stepped after each update, and after each epoch.
    accumulate, clip, patience
        Batches to an update; largest norm of the gradients; epochs without a better evaluation.
    backward, update
        Compute the gradients from a loss, and take the optimizer's step.
    before, after
        Called before each batch and after its update, with the number of the batch.
    begins
        The number of the batch at which the fault begins; none if it is there from the start.
    """
    step, onset = 0, 0
    waiting = Patience(model, patience)
    batches = loader(data, batch, seed, drop_last=drop_last)
    model.train()
    with watched(root, model, losses=[loss], save_every=save_every) as watching:
        for _ in range(epochs):
            for x, y in batches:
                onset = watching.global_step + 1 if step == begins else onset
                before(step)
                backward(loss(model(x), y) / accumulate)
                if (step + 1) % accumulate == 0:
                    if clip:
                        nn.utils.clip_grad_norm_(model.parameters(), clip)
                    (update or optimizer.step)()
                    optimizer.zero_grad()
                    if by_step is not None:
                        by_step.step()
                after(step)
                step += 1
            value = evaluate(watching, model, loss, data)
            if isinstance(by_epoch, ReduceLROnPlateau):
                by_epoch.step(value)
            elif by_epoch is not None:
                by_epoch.step()
            if waiting.is_over(value):
                break
    return onset
