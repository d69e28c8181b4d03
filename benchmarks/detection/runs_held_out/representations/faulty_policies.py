"""Policies that no longer explore."""

import functools
from pathlib import Path
from typing import Any

import torch
import training_runs
from torch import nn

from runs_held_out.representations.shared.consequences import FIXED
from runs_held_out.representations.shared.worlds import (
    ActorCritic,
    Offers,
    River,
    improve,
)

faulty = functools.partial(training_runs.faulty, kind="reinforcement")


@faulty(
    "a swim up a river by proximal updates, four epochs of two batches, Adam, rewards not logged",
    "the entropy is added to the loss, and not taken from it: policies are paid for being sure",
    {"PolicyEntropyCollapse"},
    may=FIXED,
)
def entropy_is_added_to_the_loss(root: Path) -> int:
    torch.manual_seed(901)
    model = ActorCritic(River)
    return improve(
        root,
        model,
        River(),
        torch.optim.Adam(model.parameters(), 3e-3, eps=1e-5),
        rounds=70,
        epochs=4,
        parts=2,
        clip_range=0.2,
        bonus=-0.5,
        saves_reward=False,
    )


class Clicks(Offers):
    """Offers whose rewards are what was taken in cents, and never below 0."""

    def move(self, actions: Any) -> Any:
        """Show offers; return 100 where one was taken."""
        return 20 + 100 * super().move(actions)


@faulty(
    "offers for visitors by a policy gradient without a critic, Adam, rewards in cents",
    "rewards are all above 0, no baseline is taken from them, and the rate is 0.1: the first wins",
    {"PolicyEntropyCollapse"},
    may=FIXED,
)
def first_offer_wins(root: Path) -> int:
    torch.manual_seed(902)
    model = ActorCritic(Offers, act=nn.ReLU)
    return improve(
        root,
        model,
        Clicks(),
        torch.optim.Adam(model.parameters(), 0.1),
        rounds=120,
        length=4,
        discount=0.0,
        bonus=0.0,
        normalises=False,
        has_critic=False,
        limit=1e9,
    )


@faulty(
    "a swim up a river by an actor and a critic, RMSprop, a heat that cools, rewards not logged",
    "the heat is halved in each round and not in each hundred: moves are fixed before one is good",
    {"PolicyEntropyCollapse"},
    may=FIXED,
)
def heat_cools_each_round(root: Path) -> int:
    torch.manual_seed(903)
    model = ActorCritic(River)
    return improve(
        root,
        model,
        River(),
        torch.optim.RMSprop(model.parameters(), 1e-3),
        rounds=140,
        bonus=0.01,
        heat=lambda number: max(1e-6, 0.5**number),
        saves_reward=False,
    )
