"""Loops: batches, schedules, a watched training, and a clock that is wound for a hook."""

import functools
import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import torch
from torch import nn
from training.torch_loop import watched

from runs_tuned.fourth_held_out.losses_and_optimizers.shared.lessons import dice
from smdebug.core.modes import ModeKeys

Batches = Iterator[tuple[Any, ...]]
Objective = Callable[[Any], Any]


def dealt(*parts: Any, size: int = 16, seed: int = 0) -> Batches:
    """Yield batches for ever, each epoch in an order of its own."""
    random = dice(seed)
    while True:
        for rows in torch.randperm(len(parts[0]), generator=random).split(size):
            if len(rows) == size:
                yield tuple(part[rows] for part in parts)


def cosine(warm_up: int, steps: int, floor: float = 0.05) -> Callable[[int], float]:
    """Return the factor of a rate that is warmed up, and then falls as a cosine."""

    def factor(step: int) -> float:
        if step < warm_up:
            return (step + 1) / warm_up
        share = min(1.0, (step - warm_up) / max(1, steps - warm_up))
        return floor + (1 - floor) * (1 + math.cos(math.pi * share)) / 2

    return factor


def of(model: Any, loss: Any) -> Objective:
    """Return the objective of a model of one input and its target."""
    return lambda batch: loss(model(batch[0]), batch[1])


def learn(
    root: Path,
    model: Any,
    objective: Objective,
    batches: Batches,
    optimizer: Any,
    *,
    steps: int = 140,
    save_every: int = 1,
    schedule: Callable[[int], float] | None = None,
    clip: float = 0.0,
    accumulate: int = 1,
    half: Any = None,
    scaler: Any = None,
    scale_by_hand: Any = None,
    held_out: tuple[Any, ...] = (),
    validate_every: int = 20,
    before: Callable[[int], object] = lambda _: None,
    after: Callable[[int], object] = lambda _: None,
    update: Callable[[Any], object] | None = None,
    clear: Callable[[int], object] | None = None,
    at: int = 0,
    **options: Any,
) -> int:
    """Train a model; return the global step of batch `at`.

    Parameters
    ----------
    schedule, clip, accumulate
        Factor of the rates by update; largest norm of gradients; batches to an update.
    half, scaler, scale_by_hand
        The number type of autocast, the scaler of the loss, and what has a `scale` in its place.
    before, after, update, clear
        What happens before and after a batch; what updates in place of the optimizer's step, and
        is given the loss; what clears gradients.
    """
    torch.set_num_threads(1)
    rates = [group["lr"] for group in optimizer.param_groups]
    autocast = (lambda: torch.autocast("cpu", half)) if half else nullcontext
    clear = clear or (lambda _: optimizer.zero_grad())
    onset = 0
    with watched(root, save_every=save_every, **options) as hook:
        hook.register_module(model, counts_steps=False)
        for step, batch in enumerate(itertools.islice(batches, steps)):
            if schedule and step % accumulate == 0:
                _set_rates(optimizer, rates, schedule(step // accumulate))
            hook.begin_step()
            onset = hook.global_step if at and step == at else onset
            before(step)
            with autocast():
                value = objective(batch).float()
            hook.record_tensor_value("loss", value)
            if scale_by_hand:
                hook.save_scalar("loss_scale", scale_by_hand.scale, sm_metric=False)
                value = value * scale_by_hand.scale
            (scaler.scale(value) if scaler else value).div(accumulate).backward()
            if (step + 1) % accumulate == 0:
                given = functools.partial(update, value) if update else None
                _step(model, optimizer, scaler, clip, given)
                clear(step)
            after(step)
            hook.step()
            if held_out and (step + 1) % validate_every == 0:
                _validate(hook, model, objective, held_out, autocast)
    return onset


def _set_rates(optimizer: Any, rates: list[float], factor: float) -> None:
    for group, rate in zip(optimizer.param_groups, rates, strict=True):
        group["lr"] = rate * factor


def _step(model: Any, optimizer: Any, scaler: Any, clip: float, update: Any) -> None:
    if scaler:
        scaler.unscale_(optimizer)
    if clip:
        nn.utils.clip_grad_norm_(model.parameters(), clip)
    if update:
        update()
    elif scaler:
        scaler.step(optimizer)
        scaler.update()
    else:
        optimizer.step()


def _validate(hook: Any, model: Any, objective: Any, held_out: Any, autocast: Any) -> None:
    model.eval()
    hook.set_mode(ModeKeys.EVAL)
    hook.begin_step()
    with torch.no_grad(), autocast():
        hook.record_tensor_value("loss", objective(held_out).float())
    hook.step()
    hook.set_mode(ModeKeys.TRAIN)
    model.train()


@contextmanager
def clock(seconds: float, waits: Mapping[int, float] | None = None) -> Iterator[None]:
    """Let so many seconds pass with each time a hook reads its clock, and more at some."""
    reads, now = -1, 1_720_000_000.0

    def time() -> float:
        nonlocal reads, now
        reads += 1
        now += seconds + (waits or {}).get(reads, 0.0)
        return now

    with mock.patch("rule_core.saving.base_hook.time", SimpleNamespace(time=time)):
        yield
