"""Trainings that log their speed, by a clock that is wound: work takes a known time."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from training.learnt_data import digits
from training.small_networks import mlp

# What a step costs, in seconds, by its number and its tokens.
Cost = Callable[[int, int], float]


def timed(
    root: Path,
    cost: Cost = lambda _, tokens: tokens * 1e-5,
    *,
    logs: Callable[[float, int, int], dict[str, float]],
    steps: int = 240,
    noise: float = 0.03,
    pause: Callable[[int], float] = lambda _: 0.0,
    tokens: Callable[[int], int] = lambda _: 8192,
    log_every: int = 1,
    seed: int = 0,
) -> int:
    """Train on digits, and log each step's loss and speed to a file of JSON lines.

    Parameters
    ----------
    logs
        Makes the columns of a row: of the seconds since the row before, the tokens in them, and
        the steps.
    noise
        Deviation of the logarithm of a step's time.
    pause
        Seconds that the clock goes on after a step, for evaluations and checkpoints.
    """
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    random = np.random.default_rng(seed)
    data, model = digits(), mlp(64, 32, 10)()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    root.mkdir(parents=True)
    seconds, counted, since = 0.0, 0, 0
    with (root / "metrics.jsonl").open("w", encoding="utf-8") as file:
        for step in range(1, steps + 1):
            rows = torch.arange(step * 32, step * 32 + 32) % len(data.x)
            loss = functional.cross_entropy(model(data.x[rows]), data.y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            size = tokens(step)
            seconds += cost(step, size) * float(np.exp(noise * random.normal())) + pause(step)
            counted, since = counted + size, since + 1
            if step % log_every == 0:
                row: dict[str, Any] = {"step": step, "loss": loss.item()}
                print(json.dumps(row | logs(seconds, counted, since)), file=file)
                seconds, counted, since = 0.0, 0, 0
    return 0


def tokens_in_a_second(seconds: float, tokens: int, _: int) -> dict[str, float]:
    """Return a column of tokens in a second."""
    return {"tokens_per_second": tokens / seconds}
