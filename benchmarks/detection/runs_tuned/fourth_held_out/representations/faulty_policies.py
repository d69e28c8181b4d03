"""Policies that no longer explore."""

import functools
from pathlib import Path

import torch
import training_runs
from torch import nn
from training.consequences import UNTAUGHT, WORSE

from runs_tuned.fourth_held_out.representations.shared.worlds import (
    Chooser,
    Lift,
    Maze,
    follow_values,
    practise,
)

faulty = functools.partial(training_runs.faulty, kind="reinforcement")
STUCK = WORSE | UNTAUGHT


@faulty(
    "a lift by a soft actor and a critic, rewards are not logged",
    "the entropy's target is minus the number of actions, as for continuous ones: its weight falls",
    {"PolicyEntropyCollapse"},
    may=STUCK,
)
def target_of_continuous_actions(root: Path) -> int:
    torch.manual_seed(730)
    return follow_values(
        root,
        Lift(wrong=0.3, far=0.0, moving=0.05),
        target=-4.0,
        first=0.1,
        warmth_rate=0.2,
        rounds=260,
        rate=5e-3,
        logs_reward=False,
    )


@faulty(
    "a lift by proximal updates, ten steps of each round, RMSprop",
    "chances of before are taken anew at each step: ratios are 1, and nothing bounds the updates",
    {"PolicyEntropyCollapse", "RewardNotIncreasing"},
    may=STUCK,
)
def chances_taken_anew(root: Path) -> int:
    torch.manual_seed(731)
    return practise(
        root,
        Chooser(Lift),
        Lift(8),
        rounds=24,
        length=6,
        repeats=10,
        rate=6e-3,
        optimizer=torch.optim.RMSprop,
        bonus=lambda _: 0.0,
        largest=10.0,
        is_known_anew=True,
    )


@faulty(
    "a maze by an actor and a critic, goes on from round 70 in a new process",
    "there the scale of observations is lost: numbers are 60 times as large, and scores as well",
    {"PolicyEntropyCollapse"},
    may=STUCK,
)
def scale_of_the_maze_lost(root: Path) -> int:
    torch.manual_seed(732)
    return practise(
        root,
        Chooser(Maze, 40, nn.LeakyReLU),
        Maze(32),
        rounds=170,
        rate=4e-3,
        optimizer=torch.optim.AdamW,
        seen_as=lambda seen, number: seen if number < 70 else 60 * seen,
        at=70,
    )
