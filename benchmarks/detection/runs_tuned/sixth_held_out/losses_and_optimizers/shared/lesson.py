"""The loop of this piece's runs, schedules, batches, and a clock that is set forward."""

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
from training.torch_loop import watched

from runs_tuned.sixth_held_out.losses_and_optimizers.shared.tables import chance
from smdebug.core.modes import ModeKeys

Loss = Callable[[Any], Any]


def dealt(*parts: Any, size: int = 24, seed: int = 0) -> Iterator[tuple[Any, ...]]:
    """Yield full batches for ever; all rows are shuffled before each epoch."""
    random = chance(seed)
    while True:
        order = torch.randperm(len(parts[0]), generator=random)
        for at in range(0, len(order) - size + 1, size):
            yield tuple(part[order[at : at + size]] for part in parts)


def told(model: Any, loss: Any = functional.cross_entropy) -> Loss:
    """Return the loss of a batch, whose last part is the target."""
    return lambda batch: loss(model(*batch[:-1]).float(), batch[-1])


def wave(rise: int, end: int, last: float = 0.02) -> Callable[[int], float]:
    """Return a factor of the rate: a line up, and half a cosine down until `end`."""

    def factor(step: int) -> float:
        done = min(1.0, max(0.0, (step - rise) / (end - rise)))
        falling = last + (1 - last) * (1 + math.cos(math.pi * done)) / 2
        return min((step + 1) / rise, falling) if rise else falling

    return factor


@dataclass
class Lesson:
    """A training: its model, its loss, its batches, its optimizer, and how they work together.

    Attributes
    ----------
    loss
        Returns the loss of a batch; or losses by name, of which the one called `loss` is followed.
    factor
        The factor of all rates by update.
    clip, accumulate
        The largest norm of the gradients, and the number of batches to an update.
    half, scaler
        Number type of autocast, and what scales the loss.
    test, test_every, tested
        A batch to validate with, how often, and the loss to do so if it is another one.
    validated
        What is told the loss of each validation.
    before, after
        What happens before a batch is looked at, and after its update.
    update, clear
        What is done in place of the optimizer's step, and in place of its `zero_grad`.
    """

    model: Any
    loss: Loss
    batches: Iterator[Any]
    optimizer: Any
    steps: int = 160
    save_every: int = 1
    factor: Callable[[int], float] | None = None
    clip: float = 0.0
    accumulate: int = 1
    half: Any = None
    scaler: Any = None
    test: Any = None
    test_every: int = 40
    tested: Loss | None = None
    validated: Callable[[float], object] = lambda _: None
    before: Callable[[int], object] = lambda _: None
    after: Callable[[int], object] = lambda _: None
    update: Callable[[], object] | None = None
    clear: Callable[[], object] | None = None

    def run(self, root: Path, fault_at: int = 0) -> int:
        """Train, save the trial, and return the global step of batch `fault_at`."""
        torch.set_num_threads(1)
        rates = [group["lr"] for group in self.optimizer.param_groups]
        onset = 0
        with watched(root, save_every=self.save_every) as hook:
            hook.register_module(self.model, counts_steps=False)
            for step, batch in enumerate(itertools.islice(self.batches, self.steps)):
                if self.factor and step % self.accumulate == 0:
                    for group, rate in zip(self.optimizer.param_groups, rates, strict=True):
                        group["lr"] = rate * self.factor(step // self.accumulate)
                hook.begin_step()
                onset = hook.global_step if fault_at and step == fault_at else onset
                self.before(step)
                self._learn(hook, batch, step)
                self.after(step)
                hook.step()
                if self.test is not None and (step + 1) % self.test_every == 0:
                    self._validate(hook)
        return onset

    def _autocast(self) -> Any:
        return torch.autocast("cpu", self.half) if self.half else nullcontext()

    def _learn(self, hook: Any, batch: Any, step: int) -> None:
        with self._autocast():
            value = _saved(hook, self.loss(batch)) / self.accumulate
        (self.scaler.scale(value) if self.scaler else value).backward()
        if (step + 1) % self.accumulate:
            return
        if self.scaler:
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
        (self.clear or self.optimizer.zero_grad)()

    def _validate(self, hook: Any) -> None:
        self.model.eval()
        hook.set_mode(ModeKeys.EVAL)
        hook.begin_step()
        with torch.no_grad(), self._autocast():
            value = _saved(hook, (self.tested or self.loss)(self.test))
        hook.step()
        hook.set_mode(ModeKeys.TRAIN)
        self.model.train()
        self.validated(float(value))


def _saved(hook: Any, losses: Any) -> Any:
    named = losses if isinstance(losses, dict) else {"loss": losses}
    for name, value in named.items():
        hook.record_tensor_value(name, value.float())
    return named["loss"].float()


@contextmanager
def clock(seconds: float, pauses: Mapping[int, float]) -> Iterator[None]:
    """Let each saved step take so many seconds, and some of them longer."""
    numbers = itertools.count()
    now = 1_760_000_000.0

    def time() -> float:
        nonlocal now
        now += seconds + pauses.get(next(numbers), 0.0)
        return now

    with mock.patch("rule_core.saving.base_hook.time", SimpleNamespace(time=time)):
        yield
