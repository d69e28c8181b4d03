"""The loop of this piece: a training by hand as recipes write it, restarts, and a clock."""

import copy
import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import torch
from torch import nn
from torch.nn import functional
from training.logs import CsvLog
from training.torch_loop import watched

from rule_core.model.segments import global_step
from smdebug.core.modes import ModeKeys

Loss = Callable[..., Any]
MINUTE = 60.0


def served(*parts: Any, size: int = 32, seed: int = 0) -> Iterator[tuple[Any, ...]]:
    """Yield shuffled batches for ever, without the rest of an epoch."""
    random = torch.Generator().manual_seed(seed)
    while True:
        order = torch.randperm(len(parts[0]), generator=random)
        for at in range(0, len(order) - size + 1, size):
            yield tuple(part[order[at : at + size]] for part in parts)


def by(model: Any, loss: Loss = functional.cross_entropy) -> Loss:
    """Return the loss of a batch: its last part is the target, the others are inputs."""
    return lambda batch: loss(model(*batch[:-1]).float(), batch[-1])


def linear(warm: int, total: int, floor: float = 0.0) -> Callable[[int], float]:
    """Return the factor of a rate that rises in a line, and falls in a line."""

    def factor(step: int) -> float:
        if step < warm:
            return (step + 1) / warm
        return max(floor, (total - step) / max(1, total - warm))

    return factor


def cosine(warm: int, total: int, floor: float = 0.05) -> Callable[[int], float]:
    """Return the factor of a rate that rises in a line, and falls as a cosine."""

    def factor(step: int) -> float:
        if step < warm:
            return (step + 1) / warm
        done = min(1.0, (step - warm) / (total - warm))
        return floor + (1 - floor) * (1 + math.cos(math.pi * done)) / 2

    return factor


def lambda_rate(optimizer: Any, factor: Callable[[int], float]) -> Any:
    """Return PyTorch's schedule by a factor."""
    return torch.optim.lr_scheduler.LambdaLR(optimizer, factor)


@dataclass
class _Training:
    """A training by hand, as recipes write it.

    Attributes
    ----------
    schedule
        A schedule of PyTorch, stepped after each update.
    validated
        What is told the loss of each validation; the training stops if it returns true.
    before, after
        What happens before a batch, and after it.
    update, clear, to_eval, to_train
        What is done in place of the usual calls.
    """

    model: Any
    loss: Loss
    batches: Iterator[Any]
    optimizer: Any
    steps: int = 200
    every: int = 1
    schedule: Any = None
    clip: float = 0.0
    accumulate: int = 1
    half: Any = None
    scaler: Any = None
    test: Any = None
    test_every: int = 25
    test_loss: Loss | None = None
    validated: Callable[[float], object] = lambda _: False
    before: Callable[[int], object] = lambda _: None
    after: Callable[[int], object] = lambda _: None
    update: Callable[[], object] | None = None
    clear: Callable[[], object] | None = None
    to_eval: Callable[[], object] | None = None
    to_train: Callable[[], object] | None = None

    def run(self, root: Path, fault_at: int) -> int:
        """Train, save the trial, and return the global step of batch `fault_at`."""
        torch.set_num_threads(1)
        onset = 0
        with watched(root, save_every=self.every) as hook:
            hook.register_module(self.model, counts_steps=False)
            for step, batch in enumerate(itertools.islice(self.batches, self.steps)):
                hook.begin_step()
                onset = hook.global_step if fault_at and step == fault_at else onset
                self.before(step)
                self._learn(hook, step, batch)
                self.after(step)
                hook.step()
                is_due = self.test is not None and (step + 1) % self.test_every == 0
                if is_due and self._evaluate(hook):
                    break
        return onset

    def _autocast(self) -> Any:
        return torch.autocast("cpu", self.half) if self.half else nullcontext()

    def _learn(self, hook: Any, step: int, batch: Any) -> None:
        with self._autocast():
            value = _saved(hook, self.loss(batch)) / self.accumulate
        (self.scaler.scale(value) if self.scaler else value).backward()
        if (step + 1) % self.accumulate == 0:
            self._step()
            (self.clear or self.optimizer.zero_grad)()

    def _step(self) -> None:
        if self.scaler and self.clip:
            self.scaler.unscale_(self.optimizer)
        if self.clip:
            nn.utils.clip_grad_norm_(self.model.parameters(), self.clip)
        if self.update:
            self.update()
        elif self.scaler:
            self.scaler.step(self.optimizer)
            self.scaler.update()
        else:
            self.optimizer.step()
        if self.schedule:
            self.schedule.step()

    def _evaluate(self, hook: Any) -> bool:
        (self.to_eval or self.model.eval)()
        hook.set_mode(ModeKeys.EVAL)
        hook.begin_step()
        with torch.no_grad(), self._autocast():
            value = _saved(hook, (self.test_loss or self.loss)(self.test))
        hook.step()
        hook.set_mode(ModeKeys.TRAIN)
        (self.to_train or self.model.train)()
        return bool(self.validated(float(value)))


def _saved(hook: Any, found: Any) -> Any:
    named = found if isinstance(found, dict) else {"loss": found}
    for name, value in named.items():
        hook.record_tensor_value(name, value.float())
    return named["loss"].float()


def run(
    root: Path,
    model: Any,
    loss: Loss,
    batches: Iterator[Any],
    optimizer: Any,
    *,
    fault_at: int = 0,
    **options: Any,
) -> int:
    """Train, save the trial, and return the global step of batch `fault_at`."""
    return _Training(model, loss, batches, optimizer, **options).run(root, fault_at)


class Patience:
    """Early stopping: true once the best loss is so many validations old; keeps the best model."""

    def __init__(self, model: Any, patience: int, least: float = 0.0) -> None:
        self.model, self.patience, self.least = model, patience, least
        self.best, self.bad, self.kept = math.inf, 0, None

    def __call__(self, loss: float) -> bool:
        if loss < self.best - self.least:
            self.best, self.bad = loss, 0
            self.kept = copy.deepcopy(self.model.state_dict())
        else:
            self.bad += 1
        return self.bad >= self.patience


def resumed(
    root: Path,
    model: Any,
    loss: Loss,
    data: tuple[Any, ...],
    optimizer: Any,
    *,
    stops: tuple[tuple[int, int], ...] = ((120, 138),),
    steps: int = 220,
    size: int = 32,
    every: int = 1,
    factor: Callable[[int], float] = lambda _: 1.0,
    clip: float = 50.0,
    new_order: bool = False,
    restore: Callable[[Any, Any], object] | None = None,
) -> int:
    """Train with a log, stop, and go on from the checkpoint; return the step of the first resume.

    Parameters
    ----------
    stops
        The step of each checkpoint, and the later one at which the training stops.
    factor
        The factor of the rate by step.
    new_order
        Whether the data are shuffled anew after a restart, as most scripts do.
    restore
        Loads a checkpoint (states of model and optimizer) in place of the usual calls.
    """
    torch.set_num_threads(1)
    rates = [group["lr"] for group in optimizer.param_groups]
    begin, kept = 0, None
    with CsvLog(root) as log:
        for part, (mark, end) in enumerate((*stops, (steps, steps))):
            if kept and restore:
                restore(*kept)
            elif kept:
                model.load_state_dict(kept[0])
                optimizer.load_state_dict(kept[1])
            order = served(*data, size=size, seed=part if new_order else 0)
            batches = itertools.islice(order, 0 if new_order else begin, None)
            for step, batch in zip(range(begin, end), batches, strict=False):
                if step == mark:
                    kept = copy.deepcopy((model.state_dict(), optimizer.state_dict()))
                for group, rate in zip(optimizer.param_groups, rates, strict=True):
                    group["lr"] = rate * factor(step)
                optimizer.zero_grad()
                value = loss(batch)
                value.backward()
                norm = float(nn.utils.clip_grad_norm_(model.parameters(), clip))
                optimizer.step()
                if step % every == 0:
                    rate = optimizer.param_groups[0]["lr"]
                    log.write(step, loss=float(value.detach()), lr=rate, grad_norm=norm)
            begin = mark
    return global_step(1, stops[0][0])


@contextmanager
def clock(seconds: float, pauses: Mapping[int, float]) -> Iterator[None]:
    """Let each saved step take so many seconds, and some of them longer."""
    numbers = itertools.count()
    now = 1_765_000_000.0

    def time() -> float:
        nonlocal now
        now += seconds + pauses.get(next(numbers), 0.0)
        return now

    with mock.patch("rule_core.saving.base_hook.time", SimpleNamespace(time=time)):
        yield
