"""Policies that no longer explore."""

import functools
from pathlib import Path
from typing import Any

import torch
import training_runs
from torch import nn
from torch.nn import functional
from training.consequences import UNTAUGHT, WORSE

from runs_tuned.seventh_held_out.representations.shared.data import words
from runs_tuned.seventh_held_out.representations.shared.loop import descend, loop
from runs_tuned.seventh_held_out.representations.shared.worlds import (
    ActorCritic,
    CartPole,
    Grid,
    collect,
    normalised,
)

faulty = functools.partial(training_runs.faulty, kind="reinforcement")


@faulty(
    "a pole on a cart by a policy gradient of returns (REINFORCE), Adam",
    "episodes are collected with deterministic=True, left from a test: what is done is confirmed",
    {"PolicyEntropyCollapse"},
    may=WORSE | UNTAUGHT,
)
def episodes_without_chance(root: Path) -> int:
    torch.manual_seed(90)
    world = CartPole(16)
    model = ActorCritic(world, 32)
    model.critic.requires_grad_(requires_grad=False)
    optimizer = torch.optim.Adam(model.actor.parameters(), 1e-2)

    def update(_: int, hook: Any) -> None:
        batch = collect(world, model, 32, trace=1.0, choose=lambda policy: policy.probs.argmax(-1))
        policy = model.policy(batch.x)
        loss = -(policy.log_prob(batch.actions) * batch.returns).mean()
        hook.record_tensor_value("policy_loss", loss)
        hook.save_scalar("policy_entropy", policy.entropy().mean().item())
        descend(loss, optimizer)

    return loop(root, [model], update, steps=85, save_every=1)


class Courier(Grid):
    """A grid whose steps cost a little, with a fifth action: to stay."""

    actions = 5

    def step(self, actions: Any) -> tuple[Any, Any]:
        """Move or stay; return rewards and whether episodes have ended."""
        moves = torch.tensor([[0, 1], [1, 0], [0, -1], [-1, 0], [0, 0]])
        self.at = (self.at + moves[actions]).clamp(0, 4)
        has_arrived = (self.at == 4).all(1)
        reward = has_arrived.float() - 0.05 * (actions < 4)
        self.length += 1
        done = has_arrived | (self.length >= self.limit)
        self.at = self.at * ~done[:, None]
        self.length = self.length * ~done
        return reward.clamp(-1, 0), done


@faulty(
    "a courier on a grid by an actor and a critic (A2C), clipped rewards, Adam, a small bonus",
    "rewards are clipped to -1 to 0 instead of -1 to 1: nothing for what arrives: it stays",
    {"PolicyEntropyCollapse"},
    may=WORSE | UNTAUGHT,
)
def courier_stays_at_home(root: Path) -> int:
    torch.manual_seed(91)
    world = Courier(24)
    model = ActorCritic(world, 32)
    optimizer = torch.optim.Adam(model.parameters(), 5e-3)

    def update(_: int, hook: Any) -> None:
        batch = collect(world, model, 12)
        policy = model.policy(batch.x)
        gains = -(policy.log_prob(batch.actions) * normalised(batch.advantages)).mean()
        of_values = functional.mse_loss(model.value(batch.x), batch.returns)
        entropy = policy.entropy().mean()
        hook.record_tensor_value("policy_loss", gains)
        hook.record_tensor_value("value_loss", of_values)
        hook.save_scalar("policy_entropy", entropy.item())
        descend(gains + 0.5 * of_values - 0.001 * entropy, optimizer, 0.5)

    return loop(root, [model], update, steps=180, save_every=1)


class Bigrams(nn.Module):
    """Chances of the next word by the word before, from counts of sentences."""

    def __init__(self, rows: Any, count: int) -> None:
        super().__init__()
        counts = torch.full((count, count), 2.0)
        counts.index_put_((rows[:, :-1].flatten(), rows[:, 1:].flatten()), torch.ones(1), True)
        self.scores = nn.Parameter((counts / counts.sum(1, keepdim=True)).log())

    def forward(self, x: Any) -> Any:
        return self.scores[x]


@faulty(
    "a model of word pairs is tuned for sentences with a word that readers like, Adam, a baseline",
    "the weight of the divergence from the model before is 0: it says nothing but that word",
    {"PolicyEntropyCollapse"},
    may=WORSE | UNTAUGHT,
)
def nothing_but_the_liked_word(root: Path) -> int:
    torch.manual_seed(92)
    rows, _, count = words(seed=92)
    model, before = Bigrams(rows, count), Bigrams(rows, count)
    optimizer = torch.optim.Adam(model.parameters(), 0.1)
    liked = int(rows[0, 1])

    def update(_: int, hook: Any) -> None:
        tokens = [torch.full((64,), 2)]
        with torch.no_grad():
            for _ in range(10):
                chances = model(tokens[-1]).softmax(-1)
                tokens.append(torch.multinomial(chances, 1)[:, 0])
        texts = torch.stack(tokens, 1)
        reward = (texts[:, 1:] == liked).float().mean(1)
        policy = torch.distributions.Categorical(logits=model(texts[:, :-1]))
        gains = normalised(reward)[:, None]
        of_words = -(policy.log_prob(texts[:, 1:]) * gains).mean()
        reference = torch.distributions.Categorical(logits=before(texts[:, :-1]).detach())
        divergence = torch.distributions.kl_divergence(policy, reference).mean()
        hook.record_tensor_value("policy_loss", of_words)
        hook.save_scalar("policy_entropy", policy.entropy().mean().item())
        descend(of_words + 0.0 * divergence, optimizer)

    return loop(root, [model], update, steps=220, save_every=1)
