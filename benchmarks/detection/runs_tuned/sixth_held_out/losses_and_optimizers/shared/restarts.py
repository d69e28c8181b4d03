"""Restarts: trainings that write a log, stop, and go on from a checkpoint."""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn
from training.logs import CsvLog

from rule_core.model.segments import global_step
from runs_tuned.sixth_held_out.losses_and_optimizers.shared.lesson import dealt


def going_on(
    root: Path,
    model: Any,
    loss: Callable[[Any], Any],
    data: tuple[Any, ...],
    optimizer: Any,
    *,
    stops: tuple[tuple[int, int], ...] = ((130, 146),),
    steps: int = 240,
    size: int = 24,
    every: int = 1,
    factor: Callable[[int], float] = lambda _: 1.0,
    clip: float = 100.0,
    forgotten: Callable[[], object] = lambda: None,
) -> int:
    """Train, and go on from the checkpoint behind each stop; return the step of the first one.

    Parameters
    ----------
    stops
        The step of each checkpoint, and the later one at which the training stops.
    every
        How many steps lie between two rows of the log.
    factor
        The factor of all rates by step.
    forgotten
        What happens after a checkpoint was loaded.
    """
    torch.set_num_threads(1)
    rates = [group["lr"] for group in optimizer.param_groups]
    served = dealt(*data, size=size, seed=len(data[0]))
    batches = [next(served) for _ in range(steps)]
    begin, kept = 0, None
    with CsvLog(root) as log:
        for mark, end in (*stops, (steps, steps)):
            if kept:
                model.load_state_dict(kept[0])
                optimizer.load_state_dict(kept[1])
                forgotten()
            for step in range(begin, end):
                if step == mark:
                    kept = copy.deepcopy((model.state_dict(), optimizer.state_dict()))
                for group, rate in zip(optimizer.param_groups, rates, strict=True):
                    group["lr"] = rate * factor(step)
                optimizer.zero_grad()
                value = loss(batches[step])
                value.backward()
                norm = float(nn.utils.clip_grad_norm_(model.parameters(), clip))
                optimizer.step()
                if step % every == 0:
                    rate = optimizer.param_groups[0]["lr"]
                    log.write(step, loss=float(value.detach()), lr=rate, grad_norm=norm)
            begin = mark
    return global_step(1, stops[0][0])
