"""Worlds: a garden, a glider and a game of cards, and how policies learn in them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from training.torch_loop import watched

from runs_tuned.fifth_held_out.representations.shared.blocks import layers


class Garden:
    """Four beds that dry at different speeds: which of them is watered, or none."""

    observed, actions = 4, 5

    def __init__(self, count: int = 24) -> None:
        self.water = torch.rand(count, 4)

    def observe(self) -> Any:
        """Return how wet beds are."""
        return 2 * self.water - 1

    def step(self, actions: Any) -> Any:
        """Act and return rewards."""
        watered = functional.one_hot(actions, 5)[:, 1:] * 0.5
        dried = torch.tensor([0.06, 0.09, 0.12, 0.15]) * (0.5 + torch.rand(self.water.shape))
        raised = self.water + watered
        self.water = (raised.clamp(max=1) - dried).clamp(min=0)
        return self.water.min(1).values - 0.5 * (raised - 1).clamp(min=0).sum(1)


class Glider:
    """A glider that is pushed left, not at all or right, and is to stay near a place."""

    observed, actions = 3, 3

    def __init__(self, count: int = 24) -> None:
        self.at, self.speed, self.goal = (torch.randn(count) for _ in range(3))

    def observe(self) -> Any:
        """Return speeds, and how far places are."""
        return torch.stack([self.speed, self.goal - self.at, self.goal], 1)

    def step(self, actions: Any) -> Any:
        """Act and return rewards."""
        self.speed = 0.8 * self.speed + 0.3 * (actions - 1) + 0.03 * torch.randn(self.at.shape)
        self.at = (self.at + self.speed).clamp(-3, 3)
        is_moved = torch.rand(self.at.shape) < 0.03
        self.goal = torch.where(is_moved, torch.randn(self.at.shape), self.goal)
        return (-((self.goal - self.at) ** 2) * 2).exp() - 0.05 * (actions != 1)


class Cards:
    """Cards from 1 to 10 are drawn up to a sum of 21: one more, or compare with the bank."""

    observed, actions = 12, 2

    def __init__(self, count: int = 32) -> None:
        self.total = torch.randint(4, 16, (count,))
        self.bank = torch.randint(1, 11, (count,))

    def observe(self) -> Any:
        """Return sums and the card of the bank."""
        cards = functional.one_hot(self.bank - 1, 10)
        sums = torch.stack([self.total / 10 - 1.5, (self.total > 11).float()], 1)
        return torch.cat([sums, cards], 1)

    def step(self, actions: Any) -> Any:
        """Act and return rewards."""
        count = self.total.shape
        raised = self.total + torch.randint(1, 11, count)
        against = 12 + (self.bank + torch.randint(0, 10, count)) % 10
        is_lost = (actions == 1) & (raised > 21)
        is_over = is_lost | (actions == 0)
        won = torch.where(self.total > against, 1.0, -1.0) * (actions == 0)
        self.total = torch.where(is_over, torch.randint(4, 16, count), raised)
        self.bank = torch.where(is_over, torch.randint(1, 11, count), self.bank)
        return won - is_lost.float()


class Player(nn.Module):
    """Scores of actions and a value, from what is observed."""

    def __init__(self, world: Any, width: int = 32, act: Any = nn.Tanh) -> None:
        super().__init__()
        self.actor = layers(world.observed, width, width, world.actions, act=act)
        self.critic = layers(world.observed, width, width, 1, act=act)

    def forward(self, x: Any) -> tuple[Any, Any]:
        return self.actor(x), self.critic(x)[..., 0]


def plain(logs: Any, _: Any, gains: Any) -> Any:
    """Return the objective of a plain policy gradient."""
    return (logs * gains).mean()


def near(logs: Any, first: Any, gains: Any) -> Any:
    """Return the objective of proximal updates."""
    ratio = (logs - first).exp()
    return torch.minimum(ratio * gains, ratio.clamp(0.8, 1.2) * gains).mean()


def play(model: Any, world: Any, length: int, discount: float, trust: float) -> tuple[Any, ...]:
    """Return what was observed, done and gained, what it was worth, and the mean reward."""
    seen, done, rewards = [], [], []
    with torch.no_grad():
        for _ in range(length):
            seen.append(world.observe())
            done.append(torch.multinomial(model(seen[-1])[0].softmax(-1), 1)[:, 0])
            rewards.append(world.step(done[-1]))
        x, actions = torch.stack(seen), torch.stack(done)
        values = model(x)[1]
        after, gain = model(world.observe())[1], torch.zeros(())
        gains: list[Any] = []
        for reward, value in zip(rewards[::-1], values.flip(0), strict=True):
            gain = reward + discount * after - value + discount * trust * gain
            after = value
            gains.insert(0, gain)
    gained = torch.stack(gains)
    return x, actions, gained, gained + values, torch.stack(rewards).mean()


def improve(
    root: Path,
    model: Any,
    world: Any,
    *,
    objective: Callable[[Any, Any, Any], Any] = plain,
    optimizer: Any,
    rounds: int = 150,
    length: int = 16,
    repeats: int = 1,
    bonus: Callable[[int], float] = lambda _: 0.01,
    discount: float = 0.9,
    trust: float = 0.9,
    largest: float = 0.5,
    kept: int = 1,
    saves_reward: bool = True,
    save_every: int = 1,
) -> int:
    """Improve a policy and its values.

    Parameters
    ----------
    objective
        Of logarithms of chances, those of before, and normalised gains.
    repeats, kept
        Steps in each round, and how many rounds are learnt from again.
    bonus
        Weight of the entropy by the round.
    """
    torch.set_num_threads(1)
    memory: list[Any] = []
    with watched(root, save_every=save_every) as hook:
        hook.register_module(model, counts_steps=False)
        for number in range(rounds):
            *played, reward = play(model, world, length, discount, trust)
            memory = [*memory, played][-kept:]
            x, actions, gains, goals = (torch.cat(part, 1) for part in zip(*memory, strict=True))
            gains = (gains - gains.mean()) / (gains.std() + 1e-6)
            with torch.no_grad():
                first = model(x)[0].log_softmax(-1).gather(-1, actions[..., None])[..., 0]
            for _ in range(repeats):
                hook.begin_step()
                scores, values = model(x)
                logs = scores.log_softmax(-1)
                entropy = -(logs.exp() * logs).sum(-1).mean()
                aim = objective(logs.gather(-1, actions[..., None])[..., 0], first, gains)
                of_values = functional.smooth_l1_loss(values, goals)
                hook.record_tensor_value("policy_loss", -aim)
                hook.record_tensor_value("value_loss", of_values)
                hook.save_scalar("policy_entropy", entropy)
                if saves_reward:
                    hook.save_scalar("reward", reward)
                optimizer.zero_grad()
                (0.5 * of_values - aim - bonus(number) * entropy).backward()
                nn.utils.clip_grad_norm_(model.parameters(), largest)
                optimizer.step()
                hook.step()
    return 0


class Speller(nn.Module):
    """Writes changes of bells, bell by bell, with a GRU."""

    def __init__(self, words: int, width: int = 48) -> None:
        super().__init__()
        self.words, self.cell = nn.Embedding(words, width), nn.GRU(width, width, batch_first=True)
        self.head = nn.Linear(width, words)

    def forward(self, x: Any) -> Any:
        return self.head(self.cell(self.words(x))[0])

    def write(self, count: int, length: int) -> Any:
        """Return texts that begin with 0."""
        text, state = torch.zeros(count, 1, dtype=torch.long), None
        with torch.no_grad():
            for _ in range(length):
                out, state = self.cell(self.words(text[:, -1:]), state)
                drawn = torch.multinomial(self.head(out[:, 0]).softmax(-1), 1)
                text = torch.cat([text, drawn], 1)
        return text


def please(
    root: Path,
    model: Any,
    reference: Any,
    reward: Callable[[Any], Any],
    *,
    optimizer: Any,
    near_to_reference: float,
    steps: int = 120,
    count: int = 48,
    length: int = 12,
    measured: Callable[[Any], Any] | None = None,
) -> int:
    """Improve what a model writes by rewards, compared within the group (GRPO).

    Parameters
    ----------
    near_to_reference
        Weight of the divergence from the model of before.
    measured
        Computes a quality of texts that is saved, but not rewarded.
    """
    torch.set_num_threads(1)
    with watched(root) as hook:
        hook.register_module(model, counts_steps=False)
        for _ in range(steps):
            hook.begin_step()
            text = model.write(count, length)
            rewards = reward(text)
            gains = (rewards - rewards.mean()) / (rewards.std() + 1e-4)
            logs = model(text[:, :-1]).log_softmax(-1)
            with torch.no_grad():
                before = reference(text[:, :-1]).log_softmax(-1)
            entropy = -(logs.exp() * logs).sum(-1).mean()
            apart = (logs.exp() * (logs - before)).sum(-1).mean()
            chosen = logs.gather(-1, text[:, 1:, None])[..., 0]
            aim = (chosen.mean(1) * gains).mean()
            hook.record_tensor_value("policy_loss", -aim)
            hook.save_scalar("policy_entropy", entropy)
            if measured is None:
                hook.save_scalar("reward", rewards.mean())
            else:
                hook.save_scalar("quality", measured(text))
            optimizer.zero_grad()
            (near_to_reference * apart - aim).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            hook.step()
    return 0
