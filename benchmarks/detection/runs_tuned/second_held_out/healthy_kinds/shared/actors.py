"""Actors: policies with a critic, their rollouts, and the loop in which they improve."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from runs_tuned.first_held_out.beyond_supervised.reinforcement import advantages
from runs_tuned.second_held_out.healthy_kinds.shared.teams import Team


class Actor(nn.Module):
    """Logits of actions, and the value of a state, from a body that both share.

    Parameters
    ----------
    body
        Makes the body for a number of observed values and a width.
    """

    def __init__(
        self,
        world: Any,
        width: int = 32,
        body: Callable[[int, int], Any] = lambda ins, width: nn.Sequential(
            nn.Linear(ins, width), nn.Tanh()
        ),
    ) -> None:
        super().__init__()
        self.body = body(world.observed, width)
        self.logits, self.value = nn.Linear(width, world.actions), nn.Linear(width, 1)
        nn.init.normal_(self.logits.weight, std=0.02)

    def forward(self, x: Any) -> tuple[Any, Any]:
        hidden = self.body(x)
        return self.logits(hidden).log_softmax(-1), self.value(hidden)[..., 0]


def played(model: Any, world: Any, length: int, discount: float) -> tuple[Any, ...]:
    """Return what was observed and done, its chances, gains, returns, and rewards."""
    moments = []
    with torch.no_grad():
        for _ in range(length):
            x = world.observe()
            logs, value = model(x)
            action = torch.multinomial(logs.exp(), 1)[:, 0]
            moments.append((x, action, logs, *world.step(action), value))
        x, actions, logs, rewards, ends, values = map(torch.stack, zip(*moments, strict=True))
        gains = advantages(rewards, ends, values, model(world.observe())[1], discount)
    flat = (part.flatten(0, 1) for part in (x, actions, logs, gains, gains + values))
    return *flat, rewards.mean()


def entropy_of(logs: Any) -> Any:
    """Return the mean entropy of logarithmic chances."""
    return -(logs.exp() * logs).sum(-1).mean()


def improve(
    root: Path,
    world: Callable[[], Any],
    make: Callable[[], Any],
    *,
    optimizer: Any,
    rounds: int = 100,
    length: int = 16,
    epochs: int = 1,
    parts: int = 1,
    clip_ratio: float = 0.0,
    bonus: Callable[[int], float] = lambda _: 0.01,
    discount: float = 0.95,
    kl: float = 0.0,
    more: Callable[[Any, Any, Any], Any] = lambda *_: 0.0,
    name: str = "policy_entropy",
    **options: Any,
) -> int:
    """Train an actor and a critic in a world of each worker.

    Parameters
    ----------
    epochs, parts
        How often a rollout is learnt from, and in how many parts each time.
    clip_ratio, kl
        How far the ratio of chances may be from 1, 0: it is not used; the weight of the
        divergence from the policy that has played.
    bonus
        The weight of the entropy, by round.
    more
        A further loss by model, observations and hook.
    """
    of_model = lambda model: optimizer(model.parameters())
    with Team(root, make, [of_model], **options) as team:
        worlds = [world() for _ in team.models]
        for number in range(rounds):
            rollouts = [
                played(model, place, length, discount)
                for model, place in zip(team.models, worlds, strict=True)
            ]
            for _ in range(epochs):
                order = torch.randperm(len(rollouts[0][0]))
                for chosen in order.chunk(parts):
                    with team.step() as workers:
                        losses = []
                        for (model, watching), rollout in zip(workers, rollouts, strict=True):
                            x, action, before, gain, worth = (one[chosen] for one in rollout[:5])
                            gain = (gain - gain.mean()) / (gain.std() + 1e-6)
                            logs, value = model(x)
                            taken = logs.gather(1, action[:, None])[:, 0]
                            ratio = (taken - before.gather(1, action[:, None])[:, 0]).exp()
                            limited = ratio.clamp(1 - clip_ratio, 1 + clip_ratio)
                            surrogate = torch.min(ratio * gain, limited * gain)
                            policy_loss = -(surrogate if clip_ratio else taken * gain).mean()
                            value_loss = functional.smooth_l1_loss(value, worth)
                            entropy = entropy_of(logs)
                            away = (before.exp() * (before - logs)).sum(1).mean()
                            watching.record_tensor_value("policy_loss", policy_loss)
                            watching.record_tensor_value("value_loss", value_loss)
                            watching.save_scalar(name, entropy)
                            watching.save_scalar("episode_reward", rollout[5])
                            loss = policy_loss + 0.5 * value_loss - bonus(number) * entropy
                            losses.append(loss + kl * away + more(model, x, watching))
                        team.update(losses)
    return 0
