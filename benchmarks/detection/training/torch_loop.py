"""Training: the loop of the detection suite's PyTorch runs, and what its hook saves."""

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import nn

import smdebug.pytorch as smd
from smdebug.core.hook import Hook as CoreHook
from smdebug.core.modes import ModeKeys
from training.learnt_data import Split

COLLECTIONS = (
    *("weights", "biases", "gradients", "losses", "labels", "predictions"),
    *("relu_input", "relu_output", "tanh_input", "sigmoid_input"),
    *("input_image", "input_sequence"),
)
HAS_PRESETS = "preset" in inspect.signature(CoreHook.__init__).parameters
Optimizer = Callable[[Any], Any]


def sgd(rate: float = 0.1, **more: Any) -> Optimizer:
    """Return what makes the optimizer of parameters."""
    return functools.partial(torch.optim.SGD, lr=rate, **more)


def adam(rate: float = 3e-3, kind: Any = torch.optim.Adam, **more: Any) -> Optimizer:
    """Return what makes the optimizer of parameters."""
    return functools.partial(kind, lr=rate, **more)


def hook(root: Path, save_every: int = 2, *, modes: bool = True, **options: Any) -> Any:
    """Return a hook that saves all that rules read; every evaluation, and each nth step."""
    saving = smd.SaveConfig(save_interval=save_every)
    if modes:
        saving = smd.SaveConfig(
            {
                ModeKeys.TRAIN: smd.SaveConfigMode(save_interval=save_every),
                ModeKeys.EVAL: smd.SaveConfigMode(save_interval=1),
            }
        )
    defaults = {"include_collections": COLLECTIONS, "save_config": saving, "on_error": "raise"}
    if HAS_PRESETS and "include_collections" not in options:
        defaults |= {"preset": "llm", "include_collections": (*COLLECTIONS, "parameters")}
    return smd.Hook(root, **defaults | options)


def register(watching: Any, models: Iterable[Any], losses: Iterable[Any]) -> None:
    """Register models and losses with a hook."""
    for model in models:
        watching.register_module(model)
    for loss in losses:
        watching.register_loss(loss)


@contextmanager
def watched(
    root: Path,
    *models: Any,
    losses: Iterable[Any] = (),
    save_every: int = 2,
    **options: Any,
) -> Iterator[Any]:
    """Yield a hook in mode TRAIN that watches models and losses, for a loop of its own."""
    torch.set_num_threads(1)
    with hook(root, save_every, **options) as watching:
        register(watching, models, losses)
        watching.set_mode(ModeKeys.TRAIN)
        yield watching


def batches(data: Split, size: int, seed: int = 0, *, shuffle: bool = True) -> Iterator[Any]:
    """Yield batches for ever, each epoch in an order of its own; what is left over is dropped."""
    generator = torch.Generator().manual_seed(seed)
    while True:
        count = len(data.x)
        order = torch.randperm(count, generator=generator) if shuffle else torch.arange(count)
        for at in range(0, count - size + 1, size):
            rows = order[at : at + size]
            yield data.x[rows], data.y[rows]


def validate(
    watching: Any, model: Any, loss: Any, data: Split, size: int = 1000, *, is_mode_set: bool = True
) -> None:
    """Evaluate a model on data that it does not learn from."""
    watching.set_mode(ModeKeys.EVAL)
    if is_mode_set:
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
    clear: Callable[[Any], object] = lambda optimizer: optimizer.zero_grad(),
    modules_are_switched: bool = True,
    shuffle: bool = True,
    at: int = -1,
    until: int = -1,
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
    update, clear, backward
        Take the optimizer's step, clear its gradients, and compute them from a loss.
    modules_are_switched
        Whether the model is switched to evaluation where it is evaluated.
    at, until, change
        Training steps at which something happens to the model and the optimizer: from `at` on to
        before `until`, at `at` alone without it.
    """
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    model, loss = make(), loss or nn.CrossEntropyLoss()
    optimizer_ = (optimizer or sgd())([one for one in model.parameters() if one.requires_grad])
    rates = torch.optim.lr_scheduler.LambdaLR(optimizer_, schedule) if schedule else None
    with hook(root, save_every, modes=bool(validate_every), **options) as watching:
        register(watching, [model], [loss])
        if validate_every:
            watching.set_mode(ModeKeys.TRAIN)
        onset = 0
        for number, (x, y) in zip(
            range(steps), batches(data, batch, seed, shuffle=shuffle), strict=False
        ):
            if at <= number < max(until, at + 1) and change is not None:
                onset = onset or watching.global_step + 1
                change(model, optimizer_)
            backward(loss(model(x), y))
            if clip:
                nn.utils.clip_grad_norm_(model.parameters(), clip)
            if (number + 1) % accumulate == 0:
                update(optimizer_)
                clear(optimizer_)
            if rates:
                rates.step()
            if validate_every and (number + 1) % validate_every == 0:
                validate(
                    watching, model, loss, data, validate_batch, is_mode_set=modules_are_switched
                )
    return onset


def scaled_fit(
    root: Path,
    make: Callable[[], Any],
    data: Split,
    *,
    optimizer: Optimizer,
    loss: Any = None,
    scale: float = 2.0**16,
    growth_interval: int = 40,
    steps: int = 120,
    batch: int = 16,
    save_every: int = 1,
    at: int = 0,
    change: Callable[[Any, Any], object] | None = None,
    spoiled: Callable[[Any], Any] = lambda loss: loss,
) -> int:
    """Train in half precision with a gradient scaler; return the step of the fault.

    Parameters
    ----------
    scale, growth_interval
        The first loss scale, and the number of good steps after which it is doubled.
    at, change
        Training step at which something happens to the model and the optimizer.
    spoiled
        Changes each loss, from step `at` on.
    """
    torch.manual_seed(0)
    model, loss = make(), loss or nn.CrossEntropyLoss()
    optimizer_ = optimizer(model.parameters())
    scaler = torch.amp.GradScaler("cpu", init_scale=scale, growth_interval=growth_interval)
    onset = 0
    with watched(root, model, losses=[loss], save_every=save_every) as watching:
        for number, (x, y) in zip(range(steps), batches(data, batch), strict=False):
            if number == at and change is not None:
                onset = watching.global_step + 1
                change(model, optimizer_)
            with torch.autocast("cpu", dtype=torch.float16):
                value = loss(model(x), y)
            if number >= at:
                value = spoiled(value)
            scaler.scale(value).backward()
            scaler.step(optimizer_)
            scaler.update()
            optimizer_.zero_grad()
            if (number + 1) % 40 == 0:
                with torch.autocast("cpu", dtype=torch.float16):
                    validate(watching, model, loss, data)
    return onset
