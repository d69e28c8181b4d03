"""Duels: a generator and its critic, and the loop in which they train."""

import copy
import functools
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn

from runs_tuned.second_held_out.healthy_kinds.shared.teams import Feed, Team


def layers(*widths: int, act: Callable[[], Any] = nn.LeakyReLU) -> Any:
    """Return linear layers with activations between them."""
    parts = [(nn.Linear(*pair), act()) for pair in itertools.pairwise(widths)]
    return nn.Sequential(*itertools.chain.from_iterable(parts[:-1]), parts[-1][0])


class Duel(nn.Module):
    """A generator, its critic, and their losses.

    Parameters
    ----------
    of_critic, of_generator
        The losses by scores of real and generated rows.
    """

    def __init__(
        self,
        generator: Any,
        critic: Any,
        of_critic: Callable[[Any, Any], Any],
        of_generator: Callable[[Any, Any], Any],
        noise: int = 8,
    ) -> None:
        super().__init__()
        self.generator, self.critic, self.noise = generator, critic, noise
        self.of_critic, self.of_generator = of_critic, of_generator

    def sample(self, x: Any, *_: Any) -> Any:
        return self.generator(torch.randn(len(x), self.noise))

    def scores(self, x: Any, *_: Any) -> Any:
        return self.critic(x)

    def penalty(self, x: Any, fake: Any) -> Any:  # noqa: ARG002 - for pairs that have one
        """Return what is added to the critic's loss."""
        return 0.0


def duel(
    root: Path,
    make: Callable[[], Duel],
    feed: Feed,
    optimizers: tuple[Any, Any],
    *,
    rounds: int = 160,
    turns: int = 1,
    half: bool = False,
    clamp: float = 0.0,
    follows: float = 0.0,
    **options: Any,
) -> int:
    """Train pairs in turns.

    Parameters
    ----------
    turns
        Steps of the critic to one of the generator.
    half, clamp, follows
        Autocast to float16; the largest weight of the critic; share of the generator that a
        slow copy of it takes over in each step.
    """
    of_parts = [
        lambda model: optimizers[0](model.generator.parameters()),
        lambda model: optimizers[1](model.critic.parameters()),
    ]
    casting = functools.partial(torch.autocast, "cpu", torch.float16, enabled=half)
    with Team(root, make, of_parts, **options) as team:
        feeds = [feed(rank) for rank in range(len(team.models))]
        slow = copy.deepcopy(team.models[0].generator)
        for _ in range(rounds):
            with team.step() as workers:
                for _ in range(turns):
                    losses = []
                    for (model, watching), rows in zip(workers, feeds, strict=True):
                        real = next(rows)
                        with casting():
                            fake = model.sample(*real).detach()
                            on_real = model.scores(*real).float()
                            on_fake = model.scores(fake, *real[1:]).float()
                            penalty = model.penalty(real[0], fake)
                        losses.append(model.of_critic(on_real, on_fake) + penalty)
                        watching.record_tensor_value("critic_loss", losses[-1])
                    team.update(losses, 1)
                    for one in (one for model, _ in workers for one in model.critic.parameters()):
                        one.data.clamp_(-(clamp or 1e9), clamp or 1e9)
                losses = []
                for (model, watching), rows in zip(workers, feeds, strict=True):
                    real = next(rows)
                    with casting():
                        fake = model.sample(*real)
                        scores = model.scores(fake, *real[1:]).float()
                        on_real = model.scores(*real).float()
                    watching.save_tensor("fake", fake.float(), "samples")
                    losses.append(model.of_generator(scores, on_real))
                    watching.record_tensor_value("generator_loss", losses[-1])
                team.update(losses, 0)
                own = team.models[0].generator.parameters()
                for one, other in zip(slow.parameters(), own, strict=True):
                    one.data.lerp_(other.data, follows)
    return 0
