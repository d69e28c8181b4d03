"""Policies that no longer explore."""

import functools
from pathlib import Path
from typing import Any

import torch
import training_runs
from torch import nn
from torch.nn import functional

from runs_tuned.fifth_held_out.representations.shared.consequences import UNTAUGHT, WORSE
from runs_tuned.fifth_held_out.representations.shared.texts import BELLS, bells
from runs_tuned.fifth_held_out.representations.shared.worlds import (
    Glider,
    Player,
    Speller,
    improve,
    please,
)

faulty = functools.partial(training_runs.faulty, kind="reinforcement")


@faulty(
    "a glider by an actor and a critic, Adam, a bonus for entropy that falls along a line",
    "the line ends after 4 rounds, meant as epochs, and nothing stops it: entropy costs ever more",
    {"PolicyEntropyCollapse", "RewardNotIncreasing"},
    may=WORSE | UNTAUGHT,
)
def bonus_falls_below_nothing(root: Path) -> int:
    torch.manual_seed(920)
    model = Player(Glider)
    improve(
        root,
        model,
        Glider(16),
        optimizer=torch.optim.Adam(model.parameters(), 4e-3),
        bonus=lambda number: 0.5 * (1 - number / 4),
        length=8,
        rounds=150,
    )
    return 4


@faulty(
    "a glider by an actor and a critic that learn from the last six rounds as well, RMSprop",
    "chances of old actions are not divided by those of before: what is old is learnt for ever",
    {"PolicyEntropyCollapse", "RewardNotIncreasing"},
    may=WORSE | UNTAUGHT,
)
def old_rounds_not_weighted(root: Path) -> int:
    torch.manual_seed(921)
    model = Player(Glider, act=nn.ReLU)
    return improve(
        root,
        model,
        Glider(12),
        optimizer=torch.optim.RMSprop(model.parameters(), 1e-3),
        bonus=lambda _: 0.0,
        kept=6,
        repeats=4,
        rounds=80,
        length=10,
        save_every=3,
    )


def has_all_bells(text: Any) -> Any:
    """Return the share of changes in which no bell is missing."""
    changes = functional.one_hot(text[:, 1:].unflatten(1, (-1, 6)), BELLS).sum(2)[..., 1:7]
    return (changes == 1).all(-1).float().mean()


@faulty(
    "changes of bells by a GRU are to please a listener (GRPO), near to what was learnt, AdamW",
    "what was learnt is the same object: the divergence from it is 0, and one bell pleases most",
    {"PolicyEntropyCollapse"},
    may=WORSE | UNTAUGHT,
)
def one_bell_pleases_most(root: Path) -> int:
    torch.manual_seed(922)
    model = Speller(BELLS)
    rows = torch.cat(
        [torch.zeros(1200, 1, dtype=torch.long), bells()[:, [*range(1, 7), *range(8, 14)]]], 1
    )
    taught = torch.optim.Adam(model.parameters(), 1e-2)
    for step in range(80):
        batch = rows[(torch.arange(48) + 48 * step) % len(rows)]
        taught.zero_grad()
        functional.cross_entropy(model(batch[:, :-1]).transpose(1, 2), batch[:, 1:]).backward()
        taught.step()
    return please(
        root,
        model,
        model,  # meant to be a copy
        lambda text: (text[:, 1:] == 5).float().mean(1) + 0.3 * (text[:, 1:] == 6).float().mean(1),
        optimizer=torch.optim.AdamW(model.parameters(), 3e-3),
        near_to_reference=0.3,
        steps=160,
        measured=has_all_bells,
    )
