"""Policies that no longer explore."""

import functools
from pathlib import Path
from typing import Any

import torch
import training_runs
from torch.nn import functional
from training.consequences import UNTAUGHT, WORSE

from runs_held_out.representations.shared.loop import descend, loop
from runs_held_out.representations.shared.worlds import (
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

    return loop(root, [model], update, steps=110, save_every=1)


@faulty(
    "a grid with pits by a policy gradient with a penalty of the divergence from before, Adam",
    "the penalty is subtracted from the loss: each update is rewarded for moving far",
    {"PolicyEntropyCollapse"},
    may=WORSE | UNTAUGHT,
)
def divergence_is_rewarded(root: Path) -> int:
    torch.manual_seed(91)
    world = Grid(16)
    model = ActorCritic(world, 32)
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)

    def update(_: int, hook: Any) -> None:
        batch = collect(world, model, 24)
        advantages = normalised(batch.advantages)
        with torch.no_grad():
            before = model.policy(batch.x)
        for _ in range(4):
            policy = model.policy(batch.x)
            ratio = (policy.log_prob(batch.actions) - batch.logs).exp()
            gains = -(ratio * advantages).mean()
            divergence = torch.distributions.kl_divergence(before, policy).mean()
            of_values = functional.mse_loss(model.value(batch.x), batch.returns)
            entropy = policy.entropy().mean()
            loss = gains + 0.5 * of_values - 0.5 * divergence - 0.005 * entropy
            descend(loss, optimizer, 0.5)
        hook.record_tensor_value("policy_loss", gains)
        hook.record_tensor_value("value_loss", of_values)
        hook.save_scalar("policy_entropy", entropy.item())
        hook.save_scalar("reward", world.reward())

    return loop(root, [model], update, steps=110, save_every=1)


@faulty(
    "a grid with pits by an actor and a critic (A2C), a buffer of rollouts, Adam",
    "the buffer is full after the first rollout and is never reset: the same one is learnt for ever",
    {"PolicyEntropyCollapse"},
    may=WORSE | UNTAUGHT,
)
def buffer_is_never_reset(root: Path) -> int:
    torch.manual_seed(92)
    world = Grid(16)
    model = ActorCritic(world, 48)
    optimizer = torch.optim.Adam(model.parameters(), 5e-3)
    buffer: list[Any] = []

    def update(_: int, hook: Any) -> None:
        rollout = collect(world, model, 16)
        if not buffer:
            buffer.append(rollout)
        batch = buffer[0]
        policy = model.policy(batch.x)
        gains = -(policy.log_prob(batch.actions) * normalised(batch.advantages)).mean()
        of_values = functional.mse_loss(model.value(batch.x), batch.returns)
        entropy = policy.entropy().mean()
        hook.record_tensor_value("policy_loss", gains)
        hook.record_tensor_value("value_loss", of_values)
        hook.save_scalar("policy_entropy", entropy.item())
        hook.save_scalar("reward", world.reward())
        descend(gains + 0.5 * of_values - 0.01 * entropy, optimizer, 0.5)

    return loop(root, [model], update, steps=220, save_every=1)
