"""Training: the loop of the detection suite's PyTorch runs, and what its hook saves."""

import functools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from learnt_data import Split
from torch import nn

import smdebug.pytorch as smd
from smdebug.core.modes import ModeKeys

COLLECTIONS = (
    *("weights", "biases", "gradients", "losses", "labels", "predictions"),
    *("relu_input", "relu_output", "tanh_input", "sigmoid_input"),
    *("input_image", "input_sequence"),
)
Optimizer = Callable[[Any], Any]


def sgd(rate: float = 0.1, **more: Any) -> Optimizer:
    """Return what makes the optimizer of parameters."""
    return functools.partial(torch.optim.SGD, lr=rate, **more)


def adam(rate: float = 3e-3, kind: Any = torch.optim.Adam, **more: Any) -> Optimizer:
    """Return what makes the optimizer of parameters."""
    return functools.partial(kind, lr=rate, **more)


def hook(root: Path, save_every: int = 2, *, modes: bool = True, **options: Any) -> Any:
    """Return a hook that saves all that rules ask for; every evaluation, and each nth step."""
    saving = smd.SaveConfig(save_interval=save_every)
    if modes:
        saving = smd.SaveConfig(
            {
                ModeKeys.TRAIN: smd.SaveConfigMode(save_interval=save_every),
                ModeKeys.EVAL: smd.SaveConfigMode(save_interval=1),
            }
        )
    given = {"include_collections": COLLECTIONS, "save_config": saving, "on_error": "raise"}
    return smd.Hook(root, **given | options)


def batches(data: Split, size: int, seed: int = 0, *, shuffle: bool = True) -> Iterator[Any]:
    """Yield batches for ever, each epoch in an order of its own; what is left over is dropped."""
    generator = torch.Generator().manual_seed(seed)
    while True:
        count = len(data.x)
        order = torch.randperm(count, generator=generator) if shuffle else torch.arange(count)
        for at in range(0, count - size + 1, size):
            rows = order[at : at + size]
            yield data.x[rows], data.y[rows]


def validate(watching: Any, model: Any, loss: Any, data: Split, size: int) -> None:
    """Evaluate a model on data that it does not learn from."""
    watching.set_mode(ModeKeys.EVAL)
    model.eval()
    with torch.no_grad():
        for x, y in zip(data.test_x.split(size), data.test_y.split(size), strict=True):
            loss(model(x), y)
    model.train()
    watching.set_mode(ModeKeys.TRAIN)


def fit(
    root: Path,
    make: Callable[[], Any],
    data: Split,
    *,
    loss: Any = None,
    optimizer: Optimizer | None = None,
    steps: int = 120,
    batch: int = 32,
    save_every: int = 2,
    validate_every: int = 20,
    validate_batch: int = 1000,
    clip: float = 0.0,
    accumulate: int = 1,
    schedule: Callable[[int], float] | None = None,
    update: Callable[[Any], object] = lambda optimizer: optimizer.step(),
    shuffle: bool = True,
    at: int = -1,
    change: Callable[[Any, Any], object] | None = None,
    backward: Callable[[Any], object] = lambda value: value.backward(),
    seed: int = 0,
    **options: Any,
) -> int:
    """Train a model, save its trial, and return the global step at which the fault began.

    Parameters
    ----------
    make
        Makes the model, after the seed was set.
    steps, batch
        Number and size of the batches to train with.
    save_every
        How many training steps lie between two that are saved.
    validate_every, validate_batch
        How many training steps lie between two evaluations (0: none, and no modes either).
    clip, accumulate, schedule
        Largest norm of the gradients; batches to an update; factor of the learning rate by step.
    update, backward
        Take the optimizer's step, and the loss's.
    at, change
        Training step at which something happens to the model and the optimizer.
    """
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    model, loss = make(), loss or nn.CrossEntropyLoss()
    optimizer_ = (optimizer or sgd())([one for one in model.parameters() if one.requires_grad])
    rates = torch.optim.lr_scheduler.LambdaLR(optimizer_, schedule) if schedule else None
    with hook(root, save_every, modes=bool(validate_every), **options) as watching:
        watching.register_module(model)
        watching.register_loss(loss)
        if validate_every:
            watching.set_mode(ModeKeys.TRAIN)
        onset = 0
        for number, (x, y) in zip(
            range(steps), batches(data, batch, seed, shuffle=shuffle), strict=False
        ):
            if number == at and change is not None:
                onset = watching.global_step + 1
                change(model, optimizer_)
            backward(loss(model(x), y))
            if clip:
                nn.utils.clip_grad_norm_(model.parameters(), clip)
            if (number + 1) % accumulate == 0:
                update(optimizer_)
                optimizer_.zero_grad()
            if rates:
                rates.step()
            if validate_every and (number + 1) % validate_every == 0:
                validate(watching, model, loss, data, validate_batch)
    return onset
