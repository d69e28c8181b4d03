"""Trainings in which time passes: real ones, whose hook is given a clock that is wound."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

from torch import nn
from training.boosting import boost, table
from training.learnt_data import digits, images, sentences
from training.small_networks import Cnn, Recurrent, mlp
from training.torch_loop import adam, fit, sgd
from training_runs import faulty, healthy

HOUR = 3600.0
STALLED = {"StalledTrainingRule"}


@contextmanager
def passing(seconds: float, pauses: Mapping[int, float] | None = None) -> Iterator[None]:
    """Let so many seconds pass with each step of a hook, and more before some of them."""
    steps = -1
    now = 1_700_000_000.0

    def time() -> float:
        nonlocal steps, now
        steps += 1
        now += seconds + (pauses or {}).get(steps, 0.0)
        return now

    with mock.patch("rule_core.saving.base_hook.time", SimpleNamespace(time=time)):
        yield


@healthy("digits, 20 seconds a step, 10 minutes for the first one")
def slow_steps(root: Path) -> int:
    with passing(20.0, {1: 600.0}):
        return fit(root, mlp(64, 48, 32, 10), digits(), optimizer=sgd(0.1, momentum=0.5))


@healthy("sentences, LSTM, a quarter of an hour for each evaluation and checkpoint")
def slow_evaluations(root: Path) -> int:
    pauses = dict.fromkeys(range(40, 124, 41), 900.0)
    make = lambda: Recurrent(nn.LSTM, 2)
    with passing(2.0, pauses):
        return fit(
            root,
            make,
            sentences(),
            optimizer=adam(0.01),
            clip=1.0,
            steps=90,
            save_every=3,
            validate_every=40,
        )


@faulty("digits, 2 seconds a step", "the data loader hangs for two hours", STALLED)
def loader_hangs(root: Path) -> int:
    with passing(2.0, {61: 2 * HOUR}):
        fit(root, mlp(64, 48, 32, 10), digits(), optimizer=sgd(0.1, momentum=0.5))
    return 60


@faulty("digits, convolutions", "a checkpoint is written to a full share: an hour", STALLED)
def checkpoint_hangs(root: Path) -> int:
    with passing(1.0, {84: HOUR}):
        fit(root, Cnn, images(), optimizer=sgd(0.05, momentum=0.9), save_every=3)
    return 83


@faulty("sentences, LSTM", "a worker waits in a lock for 40 minutes", STALLED)
def lock_waits(root: Path) -> int:
    make = lambda: Recurrent(nn.LSTM, 2)
    with passing(1.0, {31: 40 * 60.0}):
        fit(
            root,
            make,
            sentences(),
            optimizer=adam(0.01),
            clip=1.0,
            steps=90,
            save_every=3,
            validate_every=30,
        )
    return 30


@faulty(
    "XGBoost, breast cancer", "a node is preempted for ten hours", STALLED, kind="boosted_trees"
)
def node_preempted(root: Path) -> int:
    with passing(5.0, {12: 10 * HOUR}):
        boost(root, *table("breast_cancer"), max_depth=3, eta=0.2)
    return 11


@faulty("digits, 20 seconds a step", "the laptop sleeps over night", STALLED)
def laptop_sleeps(root: Path) -> int:
    with passing(20.0, {101: 8 * HOUR}):
        fit(root, mlp(64, 48, 32, 10), digits(), optimizer=adam())
    return 100


@faulty("digits, steps that grow slower", "memory is swapped: from minutes to an hour", STALLED)
def swapping(root: Path) -> int:
    pauses = {step: 30.0 * 1.2 ** (step - 60) for step in range(60, 95)}
    with passing(1.0, pauses):
        fit(root, mlp(64, 48, 32, 10), digits(), optimizer=sgd(0.1, momentum=0.5), steps=90)
    return 60
