"""Loop: batches, rates, and a training that saves what its objective computes."""

import math
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch
from torch import nn
from training.torch_loop import watched

from smdebug.core.modes import ModeKeys


def draws(*columns: Any, size: int = 32, seed: int = 0) -> Iterator[Any]:
    """Yield batches of rows that are drawn with replacement, for ever."""
    random = torch.Generator().manual_seed(seed)
    while True:
        rows = torch.randint(len(columns[0]), (size,), generator=random)
        yield tuple(column[rows] for column in columns)


def rises_and_falls(rise: int, steps: int, end: float = 0.1) -> Callable[[int], float]:
    """Return the factor of a rate that rises and then falls along a line."""
    return lambda step: min((step + 1) / rise, end + (1 - end) * max(0.0, 1 - step / steps))


def restarts(period: int, end: float = 0.1) -> Callable[[int], float]:
    """Return the factor of a rate that falls as a cosine again and again."""
    return lambda step: end + (1 - end) * (1 + math.cos(math.pi * (step % period) / period)) / 2


class Follower:
    """A slow average of a model's parameters."""

    def __init__(self, model: Any, copy: Any, share: float = 0.02) -> None:
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
    validate_every: int = 25,
) -> int:
    """Train a model and return the global step of batch `at`.

    Parameters
    ----------
    objective
        Computes a loss from a batch and the hook; watched `losses` that it calls are saved by
        themselves, otherwise what it returns is.
    gather
        Batches to an update.
    half
        Whether losses are computed in bfloat16.
    before, after
        What happens before and after each batch.
    held_out
        A batch to validate with.
    """
    torch.set_num_threads(1)
    rates = [group["lr"] for group in optimizer.param_groups]
    onset = 0
    with watched(root, losses=losses, save_every=save_every) as hook:
        hook.register_module(model, counts_steps=False)

        def compute(batch: Any) -> Any:
            with torch.autocast("cpu", torch.bfloat16) if half else nullcontext():
                value = objective(batch, hook)
            if not losses:
                hook.record_tensor_value("loss", value.float())
            return value

        for step, batch in zip(range(steps), read, strict=False):
            if rate:
                for group, first in zip(optimizer.param_groups, rates, strict=True):
                    group["lr"] = first * rate(step)
            hook.begin_step()
            onset = hook.global_step if step == at else onset
            before(step)
            (compute(batch) / gather).backward()
            if (step + 1) % gather == 0:
                if clip:
                    nn.utils.clip_grad_norm_(model.parameters(), clip)
                optimizer.step()
                optimizer.zero_grad()
            after(step)
            hook.step()
            if held_out is not None and (step + 1) % validate_every == 0:
                model.eval()
                hook.set_mode(ModeKeys.EVAL)
                hook.begin_step()
                with torch.no_grad():
                    compute(held_out)
                hook.step()
                hook.set_mode(ModeKeys.TRAIN)
                model.train()
    return onset
