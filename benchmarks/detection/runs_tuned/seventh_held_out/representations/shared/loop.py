"""Loop: batches, schedules and steps of trainings that compute losses of their own."""

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from training.torch_loop import watched

from smdebug.core.modes import ModeKeys


def loader(*columns: Any, size: int = 32, seed: int = 0) -> Iterator[Any]:
    """Yield shuffled batches for ever; the last incomplete batch of an epoch is dropped."""
    random, count = torch.Generator().manual_seed(seed), len(columns[0])
    while True:
        order = torch.randperm(count, generator=random)
        for at in range(0, count - size + 1, size):
            yield tuple(column[order[at : at + size]] for column in columns)


def warmup_cosine(warmup: int, steps: int, floor: float = 0.05) -> Callable[[int], float]:
    """Return the factor of a learning rate with a linear warm-up and a cosine decay."""

    def factor(step: int) -> float:
        if step < warmup:
            return (step + 1) / warmup
        done = min(1.0, (step - warmup) / (steps - warmup))
        return floor + (1 - floor) * (1 + math.cos(math.pi * done)) / 2

    return factor


def warmup_linear(warmup: int, steps: int) -> Callable[[int], float]:
    """Return the factor of a learning rate with a linear warm-up and a linear decay."""
    return lambda step: min((step + 1) / warmup, max(0.05, (steps - step) / (steps - warmup)))


def descend(loss: Any, optimizer: Any, clip: float = 0.0) -> None:
    """Take a step of an optimizer."""
    optimizer.zero_grad()
    loss.backward()
    if clip:
        groups = optimizer.param_groups
        nn.utils.clip_grad_norm_([each for group in groups for each in group["params"]], clip)
    optimizer.step()


def loop(
    root: Path,
    models: Any,
    update: Callable[[int, Any], object],
    *,
    losses: tuple[Any, ...] = (),
    steps: int = 150,
    save_every: int = 2,
    at: int = -1,
    evaluate: Callable[[Any], object] | None = None,
    evaluate_every: int = 30,
) -> int:
    """Call `update` for each step, and return the global step of step `at`, or 0.

    Parameters
    ----------
    update
        Called with the number of the step and the hook; takes the optimizer's step.
    evaluate
        Called with the hook in mode EVAL, with models in evaluation mode and without gradients.
    """
    torch.set_num_threads(1)
    onset = 0
    with watched(root, losses=losses, save_every=save_every) as hook:
        for model in models:
            hook.register_module(model, counts_steps=False)
        for number in range(steps):
            hook.begin_step()
            onset = hook.global_step if number == at else onset
            update(number, hook)
            hook.step()
            if evaluate is not None and (number + 1) % evaluate_every == 0:
                for model in models:
                    model.eval()
                hook.set_mode(ModeKeys.EVAL)
                hook.begin_step()
                with torch.no_grad():
                    evaluate(hook)
                hook.step()
                hook.set_mode(ModeKeys.TRAIN)
                for model in models:
                    model.train()
    return onset


def teach(
    root: Path,
    model: Any,
    read: Iterator[Any],
    objective: Callable[[Any, Any], Any],
    optimizer: Any,
    *,
    losses: tuple[Any, ...] = (),
    factor: Callable[[int], float] | None = None,
    clip: float = 0.0,
    after: Callable[[int], object] = lambda _: None,
    test: Any = None,
    **options: Any,
) -> int:
    """Train one model to minimise an objective of batches; options are those of `loop`.

    Parameters
    ----------
    objective
        Computes the loss of a batch; the hook saves it unless its modules are in `losses`.
    factor, clip
        Factor of the learning rate by step; largest norm of the gradients.
    after
        Called with the number of the step after the optimizer's step.
    test
        A batch to validate with.
    """
    rates = torch.optim.lr_scheduler.LambdaLR(optimizer, factor) if factor else None

    def value_of(batch: Any, hook: Any) -> Any:
        value = objective(batch, hook)
        if not losses:
            hook.record_tensor_value("loss", value)
        return value

    def update(number: int, hook: Any) -> None:
        descend(value_of(next(read), hook), optimizer, clip)
        if rates:
            rates.step()
        after(number)

    evaluate = None if test is None else lambda hook: value_of(test, hook)
    return loop(root, [model], update, losses=losses, evaluate=evaluate, **options)


def duel(
    root: Path,
    generator: Any,
    critic: Any,
    read: Iterator[Any],
    *,
    noise: int,
    of_critic: Callable[[Any, Any], Any],
    of_generator: Callable[[Any], Any],
    optimizers: tuple[Any, Any],
    turns: int = 1,
    size: int = 64,
    steps: int = 300,
    save_every: int = 3,
    at: int = -1,
    penalty: Callable[[Any, Any], Any] = lambda _real, _fake: 0.0,
    tuned: Callable[[int, Any, Any], Any] = lambda _step, _fake, loss: loss,
    after: Callable[[int], object] = lambda _: None,
) -> int:
    """Train a generator and a critic (or discriminator) in turns.

    Parameters
    ----------
    of_critic, of_generator
        Losses of the critic, by its scores of real and of generated rows, and of the generator.
    turns
        Steps of the critic for one of the generator.
    penalty
        A further term of the critic's loss, by real and generated rows.
    tuned
        Changes the generator's loss, by the step and its samples.
    """
    drawing, judging = optimizers

    def update(number: int, hook: Any) -> None:
        for _ in range(turns):
            real = next(read)[0]
            with torch.no_grad():
                fake = generator(torch.randn(size, noise))
            value = of_critic(critic(real), critic(fake)) + penalty(real, fake)
            descend(value, judging)
        fake = generator(torch.randn(size, noise))
        goal = tuned(number, fake, of_generator(critic(fake)))
        descend(goal, drawing)
        after(number)
        hook.record_tensor_value("d_loss", value)
        hook.record_tensor_value("g_loss", goal)
        hook.save_tensor("samples", fake, "samples")

    return loop(root, [generator, critic], update, steps=steps, save_every=save_every, at=at)


def bce_critic(real: Any, fake: Any) -> Any:
    """Return the cross entropy of a discriminator."""
    return functional.softplus(-real).mean() + functional.softplus(fake).mean()


def bce_generator(scores: Any) -> Any:
    """Return the loss of a generator that does not saturate."""
    return functional.softplus(-scores).mean()
