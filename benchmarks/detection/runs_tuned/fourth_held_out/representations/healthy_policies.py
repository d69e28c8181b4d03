"""Healthy policies: plain, proximal, soft and with values alone, in a lift, a tank and a maze."""

import functools
from pathlib import Path
from typing import Any

import torch
import training_runs
from torch import nn
from torch.nn import functional
from training.torch_loop import watched

from runs_tuned.fourth_held_out.representations.shared.shapes import layers
from runs_tuned.fourth_held_out.representations.shared.worlds import (
    Chooser,
    Lift,
    Maze,
    Tank,
    drawn,
    follow_values,
    practise,
)

healthy = functools.partial(training_runs.healthy, kind="reinforcement")


@healthy("a maze by an actor and a critic, Adam, a bonus for entropy")
def maze_by_actor_and_critic(root: Path) -> int:
    torch.manual_seed(790)
    return practise(root, Chooser(Maze), Maze(32), rounds=160, rate=4e-3, bonus=lambda _: 0.02)


@healthy("a tank by REINFORCE, returns normalised instead of a critic, RMSprop, a falling bonus")
def tank_by_returns(root: Path) -> int:
    torch.manual_seed(791)
    return practise(
        root,
        Chooser(Tank, 32, nn.Tanh),
        Tank(48),
        rounds=150,
        rate=2e-3,
        optimizer=torch.optim.RMSprop,
        bonus=lambda number: 0.05 * max(0.2, 1 - number / 150),
        has_critic=False,
        trust=1.0,
    )


@healthy("a lift by proximal updates, four steps a round, AdamW, a high bonus")
def lift_by_proximal_steps(root: Path) -> int:
    torch.manual_seed(792)
    return practise(
        root,
        Chooser(Lift, 64, nn.Tanh),
        Lift(32),
        rounds=70,
        repeats=4,
        rate=4e-3,
        optimizer=torch.optim.AdamW,
        trust=0.95,
        bonus=lambda _: 0.15,
        save_every=2,
    )


@healthy("a maze by a soft actor and a critic that learn from what is remembered, fixed warmth")
def maze_with_kept_entropy(root: Path) -> int:
    torch.manual_seed(793)
    return follow_values(root, Maze(), target=0.0, first=0.06, rounds=260, is_learnt=False)


@healthy("values of a tank's settings (double Q-learning), actions are drawn by values, Huber loss")
def settings_by_values(root: Path) -> int:
    torch.manual_seed(794)
    torch.set_num_threads(1)
    values, slow = layers(3, 48, 48, 5), layers(3, 48, 48, 5)
    slow.load_state_dict(values.state_dict())
    optimizer = torch.optim.Adam(values.parameters(), 3e-3)
    world = Tank(16)
    memory: list[Any] = []
    with watched(root, save_every=3) as hook:
        hook.register_module(values, counts_steps=False)
        for step in range(360):
            hook.begin_step()
            with torch.no_grad():
                x = world.observe()
                scores = values(x) / max(0.05, 0.3 - step / 1000)
                actions = drawn(scores)
                reward = world.step(actions)
                memory = [*memory, (x, actions, reward, world.observe())][-80:]
                rows = torch.randint(len(memory), (6,)).tolist()
                x, actions, gained, later = (
                    torch.cat(part) for part in zip(*[memory[row] for row in rows], strict=True)
                )
                best = values(later).argmax(1, keepdim=True)
                goal = gained + 0.85 * slow(later).gather(1, best)[:, 0]
            found = values(x).gather(1, actions[:, None])[:, 0]
            loss = functional.smooth_l1_loss(found, goal)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(values.parameters(), 5.0)
            optimizer.step()
            if step % 20 == 0:
                slow.load_state_dict(values.state_dict())
            logs = scores.log_softmax(-1)
            hook.record_tensor_value("value_loss", loss)
            hook.save_scalar("policy_entropy", -(logs.exp() * logs).sum(-1).mean())
            hook.save_scalar("reward", reward.mean())
            hook.step()
    return 0
