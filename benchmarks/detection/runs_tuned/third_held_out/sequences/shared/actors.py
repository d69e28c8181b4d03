"""Actors: worlds of reinforcement learning, policies, and a training by proximal updates."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from training.torch_loop import watched

from runs_tuned.third_held_out.sequences.shared.shapes import stack


class Junction:
    """Cars come from four streets, each at a rate of its own; one street has a green light."""

    observed, actions = 8, 4

    def __init__(self, count: int = 16) -> None:
        self.rates = torch.tensor([0.1, 0.25, 0.45, 0.6]).repeat(count, 1)
        self.cars = torch.randint(4, 11, (count, 4)).float()
        self.green = torch.zeros(count, dtype=torch.long)

    def observe(self) -> Any:
        return torch.cat([self.cars / 5 - 1, functional.one_hot(self.green, 4).float()], 1)

    def step(self, actions: Any) -> Any:
        """Return rewards: fewer cars that wait, and no time lost by a change."""
        passing = torch.where(actions == self.green, 4.0, 2.0)
        self.green = actions
        went = functional.one_hot(actions, 4) * passing[:, None]
        self.cars = (self.cars - went).clamp(min=0) + torch.poisson(self.rates)
        self.cars = self.cars.clamp(max=10)
        return 0.3 - self.cars.sum(1) / 30


class Room:
    """A room is heated, left alone or cooled; it is to have the temperature that is asked for."""

    observed, actions = 3, 3

    def __init__(self, count: int = 16) -> None:
        self.now, self.wanted = 2 * torch.randn(count), 2 * torch.randn(count)
        self.outside = torch.randn(count)

    def observe(self) -> Any:
        return torch.stack([self.now / 3, self.wanted / 3, self.outside / 3], 1)

    def step(self, actions: Any) -> Any:
        """Return rewards: nearer is better, and energy costs."""
        self.now = self.now + (actions - 1) + 0.1 * (self.outside - self.now)
        self.outside = (self.outside + 0.2 * torch.randn_like(self.now)).clamp(-3, 3)
        asked_anew = torch.rand_like(self.now) < 0.05
        reward = 1 - (self.now - self.wanted).abs() / 2 - 0.1 * (actions != 1)
        self.wanted = torch.where(asked_anew, 2 * torch.randn_like(self.now), self.wanted)
        return reward


class Actor(nn.Module):
    """Scores of actions, and a value."""

    def __init__(self, world: Any, width: int = 32, act: Any = nn.Tanh) -> None:
        super().__init__()
        self.body = stack(world.observed, width, width, act=act)
        self.policy, self.value = nn.Linear(width, world.actions), nn.Linear(width, 1)
        nn.init.normal_(self.policy.weight, std=0.02)

    def forward(self, x: Any) -> tuple[Any, Any]:
        hidden = torch.tanh(self.body(x))
        return self.policy(hidden), self.value(hidden)[..., 0]


def returns_of(rewards: Any, last: Any, discount: float) -> Any:
    """Return discounted sums of rewards, with the value of what comes after the last."""
    sums = [last]
    for reward in reversed(rewards):
        sums.append(reward + discount * sums[-1])
    return torch.stack(sums[:0:-1])


def improve(
    root: Path,
    model: Any,
    world: Callable[[], Any],
    *,
    rollouts: int = 120,
    length: int = 12,
    epochs: int = 3,
    clip: float | None = 0.2,
    bonus: float = 0.01,
    rate: float = 3e-3,
    optimizer: Any = torch.optim.Adam,
    rate_by: Callable[[int], float] = lambda _: 1.0,
    act: Callable[[Any], Any] = lambda scores: torch.multinomial(scores.softmax(-1), 1)[:, 0],
    normal: bool = True,
    discount: float = 0.9,
    save_every: int = 1,
    logs_reward: bool = True,
    largest: float = 0.5,
    more: Callable[[Any, Any], Any] = lambda *_: 0.0,
) -> int:
    """Improve an actor by proximal updates, or by plain ones without `clip`.

    Parameters
    ----------
    act
        Chooses actions by their scores.
    normal
        Whether advantages are normalised.
    largest
        The largest norm of the gradients.
    more
        A further loss of the scores and those of before the update.
    """
    torch.set_num_threads(1)
    here = world()
    optimizer_ = optimizer(model.parameters(), lr=rate)
    with watched(root, save_every=save_every) as hook:
        hook.register_module(model, counts_steps=False)
        for rollout in range(rollouts):
            optimizer_.param_groups[0]["lr"] = rate * rate_by(rollout)
            seen, done, rewards = [], [], []
            with torch.no_grad():
                for _ in range(length):
                    seen.append(here.observe())
                    done.append(act(model(seen[-1])[0]))
                    rewards.append(here.step(done[-1]))
                x, actions = torch.stack(seen), torch.stack(done)
                known, values = model(x)
                goals = returns_of(rewards, model(here.observe())[1], discount)
                before = known.log_softmax(-1).gather(-1, actions[..., None])[..., 0]
                gains = goals - values
                gains = (gains - gains.mean()) / (gains.std() + 1e-6) if normal else gains
            for _ in range(epochs):
                hook.begin_step()
                scores, values = model(x)
                logs = scores.log_softmax(-1)
                entropy = -(logs.exp() * logs).sum(-1).mean()
                chosen = logs.gather(-1, actions[..., None])[..., 0]
                if clip is None:
                    objective = (chosen * gains).mean()
                else:
                    ratio = (chosen - before).exp()
                    within = ratio.clamp(1 - clip, 1 + clip)
                    objective = torch.minimum(ratio * gains, within * gains).mean()
                value_loss = 0.5 * (values - goals).pow(2).mean()
                hook.record_tensor_value("policy_loss", -objective)
                hook.record_tensor_value("value_loss", value_loss)
                hook.save_scalar("policy_entropy", entropy)
                if logs_reward:
                    hook.save_scalar("reward", torch.stack(rewards).mean())
                extra = more(scores, known)
                (value_loss - objective - bonus * entropy + extra).backward()
                nn.utils.clip_grad_norm_(model.parameters(), largest)
                optimizer_.step()
                optimizer_.zero_grad()
                hook.step()
    return 0
