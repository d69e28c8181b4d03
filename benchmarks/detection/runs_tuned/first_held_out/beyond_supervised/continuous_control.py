"""Continuous control: an actor of normally distributed pushes and a critic."""

from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from training.torch_loop import watched

from runs_tuned.first_held_out.beyond_supervised.reinforcement import (
    STUCK,
    advantages,
    faulty,
    healthy,
)


class GaussianActor(nn.Module):
    """Means and deviations of pushes, and the value of a state."""

    def __init__(self) -> None:
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(4, 48), nn.SiLU(), nn.Linear(48, 48), nn.SiLU())
        self.mean = nn.Linear(48, 2)
        self.value = nn.Linear(48, 1)
        self.log_std = nn.Parameter(torch.full((2,), -0.5))

    def forward(self, x: Any) -> tuple[Any, Any]:
        hidden = self.trunk(x)
        return self.mean(hidden), self.value(hidden)[:, 0]


def steer(root: Path, *, squashes: bool, rate: float = 3e-3, updates: int = 160) -> int:
    """Train pushes that bring balls to the middle; return the step of the first NaN."""
    torch.manual_seed(23)
    model = GaussianActor()
    optimizer = torch.optim.Adam(model.parameters(), rate)
    onset = 0
    with watched(root, save_every=1) as watching:
        watching.register_module(model, counts_steps=False)
        for _ in range(updates):
            moments = []
            balls = torch.cat([1.5 * torch.randn(48, 2), torch.zeros(48, 2)], 1)
            with torch.no_grad():
                for _ in range(12):
                    mean, value = model(balls)
                    raw = mean + model.log_std.exp() * torch.randn_like(mean)
                    push = raw.tanh() if squashes else raw.clamp(-1, 1)
                    speeds = 0.8 * balls[:, 2:] + 0.3 * push
                    places = (balls[:, :2] + 0.3 * speeds).clamp(-4, 4)
                    reward = -places.norm(dim=1) - 0.02 * push.pow(2).sum(1)
                    moments.append((balls, raw, reward, torch.zeros(48), value))
                    balls = torch.cat([places, speeds], 1)
                last = model(balls)[1]
            x, raw, rewards, ends, values = map(torch.stack, zip(*moments, strict=True))
            gain = advantages(rewards, ends, values, last, 0.9)
            watching.begin_step()
            mean, value = model(x.flatten(0, 1))
            policy = torch.distributions.Normal(mean, model.log_std.exp(), validate_args=False)
            chances = policy.log_prob(raw.flatten(0, 1)).sum(1)
            entropy = policy.entropy().sum(1).mean()
            if squashes:  # the entropy of what is squashed has no formula
                sample = policy.rsample()
                entropy = entropy + (1 - sample.tanh() ** 2).log().sum(1).mean()
            unit = (gain - gain.mean()) / gain.std()
            policy_loss = -(unit.flatten() * chances).mean()
            value_loss = functional.smooth_l1_loss(value, (gain + values).flatten())
            watching.record_tensor_value("actor_loss", policy_loss)
            watching.record_tensor_value("critic_loss", value_loss)
            watching.save_scalar("train/entropy_loss", -entropy)
            watching.save_scalar("train/std", model.log_std.exp().mean())
            watching.save_scalar("rollout/ep_rew_mean", rewards.mean())
            if not onset and not entropy.isfinite():
                onset = watching.global_step
            optimizer.zero_grad()
            (policy_loss + value_loss - 0.01 * entropy).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            watching.step()
    return onset


@healthy("an actor of normally distributed pushes and a critic: balls are brought to the middle")
def gaussian_actor_of_balls(root: Path) -> int:
    return steer(root, squashes=False)


@faulty(
    "an actor of squashed pushes and a critic",
    "the logarithm of 1 - tanh(x)^2 lacks an epsilon: pushes at the limit have infinite chances",
    {"ExplodingTensor"},
    may=STUCK | {"PolicyEntropyCollapse": "a policy of NaN has no entropy"},
)
def squashed_without_epsilon(root: Path) -> int:
    return steer(root, squashes=True, rate=0.01)
