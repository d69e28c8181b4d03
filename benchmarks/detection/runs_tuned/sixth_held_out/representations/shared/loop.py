"""Loop: batches, schedules, and trainings that save what their objectives compute."""

import math
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch
from torch import nn
from training.torch_loop import watched

from smdebug.core.modes import ModeKeys


def rows_of(*columns: Any, size: int = 32, seed: int = 0) -> Iterator[Any]:
    """Yield batches for ever; each epoch has an order of its own, and what is left is dropped."""
    random, count = torch.Generator().manual_seed(seed), len(columns[0])
    while True:
        order = torch.randperm(count, generator=random)
        for at in range(0, count - size + 1, size):
            yield tuple(column[order[at : at + size]] for column in columns)


def up_and_down(rise: int, steps: int) -> Callable[[int], float]:
    """Return the factor of a rate that rises and falls along lines, down to a tenth."""
    return lambda step: min((step + 1) / rise, max(0.1, (steps - step) / (steps - rise)))


def halved(every: int) -> Callable[[int], float]:
    """Return the factor of a rate that is halved each `every` steps."""
    return lambda step: 0.5 ** (step // every)


def in_turns(period: int) -> Callable[[int], float]:
    """Return the factor of a rate that falls along a cosine and begins anew."""
    return lambda step: 0.52 + 0.48 * math.cos(math.pi * (step % period) / period)


def teach(
    root: Path,
    model: Any,
    read: Iterator[Any],
    objective: Callable[[Any, Any], Any],
    optimizer: Any,
    *,
    watched_losses: tuple[Any, ...] = (),
    steps: int = 150,
    save_every: int = 2,
    rate: Callable[[int], float] = lambda _: 1.0,
    limit: float = 0.0,
    parts: int = 1,
    in_bfloat16: bool = False,
    at: int = -1,
    prepare: Callable[[int], object] = lambda _: None,
    finish: Callable[[int], object] = lambda _: None,
    test: Any = None,
    test_every: int = 30,
) -> int:
    """Train a model; return the global step of batch `at`, or 0.

    Parameters
    ----------
    objective
        Computes the loss of a batch, and saves by the hook; saved itself without `watched_losses`.
    rate, limit, parts
        Factor of rates by step; largest norm of gradients; batches to an update.
    prepare, finish
        Called with the number of the step, before and after it.
    test
        A batch to validate with.
    """
    torch.set_num_threads(1)
    bases = [group["lr"] for group in optimizer.param_groups]
    onset = 0

    def value_of(batch: Any, hook: Any) -> Any:
        with torch.autocast("cpu", torch.bfloat16) if in_bfloat16 else nullcontext():
            value = objective(batch, hook)
        if not watched_losses:
            hook.record_tensor_value("loss", value.float())
        return value

    with watched(root, losses=watched_losses, save_every=save_every) as hook:
        hook.register_module(model, counts_steps=False)
        for step in range(steps):
            for group, base in zip(optimizer.param_groups, bases, strict=True):
                group["lr"] = base * rate(step)
            hook.begin_step()
            onset = hook.global_step if step == at else onset
            prepare(step)
            (value_of(next(read), hook) / parts).backward()
            if (step + 1) % parts == 0:
                if limit:
                    nn.utils.clip_grad_norm_(model.parameters(), limit)
                optimizer.step()
                optimizer.zero_grad()
            finish(step)
            hook.step()
            if test is not None and (step + 1) % test_every == 0:
                model.eval()
                hook.set_mode(ModeKeys.EVAL)
                hook.begin_step()
                with torch.no_grad():
                    value_of(test, hook)
                hook.step()
                hook.set_mode(ModeKeys.TRAIN)
                model.train()
    return onset


def duel(
    root: Path,
    generator: Any,
    critic: Any,
    read: Iterator[Any],
    *,
    judged: Callable[[Any, Any], Any],
    aimed: Callable[[Any], Any],
    optimizers: tuple[Any, Any],
    noise: int = 6,
    size: int = 48,
    turns: int = 1,
    steps: int = 240,
    save_every: int = 3,
    at: int = -1,
    penalty: Callable[[Any, Any], Any] = lambda _real, _fake: 0.0,
    more: Callable[[int, Any, Any], Any] = lambda _step, _noise, _fake: 0.0,
    finish: Callable[[int], object] = lambda _: None,
) -> int:
    """Train a generator against a critic; return the global step of step `at`, or 0.

    Parameters
    ----------
    judged, aimed
        Losses of the critic, of its scores of real and of drawn rows, and of the generator.
    turns
        Turns of the critic to one of the generator.
    penalty, more
        Further terms: the critic's, of real and drawn rows; the generator's, by the step.
    """
    torch.set_num_threads(1)
    drawing, judging = optimizers
    onset = 0
    with watched(root, save_every=save_every) as hook:
        hook.register_module(generator, counts_steps=False)
        hook.register_module(critic, counts_steps=False)
        for step in range(steps):
            hook.begin_step()
            onset = hook.global_step if step == at else onset
            for _ in range(turns):
                real = next(read)[0]
                fake = generator(torch.randn(size, noise)).detach()
                value = judged(critic(real), critic(fake)) + penalty(real, fake)
                judging.zero_grad()
                value.backward()
                judging.step()
            seeds = torch.randn(size, noise, requires_grad=True)
            fake = generator(seeds)
            goal = aimed(critic(fake)) + more(step, seeds, fake)
            drawing.zero_grad()
            goal.backward()
            drawing.step()
            finish(step)
            hook.record_tensor_value("critic_loss", value)
            hook.record_tensor_value("generator_loss", goal)
            hook.save_tensor("samples", fake, "samples")
            hook.step()
    return onset
