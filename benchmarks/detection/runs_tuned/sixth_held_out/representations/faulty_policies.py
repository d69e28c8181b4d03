"""Policies that no longer explore."""

import functools
from pathlib import Path
from typing import Any

import torch
import training_runs
from torch import nn
from torch.nn import functional
from training.consequences import UNTAUGHT, WORSE
from training.torch_loop import watched

from runs_tuned.sixth_held_out.representations.shared.networks import dense
from runs_tuned.sixth_held_out.representations.shared.worlds import (
    Battery,
    Chase,
    Servers,
    follow_policy,
)

faulty = functools.partial(training_runs.faulty, kind="reinforcement")


class Timed(Servers):
    """Servers whose rewards are waits in milliseconds."""

    def step(self, actions: Any) -> Any:
        """Send jobs and return rewards."""
        return 1000 * super().step(actions)


class Shared(nn.Module):
    """Scores of actions and a value, from what both share."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(dense(6, 64, 64), nn.ReLU())
        self.policy, self.value = nn.Linear(64, 4), nn.Linear(64, 1)

    def forward(self, x: Any) -> tuple[Any, Any]:
        x = self.body(x)
        return self.policy(x), self.value(x)[..., 0]


@faulty(
    "jobs are sent to servers by an actor and a critic that share a body, Adam, rewards not logged",
    "waits are in milliseconds: the body grows for the values' sake, and scores of actions with it",
    {"PolicyEntropyCollapse"},
    may=WORSE | UNTAUGHT,
)
def body_grows_for_values(root: Path) -> int:
    torch.manual_seed(630)
    model = Shared()
    return follow_policy(
        root,
        model,
        Timed(16),
        torch.optim.Adam(model.parameters(), 1e-2),
        rounds=190,
        length=8,
        limit=1e9,
        logs_reward=False,
    )


class Chances(nn.Module):
    """Scores of moves in each state of a chase."""

    def __init__(self) -> None:
        super().__init__()
        self.scores = nn.Parameter(torch.zeros(25, 4))


@faulty(
    "a chase by chances of moves in each state, which are multiplied by what moves gain",
    "gains of a state are summed over its visits instead of averaged: first rounds decide all",
    {"PolicyEntropyCollapse"},
    may=WORSE | UNTAUGHT,
)
def gains_summed_over_visits(root: Path) -> int:
    torch.manual_seed(631)
    torch.set_num_threads(1)
    model, world = Chances(), Chase(48)
    optimizer = torch.optim.SGD(model.parameters(), 1.0)
    with watched(root, save_every=1) as hook:
        hook.register_module(model, counts_steps=False)
        for _ in range(120):
            hook.begin_step()
            states, moves, rewards = [], [], []
            for _ in range(14):
                states.append(world.state())
                chances = model.scores[states[-1]].detach().softmax(-1)
                moves.append(torch.multinomial(chances, 1)[:, 0])
                rewards.append(world.step(moves[-1]))
            worth, gains = torch.zeros(48), []
            for reward in rewards[::-1]:
                worth = reward + 0.9 * worth
                gains.insert(0, worth)
            gain = torch.stack(gains).flatten()
            at = functional.one_hot(torch.cat(states) * 4 + torch.cat(moves), 100).float()
            logs = model.scores.log_softmax(-1)
            loss = -((at.T @ gain) * model.scores.flatten()).sum()  # not divided by at.sum(0)
            entropy = -(logs.exp() * logs).sum(-1).mean()
            hook.record_tensor_value("policy_loss", loss)
            hook.save_scalar("policy_entropy", entropy)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            hook.step()
    return 0


class Plan(nn.Module):
    """Scores of what is done at each hour of a day."""

    def __init__(self) -> None:
        super().__init__()
        self.scores = nn.Parameter(torch.zeros(24, 3))


@faulty(
    "a plan of a day for a battery by cross-entropy search: the best of 64 plans are imitated",
    "the share of the best, 0.1, is taken for per cent: a single plan is imitated in each round",
    {"PolicyEntropyCollapse"},
    may=WORSE | UNTAUGHT,
)
def single_plan_is_imitated(root: Path) -> int:
    torch.manual_seed(632)
    torch.set_num_threads(1)
    model = Plan()
    optimizer = torch.optim.Adam(model.parameters(), 1.0)
    with watched(root, save_every=1) as hook:
        hook.register_module(model, counts_steps=False)
        for _ in range(140):
            hook.begin_step()
            plans = torch.multinomial(model.scores.detach().softmax(-1), 64, replacement=True).T
            world = Battery(64)
            world.hour.zero_()
            earned = sum(world.step(plans[:, hour]) for hour in range(24))
            best = earned.topk(max(1, round(0.1 / 100 * 64))).indices
            logs = model.scores.log_softmax(-1)
            loss = functional.nll_loss(
                logs.expand(len(best), -1, -1).flatten(0, 1), plans[best].flatten()
            )
            entropy = -(logs.exp() * logs).sum(-1).mean()
            hook.record_tensor_value("policy_loss", loss)
            hook.save_scalar("policy_entropy", entropy)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            hook.step()
    return 0
