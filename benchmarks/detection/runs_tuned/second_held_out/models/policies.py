"""Policies that stop exploring before they know what is good."""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import training_runs
from torch import nn
from training.torch_loop import watched

from runs_tuned.second_held_out.shared.consequences import IDLE, SHAKEN
from runs_tuned.second_held_out.shared.tables import dense

faulty = functools.partial(training_runs.faulty, kind="reinforcement")
STUCK = IDLE | SHAKEN


def choose(
    root: Path,
    *,
    offset: float = 0.0,
    temperature: Callable[[int], float] = lambda _: 1.0,
    scale: float = 1.0,
    rate: float = 5e-3,
    baseline: float = 0.0,
    steps: int = 240,
    optimizer: Any = torch.optim.Adam,
    logs_reward: bool = True,
) -> int:
    """Learn which of six offers is best for each of eight kinds of guests.

    Parameters
    ----------
    offset, scale
        What is added to rewards, and by what they and it are multiplied.
    temperature
        That of the softmax over offers, by step.
    baseline
        What rewards are compared with.
    """
    torch.manual_seed(19)
    torch.set_num_threads(1)
    worth = torch.randn(8, 6, generator=torch.Generator().manual_seed(20))
    model = dense(8, 24, 6, act=nn.Tanh)
    optimizer_ = optimizer(model.parameters(), lr=rate)
    with watched(root) as watching:
        watching.register_module(model, counts_steps=False)
        for step in range(steps):
            watching.begin_step()
            guest = torch.randint(8, (64,))
            scores = model(nn.functional.one_hot(guest, 8).float())
            logs = (scores / temperature(step)).log_softmax(1)
            offer = torch.multinomial(logs.detach().exp(), 1)
            reward = worth[guest, offer[:, 0]] + 0.5 * torch.randn(64)
            gain = scale * (reward + offset - baseline)
            entropy = -(logs.exp() * logs).sum(1).mean()
            loss = -(gain * logs.gather(1, offer)[:, 0]).mean() - 0.02 * entropy
            watching.record_tensor_value("policy_loss", loss)
            watching.save_scalar("policy_entropy", entropy)
            if logs_reward:
                watching.save_scalar("reward", reward.mean())
            optimizer_.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer_.step()
            watching.step()
    return 0


@faulty(
    "offers to guests, a policy whose temperature falls by a seventh in each epoch",
    "the temperature falls in each step instead: after 40 there is nothing left to explore",
    {"PolicyEntropyCollapse"},
    may=STUCK,
)
def temperature_of_each_step(root: Path) -> int:
    return choose(
        root, temperature=lambda step: max(0.002, 0.85**step), rate=1e-3, logs_reward=False
    )


@faulty(
    "offers to guests, RMSprop",
    "rewards are all positive and nothing is subtracted from them: what is chosen is confirmed",
    {"PolicyEntropyCollapse", "RewardNotIncreasing"},
    may=STUCK,
)
def rewards_without_baseline(root: Path) -> int:
    return choose(root, offset=30.0, rate=0.02, optimizer=torch.optim.RMSprop)


@training_runs.healthy(
    "offers to guests, a policy that explores less as it knows more", kind="reinforcement"
)
def offers_explored(root: Path) -> int:
    return choose(root)
