"""Duels: training of pairs of which one draws, and the other one judges."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional
from training.torch_loop import watched

from runs_tuned.fourth_held_out.representations.shared.loop import draws


def doubted(real: Any, fake: Any) -> Any:
    """Return the loss of a critic that tells real rows from drawn ones."""
    return functional.softplus(-real).mean() + functional.softplus(fake).mean()


def accepted(fake: Any) -> Any:
    """Return the loss of a generator whose rows are to be taken for real ones."""
    return functional.softplus(-fake).mean()


def duel(
    root: Path,
    generator: Any,
    critic: Any,
    x: Any,
    *,
    seed: int,
    rates: tuple[float, float] = (1e-3, 1e-3),
    losses: tuple[Callable[[Any, Any], Any], Callable[[Any], Any]] = (doubted, accepted),
    penalty: float = 0.3,
    turns: int = 1,
    optimizer: Any = None,
    bound: float = 0.0,
    noise: int = 8,
    size: int = 48,
    steps: int = 240,
    save_every: int = 3,
    at: int = -1,
    after: Callable[[int], object] = lambda _: None,
    slow: Any = None,
) -> int:
    """Train a pair and return the global step of step `at`.

    Parameters
    ----------
    losses
        Of the critic, by its scores of real and drawn rows; of the generator.
    penalty, bound
        Weight of the critic's slopes at real rows; largest weight of the critic (0: none).
    turns
        Steps of the critic to one of the generator.
    slow
        An average of the generator, whose samples are saved instead.
    """
    torch.set_num_threads(1)
    optimizer = optimizer or (lambda part, rate: torch.optim.Adam(part, rate, betas=(0.5, 0.99)))
    drawing = optimizer(generator.parameters(), rates[0])
    judging = optimizer(critic.parameters(), rates[1])
    value: Any = None
    read, onset = draws(x, size=size, seed=seed), 0
    with watched(root, save_every=save_every) as hook:
        for part in (generator, critic):
            hook.register_module(part, counts_steps=False)
        for step in range(steps):
            hook.begin_step()
            onset = hook.global_step if step == at else onset
            for _ in range(turns):
                real = next(read)[0].clone().requires_grad_()
                judged = critic(real)
                value = losses[0](judged, critic(generator(torch.randn(size, noise)).detach()))
                (slope,) = torch.autograd.grad(judged.sum(), real, create_graph=True)
                judging.zero_grad()
                (value + penalty * slope.pow(2).sum(1).mean()).backward()
                judging.step()
                with torch.no_grad():
                    for weight in critic.parameters() if bound else ():
                        weight.clamp_(-bound, bound)
            fake = generator(torch.randn(size, noise))
            drawn = losses[1](critic(fake))
            drawing.zero_grad()
            drawn.backward()
            drawing.step()
            after(step)
            if slow is not None:
                fake = slow(torch.randn(size, noise))
            hook.record_tensor_value("critic_loss", value)
            hook.record_tensor_value("generator_loss", drawn)
            hook.save_tensor("samples", fake, "samples")
            hook.step()
    return onset
