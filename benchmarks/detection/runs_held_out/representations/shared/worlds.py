"""Worlds: a shop, a lake, a river, a cart with a pole, offers; and how policies learn in them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from training.torch_loop import watched

from runs_held_out.representations.shared.loop import train
from runs_held_out.representations.shared.networks import layers


class Shop:
    """Goods are ordered (none, two, four or six) for a demand that changes with the week."""

    sees, moves = 4, 4

    def __init__(self, count: int = 32) -> None:
        self.stock, self.day = 10 * torch.rand(count), torch.randint(7, (count,))

    def look(self) -> Any:
        """Return the stock and the day."""
        turn = self.day * 6.2832 / 7
        return torch.stack([self.stock / 5 - 1, turn.sin(), turn.cos(), (self.day > 4) * 1.0], 1)

    def move(self, actions: Any) -> Any:
        """Order and sell; return what was earned."""
        stock = (self.stock + 2 * actions).clamp(max=15)
        demand = (2 + 4 * (self.day > 4) + torch.randn(len(stock))).clamp(min=0)
        sold = torch.minimum(stock, demand)
        self.stock, self.day = stock - sold, (self.day + 1) % 7
        return sold - 0.15 * self.stock - 0.3 * actions


class Lake:
    """A frozen lake of 5 by 5 places with holes, on which steps sometimes slip."""

    sees, moves = 25, 4

    def __init__(self, count: int = 32) -> None:
        self.at, self.holes = torch.zeros(count, 2, dtype=torch.long), torch.tensor([6, 13, 16])

    def look(self) -> Any:
        """Return places in one-hot form."""
        return functional.one_hot(self.at[:, 0] * 5 + self.at[:, 1], 25).float()

    def move(self, actions: Any) -> Any:
        """Walk; return 1 at the goal, and less than 0 in a hole."""
        slips = torch.rand(len(actions)) < 0.1
        actions = torch.where(slips, torch.randint(4, actions.shape), actions)
        ways = torch.tensor([[1, 0], [-1, 0], [0, 1], [0, -1]])
        self.at = (self.at + ways[actions]).clamp(0, 4)
        place = self.at[:, 0] * 5 + self.at[:, 1]
        fell, won = torch.isin(place, self.holes), place == 24
        self.at = self.at * (~(fell | won))[:, None]
        return won * 1.0 - 0.1 * fell - 0.01


class River:
    """A river of ten places: a little at its near end, much at its far end; one begins anew."""

    sees, moves, length = 10, 2, 10

    def __init__(self, count: int = 32) -> None:
        self.at = torch.ones(count, dtype=torch.long)

    def look(self) -> Any:
        """Return places in one-hot form."""
        return functional.one_hot(self.at, self.length).float()

    def move(self, actions: Any) -> Any:
        """Swim down (0) or up; return 0.2 at the near end, and 10 at the far one."""
        drifts = torch.rand(len(actions)) < 0.1
        self.at = self.at + torch.where(drifts, -1, 2 * actions - 1)
        near, far = self.at <= 0, self.at >= self.length - 1
        self.at = torch.where(near | far, 1, self.at)
        return 0.2 * near + 10.0 * far


class Cart:
    """A pole on a cart that is pushed left or right; it begins anew where it falls."""

    sees, moves = 4, 2

    def __init__(self, count: int = 32) -> None:
        self.state = 0.1 * (torch.rand(count, 4) - 0.5)

    def look(self) -> Any:
        """Return place, speed, angle and turn."""
        return self.state * torch.tensor([0.5, 0.5, 5.0, 1.0])

    def move(self, actions: Any) -> Any:
        """Push; return 1 where the pole stands."""
        x, speed, angle, turn = self.state.unbind(1)
        push = 20.0 * actions - 10
        part = (push + 0.05 * turn**2 * angle.sin()) / 1.1
        pull = (9.8 * angle.sin() - angle.cos() * part) / (0.5 * (4 / 3 - angle.cos() ** 2 / 11))
        gain = part - 0.05 * pull * angle.cos() / 1.1
        self.state = torch.stack(
            [x + 0.02 * speed, speed + 0.02 * gain, angle + 0.02 * turn, turn + 0.02 * pull], 1
        )
        fell = (self.state[:, 2].abs() > 0.21) | (self.state[:, 0].abs() > 2.4)
        begun = 0.1 * (torch.rand_like(self.state) - 0.5)
        self.state = torch.where(fell[:, None], begun, self.state)
        return torch.where(fell, -5.0, 0.1)


class Offers:
    """Visitors of five kinds of tastes are shown one of five offers (a contextual bandit)."""

    sees, moves = 8, 5

    def __init__(self, count: int = 64) -> None:
        self.tastes = torch.randn(5, 8, generator=torch.Generator().manual_seed(3))
        self.count = count
        self.visit()

    def visit(self) -> None:
        """Let others come."""
        self.visitor = torch.randn(self.count, 8)

    def look(self) -> Any:
        """Return what is known of visitors."""
        return self.visitor

    def move(self, actions: Any) -> Any:
        """Show offers; return 1 where one was taken."""
        scores = (self.visitor * self.tastes[actions]).sum(1)
        taken = (torch.rand(self.count) < torch.sigmoid(scores - 1)).float()
        self.visit()
        return taken


class ActorCritic(nn.Module):
    """Logits of actions, and a value."""

    def __init__(self, world: Any, width: int = 48, act: Any = nn.Tanh) -> None:
        super().__init__()
        self.actor = layers(world.sees, width, width, world.moves, act=act)
        self.critic = layers(world.sees, width, width, 1, act=act)
        for network, gain in ((self.actor, 0.01), (self.critic, 1.0)):
            for part in network:
                if isinstance(part, nn.Linear):
                    nn.init.orthogonal_(part.weight, gain if part is network[-1] else 2**0.5)
                    nn.init.zeros_(part.bias)

    def forward(self, x: Any) -> tuple[Any, Any]:
        return self.actor(x), self.critic(x)[..., 0]


def play(model: Any, world: Any, length: int, discount: float, lam: float, heat: float) -> Any:
    """Return what was seen and done, chances, returns, advantages, and the mean reward."""
    seen, done, logs, values, rewards = [], [], [], [], []
    with torch.no_grad():
        for _ in range(length):
            seen.append(world.look())
            logits, value = model(seen[-1])
            policy = torch.distributions.Categorical(logits=logits / heat)
            done.append(policy.sample())
            logs.append(policy.log_prob(done[-1]))
            values.append(value)
            rewards.append(world.move(done[-1]))
        after = model(world.look())[1]
        gain, gains = torch.zeros_like(after), []
        for value, reward in zip(values[::-1], rewards[::-1], strict=True):
            gain = reward + discount * after - value + discount * lam * gain
            after = value
            gains.insert(0, gain)
    columns = [torch.cat(part) for part in (seen, done, logs, values, gains)]
    return (*columns[:3], columns[3] + columns[4], columns[4], torch.stack(rewards).mean())


def improve(
    root: Path,
    model: Any,
    world: Any,
    optimizer: Any,
    *,
    rounds: int = 100,
    length: int = 16,
    discount: float = 0.95,
    lam: float = 0.95,
    epochs: int = 1,
    parts: int = 1,
    clip_range: float = 0.0,
    bonus: float = 0.01,
    normalises: bool = True,
    has_critic: bool = True,
    limit: float = 0.5,
    factor: Callable[[int], float] = lambda _: 1.0,
    heat: Callable[[int], float] = lambda _: 1.0,
    saves_reward: bool = True,
    save_every: int = 1,
) -> int:
    """Improve a policy round by round; a saved step is a round.

    Parameters
    ----------
    epochs, parts
        Passes over a round's rows, and batches in each.
    clip_range
        Of the ratio of chances (PPO); 0 for a plain policy gradient.
    heat
        Divides logits, by the round.
    """
    torch.set_num_threads(1)
    base, curve = optimizer.param_groups[0]["lr"], []
    with watched(root, save_every=save_every) as watching:
        watching.register_module(model, counts_steps=False)
        for number in range(rounds):
            optimizer.param_groups[0]["lr"] = base * factor(number)
            x, actions, before, goals, gains, reward = play(
                model, world, length, discount, lam, heat(number)
            )
            gains = gains if has_critic else goals
            if normalises:
                gains = (gains - gains.mean()) / (gains.std() + 1e-8)
            watching.begin_step()
            measured = []
            for _ in range(epochs):
                for rows in torch.randperm(len(x)).chunk(parts):
                    logits, values = model(x[rows])
                    policy = torch.distributions.Categorical(logits=logits / heat(number))
                    logs, gain = policy.log_prob(actions[rows]), gains[rows]
                    of_actions = -(logs * gain).mean()
                    if clip_range:
                        ratio = (logs - before[rows]).exp()
                        clipped = ratio.clamp(1 - clip_range, 1 + clip_range)
                        of_actions = -torch.minimum(ratio * gain, clipped * gain).mean()
                    of_values = functional.mse_loss(values, goals[rows])
                    entropy = policy.entropy().mean()
                    loss = of_actions + 0.5 * has_critic * of_values - bonus * entropy
                    optimizer.zero_grad()
                    loss.backward()
                    nn.utils.clip_grad_norm_(model.parameters(), limit)
                    optimizer.step()
                    measured.append((of_actions.detach(), of_values.detach(), entropy.detach()))
            means = [torch.stack(part).mean() for part in zip(*measured, strict=True)]
            watching.record_tensor_value("policy_loss", means[0])
            if has_critic:
                watching.record_tensor_value("value_loss", means[1])
            watching.save_scalar("policy_entropy", means[2].item())
            if saves_reward:
                watching.save_scalar("reward", reward.item())
            watching.step()
            curve.append(float(reward))
    train.curve = curve  # type: ignore[attr-defined]
    return 0
