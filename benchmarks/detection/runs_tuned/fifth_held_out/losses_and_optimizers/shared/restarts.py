"""Restarts: trainings that write a log, stop, and go on from their last checkpoint."""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn
from training.logs import CsvLog

from rule_core.model.segments import global_step
from runs_tuned.fifth_held_out.losses_and_optimizers.shared.data import chance
from runs_tuned.fifth_held_out.losses_and_optimizers.shared.loops import set_rates


def by_step(*parts: Any, size: int = 24, seed: int = 0) -> Callable[[int], tuple[Any, ...]]:
    """Return what returns the batch of a step, in an order that is the same after a restart."""
    random = chance(seed)
    order = torch.cat([torch.randperm(len(parts[0]), generator=random) for _ in range(30)])
    return lambda step: tuple(part[order[step * size : (step + 1) * size]] for part in parts)


def restarted(
    root: Path,
    model: Any,
    objective: Callable[[Any], Any],
    batch_at: Callable[[int], Any],
    optimizer: Any,
    *,
    stops: tuple[tuple[int, int], ...] = ((120, 140),),
    steps: int = 220,
    every: int = 1,
    schedule: Callable[[int], float] = lambda _: 1.0,
    clip: float = 10.0,
    lost: Callable[[Any], object] = lambda _: None,
) -> int:
    """Train, and go on from a checkpoint after each stop; return the first step after the first.

    Parameters
    ----------
    stops
        The step of each checkpoint, and the step at which the training ends behind it.
    every
        How many steps lie between two rows of the log.
    lost
        What happens to the model after its state was loaded.
    """
    torch.set_num_threads(1)
    rates = [group["lr"] for group in optimizer.param_groups]
    start, state = 0, None
    with CsvLog(root) as log:
        for checkpoint, end in (*stops, (steps, steps)):
            if state:
                model.load_state_dict(state[0])
                optimizer.load_state_dict(state[1])
                lost(model)
            for step in range(start, end):
                if step == checkpoint:
                    state = copy.deepcopy((model.state_dict(), optimizer.state_dict()))
                set_rates(optimizer, rates, schedule(step))
                optimizer.zero_grad()
                value = objective(batch_at(step))
                value.backward()
                norm = float(nn.utils.clip_grad_norm_(model.parameters(), clip))
                optimizer.step()
                if step % every == 0:
                    rate = rates[0] * schedule(step)
                    log.write(step, loss=float(value.detach()), lr=rate, grad_norm=norm)
            start = checkpoint
    return global_step(1, stops[0][0])
