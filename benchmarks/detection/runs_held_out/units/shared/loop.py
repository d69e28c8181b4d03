"""The loop of these trainings: epochs over a loader, and a validation after each."""

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


def batches_of(data: Split, size: int, seed: int) -> Any:
    """Return a loader of shuffled batches of the rows to train with."""
    generator = torch.Generator().manual_seed(seed)
    rows = TensorDataset(data.x, data.y)
    return DataLoader(rows, size, shuffle=True, drop_last=True, generator=generator)


@torch.no_grad()
def validation_loss(watching: Any, model: Any, loss: Any, data: Split, size: int) -> float:
    """Return the mean loss of the validation rows."""
    watching.set_mode(ModeKeys.EVAL)
    model.eval()
    losses = [
        (float(loss(model(x), y)), len(x))
        for x, y in DataLoader(TensorDataset(data.test_x, data.test_y), size)
    ]
    model.train()
    watching.set_mode(ModeKeys.TRAIN)
    return sum(value * count for value, count in losses) / sum(count for _, count in losses)


def end_epoch(scheduler: Any, value: float) -> None:
    """Step a scheduler of epochs, if there is one, after a validation."""
    if isinstance(scheduler, ReduceLROnPlateau):
        scheduler.step(value)
    elif scheduler is not None:
        scheduler.step()


def train(
    root: Path,
    model: Any,
    data: Split,
    loss: Any,
    optimizer: Any,
    *,
    epochs: int = 5,
    batch: int = 32,
    save_every: int = 2,
    scheduler: Any = None,
    epoch_scheduler: Any = None,
    clip: float = 0.0,
    accumulate: int = 1,
    patience: int = 0,
    augment: Callable[[Any], Any] = lambda x: x,
    backward: Callable[[Any], object] = lambda value: value.backward(),
    step: Callable[[int], object] | None = None,
    before: Callable[[int], object] = lambda _number: None,
    after: Callable[[int], object] = lambda _number: None,
    begins: int = -1,
    seed: int = 0,
) -> int:
    """Train and validate a model; return the global step at which its fault begins.

    Parameters
    ----------
    scheduler, epoch_scheduler
        Stepped after each update, and after each validation.
    clip, accumulate, patience
        Largest norm of gradients; batches to an update; validations without a better one.
    augment
        Changes the inputs of batches to train with.
    backward, step
        Compute gradients from a loss; update the weights after the batch of a number.
    before, after
        Called before and after each batch, with its number.
    begins
        Number of the batch at which the fault begins; none if it is there from the start.
    """
    number, onset, best, waited, kept = 0, 0, float("inf"), 0, None
    loader = batches_of(data, batch, seed)
    model.train()
    optimizer.zero_grad()
    with watched(root, model, losses=[loss], save_every=save_every) as watching:
        for _ in range(epochs):
            for x, y in loader:
                onset = watching.global_step + 1 if number == begins else onset
                before(number)
                value = loss(model(augment(x)), y)
                backward(value / accumulate if accumulate > 1 else value)
                if step is not None:
                    step(number)
                elif (number + 1) % accumulate == 0:
                    if clip:
                        nn.utils.clip_grad_norm_(model.parameters(), clip)
                    optimizer.step()
                    optimizer.zero_grad()
                    if scheduler is not None:
                        scheduler.step()
                after(number)
                number += 1
            value = validation_loss(watching, model, loss, data, 4 * batch)
            end_epoch(epoch_scheduler, value)
            waited += 1
            if value < best:
                best, waited, kept = value, 0, copy.deepcopy(model.state_dict())
            if patience and waited >= patience:
                model.load_state_dict(kept)
                break
    return onset


def trained_before(model: Any, data: Split, loss: Any, rate: float = 3e-3, epochs: int = 3) -> Any:
    """Return a model after a training that nobody watches."""
    optimizer = torch.optim.Adam(model.parameters(), rate)
    loader = batches_of(data, 32, 1)
    for _ in range(epochs):
        for x, y in loader:
            optimizer.zero_grad()
            loss(model(x), y).backward()
            optimizer.step()
    return model
