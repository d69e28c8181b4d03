"""Loop: batches, schedules, and trainings of one model, of two rivals, and of two replicas."""

import copy
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import nn
from training.torch_loop import hook as open_hook
from training.torch_loop import watched

from smdebug.core.modes import ModeKeys


def loader(*columns: Any, size: int = 32, seed: int = 0) -> Iterator[Any]:
    """Yield shuffled batches for ever; an epoch's last, smaller batch is dropped."""
    random = torch.Generator().manual_seed(seed)
    while True:
        order = torch.randperm(len(columns[0]), generator=random)
        for rows in order.split(size):
            if len(rows) == size:
                yield tuple(column[rows] for column in columns)


def cosine(warm_up: int, steps: int, floor: float = 0.0) -> Callable[[int], float]:
    """Return the factor of the rate: up along a line, and down along half a cosine."""

    def factor(step: int) -> float:
        if step < warm_up:
            return (step + 1) / warm_up
        share = (step - warm_up) / max(1, steps - warm_up)
        return floor + (1 - floor) * (1 + math.cos(math.pi * share)) / 2

    return factor


def linear(warm_up: int, steps: int) -> Callable[[int], float]:
    """Return the factor of the rate: up and down along lines, as fine-tuning does."""
    return lambda step: min((step + 1) / warm_up, (steps - step) / (steps - warm_up))


def train(
    root: Path,
    model: Any,
    batches: Iterator[Any],
    step_loss: Callable[[Any, Any], Any],
    optimizer: Any,
    *,
    steps: int = 150,
    save_every: int = 2,
    factor: Callable[[int], float] | None = None,
    clip: float = 0.0,
    accumulate: int = 1,
    losses: tuple[Any, ...] = (),
    fault_at: int = -1,
    after: Callable[[int], object] = lambda _: None,
    validation: Any = None,
    validate_every: int = 40,
) -> int:
    """Train a model; return the global step of step `fault_at`, or 0.

    Parameters
    ----------
    step_loss
        Returns the loss of a batch; it is given the hook, to save by.
    losses
        Loss modules to watch; without any, the loss is saved by hand.
    after
        Called with the step after each update.
    validation
        A batch to validate with.
    """
    torch.set_num_threads(1)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, factor) if factor else None
    onset, curve = 0, []
    with watched(root, losses=losses, save_every=save_every) as watching:
        watching.register_module(model, counts_steps=False)
        for step in range(steps):
            watching.begin_step()
            onset = watching.global_step if step == fault_at else onset
            value = step_loss(next(batches), watching)
            if not losses:
                watching.record_tensor_value("loss", value)
            (value / accumulate).backward()
            curve.append(float(value.detach()))
            if (step + 1) % accumulate == 0:
                if clip:
                    nn.utils.clip_grad_norm_(model.parameters(), clip)
                optimizer.step()
                optimizer.zero_grad()
            if schedule:
                schedule.step()
            after(step)
            watching.step()
            if validation is not None and (step + 1) % validate_every == 0:
                model.eval()
                watching.set_mode(ModeKeys.EVAL)
                watching.begin_step()
                with torch.no_grad():
                    value = step_loss(validation, watching)
                    if not losses:
                        watching.record_tensor_value("loss", value)
                watching.step()
                watching.set_mode(ModeKeys.TRAIN)
                model.train()
    train.curve = curve  # type: ignore[attr-defined]
    return onset


def rivals(
    root: Path,
    generator: Any,
    critic: Any,
    batches: Iterator[Any],
    optimizers: tuple[Any, Any],
    *,
    critic_loss: Callable[[Any, Any], Any],
    generator_loss: Callable[[Any], Any],
    noise: int = 8,
    critic_turns: int = 1,
    steps: int = 300,
    save_every: int = 3,
    penalty: Callable[[Any, Any], Any] | None = None,
    extra: Callable[[int, Any, Any], Any] | None = None,
    after: Callable[[int], object] = lambda _: None,
    fault_at: int = -1,
) -> int:
    """Train a generator and its critic in turns; return the global step of step `fault_at`, or 0.

    Parameters
    ----------
    critic_loss, generator_loss
        Of scores of real and drawn rows; of scores of drawn rows.
    penalty, extra
        Further terms of the critic (of real and drawn rows) and of the generator (of the step,
        of drawn and of real rows).
    """
    torch.set_num_threads(1)
    to_draw, to_judge = optimizers
    onset, curve = 0, []
    with watched(root, save_every=save_every) as watching:
        watching.register_module(generator, counts_steps=False)
        watching.register_module(critic, counts_steps=False)
        for step in range(steps):
            watching.begin_step()
            onset = watching.global_step if step == fault_at else onset
            for _ in range(critic_turns):
                (real,) = next(batches)
                drawn = generator(torch.randn(len(real), noise)).detach()
                of_critic = critic_loss(critic(real), critic(drawn))
                if penalty:
                    of_critic = of_critic + penalty(real, drawn)
                to_judge.zero_grad()
                of_critic.backward()
                to_judge.step()
            drawn = generator(torch.randn(len(real), noise))
            of_generator = generator_loss(critic(drawn))
            if extra:
                of_generator = of_generator + extra(step, drawn, real)
            to_draw.zero_grad()
            of_generator.backward()
            to_draw.step()
            watching.record_tensor_value("d_loss", of_critic)
            watching.record_tensor_value("g_loss", of_generator)
            watching.save_tensor("samples", drawn, "samples")
            curve.append((float(of_critic.detach()), float(of_generator.detach())))
            after(step)
            watching.step()
    train.curve = curve  # type: ignore[attr-defined]
    return onset


def averaged(_: str, parts: list[Any]) -> None:
    """Give replicas the mean of their gradients, as all-reduce does."""
    mean = torch.stack([part.grad for part in parts]).mean(0)
    for part in parts:
        part.grad.copy_(mean)


def _open_hook(root: Path, model: Any, rank: int, workers: int, save_every: int) -> Any:
    watching = open_hook(root, save_every, include_workers="all", rank=rank, world_size=workers)
    watching.register_module(model, counts_steps=False)
    watching.set_mode(ModeKeys.TRAIN)
    return watching


def _all_reduce(models: list[Any], reduce: Callable[[str, list[Any]], None]) -> None:
    for parts in zip(*(each.named_parameters() for each in models), strict=True):
        if parts[0][1].grad is not None:
            reduce(parts[0][0], [part for _, part in parts])


def replicas(
    root: Path,
    model: Any,
    columns: tuple[Any, ...],
    step_loss: Callable[[Any, Any], Any],
    make_optimizer: Callable[[Any], Any],
    *,
    workers: int = 2,
    steps: int = 120,
    save_every: int = 4,
    size: int = 16,
    accumulate: int = 1,
    clip: float = 0.0,
    reduce: Callable[[str, list[Any]], None] = averaged,
    factor: Callable[[int], float] | None = None,
    skips: Callable[[int, int, float], bool] = lambda *_: False,
    after: Callable[[int, list[Any], list[Any]], object] = lambda *_: None,
    fault_at: int = -1,
) -> int:
    """Train replicas of a model on shards of the data; return the step of step `fault_at`, or 0.

    Parameters
    ----------
    reduce
        Averages the gradients of a parameter.
    skips
        Whether a worker leaves out its update, by step, rank and loss.
    after
        Called with the step, the models and the optimizers.
    """
    torch.set_num_threads(1)
    models = [model, *(copy.deepcopy(model) for _ in range(workers - 1))]
    optimizers = [make_optimizer(each) for each in models]
    schedules = [torch.optim.lr_scheduler.LambdaLR(each, factor) for each in optimizers if factor]
    hooks = [_open_hook(root, each, rank, workers, save_every) for rank, each in enumerate(models)]
    shards = [
        loader(*(column[rank::workers] for column in columns), size=size, seed=rank)
        for rank in range(workers)
    ]
    onset, curve = 0, []
    for step in range(steps):
        values = []
        for watching, each, shard in zip(hooks, models, shards, strict=True):
            watching.begin_step()
            value = step_loss(each, next(shard))
            watching.record_tensor_value("loss", value)
            (value / accumulate).backward()
            values.append(float(value.detach()))
        curve.append(values)
        onset = hooks[0].global_step if step == fault_at else onset
        if (step + 1) % accumulate == 0:
            _all_reduce(models, reduce)
            for rank, (each, optimizer) in enumerate(zip(models, optimizers, strict=True)):
                if clip:
                    nn.utils.clip_grad_norm_(each.parameters(), clip)
                if not skips(step, rank, values[rank]):
                    optimizer.step()
                optimizer.zero_grad()
        for schedule in schedules:
            schedule.step()
        after(step, models, optimizers)
        for watching in hooks:
            watching.step()
    for watching in hooks:
        watching.close()
    train.curve = curve  # type: ignore[attr-defined]
    return onset
