"""Worlds: a pole on a cart, a grid and a point mass, and how agents collect rollouts."""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.nn import functional

from runs_tuned.seventh_held_out.representations.shared.networks import mlp


class CartPole:
    """Poles on carts that are pushed left or right; an episode ends when a pole falls."""

    observed, actions, limit = 4, 2, 200

    def __init__(self, count: int = 16) -> None:
        self.state = 0.1 * torch.rand(count, 4) - 0.05
        self.length = torch.zeros(count)
        self.returns = [20.0]

    def observe(self) -> Any:
        """Return positions, speeds, angles and their speeds."""
        return self.state.clone()

    def step(self, actions: Any) -> tuple[Any, Any]:
        """Push the carts; return rewards and whether episodes have ended."""
        x, speed, angle, turn = self.state.unbind(1)
        force = 20.0 * actions - 10.0
        sine, cosine = angle.sin(), angle.cos()
        pushed = (force + 0.05 * turn**2 * sine) / 1.1
        twist = (9.8 * sine - cosine * pushed) / (0.5 * (4 / 3 - 0.1 * cosine**2 / 1.1))
        shift = pushed - 0.05 * twist * cosine / 1.1
        self.state = torch.stack(
            [x + 0.02 * speed, speed + 0.02 * shift, angle + 0.02 * turn, turn + 0.02 * twist], 1
        )
        self.length += 1
        has_fallen = (self.state[:, 0].abs() > 2.4) | (self.state[:, 2].abs() > 0.21)
        done = has_fallen | (self.length >= self.limit)
        self.returns = [*self.returns, *self.length[done].tolist()][-30:]
        begin = 0.1 * torch.rand(self.state.shape) - 0.05
        self.state = torch.where(done[:, None], begin, self.state)
        self.length = self.length * ~done
        return torch.ones(len(x)), done

    def reward(self) -> float:
        """Return the mean return of the latest episodes."""
        return sum(self.returns) / len(self.returns)


class Grid:
    """A walk to the goal of a 5 by 5 grid with pits; each step costs a little."""

    observed, actions, limit = 25, 4, 40

    def __init__(self, count: int = 16) -> None:
        self.at = torch.zeros(count, 2, dtype=torch.long)
        self.length = torch.zeros(count)
        self.gained = torch.zeros(count)
        self.returns = [-1.0]

    def observe(self) -> Any:
        """Return places in one-hot form."""
        return functional.one_hot(5 * self.at[:, 0] + self.at[:, 1], 25).float()

    def step(self, actions: Any) -> tuple[Any, Any]:
        """Move; return rewards and whether episodes have ended."""
        moves = torch.tensor([[0, 1], [1, 0], [0, -1], [-1, 0]])
        self.at = (self.at + moves[actions]).clamp(0, 4)
        place = 5 * self.at[:, 0] + self.at[:, 1]
        is_goal, is_pit = place == 24, (place == 12) | (place == 8)
        reward = is_goal.float() - is_pit.float() - 0.02
        self.length += 1
        self.gained += reward
        done = is_goal | is_pit | (self.length >= self.limit)
        self.returns = [*self.returns, *self.gained[done].tolist()][-30:]
        self.at = self.at * ~done[:, None]
        self.length, self.gained = self.length * ~done, self.gained * ~done
        return reward, done

    def reward(self) -> float:
        """Return the mean return of the latest episodes."""
        return sum(self.returns) / len(self.returns)


class PointMass:
    """Points that are pushed to the middle of a plane."""

    observed, actions, limit = 4, 2, 25

    def __init__(self, count: int = 16) -> None:
        self.state = torch.cat([2 * torch.rand(count, 2) - 1, torch.zeros(count, 2)], 1)
        self.length = torch.randint(self.limit, (count,))
        self.latest = torch.zeros(count)

    def observe(self) -> Any:
        """Return places and speeds."""
        return self.state.clone()

    def step(self, pushes: Any) -> tuple[Any, Any]:
        """Push; return rewards and whether episodes have ended."""
        at, speed = self.state.chunk(2, 1)
        speed = 0.8 * speed + 0.2 * pushes.clamp(-1, 1)
        self.state = torch.cat([at + 0.5 * speed, speed], 1)
        self.latest = -self.state[:, :2].pow(2).sum(1) - 0.02 * pushes.pow(2).sum(1)
        self.length += 1
        done = self.length >= self.limit
        begin = torch.cat([2 * torch.rand(len(at), 2) - 1, torch.zeros(len(at), 2)], 1)
        self.state = torch.where(done[:, None], begin, self.state)
        self.length = self.length * ~done
        return self.latest, done

    def reward(self) -> float:
        """Return the mean reward of the latest step."""
        return self.latest.mean().item()


class ActorCritic(nn.Module):
    """Scores of actions, and values of states."""

    def __init__(self, world: Any, width: int = 48, act: Any = nn.Tanh) -> None:
        super().__init__()
        self.actor = mlp(world.observed, width, width, world.actions, act=act)
        self.critic = mlp(world.observed, width, width, 1, act=act)

    def policy(self, x: Any) -> Any:
        """Return the distribution of actions."""
        return torch.distributions.Categorical(logits=self.actor(x))

    def value(self, x: Any) -> Any:
        """Return values."""
        return self.critic(x)[..., 0]


class Gaussian(ActorCritic):
    """A policy of continuous actions, with a deviation of its own."""

    def __init__(self, world: Any, width: int = 48, act: Any = nn.Tanh) -> None:
        super().__init__(world, width, act)
        self.log_std = nn.Parameter(torch.full((world.actions,), -0.5))

    def policy(self, x: Any) -> Any:
        """Return the distribution of actions."""
        normal = torch.distributions.Normal(self.actor(x), self.log_std.exp())
        return torch.distributions.Independent(normal, 1)


class Rollout(NamedTuple):
    """What agents saw and did, the logarithms of chances, advantages and returns."""

    x: Any
    actions: Any
    logs: Any
    advantages: Any
    returns: Any


@torch.no_grad()
def collect(
    world: Any,
    model: Any,
    length: int = 32,
    *,
    discount: float = 0.98,
    trace: float = 0.95,
    choose: Callable[[Any], Any] = lambda policy: policy.sample(),
) -> Rollout:
    """Return a rollout, with generalised advantages.

    Parameters
    ----------
    choose
        Chooses actions by the policy's distribution.
    """
    seen, done, rewards, logs, ends = [], [], [], [], []
    for _ in range(length):
        seen.append(world.observe())
        policy = model.policy(seen[-1])
        done.append(choose(policy))
        logs.append(policy.log_prob(done[-1]))
        reward, end = world.step(done[-1])
        rewards.append(reward)
        ends.append(end.float())
    x = torch.stack(seen)
    values = torch.cat([model.value(x), model.value(world.observe())[None]])
    advantages, advantage = [], torch.zeros(x.shape[1])
    for at in reversed(range(length)):
        goes_on = 1 - ends[at]
        error = rewards[at] + discount * goes_on * values[at + 1] - values[at]
        advantage = error + discount * trace * goes_on * advantage
        advantages.insert(0, advantage)
    stacked = torch.stack(advantages)
    parts = (x, torch.stack(done), torch.stack(logs), stacked, stacked + values[:-1])
    return Rollout(*(part.flatten(0, 1) for part in parts))


def normalised(x: Any) -> Any:
    """Return numbers of mean 0 and variance 1."""
    return (x - x.mean()) / (x.std() + 1e-8)
