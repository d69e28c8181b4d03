"""Values of actions by temporal differences: a walker in a corridor."""

from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from training.torch_loop import watched
from training_runs import faulty, healthy

from runs_tuned.first_held_out.beyond_supervised.consequences import TOO_LARGE, UNINFORMED


class Values(nn.Module):
    """Values of three moves."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            *(nn.Linear(8, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 3))
        )

    def forward(self, x: Any) -> Any:
        return self.layers(x)


def replay(
    root: Path,
    *,
    discount: float = 0.95,
    every: int = 25,
    rate: float = 2e-3,
    steps: int = 400,
    ends: bool = True,
    optimizer: Any = torch.optim.Adam,
) -> int:
    """Learn from a buffer what moves lead a walker along a corridor; explore ever less."""
    torch.manual_seed(37)
    model, target = Values(), Values()
    optimizer_ = optimizer(model.parameters(), lr=rate)
    walkers = torch.zeros(24, dtype=torch.int64)
    buffer: list[Any] = []
    features = functional.one_hot(torch.arange(8), 8).float()
    with watched(root, save_every=2) as watching:
        watching.register_module(model, counts_steps=False)
        for step in range(steps):
            with torch.no_grad():
                best = model(features[walkers]).argmax(1)
            explores = torch.rand(24) < max(0.1, 1 - step / 300)
            moves = torch.where(explores, torch.randint(0, 3, (24,)), best)
            slips = torch.rand(24) < 0.1
            following = (walkers + torch.where(slips, 0, moves - 1)).clamp(0, 7)
            rewards = 1.0 * (following == 7) - 0.01
            over = following == 7
            buffer = [*buffer, torch.stack([walkers, moves, following, over], 1)][-60:]
            walkers = torch.where(over, torch.randint(0, 4, (24,)), following)
            if step % every == 0:
                target.load_state_dict(model.state_dict())
            past = torch.cat(buffer)
            at, move, after, ended = past[torch.randint(0, len(past), (48,))].T
            watching.begin_step()
            with torch.no_grad():
                later = target(features[after]).amax(1)
                goal = 1.0 * (after == 7) - 0.01 + discount * later * (1 - ended * ends)
            values = model(features[at]).gather(1, move[:, None])[:, 0]
            loss = functional.smooth_l1_loss(values, goal)
            watching.record_tensor_value("q_loss", loss)
            watching.save_scalar("mean_q", values.mean())
            watching.save_scalar("rollout/ep_rew_mean", rewards.mean())
            optimizer_.zero_grad()
            loss.backward()
            optimizer_.step()
            watching.step()
    return 0


@healthy(
    "values of a corridor: a replay buffer, a target network, exploration that decreases",
    kind="reinforcement",
)
def deep_q_of_a_corridor(root: Path) -> int:
    return replay(root)


@faulty(
    "values of a corridor, RMSprop",
    "the discount is 1.1 instead of 0.99, and targets do not end with the episode: values grow",
    {"NormGrowth"},
    may=TOO_LARGE | UNINFORMED | {"RewardNotIncreasing": "such values teach nothing"},
    kind="reinforcement",
)
def values_without_end(root: Path) -> int:
    return replay(
        root, discount=1.1, every=5, rate=3e-3, steps=500, ends=False, optimizer=torch.optim.RMSprop
    )
