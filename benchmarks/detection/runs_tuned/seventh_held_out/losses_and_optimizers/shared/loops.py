"""Loops: a training as tutorials write it, one that is resumed, and one of several workers."""

import copy
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
from torch.optim.lr_scheduler import LambdaLR
from training.learnt_data import Split
from training.logs import CsvLog
from training.torch_loop import batches, hook, watched

from rule_core.model.segments import global_step
from smdebug.core.modes import ModeKeys

CROSS_ENTROPY = nn.CrossEntropyLoss()


def scored(criterion: Any, outputs: Any, targets: Any) -> Any:
    """Return the loss of a batch; all places of texts count alike."""
    if outputs.ndim == 3 and targets.ndim == 2:
        return criterion(outputs.flatten(0, 1), targets.flatten())
    return criterion(outputs, targets)


def linear(optimizer: Any, rise: int, total: int) -> Any:
    """Return a schedule with a line up and a line down to zero, as for transformers."""
    return LambdaLR(
        optimizer,
        lambda step: min((step + 1) / max(rise, 1), max(0.0, (total - step) / (total - rise))),
    )


def cosine(optimizer: Any, rise: int, total: int, least: float = 0.1) -> Any:
    """Return a schedule with a line up and half a cosine down, as nanoGPT has it."""

    def factor(step: int) -> float:
        if step < rise:
            return (step + 1) / rise
        done = min(1.0, (step - rise) / (total - rise))
        return least + (1 - least) * 0.5 * (1 + math.cos(math.pi * done))

    return LambdaLR(optimizer, factor)


def train(
    root: Path,
    model: Any,
    criterion: Any,
    data: Split,
    optimizer: Any,
    *,
    steps: int = 160,
    batch: int = 32,
    save_every: int = 1,
    seed: int = 0,
    scheduler: Any = None,
    by_epoch: Any = None,
    plateau: Any = None,
    patience: int = 0,
    clip: float = 0.0,
    accumulate: int = 1,
    half: Any = None,
    scaler: Any = None,
    valid_every: int = 40,
    fault_at: int = 0,
    served: Callable[[int, Any, Any], tuple[Any, Any]] = lambda _, x, y: (x, y),
    before: Callable[[int], object] = lambda _: None,
    clear: Callable[[int], object] | None = None,
) -> int:
    """Train a model, save its trial, and return the global step of batch `fault_at`.

    Parameters
    ----------
    scheduler, by_epoch, plateau
        Schedules that are stepped after each update, each epoch, and each validation.
    patience
        Validations without a better loss after which the training ends (0: never).
    served
        Returns the batch of a step.
    before, clear
        What happens before a step, and in place of the optimizer's `zero_grad`.
    """
    torch.set_num_threads(1)
    epoch = len(data.x) // batch
    best, waited, onset = math.inf, 0, 0
    cast = (lambda: torch.autocast("cpu", half)) if half else nullcontext
    with watched(root, model, losses=[criterion], save_every=save_every) as watching:
        for step, read in enumerate(itertools.islice(batches(data, batch, seed), steps)):
            onset = watching.global_step + 1 if fault_at and step == fault_at else onset
            before(step)
            x, y = served(step, *read)
            with cast():
                loss = scored(criterion, model(x), y) / accumulate
            (scaler.scale(loss) if scaler else loss).backward()
            if (step + 1) % accumulate == 0:
                _update(model, optimizer, scaler, clip)
                (clear or (lambda _: optimizer.zero_grad()))(step)
                if scheduler:
                    scheduler.step()
            if by_epoch and (step + 1) % epoch == 0:
                by_epoch.step()
            if valid_every and (step + 1) % valid_every == 0:
                with cast():
                    value = _validated(watching, model, criterion, data)
                if plateau:
                    plateau.step(value)
                waited = 0 if value < best else waited + 1
                best = min(best, value)
                if patience and waited >= patience:
                    break
    return onset


def _update(model: Any, optimizer: Any, scaler: Any, clip: float) -> None:
    if scaler:
        scaler.unscale_(optimizer)
    if clip:
        nn.utils.clip_grad_norm_(model.parameters(), clip)
    if scaler:
        scaler.step(optimizer)
        scaler.update()
    else:
        optimizer.step()


def _validated(watching: Any, model: Any, criterion: Any, data: Split) -> float:
    watching.set_mode(ModeKeys.EVAL)
    model.eval()
    with torch.no_grad():
        value = float(scored(criterion, model(data.test_x), data.test_y))
    model.train()
    watching.set_mode(ModeKeys.TRAIN)
    return value


# What a restarted script does with a checkpoint, a model, an optimizer and a schedule.
Restore = Callable[[Mapping[str, Any], Any, Any, Any], object]


def all_restored(saved: Mapping[str, Any], model: Any, optimizer: Any, scheduler: Any) -> None:
    """Load all that a checkpoint has."""
    model.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
    scheduler.load_state_dict(saved["scheduler"])


def resumed(
    root: Path,
    make: Callable[[], Any],
    criterion: Any,
    data: Split,
    optimizer: Callable[[Any], Any],
    scheduler: Callable[[Any], Any],
    *,
    stops: tuple[tuple[int, int], ...] = ((140, 152),),
    steps: int = 240,
    batch: int = 32,
    log_every: int = 1,
    clip: float = 1e6,
    seed: int = 0,
    restore: Restore = all_restored,
) -> int:
    """Train and log, stop, and run the script again from its checkpoint; return the first one.

    Parameters
    ----------
    stops
        The step of each checkpoint, and the later step at which the training stops.
    """
    torch.set_num_threads(1)
    served = list(itertools.islice(batches(data, batch, seed), steps))
    begin, saved = 0, None
    with CsvLog(root) as log:
        for number, (mark, end) in enumerate((*stops, (steps, steps))):
            torch.manual_seed(seed + number)
            model = make()
            optimizer_ = optimizer(model.parameters())
            scheduler_ = scheduler(optimizer_)
            if saved:
                restore(saved, model, optimizer_, scheduler_)
            for step in range(begin, end):
                if step == mark:
                    parts = {"model": model, "optimizer": optimizer_, "scheduler": scheduler_}
                    saved = {name: copy.deepcopy(each.state_dict()) for name, each in parts.items()}
                x, y = served[step]
                optimizer_.zero_grad()
                loss = scored(criterion, model(x), y)
                loss.backward()
                norm = float(nn.utils.clip_grad_norm_(model.parameters(), clip))
                optimizer_.step()
                if step % log_every == 0:
                    rate = optimizer_.param_groups[0]["lr"]
                    log.write(step, loss=float(loss.detach()), lr=rate, grad_norm=norm)
                scheduler_.step()
            begin = mark
    return global_step(1, stops[0][0])


def replicas(
    root: Path,
    models: list[Any],
    criterion: Callable[[], Any],
    data: Split,
    optimizer: Callable[[Any], Any],
    *,
    steps: int = 100,
    batch: int = 16,
    save_every: int = 2,
    clip: float = 0.0,
    is_synced: Callable[[int], bool] = lambda _: True,
    after: Callable[[int], object] = lambda _: None,
    ends: Mapping[int, int] | None = None,
    fault_at: int = 0,
) -> int:
    """Train models on rows of their own with averaged gradients; return the step of the fault.

    Parameters
    ----------
    is_synced
        Whether gradients are averaged at a step.
    after
        What happens after the updates of a step.
    ends
        Ranks that stop, and the step before which they do.
    """
    torch.set_num_threads(1)
    count = len(models)
    optimizers = [optimizer(model) for model in models]
    losses = [criterion() for _ in models]
    hooks = [
        hook(root, save_every, include_workers="all", rank=rank, world_size=count)
        for rank in range(count)
    ]
    for watching, model, loss in zip(hooks, models, losses, strict=True):
        watching.register_module(model)
        watching.register_loss(loss)
        watching.set_mode(ModeKeys.TRAIN)
    rows = [
        batches(data.chosen(slice(rank, None, count)), batch, seed=rank) for rank in range(count)
    ]
    onset = 0
    for step in range(steps):
        alive = [rank for rank in range(count) if step < (ends or {}).get(rank, steps)]
        onset = hooks[0].global_step + 1 if fault_at and step == fault_at else onset
        for rank in alive:
            x, y = next(rows[rank])
            scored(losses[rank], models[rank](x), y).backward()
        if is_synced(step):
            _average([models[rank] for rank in alive])
        for rank in alive:
            if clip:
                nn.utils.clip_grad_norm_(models[rank].parameters(), clip)
            optimizers[rank].step()
            optimizers[rank].zero_grad()
        after(step)
    for watching in hooks:
        watching.close()
    return onset


def _average(models: list[Any]) -> None:
    for parameters in zip(*(model.parameters() for model in models), strict=True):
        mean = sum(each.grad for each in parameters) / len(parameters)
        for each in parameters:
            each.grad.copy_(mean)


def copies(model: Any, count: int = 2) -> list[Any]:
    """Return a model and copies of it."""
    return [model, *(copy.deepcopy(model) for _ in range(count - 1))]


@contextmanager
def clock(seconds: float, pauses: Mapping[int, float]) -> Iterator[None]:
    """Let each saved step take so many seconds, and some of them, by number, longer."""
    numbers = itertools.count()
    now = 1_790_000_000.0

    def time() -> float:
        nonlocal now
        now += seconds + pauses.get(next(numbers), 0.0)
        return now

    with mock.patch("rule_core.saving.base_hook.time", SimpleNamespace(time=time)):
        yield
