"""Loops: batches, schedules, and a training that saves what the preset of language models does."""

import itertools
import math
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch
from torch import nn
from training.torch_loop import watched

from smdebug.core.modes import ModeKeys

Batches = Iterator[tuple[Any, ...]]


def dealt(*parts: Any, size: int = 16, seed: int = 0) -> Batches:
    """Yield batches of the rows of all parts for ever, in an order of each epoch's own."""
    random = torch.Generator().manual_seed(seed)
    while True:
        for chosen in torch.randperm(len(parts[0]), generator=random).split(size):
            if len(chosen) == size:
                yield tuple(part[chosen] for part in parts)


def warmed(warm_up: int, steps: int, floor: float = 0.05) -> Callable[[int], float]:
    """Return the factor of a rate that rises for `warm_up` steps, and falls as a cosine."""

    def factor(step: int) -> float:
        if step < warm_up:
            return (step + 1) / warm_up
        share = min(1.0, (step - warm_up) / (steps - warm_up))
        return floor + (1 - floor) * (1 + math.cos(math.pi * share)) / 2

    return factor


def by_loss(model: Any, loss: Any, batch: tuple[Any, ...]) -> Any:
    """Return the loss of a model of inputs and targets."""
    *inputs, targets = batch
    return loss(model(*inputs), targets)


def teach(
    root: Path,
    model: Any,
    batches: Batches,
    optimizer: Any,
    *,
    loss: Any = None,
    objective: Callable[..., Any] | None = None,
    steps: int = 140,
    save_every: int = 1,
    schedule: Callable[[int], float] | None = None,
    clip: float = 0.0,
    accumulate: int = 1,
    half: Any = None,
    scaler: Any = None,
    held_out: tuple[Any, ...] = (),
    validate_every: int = 20,
    at: int = -1,
    change: Callable[[int], object] = lambda _: None,
    after: Callable[[int], object] = lambda _: None,
    clear: Callable[[int], object] | None = None,
    **options: Any,
) -> int:
    """Train a model; return the global step of batch `at`.

    Parameters
    ----------
    loss
        A loss of outputs and targets, which the hook watches.
    objective
        In place of it, what computes a loss from a batch and the hook.
    schedule, clip, accumulate
        Factor of the rates by update; largest norm; batches to an update.
    half, scaler
        The number type of autocast, and the scaler of the loss.
    held_out
        A batch that is validated with.
    change, after
        What happens before a batch, and after it.
    clear
        What clears the gradients after an update.
    """
    torch.set_num_threads(1)
    loss = loss or (None if objective else nn.CrossEntropyLoss())
    rates = [group["lr"] for group in optimizer.param_groups]
    autocast = (lambda: torch.autocast("cpu", half)) if half else nullcontext
    onset = 0
    with watched(root, losses=[loss] if loss else [], save_every=save_every, **options) as hook:
        hook.register_module(model, counts_steps=False)
        for step, batch in enumerate(itertools.islice(batches, steps)):
            if schedule and step % accumulate == 0:
                for group, rate in zip(optimizer.param_groups, rates, strict=True):
                    group["lr"] = rate * schedule(step // accumulate)
            hook.begin_step()
            if step == at:
                onset = hook.global_step
            change(step)
            with autocast():
                value = objective(batch, hook) if objective else by_loss(model, loss, batch)
            if objective:
                value = value.float()
                hook.record_tensor_value("loss", value)
            (value if scaler is None else scaler.scale(value)).div(accumulate).backward()
            if (step + 1) % accumulate == 0:
                _update(model, optimizer, scaler, clip)
                if clear:
                    clear(step)
                else:
                    optimizer.zero_grad()
            after(step)
            hook.step()
            if held_out and loss and (step + 1) % validate_every == 0:
                _validate(hook, model, loss, held_out, autocast)
    return onset


def _update(model: Any, optimizer: Any, scaler: Any, clip: float) -> None:
    if scaler is not None:
        scaler.unscale_(optimizer)
    if clip:
        nn.utils.clip_grad_norm_(model.parameters(), clip)
    if scaler is None:
        optimizer.step()
    else:
        scaler.step(optimizer)
        scaler.update()


def _validate(hook: Any, model: Any, loss: Any, held_out: tuple[Any, ...], autocast: Any) -> None:
    model.eval()
    hook.set_mode(ModeKeys.EVAL)
    hook.begin_step()
    with torch.no_grad(), autocast():
        by_loss(model, loss, held_out)
    hook.step()
    hook.set_mode(ModeKeys.TRAIN)
    model.train()
