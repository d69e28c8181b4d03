"""Worlds: jobs for servers, a battery, a pond and a chase, and how policies learn in them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from training.torch_loop import watched

from runs_tuned.sixth_held_out.representations.shared.networks import dense


class Servers:
    """Jobs of two sizes come to four servers of different speed, each with a queue."""

    observed, actions = 6, 4

    def __init__(self, count: int = 24) -> None:
        self.queue, self.large = 2 * torch.rand(count, 4), torch.rand(count) < 0.4

    def observe(self) -> Any:
        """Return queues, and the size of the job."""
        return torch.cat([self.queue / 2 - 1, self.large[:, None].float(), ~self.large[:, None]], 1)

    def step(self, actions: Any) -> Any:
        """Send jobs and return rewards: the shorter a job waits, the better."""
        speed = torch.tensor([0.9, 0.6, 0.4, 0.3])
        size = 0.7 + 1.2 * self.large
        sent = functional.one_hot(actions, 4) * size[:, None]
        waits = ((self.queue + sent) / speed).gather(1, actions[:, None])[:, 0]
        self.queue = (self.queue + sent - speed).clamp(0, 6)
        self.large = torch.rand(len(self.large)) < 0.4
        return 1 - waits / 5


class Battery:
    """A battery is loaded, left or emptied while the price of power swings."""

    observed, actions = 4, 3

    def __init__(self, count: int = 24) -> None:
        self.load, self.hour = torch.rand(count), 24 * torch.rand(count)
        self.offset = torch.randn(count) * 0.2

    def price(self) -> Any:
        """Return prices."""
        return (self.hour * 6.2832 / 12).sin() + self.offset

    def observe(self) -> Any:
        """Return loads, prices, and whether they rise."""
        turn = self.hour * 6.2832 / 12
        return torch.stack([2 * self.load - 1, self.price(), turn.cos(), turn.sin()], 1)

    def step(self, actions: Any) -> Any:
        """Load (2), leave or empty (0), and return what was earned."""
        wanted = (self.load + 0.25 * (actions - 1)).clamp(0, 1)
        earned = (self.load - wanted) * self.price() * 2 - 0.03 * (actions != 1)
        self.load, self.hour = wanted, self.hour + 1
        self.offset = 0.9 * self.offset + 0.1 * torch.randn(len(self.hour))
        return earned


class Pond:
    """Fish of a pond: none, some or many are caught, and the rest has young."""

    observed, actions = 2, 3

    def __init__(self, count: int = 24) -> None:
        self.fish, self.warmth = 0.2 + 0.8 * torch.rand(count), torch.rand(count)

    def observe(self) -> Any:
        """Return how many fish there are, and how warm it is."""
        return torch.stack([3 * self.fish - 1.5, 2 * self.warmth - 1], 1)

    def step(self, actions: Any) -> Any:
        """Catch, and return what was caught."""
        caught = self.fish * torch.tensor([0.0, 0.15, 0.5])[actions]
        left = self.fish - caught
        born = (0.4 + 0.6 * self.warmth) * left * (1 - left)
        self.fish = (left + born).clamp(0.02, 1)
        self.warmth = (self.warmth + 0.1 * torch.randn(len(self.fish))).clamp(0, 1)
        return 5 * caught - 0.1 * (actions > 0)


class Chase:
    """One that flees on a torus of 5 by 5 places is chased by steps in four directions."""

    observed, actions, places = 25, 4, 5

    def __init__(self, count: int = 24) -> None:
        self.far = torch.randint(self.places, (count, 2))

    def state(self) -> Any:
        """Return the numbers of states."""
        return self.far[:, 0] * self.places + self.far[:, 1]

    def observe(self) -> Any:
        """Return states in one-hot form."""
        return functional.one_hot(self.state(), 25).float()

    def step(self, actions: Any) -> Any:
        """Move and return rewards: 1 if it is caught."""
        moves = torch.tensor([[1, 0], [-1, 0], [0, 1], [0, -1]])
        count = len(actions)
        flees = torch.rand(count, 1) < 0.3
        self.far = self.far - moves[actions] + flees * moves[torch.randint(4, (count,))]
        self.far %= self.places
        is_caught = (self.far == 0).all(1)
        self.far = torch.where(is_caught[:, None], torch.randint(5, (count, 2)), self.far)
        return is_caught.float() - 0.05


class Agent(nn.Module):
    """Scores of actions, and a value."""

    def __init__(self, world: Any, width: int = 32, act: Any = nn.Tanh) -> None:
        super().__init__()
        self.policy = dense(world.observed, width, width, world.actions, act=act)
        self.value = dense(world.observed, width, 1, act=act)

    def forward(self, x: Any) -> tuple[Any, Any]:
        return self.policy(x), self.value(x)[..., 0]


def gradient(logs: Any, _: Any, gains: Any) -> Any:
    """Return the loss of a policy gradient."""
    return -(logs * gains).mean()


def proximal(logs: Any, before: Any, gains: Any) -> Any:
    """Return the loss of proximal updates."""
    ratio = (logs - before).exp()
    return -torch.minimum(ratio * gains, ratio.clamp(0.8, 1.2) * gains).mean()


def weighted_by(heat: float) -> Callable[[Any, Any, Any], Any]:
    """Return the loss of actions that are imitated, the more the higher their gains."""

    def loss(logs: Any, _: Any, gains: Any) -> Any:
        return -((gains / heat).flatten().softmax(0) * logs.flatten()).sum()

    return loss


def follow_policy(
    root: Path,
    model: Any,
    world: Any,
    optimizer: Any,
    *,
    loss: Callable[[Any, Any, Any], Any] = gradient,
    rounds: int = 120,
    length: int = 16,
    repeats: int = 1,
    bonus: Callable[[int], float] = lambda _: 0.01,
    discount: float = 0.9,
    has_critic: bool = True,
    limit: float = 0.5,
    logs_reward: bool = True,
    save_every: int = 1,
) -> int:
    """Improve a policy by rounds of its own.

    Parameters
    ----------
    loss
        Of the logarithms of chances, those of before, and normalised gains.
    repeats
        Steps in each round.
    bonus
        Weight of the entropy by the round.
    """
    torch.set_num_threads(1)
    with watched(root, save_every=save_every) as hook:
        hook.register_module(model, counts_steps=False)
        for number in range(rounds):
            seen, done, rewards = [], [], []
            with torch.no_grad():
                for _ in range(length):
                    seen.append(world.observe())
                    done.append(torch.multinomial(model(seen[-1])[0].softmax(-1), 1)[:, 0])
                    rewards.append(world.step(done[-1]))
                x, actions = torch.stack(seen), torch.stack(done)[..., None]
                worth = model(world.observe())[1]
                goals: list[Any] = []
                for reward in rewards[::-1]:
                    worth = reward + discount * worth
                    goals.insert(0, worth)
                goal = torch.stack(goals)
                scores, values = model(x)
                before = scores.log_softmax(-1).gather(-1, actions)[..., 0]
                gains = goal - values if has_critic else goal
                gains = (gains - gains.mean()) / (gains.std() + 1e-6)
            for _ in range(repeats):
                hook.begin_step()
                scores, values = model(x)
                logs = scores.log_softmax(-1)
                entropy = -(logs.exp() * logs).sum(-1).mean()
                value = loss(logs.gather(-1, actions)[..., 0], before, gains)
                of_values = functional.mse_loss(values, goal)
                hook.record_tensor_value("policy_loss", value)
                if has_critic:
                    hook.record_tensor_value("value_loss", of_values)
                hook.save_scalar("policy_entropy", entropy)
                if logs_reward:
                    hook.save_scalar("reward", torch.stack(rewards).mean())
                optimizer.zero_grad()
                (value + 0.5 * has_critic * of_values - bonus(number) * entropy).backward()
                nn.utils.clip_grad_norm_(model.parameters(), limit)
                optimizer.step()
                hook.step()
    return 0


def follow_worth(
    root: Path,
    model: Any,
    world: Any,
    optimizer: Any,
    *,
    target: Any,
    steps: int = 240,
    size: int = 64,
    discount: float = 0.9,
    explored: Callable[[int], float] = lambda step: max(0.1, 1 - step / 120),
    is_double: bool = False,
    save_every: int = 3,
) -> int:
    """Learn what actions are worth from what is remembered, with a target that is copied."""
    torch.set_num_threads(1)
    kept: list[tuple[Any, ...]] = []
    with watched(root, save_every=save_every) as hook:
        hook.register_module(model, counts_steps=False)
        for step in range(steps):
            if step % 15 == 0:
                target.load_state_dict(model.state_dict())
            with torch.no_grad():
                x = world.observe()
                best = model(x).argmax(-1)
                by_chance = torch.rand(len(x)) < explored(step)
                actions = torch.where(by_chance, torch.randint(world.actions, best.shape), best)
                reward = world.step(actions)
                kept = [*kept, (x, actions, reward, world.observe())][-100:]
            x, actions, gained, after = (torch.cat(part) for part in zip(*kept, strict=True))
            rows = torch.randint(len(x), (size,))
            hook.begin_step()
            with torch.no_grad():
                ahead = target(after[rows])
                chosen = (model(after[rows]) if is_double else ahead).argmax(-1, keepdim=True)
                goal = gained[rows] + discount * ahead.gather(-1, chosen)[:, 0]
            worth = model(x[rows]).gather(-1, actions[rows, None])[:, 0]
            loss = functional.smooth_l1_loss(worth, goal)
            hook.record_tensor_value("q_loss", loss)
            hook.save_scalar("reward", reward.mean())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            hook.step()
    return 0
