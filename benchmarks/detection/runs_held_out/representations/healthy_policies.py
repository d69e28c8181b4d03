"""Healthy policies: gradients, actors and critics, proximal updates, and values of actions."""

import functools
from pathlib import Path

import torch
import training_runs
from torch import nn
from torch.nn import functional
from training.torch_loop import watched

from runs_held_out.representations.shared.loop import train
from runs_held_out.representations.shared.networks import layers
from runs_held_out.representations.shared.worlds import (
    ActorCritic,
    Cart,
    Lake,
    Offers,
    Shop,
    improve,
)

healthy = functools.partial(training_runs.healthy, kind="reinforcement")


@healthy("a pole on a cart by proximal updates, four epochs of two batches, rates down a line")
def pole_by_proximal_updates(root: Path) -> int:
    torch.manual_seed(911)
    model = ActorCritic(Cart)
    return improve(
        root,
        model,
        Cart(),
        torch.optim.Adam(model.parameters(), 2.5e-3, eps=1e-5),
        rounds=60,
        length=24,
        discount=0.99,
        epochs=4,
        parts=2,
        clip_range=0.2,
        bonus=0.01,
        factor=lambda number: 1 - number / 60,
    )


@healthy("orders of a shop by an actor and a critic, RMSprop, a bonus of 0.02, clipped")
def orders_by_actor_and_critic(root: Path) -> int:
    torch.manual_seed(912)
    model = ActorCritic(Shop, act=nn.ReLU)
    return improve(
        root,
        model,
        Shop(48),
        torch.optim.RMSprop(model.parameters(), 2e-3, alpha=0.99, eps=1e-5),
        rounds=150,
        length=8,
        lam=1.0,
        bonus=0.02,
        save_every=2,
    )


@healthy("offers for visitors by a policy gradient, rewards normalised by round, Adam")
def offers_by_gradient(root: Path) -> int:
    torch.manual_seed(913)
    model = ActorCritic(Offers)
    return improve(
        root,
        model,
        Offers(128),
        torch.optim.Adam(model.parameters(), 5e-3),
        rounds=120,
        length=4,
        discount=0.0,
        bonus=0.01,
        has_critic=False,
        limit=1.0,
    )


@healthy("steps on a slippery lake by proximal updates, a bonus of 0.01, AdamW")
def lake_by_proximal_updates(root: Path) -> int:
    torch.manual_seed(914)
    model = ActorCritic(Lake)
    return improve(
        root,
        model,
        Lake(48),
        torch.optim.AdamW(model.parameters(), 3e-3),
        rounds=80,
        length=16,
        discount=0.97,
        epochs=4,
        parts=2,
        clip_range=0.2,
        bonus=0.01,
    )


@healthy("orders of a shop by values of actions (DQN), what is remembered, a target copied each 20")
def orders_by_values(root: Path) -> int:
    torch.manual_seed(915)
    torch.set_num_threads(1)
    model, target, world = layers(4, 64, 64, 4), layers(4, 64, 64, 4), Shop(16)
    optimizer = torch.optim.Adam(model.parameters(), 2e-3)
    memory, curve = [], []
    with watched(root, save_every=4) as watching:
        watching.register_module(model, counts_steps=False)
        for step in range(300):
            if step % 20 == 0:
                target.load_state_dict(model.state_dict())
            with torch.no_grad():
                x = world.look()
                greedy, chance = model(x).argmax(1), max(0.05, 1 - step / 150)
                explores = torch.rand(16) < chance
                actions = torch.where(explores, torch.randint(4, (16,)), greedy)
                reward = world.move(actions)
            memory = [*memory, (x, actions, reward, world.look())][-200:]
            x, actions, rewards, later = (torch.cat(part) for part in zip(*memory, strict=True))
            rows = torch.randint(len(x), (64,))
            watching.begin_step()
            with torch.no_grad():
                goal = rewards[rows] + 0.9 * target(later[rows]).amax(1)
            worth = model(x[rows]).gather(1, actions[rows, None])[:, 0]
            loss = functional.smooth_l1_loss(worth, goal)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 10.0)
            optimizer.step()
            watching.record_tensor_value("td_loss", loss)
            watching.save_scalar("reward", reward.mean().item())
            watching.step()
            curve.append(float(reward.mean()))
    train.curve = curve  # type: ignore[attr-defined]
    return 0
