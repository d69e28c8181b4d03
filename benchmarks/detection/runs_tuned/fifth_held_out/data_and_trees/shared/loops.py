"""Loops: a training with batches, forward passes and evaluations of one's own."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import torch
from torch import nn
from training.learnt_data import Split
from training.torch_loop import validate, watched


def learn(
    root: Path,
    model: Any,
    fed: Iterable[Any],
    data: Split,
    *,
    optimizer: Any,
    steps: int,
    loss: Any = None,
    save_every: int = 2,
    validate_every: int = 15,
    clip: float = 0.0,
    first: int = 0,
    cast: Any = None,
    evaluate: Callable[..., object] = validate,
    after_step: Callable[[int], object] = lambda _: None,
) -> int:
    """Train with what is fed, and return the global step at which the `first` faulty step is.

    Parameters
    ----------
    data
        What is validated with, every `validate_every` steps by `evaluate`.
    cast
        A type of autocast for forward passes; none without it.
    after_step
        Called with the number of each step, after it.
    """
    torch.set_num_threads(1)
    loss, onset = loss or nn.CrossEntropyLoss(), 0
    autocast = torch.autocast("cpu", dtype=cast or torch.bfloat16, enabled=cast is not None)
    with watched(root, model, losses=[loss], save_every=save_every) as watching:
        for step, (x, y) in zip(range(steps), fed, strict=False):
            if first and step == first:
                onset = watching.global_step + 1
            optimizer.zero_grad()
            with autocast:
                value = loss(model(x), y)
            value.backward()
            if clip:
                nn.utils.clip_grad_norm_(model.parameters(), clip)
            optimizer.step()
            after_step(step)
            if (step + 1) % validate_every == 0:
                with autocast:
                    evaluate(watching, model, loss, data)
    return onset
