"""Healthy agents: policy gradients, actor and critic, proximal updates, values of actions."""

import copy
import functools
from pathlib import Path
from typing import Any

import torch
import training_runs
from torch.nn import functional

from runs_tuned.seventh_held_out.representations.shared.data import digits
from runs_tuned.seventh_held_out.representations.shared.loop import descend, loader, loop
from runs_tuned.seventh_held_out.representations.shared.networks import mlp
from runs_tuned.seventh_held_out.representations.shared.worlds import (
    ActorCritic,
    CartPole,
    Gaussian,
    Grid,
    PointMass,
    collect,
    normalised,
)

of_agents = functools.partial(training_runs.healthy, kind="reinforcement")


@of_agents("a pole on a cart by a policy gradient, normalised returns, a baseline, Adam")
def reinforce_on_a_pole(root: Path) -> int:
    torch.manual_seed(30)
    world = CartPole(12)
    model = ActorCritic(world, 32)
    optimizer = torch.optim.Adam(model.parameters(), 5e-3)

    def update(_: int, hook: Any) -> None:
        batch = collect(world, model, 48, trace=1.0)
        policy = model.policy(batch.x)
        gains = -(policy.log_prob(batch.actions) * normalised(batch.advantages)).mean()
        of_values = functional.smooth_l1_loss(model.value(batch.x), batch.returns)
        entropy = policy.entropy().mean()
        hook.record_tensor_value("policy_loss", gains)
        hook.record_tensor_value("value_loss", of_values)
        hook.save_scalar("policy_entropy", entropy.item())
        hook.save_scalar("reward", world.reward())
        descend(gains + 0.5 * of_values - 0.01 * entropy, optimizer, 1.0)

    return loop(root, [model], update, steps=75, save_every=1)


@of_agents("a grid with pits by an actor and a critic (A2C), RMSprop, a bonus for entropy")
def a2c_on_a_grid(root: Path) -> int:
    torch.manual_seed(31)
    world = Grid(24)
    model = ActorCritic(world, 32)
    optimizer = torch.optim.RMSprop(model.parameters(), 2e-3)

    def update(_: int, hook: Any) -> None:
        batch = collect(world, model, 8, trace=1.0)
        policy = model.policy(batch.x)
        gains = -(policy.log_prob(batch.actions) * batch.advantages).mean()
        of_values = functional.mse_loss(model.value(batch.x), batch.returns)
        entropy = policy.entropy().mean()
        hook.record_tensor_value("policy_loss", gains)
        hook.record_tensor_value("value_loss", of_values)
        hook.save_scalar("policy_entropy", entropy.item())
        hook.save_scalar("reward", world.reward())
        descend(gains + 0.5 * of_values - 0.02 * entropy, optimizer, 0.5)

    return loop(root, [model], update, steps=200)


def proximal(model: Any, batch: Any, advantages: Any, clip: float = 0.2) -> Any:
    """Return the clipped loss of PPO, and the policy."""
    policy = model.policy(batch.x)
    ratio = (policy.log_prob(batch.actions) - batch.logs).exp()
    bounded = ratio.clamp(1 - clip, 1 + clip)
    return -torch.minimum(ratio * advantages, bounded * advantages).mean(), policy


def ppo(root: Path, world: Any, model: Any, optimizer: Any, rounds: int, bonus: float) -> int:
    """Improve a policy by proximal updates, four a round; log the last one of a round."""

    def update(_: int, hook: Any) -> None:
        batch = collect(world, model, 32)
        advantages = normalised(batch.advantages)
        for _ in range(4):
            gains, policy = proximal(model, batch, advantages)
            of_values = functional.mse_loss(model.value(batch.x), batch.returns)
            entropy = policy.entropy().mean()
            descend(gains + 0.5 * of_values - bonus * entropy, optimizer, 0.5)
        hook.record_tensor_value("policy_loss", gains)
        hook.record_tensor_value("value_loss", of_values)
        hook.save_scalar("policy_entropy", entropy.item())
        hook.save_scalar("reward", world.reward())

    return loop(root, [model], update, steps=rounds, save_every=1)


@of_agents("a pole on a cart by proximal updates (PPO), generalised advantages, Adam")
def ppo_on_a_pole(root: Path) -> int:
    torch.manual_seed(32)
    world = CartPole(16)
    model = ActorCritic(world)
    optimizer = torch.optim.Adam(model.parameters(), 2.5e-3, eps=1e-5)
    return ppo(root, world, model, optimizer, 70, 0.01)


@of_agents("points pushed to the middle by proximal updates of a normal distribution, Adam")
def ppo_on_points(root: Path) -> int:
    torch.manual_seed(33)
    world = PointMass(24)
    model = Gaussian(world)
    return ppo(root, world, model, torch.optim.Adam(model.parameters(), 3e-3), 80, 0.001)


@of_agents("a grid with pits by values of actions, a memory and a target network (DQN), Adam")
def dqn_on_a_grid(root: Path) -> int:
    torch.manual_seed(34)
    world, model = Grid(16), mlp(25, 48, 48, 4)
    target = copy.deepcopy(model).requires_grad_(requires_grad=False)
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    memory: list[tuple[Any, ...]] = []

    def act(explored: float) -> None:
        with torch.no_grad():
            x = world.observe()
            by_chance = torch.randint(4, (len(x),))
            actions = torch.where(torch.rand(len(x)) < explored, by_chance, model(x).argmax(-1))
            reward, done = world.step(actions)
        memory.append((x, actions, reward, world.observe(), done.float()))
        del memory[:-200]

    def update(number: int, hook: Any) -> None:
        act(max(0.1, 1 - number / 150))
        if number % 20 == 0:
            target.load_state_dict(model.state_dict())
        x, actions, reward, after, done = (torch.cat(part) for part in zip(*memory, strict=True))
        rows = torch.randint(len(x), (64,))
        goal = reward[rows] + 0.95 * (1 - done[rows]) * target(after[rows]).max(-1).values
        value = model(x[rows]).gather(-1, actions[rows, None])[:, 0]
        loss = functional.smooth_l1_loss(value, goal)
        hook.record_tensor_value("q_loss", loss)
        hook.save_scalar("reward", world.reward())
        descend(loss, optimizer, 10.0)

    for _ in range(30):
        act(1.0)
    return loop(root, [model], update, steps=300, save_every=3)


@of_agents("digits are named for a reward of 1 if right (a bandit), a baseline and a bonus, AdamW")
def bandit_names_digits(root: Path) -> int:
    torch.manual_seed(35)
    x, y, _, _ = digits()
    model = mlp(64, 64, 10)
    optimizer = torch.optim.AdamW(model.parameters(), 3e-3)
    read, baseline = loader(x.flatten(1), y, size=64, seed=35), [0.1]

    def update(_: int, hook: Any) -> None:
        rows, labels = next(read)
        policy = torch.distributions.Categorical(logits=model(rows))
        actions = policy.sample()
        reward = (actions == labels).float()
        loss = -(policy.log_prob(actions) * (reward - baseline[0])).mean()
        entropy = policy.entropy().mean()
        baseline[0] += 0.05 * (reward.mean().item() - baseline[0])
        hook.record_tensor_value("policy_loss", loss)
        hook.save_scalar("policy_entropy", entropy.item())
        hook.save_scalar("reward", reward.mean().item())
        descend(loss - 0.02 * entropy, optimizer)

    return loop(root, [model], update, steps=320, save_every=4)
