"""Healthy policies whose trainings were interrupted and go on."""

import functools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
import training_runs
from torch.nn import functional
from training.torch_loop import adam

from runs_tuned.first_held_out.beyond_supervised.reinforcement import Field, Poles
from runs_tuned.second_held_out.healthy_kinds.shared.actors import Actor, entropy_of, played
from runs_tuned.second_held_out.healthy_kinds.shared.jobs import Job, go_on
from runs_tuned.second_held_out.healthy_kinds.shared.worlds import Arms, Catch, Corridors, Stock

healthy = functools.partial(training_runs.healthy, kind="reinforcement")


def gone_on(
    root: Path,
    world: Callable[[], Any],
    width: int,
    optimizer: Any,
    parts: list[tuple[int, int]],
    *,
    bonus: float = 0.01,
    length: int = 16,
    repeats: int = 1,
    clip_ratio: float = 0.0,
    discount: float = 0.95,
    **options: Any,
) -> int:
    """Train an actor and a critic in parts; the worlds begin anew with each.

    Parameters
    ----------
    repeats, clip_ratio
        Steps with each rollout; how far the ratio of chances may be from 1, 0: it is not used.
    """

    def objective(model: Any, batch: Any) -> dict[str, Any]:
        x, action, before, gain, worth, reward = batch
        logs, value = model(x)
        chosen = logs.gather(1, action[:, None])[:, 0]
        gain = (gain - gain.mean()) / (gain.std() + 1e-6)
        policy = -(chosen * gain).mean()
        if clip_ratio:
            ratio = (chosen - before.gather(1, action[:, None])[:, 0]).exp()
            limited = ratio.clamp(1 - clip_ratio, 1 + clip_ratio)
            policy = -torch.min(ratio * gain, limited * gain).mean()
        error = functional.smooth_l1_loss(value, worth)
        entropy = entropy_of(logs)
        return {
            "minimised": policy + 0.5 * error - bonus * entropy,
            "policy": policy,
            "value": error,
            "entropy": entropy,
            "reward": reward,
        }

    schedule = options.pop("schedule", None)
    job = Job(
        lambda: Actor(world, width), objective, optimizer, schedule=schedule, clip=0.5, seed=2
    )

    def feed(_: int) -> Iterator[Any]:
        place = world()
        while True:
            rollout = played(job.model, place, length, discount)
            yield from (rollout for _ in range(repeats))

    return go_on(root, job, feed, parts, **options)


@healthy("balls that fall are caught, proximal updates, goes on after 100 of 220 updates")
def ppo_of_catch_goes_on(root: Path) -> int:
    parts = [(0, 120), (100, 220)]
    return gone_on(root, Catch, 32, adam(5e-3), parts, length=20, repeats=4, clip_ratio=0.2)


@healthy("a field, an advantage actor-critic with RMSprop, every 2nd step in lines of JSON")
def a2c_of_a_field_goes_on(root: Path) -> int:
    names = {
        "entropy": "losses/entropy",
        "value": "losses/value_loss",
        "policy": "losses/policy_loss",
        "reward": "charts/episodic_return",
        "lr": "charts/learning_rate",
        "norm": "losses/grad_norm",
    }
    optimizer = adam(3e-3, torch.optim.RMSprop)
    parts = [(0, 180), (160, 320)]
    return gone_on(
        root, Field, 32, optimizer, parts, bonus=0.03, every=2, is_table=False, fields=names
    )


@healthy("a store orders goods, a rate that falls linearly, interrupted twice")
def stores_go_on(root: Path) -> int:
    schedule = lambda step: max(0.05, 1 - step / 240)
    parts = [(0, 90), (80, 170), (150, 240)]
    return gone_on(root, Stock, 40, adam(6e-3), parts, bonus=0.03, discount=0.8, schedule=schedule)


@healthy("twelve arms by context, SGD with momentum, goes on with a lower rate, set by hand")
def arms_go_on(root: Path) -> int:
    def change(job: Job) -> None:
        job.optimizer.param_groups[0]["lr"] *= 0.4

    optimizer = functools.partial(torch.optim.SGD, lr=0.1, momentum=0.8)
    parts = [(0, 200), (170, 300)]
    return gone_on(
        root, Arms, 24, optimizer, parts, bonus=0.08, length=2, discount=0.0, change=change
    )


@healthy("poles, two steps with each rollout, no bonus: the entropy falls slowly beyond the resume")
def poles_go_on(root: Path) -> int:
    parts = [(0, 130), (100, 210)]
    return gone_on(
        root, Poles, 32, adam(3e-3), parts, bonus=0.0, repeats=2, clip_ratio=0.3, discount=0.97
    )


@healthy("corridors, long rollouts and a strong bonus, AdamW, goes on after 100 of 200 updates")
def corridors_go_on(root: Path) -> int:
    parts = [(0, 110), (100, 200)]
    optimizer = adam(4e-3, torch.optim.AdamW, weight_decay=0.01)
    return gone_on(root, Corridors, 32, optimizer, parts, bonus=0.3, length=24)
