"""Pairs of which one draws, and the other one tells what is drawn from what is real."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from training.torch_loop import watched


def hinged(size: int, width: int = 64) -> Any:
    """Return a critic with spectral norms."""
    norm = nn.utils.parametrizations.spectral_norm
    return nn.Sequential(
        norm(nn.Linear(size, width)),
        nn.LeakyReLU(0.2),
        norm(nn.Linear(width, width)),
        nn.LeakyReLU(0.2),
        norm(nn.Linear(width, 1)),
    )


def by_margins(real: Any, fake: Any) -> Any:
    """Return the hinge loss of a critic."""
    return functional.relu(1 - real).mean() + functional.relu(1 + fake).mean()


def by_squares(real: Any, fake: Any) -> Any:
    """Return the least-squares loss of a critic."""
    return (real - 1).pow(2).mean() + fake.pow(2).mean()


def compete(
    root: Path,
    generator: Any,
    critic: Any,
    reads: tuple[Iterator[Any], ...],
    *,
    judge: Callable[[Any, Any], Any] = by_margins,
    draw: Callable[[Any], Any] = lambda scores: -scores.mean(),
    optimizer: Any = torch.optim.Adam,
    rates: tuple[float, float] = (1e-3, 1e-3),
    noise: int = 8,
    size: int = 48,
    blur: Callable[[int], float] = lambda _: 0.0,
    steps: int = 240,
    save_every: int = 3,
    at: int = -1,
    after: Callable[[int], object] = lambda _: None,
) -> int:
    """Train a pair, and return the global step of step `at`, or 0.

    Parameters
    ----------
    reads
        Batches of real rows; the last one is read from step `at` on.
    blur
        Deviation of what is added to all rows that the critic sees, by the step.
    """
    torch.set_num_threads(1)
    drawing = optimizer(generator.parameters(), lr=rates[0], betas=(0.5, 0.99))
    judging = optimizer(critic.parameters(), lr=rates[1], betas=(0.5, 0.99))
    onset = 0

    def blurred(rows: Any, step: int) -> Any:
        return rows + blur(step) * torch.randn_like(rows)

    with watched(root, save_every=save_every) as hook:
        hook.register_module(generator, counts_steps=False)
        hook.register_module(critic, counts_steps=False)
        for step in range(steps):
            hook.begin_step()
            onset = hook.global_step if step == at else onset
            real = next(reads[-1 if 0 <= at <= step else 0])[0]
            fake = generator(torch.randn(size, noise)).detach()
            value = judge(critic(blurred(real, step)), critic(blurred(fake, step)))
            judging.zero_grad()
            value.backward()
            judging.step()
            fake = generator(torch.randn(size, noise))
            drawn = draw(critic(blurred(fake, step)))
            drawing.zero_grad()
            drawn.backward()
            drawing.step()
            after(step)
            hook.record_tensor_value("critic_loss", value)
            hook.record_tensor_value("generator_loss", drawn)
            hook.save_tensor("samples", fake, "samples")
            hook.step()
    return onset
