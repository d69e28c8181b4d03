"""Loop: batches, schedules, and a training that saves what its objective computes."""

import math
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch
from torch import nn
from training.torch_loop import watched

from smdebug.core.modes import ModeKeys


def epochs(*columns: Any, size: int = 32, seed: int = 0) -> Iterator[Any]:
    """Yield batches of shuffled rows, epoch after epoch."""
    random = torch.Generator().manual_seed(seed)
    while True:
        for rows in torch.randperm(len(columns[0]), generator=random).split(size):
            if len(rows) == size:
                yield tuple(column[rows] for column in columns)


def cosine(rise: int, steps: int, end: float = 0.05) -> Callable[[int], float]:
    """Return the factor of a rate that rises along a line and falls along a cosine."""
    half_turn = math.pi / steps
    return lambda step: min(
        (step + 1) / rise, end + (1 - end) * (1 + math.cos(half_turn * step)) / 2
    )


def inverse_root(rise: int) -> Callable[[int], float]:
    """Return the factor of a rate that rises and then falls with the root of the step."""
    return lambda step: min((step + 1) / rise, math.sqrt(rise / (step + 1)))


class Average:
    """A copy of a model that follows it slowly."""

    def __init__(self, model: Any, copy: Any, share: float = 0.03) -> None:
        self.model, self.copy, self.share = model, copy, share
        copy.load_state_dict(model.state_dict())
        copy.requires_grad_(requires_grad=False)

    def __call__(self, _: int) -> None:
        with torch.no_grad():
            for slow, fast in zip(self.copy.parameters(), self.model.parameters(), strict=True):
                slow.lerp_(fast, self.share)


def learn(
    root: Path,
    model: Any,
    read: Iterator[Any],
    objective: Callable[[Any, Any], Any],
    optimizer: Any,
    *,
    losses: tuple[Any, ...] = (),
    steps: int = 150,
    save_every: int = 2,
    rate: Callable[[int], float] | None = None,
    clip: float = 0.0,
    gather: int = 1,
    half: bool = False,
    at: int = -1,
    before: Callable[[int], object] = lambda _: None,
    after: Callable[[int], object] = lambda _: None,
    held_out: Any = None,
    validate_every: int = 30,
) -> int:
    """Train a model, and return the global step of batch `at`, or 0.

    Parameters
    ----------
    objective
        Computes a loss from a batch and the hook. It is saved unless `losses` are watched.
    rate
        Factor of the learning rates by batch.
    gather
        Number of batches to an update.
    half
        Whether the objective is computed in bfloat16.
    before, after
        Called with the number of each batch, before and after it is learnt from.
    held_out
        A batch to validate with after each `validate_every` batches.
    """
    torch.set_num_threads(1)
    first_rates = [group["lr"] for group in optimizer.param_groups]
    onset = 0

    def compute(batch: Any, hook: Any) -> Any:
        with torch.autocast("cpu", torch.bfloat16) if half else nullcontext():
            value = objective(batch, hook)
        if not losses:
            hook.record_tensor_value("loss", value.float())
        return value

    def validate(hook: Any) -> None:
        model.eval()
        hook.set_mode(ModeKeys.EVAL)
        hook.begin_step()
        with torch.no_grad():
            compute(held_out, hook)
        hook.step()
        hook.set_mode(ModeKeys.TRAIN)
        model.train()

    with watched(root, losses=losses, save_every=save_every) as hook:
        hook.register_module(model, counts_steps=False)
        for step, batch in zip(range(steps), read, strict=False):
            for group, first in zip(optimizer.param_groups, first_rates, strict=True):
                group["lr"] = first * (rate(step) if rate else 1.0)
            hook.begin_step()
            onset = hook.global_step if step == at else onset
            before(step)
            (compute(batch, hook) / gather).backward()
            if (step + 1) % gather == 0:
                if clip:
                    nn.utils.clip_grad_norm_(model.parameters(), clip)
                optimizer.step()
                optimizer.zero_grad()
            after(step)
            hook.step()
            if held_out is not None and (step + 1) % validate_every == 0:
                validate(hook)
    return onset
