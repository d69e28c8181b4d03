"""Confusion against a second, slow version in plain Python, over random trials."""

import math
import statistics
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st
from judging import judge, save, with_defaults

from builtin_rules import Confusion
from smdebug.core.modes import ModeKeys

TRAIN, EVAL, GLOBAL = ModeKeys.TRAIN, ModeKeys.EVAL, ModeKeys.GLOBAL
Samples = list[tuple[int, int]]  # label, prediction
Key = tuple[str, int]


def wilson(hits: int, total: int, compared: int, side: int) -> float:
    """Return the bound as the root of its quadratic equation."""
    z = statistics.NormalDist().inv_cdf(1 - 0.01 / compared)
    a, b, c = total + z * z, -(2 * hits + z * z), hits * hits / total
    return (-b + side * math.sqrt(max(0.0, b * b - 4 * a * c))) / (2 * a)


def shares(samples: Samples, size: int, *, literal: bool) -> dict[Key, tuple[float, float]]:
    """Return the bound and the share of each column, on the diagonal and beside it."""
    found: dict[Key, tuple[float, float]] = {}
    for column in range(size):
        labels = Counter(label for label, predicted in samples if predicted == column)
        total = sum(labels.values())
        labelled = sum(label == column for label, _ in samples)
        others = [count for label, count in labels.items() if label != column]
        if others:
            top = max(others)
            bound = top / total if literal else wilson(top, total, size * (size - 1), -1)
            found["beside", column] = bound, top / total
        if total or (labelled and not literal):
            hits, whole = labels[column], total or labelled
            bound = hits / whole if literal else min(1.0, wilson(hits, whole, size, 1))
            found["diagonal", column] = bound, hits / whole
    return found


def is_bad(key: Key, value: float, limits: tuple[float, float]) -> bool:
    return value < limits[0] if key[0] == "diagonal" else value > limits[1]


def errors(samples: Samples) -> float:
    return sum(label != predicted for label, predicted in samples) / len(samples)


def still_learns(before: Samples, now: Samples) -> bool:
    """Return whether a fifth of the errors was lost, or a twentieth beyond two standard errors."""
    old, new = errors(before), errors(now)
    chance = math.sqrt(old * (1 - old) / len(before) + new * (1 - new) / len(now))
    return new < 0.8 * old or (new < 0.95 * old and old - new > 2 * chance)


def stands_out(samples: Samples, size: int, key: Key) -> bool:
    """Return whether a share is worse than noise in the labels makes it."""
    side, column = key
    found = shares(samples, size, literal=False)
    wrong = 1 - found[key][0] if side == "diagonal" else found[key][0]
    if wrong > 0.5:
        return True
    labelled = Counter(label for label, _ in samples)
    mistaken: dict[int, int] = {}  # by predicted class: its most frequent wrong label
    for predicted in range(size):
        labels = [label for label in range(size) if label != predicted]
        most = max(labels, key=lambda label: samples.count((label, predicted)))
        if (most, predicted) in samples:
            mistaken[predicted] = most
    if column not in mistaken:
        return False
    other = mistaken[column]
    taken = wilson(samples.count((other, column)), labelled[other], size, -1)
    if taken > 0.5 and 2 * labelled[other] >= labelled[column]:
        return True
    usual = 1 - statistics.median(share for (on, _), (_, share) in found.items() if on != "beside")
    return size > 2 and mistaken.get(other) == column and wrong > 3 * usual


def lacking(blocks: list[Samples], size: int, limits: tuple[float, float]) -> set[Key]:
    """Return the columns that the last of the blocks lacks."""
    number = len(blocks) - 1
    if number < 4:
        return set()
    half = [shares(one, size, literal=False) for one in blocks[(number + 1) // 2 :]]
    before = errors(blocks[(number + 1) // 2])
    if still_learns(blocks[(number + 1) // 2], blocks[-1]):
        return set()
    left = min(1.0, errors(blocks[-1]) / before) ** 2 if before else 1.0
    found: set[Key] = set()
    for key, (bound, share) in half[-1].items():
        if not all(key in one and is_bad(key, one[key][0], limits) for one in half):
            continue
        change = share - half[0][key][1]
        if key[0] == "diagonal":
            hoped = 1 - (1 - min(1.0, bound + max(0.0, change))) * left
        else:
            hoped = max(0.0, bound - max(0.0, -change)) * left
        if is_bad(key, hoped, limits) and stands_out(blocks[-1], size, key):
            found.add(key)
    return found


def slow(
    steps: list[tuple[ModeKeys, Samples]], size: int, limits: tuple[float, float]
) -> list[int]:
    """Return where the condition is met, with all blocks kept."""
    blocks: dict[ModeKeys, list[Samples]] = {}
    open_: dict[ModeKeys, list[Samples]] = {}  # by step
    latest: dict[ModeKeys, list[int]] = {}
    met: list[int] = []
    evaluates = False
    for step, (mode, samples) in enumerate(steps):
        if mode is not EVAL and len(pooled(open_.get(EVAL, []))) >= 15 * size:
            blocks.setdefault(EVAL, []).append(pooled(open_.pop(EVAL)))
        if mode is TRAIN and evaluates:
            continue
        evaluates = evaluates or mode is EVAL
        open_.setdefault(mode, []).append(samples)
        now, known = pooled(open_[mode]), blocks.setdefault(mode, [])
        labels = [label for label, _ in samples]
        again, latest[mode] = mode is GLOBAL and latest.get(mode) == labels, labels
        if mode is EVAL:
            whole = not known or len(now) >= len(known[-1])
        else:
            whole = again or len(open_[mode]) >= 10
        if len(now) < 15 * size or not whole:
            continue
        if lacking([*known, now], size, limits) & lacking(known, size, limits):
            met.append(step)
        if mode is not EVAL:
            known.append(now)
            open_[mode] = []
    return met


def pooled(steps: list[Samples]) -> Samples:
    return [one for samples in steps for one in samples]


class Model(NamedTuple):
    """A model that is better or worse at times; `start` and `gain` are shares of right predictions.

    It may take class 0 for class 1 (`mistake` is "lost"), or both for each other ("both"), as
    `often`. `rare` is the frequency of class 0 compared with the others.
    """

    size: int
    steps: int
    count: int = 200
    start: float = 0.9
    gain: float = 0.0
    mistake: str = ""
    often: float = 1.0
    rare: float = 1.0


def trial_of(
    model: Model, modes: list[ModeKeys], seed: int = 0, *, again: bool = False
) -> tuple[list[tuple[ModeKeys, Samples]], int]:
    """Return labels and predictions of steps; with `again`, labels of 20 steps are the same."""
    size, rng = model.size, np.random.default_rng(seed)
    parts = np.array([model.rare] + [1.0] * (size - 1))
    steps: list[tuple[ModeKeys, Samples]] = []
    for at in range(model.steps):
        if again:
            rng = np.random.default_rng(at // 20)
        size_now = model.count + int(rng.integers(0, 3))
        labels = np.append(rng.choice(size, size_now, p=parts / parts.sum()), size - 1)
        rng = np.random.default_rng(at) if again else rng
        right = rng.random(len(labels)) < model.start + model.gain * at
        predicted = np.where(right, labels, rng.integers(0, size, len(labels)))
        if model.mistake:
            taken = (rng.random(len(labels)) < model.often) & (
                predicted <= (model.mistake == "both")
            )
            predicted = np.where(taken, 1 - predicted, predicted)
        pairs = list(zip(labels.tolist(), predicted.tolist(), strict=True))
        steps.append((modes[at % len(modes)], pairs))
    return steps, size


@st.composite
def trials(draw: st.DrawFn) -> tuple[list[tuple[ModeKeys, Samples]], int]:
    """Return the trial of some model."""
    modes = draw(st.sampled_from([[GLOBAL], [TRAIN], [TRAIN, EVAL, EVAL], [TRAIN, TRAIN, EVAL]]))
    again = draw(st.booleans())
    model = Model(
        size=draw(st.integers(2, 4)),
        steps=draw(st.integers(1, 24)) * (1 if again or EVAL in modes else 4),
        count=draw(st.sampled_from([8, 20, 60])),
        start=draw(st.sampled_from([0.3, 0.7, 0.9])),
        gain=draw(st.sampled_from([0.0, 0.01, 0.04])),
        mistake=draw(st.sampled_from(["", "lost", "both"])),
        often=draw(st.sampled_from([0.2, 0.6, 1.0])),
        rare=draw(st.sampled_from([1.0, 0.4])),
    )
    return trial_of(model, modes, draw(st.integers(0, 2**32 - 1)), again=again)


MODELS = (
    Model(size=3, steps=16, count=2000, mistake="lost", often=0.6),
    Model(size=3, steps=16, count=2000, mistake="lost", often=0.8, rare=0.4),
    Model(size=5, steps=16, count=2000, mistake="both", often=0.4),
    Model(size=5, steps=16, count=2000, mistake="both", often=0.3, start=0.75),
    Model(size=3, steps=16, count=6000, mistake="lost", often=0.6, start=0.8, gain=0.008),
    Model(size=3, steps=16, count=2000, start=0.05),
)


def with_models(test: Any) -> Any:
    """Add examples of what alone decides: rarity, mutual mistakes, slow progress."""
    for model in MODELS:
        test = example(trial_of(model, [TRAIN, EVAL]), (0.9, 0.1), 0, 1)(test)
    return test


@with_models
@given(
    trials(),
    st.sampled_from([(0.9, 0.1), (0.0, 0.3), (0.6, 1.0)]),
    st.integers(0, 20),
    st.integers(1, 2),
)
def test_confusion(
    trial: tuple[list[tuple[ModeKeys, Samples]], int],
    limits: tuple[float, float],
    start: int,
    workers: int,
) -> None:
    steps, size = trial
    rule = with_defaults(Confusion, category_no=size, min_diag=limits[0], max_off_diag=limits[1])
    with tempfile.TemporaryDirectory() as folder:
        for worker in range(workers):
            save(
                Path(folder),
                {
                    at: {
                        "labels": np.array([one[0] for one in samples[worker::workers]]),
                        "predictions": np.array([one[1] for one in samples[worker::workers]]),
                    }
                    for at, (_, samples) in enumerate(steps)
                },
                modes={at: mode for at, (mode, _) in enumerate(steps)},
                worker=f"worker_{worker}",
                num_workers=workers,
            )
        met = judge(rule, Path(folder)).met
        late = judge(rule, Path(folder), start=start).met
        literally = judge(rule, Path(folder), literal=True).met
    assert met == slow(steps, size, limits)
    assert late == [at for at in met if at >= start]
    assert literally == [
        at
        for at, (_, samples) in enumerate(steps)
        if any(
            is_bad(key, share, limits)
            for worker in range(workers)
            for key, (share, _) in shares(samples[worker::workers], size, literal=True).items()
        )
    ]
