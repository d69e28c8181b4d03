"""Worlds: a lift, a tank and a maze, many at a time, and how policies are improved in them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from training.torch_loop import watched

from runs_tuned.fourth_held_out.representations.shared.shapes import layers


class Lift:
    """A lift of six floors, one of which calls: down, stay, up, or open the door.

    Parameters
    ----------
    wrong, far, moving
        Costs of opening in vain, of each floor to the one that calls, and of moving.
    """

    observed, actions = 12, 4

    def __init__(
        self, count: int = 24, wrong: float = 0.1, far: float = 0.04, moving: float = 0.0
    ) -> None:
        self.wrong, self.far, self.moving = wrong, far, moving
        self.at, self.called = torch.randint(6, (count,)), torch.randint(6, (count,))

    def observe(self) -> Any:
        """Return where lifts are and who calls."""
        parts = (self.at, self.called)
        return torch.cat([functional.one_hot(part, 6).float() for part in parts], 1)

    def step(self, actions: Any) -> Any:
        """Act and return rewards."""
        is_open = actions == 3
        moved = torch.where(is_open, 0, actions - 1)
        self.at = (self.at + moved).clamp(0, 5)
        is_served = is_open & (self.at == self.called)
        self.called = torch.where(is_served, torch.randint(6, self.at.shape), self.called)
        far = (self.at - self.called).abs()
        costs = self.far * far + self.moving * (moved != 0)
        return is_served * 1.0 - self.wrong * (is_open & ~is_served) - costs


class Tank:
    """A tank that drains unevenly and is to be kept half full by five settings of a valve."""

    observed, actions = 3, 5

    def __init__(self, count: int = 24) -> None:
        self.level, self.drain = torch.rand(count), 0.1 * torch.rand(count)
        self.inflow = torch.zeros(count)

    def observe(self) -> Any:
        """Return levels, what comes in and what goes out."""
        return torch.stack([4 * self.level - 2, 10 * self.inflow, 20 * self.drain - 1], 1)

    def step(self, actions: Any) -> Any:
        """Act and return rewards."""
        self.inflow = 0.5 * self.inflow + 0.5 * 0.03 * actions
        self.level = (self.level + self.inflow - self.drain).clamp(0, 1)
        self.drain = (self.drain + 0.01 * torch.randn(self.drain.shape)).clamp(0, 0.1)
        return 1 - 4 * (self.level - 0.5).abs()


class Maze:
    """Squares of five by five with a prize that moves once it is found: four directions."""

    observed, actions = 4, 4
    moves = torch.tensor([[0, 1], [0, -1], [1, 0], [-1, 0]])

    def __init__(self, count: int = 24) -> None:
        self.at, self.prize = (torch.randint(5, (count, 2)) for _ in range(2))

    def observe(self) -> Any:
        """Return places of all and of their prizes."""
        return torch.cat([self.at - 2.0, self.prize - self.at], 1) / 2

    def step(self, actions: Any) -> Any:
        """Act and return rewards."""
        self.at = (self.at + self.moves[actions]).clamp(0, 4)
        is_found = (self.at == self.prize).all(1)
        fresh = torch.randint(5, self.at.shape)
        self.prize = torch.where(is_found[:, None], fresh, self.prize)
        return is_found * 1.0 - 0.05


class Chooser(nn.Module):
    """Scores of actions, and a value."""

    def __init__(self, world: Any, width: int = 48, act: Any = nn.ReLU) -> None:
        super().__init__()
        self.actor = layers(world.observed, width, width, world.actions, act=act)
        self.critic = layers(world.observed, width, 1, act=act)

    def forward(self, x: Any) -> tuple[Any, Any]:
        return self.actor(x), self.critic(x)[..., 0]


def drawn(scores: Any) -> Any:
    """Return actions drawn by their scores."""
    return torch.multinomial(scores.softmax(-1), 1)[:, 0]


def practise(
    root: Path,
    model: Any,
    world: Any,
    *,
    rounds: int = 120,
    length: int = 16,
    repeats: int = 1,
    rate: float = 3e-3,
    optimizer: Any = torch.optim.Adam,
    bonus: Callable[[int], float] = lambda _: 0.01,
    within: float = 0.2,
    is_known_anew: bool = False,
    has_critic: bool = True,
    trust: float = 0.9,
    discount: float = 0.92,
    largest: float = 0.5,
    seen_as: Callable[[Any, int], Any] = lambda seen, _: seen,
    save_every: int = 1,
    at: int = -1,
) -> int:
    """Improve a policy by proximal steps, or plain ones if there is one a round.

    Parameters
    ----------
    bonus
        Weight of the entropy by the round.
    within, is_known_anew
        How far chances may move in a round; whether those of before are taken anew at each step.
    has_critic, trust
        Whether values are subtracted from returns; how far later rewards are trusted (lambda).
    seen_as
        How observations are read, by the round.
    at
        The round whose first step is returned.
    """
    torch.set_num_threads(1)
    learner, onset = optimizer(model.parameters(), lr=rate), 0
    with watched(root, save_every=save_every) as hook:
        hook.register_module(model, counts_steps=False)
        for number in range(rounds):
            seen, done, rewards = [], [], []
            with torch.no_grad():
                for _ in range(length):
                    seen.append(seen_as(world.observe(), number))
                    done.append(drawn(model(seen[-1])[0]))
                    rewards.append(world.step(done[-1]))
                x, chosen = torch.stack(seen), torch.stack(done)[..., None]
                scores, values = model(x)
                known = scores.log_softmax(-1).gather(-1, chosen)[..., 0]
                last = model(seen_as(world.observe(), number))[1]
                gain = torch.zeros_like(last)
                advantages = list[Any]()
                for reward, value in zip(rewards[::-1], values.flip(0), strict=True):
                    gain = reward + discount * last - value + discount * trust * gain
                    last = value
                    advantages.insert(0, gain)
                gains = torch.stack(advantages)
                goals = gains + values
                gains = gains if has_critic else goals
                gains = (gains - gains.mean()) / (gains.std() + 1e-6)
            for _ in range(repeats):
                hook.begin_step()
                onset = hook.global_step if number == at and not onset else onset
                scores, values = model(x)
                logs = scores.log_softmax(-1)
                entropy = -(logs.exp() * logs).sum(-1).mean()
                now = logs.gather(-1, chosen)[..., 0]
                ratio = (now - (now.detach() if is_known_anew else known)).exp()
                bounded = ratio.clamp(1 - within, 1 + within)
                aim = torch.minimum(ratio * gains, bounded * gains).mean()
                of_values = (values - goals).pow(2).mean()
                hook.record_tensor_value("policy_loss", -aim)
                hook.record_tensor_value("value_loss", of_values)
                hook.save_scalar("policy_entropy", entropy)
                hook.save_scalar("reward", torch.stack(rewards).mean())
                learner.zero_grad()
                (0.5 * of_values - aim - bonus(number) * entropy).backward()
                nn.utils.clip_grad_norm_(model.parameters(), largest)
                learner.step()
                hook.step()
    return onset


def follow_values(
    root: Path,
    world: Any,
    *,
    target: float,
    rounds: int = 200,
    first: float = 0.3,
    warmth_rate: float = 0.03,
    rate: float = 3e-3,
    is_learnt: bool = True,
    logs_reward: bool = True,
) -> int:
    """Improve a policy of which values and a target of its entropy are learnt (soft actor-critic).

    Parameters
    ----------
    target
        What the entropy is to be kept at.
    first, warmth_rate, is_learnt
        The weight of the entropy, the rate of its logarithm, and whether it is learnt.
    """
    torch.set_num_threads(1)
    size = (world.observed, 48, 48, world.actions)
    parts = nn.ModuleDict({"actor": layers(*size), "critic": layers(*size), "slow": layers(*size)})
    parts["slow"].load_state_dict(parts["critic"].state_dict())
    parts["slow"].requires_grad_(requires_grad=False)
    warmth = torch.tensor(first).log().requires_grad_()
    acting = torch.optim.Adam(parts["actor"].parameters(), rate)
    judging = torch.optim.Adam(parts["critic"].parameters(), rate)
    warming = torch.optim.Adam([warmth], warmth_rate)
    memory: list[Any] = []
    with watched(root) as hook:
        hook.register_module(parts, counts_steps=False)
        for _ in range(rounds):
            hook.begin_step()
            with torch.no_grad():
                x = world.observe()
                actions = drawn(parts["actor"](x))
                reward = world.step(actions)
                memory = [*memory, (x, actions, reward, world.observe())][-60:]
                rows = torch.randint(len(memory), (8,)).tolist()
                x, actions, gained, later = (
                    torch.cat(part) for part in zip(*[memory[row] for row in rows], strict=True)
                )
                logs = parts["actor"](later).log_softmax(-1)
                soft = (logs.exp() * (parts["slow"](later) - warmth.exp() * logs)).sum(-1)
            found = parts["critic"](x).gather(-1, actions[:, None])[:, 0]
            of_values = functional.smooth_l1_loss(found, gained + 0.9 * soft)
            judging.zero_grad()
            of_values.backward()
            judging.step()
            logs = parts["actor"](x).log_softmax(-1)
            values = parts["critic"](x).detach()
            of_actor = (logs.exp() * (warmth.exp().detach() * logs - values)).sum(-1).mean()
            entropy = -(logs.exp() * logs).sum(-1).mean()
            acting.zero_grad()
            of_actor.backward()
            acting.step()
            if is_learnt:
                warming.zero_grad()
                (warmth.exp() * (entropy.detach() - target)).backward()
                warming.step()
            with torch.no_grad():
                pairs = zip(parts["slow"].parameters(), parts["critic"].parameters(), strict=True)
                for kept, fast in pairs:
                    kept.lerp_(fast, 0.05)
            hook.record_tensor_value("actor_loss", of_actor)
            hook.record_tensor_value("value_loss", of_values)
            hook.save_scalar("policy_entropy", entropy)
            if logs_reward:
                hook.save_scalar("reward", reward.mean())
            hook.step()
    return 0
