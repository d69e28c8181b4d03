"""Loops: batches, schedules, a watched training, and a clock that is set forward."""

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
from torch.nn import functional
from training.torch_loop import watched

from runs_tuned.fifth_held_out.losses_and_optimizers.shared.data import chance
from smdebug.core.modes import ModeKeys

Objective = Callable[[Any], Any]


def served(*parts: Any, size: int = 16, seed: int = 0) -> Iterator[tuple[Any, ...]]:
    """Yield full batches for ever, in a new order each time that all rows were served."""
    random = chance(seed)
    while True:
        order = torch.randperm(len(parts[0]), generator=random)
        for rows in order[: len(order) // size * size].view(-1, size):
            yield tuple(part[rows] for part in parts)


def by(model: Any, loss: Any = functional.cross_entropy) -> Objective:
    """Return the objective of a batch whose last part is the target."""
    return lambda batch: loss(model(*batch[:-1]).float(), batch[-1])


def waned(warm_up: int, end: int, least: float = 0.0) -> Callable[[int], float]:
    """Return a factor that rises along a line, and falls along half a wave until `end`."""

    def factor(step: int) -> float:
        if step < warm_up:
            return (step + 1) / warm_up
        wave = math.cos(math.pi * min(1.0, (step - warm_up) / (end - warm_up)))
        return least + (1 - least) * (1 + wave) / 2

    return factor


def set_rates(optimizer: Any, rates: list[float], factor: float) -> None:
    """Set the rate of each group to that many times what it was at first."""
    for group, rate in zip(optimizer.param_groups, rates, strict=True):
        group["lr"] = rate * factor


def practice(
    root: Path,
    model: Any,
    objective: Objective,
    batches: Iterator[Any],
    optimizer: Any,
    *,
    steps: int = 150,
    save_every: int = 1,
    schedule: Callable[[int], float] | None = None,
    clip: float = 0.0,
    accumulate: int = 1,
    half: Any = None,
    scaler: Any = None,
    own_scale: Any = None,
    test: Any = None,
    tested: Any = None,
    test_every: int = 25,
    before: Callable[[int], object] = lambda _: None,
    after: Callable[[int], object] = lambda _: None,
    update: Callable[[], object] | None = None,
    clear: Callable[[], object] | None = None,
    fault_at: int = 0,
) -> int:
    """Train a model; return the global step of batch `fault_at`.

    Parameters
    ----------
    objective
        Returns the loss of a batch, or losses by name, of which `loss` is followed.
    schedule, clip, accumulate
        Factor of the rates by update; largest norm of gradients; batches to an update.
    half, scaler, own_scale
        The number type of autocast, the scaler of the loss, or what has a `scale` in its place.
    test, tested
        A batch to evaluate, and another objective to evaluate it by.
    before, after, update, clear
        What happens before and after a batch; what updates in place of the optimizer's step; what
        clears gradients.
    """
    torch.set_num_threads(1)
    rates = [group["lr"] for group in optimizer.param_groups]
    autocast = (lambda: torch.autocast("cpu", half)) if half else nullcontext
    onset = 0
    with watched(root, save_every=save_every) as hook:
        hook.register_module(model, counts_steps=False)
        for step, batch in enumerate(itertools.islice(batches, steps)):
            if schedule and step % accumulate == 0:
                set_rates(optimizer, rates, schedule(step // accumulate))
            hook.begin_step()
            onset = hook.global_step if fault_at and step == fault_at else onset
            before(step)
            with autocast():
                losses = objective(batch)
            value = _recorded(hook, losses)
            if own_scale:
                hook.save_scalar("loss_scale", own_scale.scale, sm_metric=False)
                value = value * own_scale.scale
            (scaler.scale(value) if scaler else value).div(accumulate).backward()
            if (step + 1) % accumulate == 0:
                _update(model, optimizer, scaler, clip, update)
                (clear or optimizer.zero_grad)()
            after(step)
            hook.step()
            if test is not None and (step + 1) % test_every == 0:
                _tested(hook, model, tested or objective, test, autocast)
    return onset


def _recorded(hook: Any, losses: Any) -> Any:
    if not isinstance(losses, dict):
        losses = {"loss": losses}
    for name, value in losses.items():
        hook.record_tensor_value(name, value.float())
    return losses["loss"].float()


def _update(
    model: Any, optimizer: Any, scaler: Any, clip: float, update: Callable[[], object] | None
) -> None:
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


def _tested(hook: Any, model: Any, objective: Objective, test: Any, autocast: Any) -> None:
    model.eval()
    hook.set_mode(ModeKeys.EVAL)
    hook.begin_step()
    with torch.no_grad(), autocast():
        _recorded(hook, objective(test))
    hook.step()
    hook.set_mode(ModeKeys.TRAIN)
    model.train()


@contextmanager
def passing_time(seconds: float, pauses: Mapping[int, float] | None = None) -> Iterator[None]:
    """Let so many seconds pass between saved steps, and more before some of them."""
    steps = itertools.count()
    now = 1_750_000_000.0

    def time() -> float:
        nonlocal now
        now += seconds + (pauses or {}).get(next(steps), 0.0)
        return now

    with mock.patch("rule_core.saving.base_hook.time", SimpleNamespace(time=time)):
        yield
