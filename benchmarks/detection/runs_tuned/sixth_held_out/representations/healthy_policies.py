"""Healthy policies: gradients, proximal updates, weights by gains, values of actions."""

import functools
from pathlib import Path

import torch
import training_runs
from torch import nn

from runs_tuned.sixth_held_out.representations.shared.networks import dense
from runs_tuned.sixth_held_out.representations.shared.worlds import (
    Agent,
    Battery,
    Chase,
    Pond,
    Servers,
    follow_policy,
    follow_worth,
    proximal,
    weighted_by,
)

of_policies = functools.partial(training_runs.healthy, kind="reinforcement")


@of_policies("jobs are sent to servers by an actor and a critic, RMSprop, a level bonus")
def jobs_by_actor_and_critic(root: Path) -> int:
    torch.manual_seed(690)
    model = Agent(Servers)
    return follow_policy(
        root,
        model,
        Servers(),
        torch.optim.RMSprop(model.parameters(), 3e-3),
        rounds=120,
        length=12,
        bonus=lambda _: 0.06,
        save_every=2,
    )


@of_policies("a battery by proximal updates, four steps a round, Adam, a bonus that falls")
def battery_by_proximal_updates(root: Path) -> int:
    torch.manual_seed(691)
    model = Agent(Battery)
    return follow_policy(
        root,
        model,
        Battery(32),
        torch.optim.Adam(model.parameters(), 3e-3),
        loss=proximal,
        repeats=4,
        rounds=45,
        bonus=lambda number: 0.08 * (1 - number / 90),
        save_every=2,
    )


@of_policies("a chase by a policy gradient without a critic, what is gained is normalised, AdamW")
def chase_by_gradient(root: Path) -> int:
    torch.manual_seed(692)
    model = Agent(Chase, act=nn.ReLU)
    return follow_policy(
        root,
        model,
        Chase(48),
        torch.optim.AdamW(model.parameters(), 1e-2),
        has_critic=False,
        rounds=110,
        length=16,
        bonus=lambda _: 0.06,
    )


@of_policies("a battery by imitation of what gained most (AWR), a heat of 1, Adam, a bonus")
def battery_by_weights(root: Path) -> int:
    torch.manual_seed(693)
    model = Agent(Battery, act=nn.SiLU)
    return follow_policy(
        root,
        model,
        Battery(32),
        torch.optim.Adam(model.parameters(), 3e-3),
        loss=weighted_by(1.0),
        repeats=2,
        rounds=60,
        length=16,
        bonus=lambda _: 0.06,
    )


@of_policies("a pond by values of actions, remembered rows, a copied target, Adam (DQN)")
def pond_by_values(root: Path) -> int:
    torch.manual_seed(694)
    model, target = dense(2, 48, 48, 3), dense(2, 48, 48, 3)
    return follow_worth(
        root, model, Pond(), torch.optim.Adam(model.parameters(), 2e-3), target=target
    )


@of_policies("a chase by values, chosen by one network and told by the other (double), RMSprop")
def chase_by_two_networks(root: Path) -> int:
    torch.manual_seed(695)
    model, target = dense(25, 48, 4, act=nn.ELU), dense(25, 48, 4, act=nn.ELU)
    return follow_worth(
        root,
        model,
        Chase(32),
        torch.optim.RMSprop(model.parameters(), 1e-3),
        target=target,
        is_double=True,
        explored=lambda step: max(0.15, 1 - step / 200),
        steps=300,
        save_every=4,
    )
