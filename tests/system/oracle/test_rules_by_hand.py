"""The built-in rules against second, slow versions of them, over random trials."""

import itertools
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from judging import judge, save, with_defaults

from builtin_rules import AllZero, ExplodingTensor, LossNotDecreasing, VanishingGradient
from smdebug.core.modes import ModeKeys

WORKERS = ("worker_0", "worker_1")
Found = set[tuple[int, str, str]]  # step, tensor, worker
By_worker = dict[str, dict[int, dict[str, "np.ndarray"]]]  # worker -> step -> name -> value


def found_by(rule: Any, saved: By_worker, **params: Any) -> Found:
    """Return where the real rule is met."""
    with tempfile.TemporaryDirectory() as folder:
        for worker, steps in saved.items():
            save(Path(folder), steps, worker=worker, num_workers=len(saved))
        findings = judge(rule, Path(folder), **params).findings
    return {(one.step, str(one.tensor), str(one.worker)) for one in findings}


def every(saved: By_worker) -> list[tuple[int, str, str, "np.ndarray"]]:
    """Return all that was saved: step, name, worker, value."""
    return [
        (step, name, worker, value)
        for worker, steps in saved.items()
        for step, tensors in steps.items()
        for name, value in tensors.items()
    ]


@st.composite
def trials(
    draw: st.DrawFn, names: tuple[str, ...], values: tuple[float, ...], most: int = 3
) -> By_worker:
    """Return tensors of one or two workers at up to `most` steps, some of them missing."""
    workers = WORKERS[: draw(st.integers(1, 2))]
    steps = draw(st.lists(st.integers(0, 20), min_size=1, max_size=most, unique=True))
    ranks = {name: draw(st.integers(1, 3)) for name in names}
    saved: By_worker = {}
    for worker in workers:
        saved[worker] = {}
        for step in steps:
            chosen = draw(st.lists(st.sampled_from(names), min_size=1, unique=True))
            saved[worker][step] = {
                name: np.array(
                    draw(st.lists(st.sampled_from(values), min_size=2, max_size=2)), np.float64
                ).reshape((2,) + (1,) * (ranks[name] - 1))
                for name in chosen
            }
    return saved


def first_step(saved: By_worker, name: str) -> int:
    return min(at for at, other, _, _ in every(saved) if other == name)


# -- VanishingGradient ---------------------------------------------------------------------------

GRADIENTS = ("gradient/a.weight", "gradient/a.bias", "gradient/b.weight", "gradient/b.bias")


def lasts(zeros: list[bool]) -> bool:
    *earlier, last = [len([*group]) for is_zero, group in itertools.groupby(zeros) if is_zero]
    return last >= 5 and last > 3 * max(earlier, default=0)


def slow_vanishing(saved: By_worker, threshold: float, *, literal: bool) -> Found:
    below: dict[tuple[int, str, str], bool] = {}
    flat: set[tuple[int, str, str]] = set()
    positive: dict[tuple[int, str], list[float]] = defaultdict(list)
    for step, _, worker, value in every(saved):
        if np.abs(value).mean() > 0:
            positive[step, worker].append(float(np.abs(value).mean()))
    for step, name, worker, value in every(saved):
        numbers = [abs(float(one)) for one in value.ravel()]
        so_far = [at for at in sorted(saved[worker]) if at <= step and name in saved[worker][at]]
        zeros = [not saved[worker][at][name].any() for at in so_far]
        mean = sum(numbers) / len(numbers)
        others = positive[step, worker]
        far_below = len(others) < 2 or mean < max(others) / 1000
        is_below = mean < threshold and (literal or far_below)
        below[step, name, worker] = lasts(zeros) if zeros[-1] and not literal else is_below
        if value.ndim == 1:
            flat.add((step, name, worker))
    found = set()
    for step, name, worker in [one for one, is_below in below.items() if is_below]:
        layer = name.rpartition(".")[0]
        whole = all(
            is_below
            for (at, other, by), is_below in below.items()
            if (at, by) == (step, worker) and other.startswith(layer + ".")
        )
        others = any(one not in flat for one in below if one[0] == step)
        if literal or (step, name, worker) not in flat or whole or not others:
            found.add((step, name, worker))
    return found


@given(trials(GRADIENTS, (0.0, 1e-9, -2e-7, 0.5, np.nan), most=6), st.booleans())
@example(
    saved={"worker_0": {at: {GRADIENTS[0]: np.zeros((2, 1))} for at in range(6)}}, literal=False
)
@example(
    saved={"worker_0": {at: {GRADIENTS[0]: np.full((2, 1), at == 1.0)} for at in range(6)}},
    literal=False,
)
def test_vanishing_gradient(saved: By_worker, literal: bool) -> None:
    expected = slow_vanishing(saved, 1e-7, literal=literal)
    assert found_by(VanishingGradient, saved, literal=literal) == expected


# -- ExplodingTensor and AllZero -----------------------------------------------------------------

TENSORS = ("fc.weight", "fc.bias", "loss")


@given(trials(TENSORS, (0.0, 1.0, 1e308, np.nan, np.inf, -np.inf)), st.booleans())
def test_exploding_tensor(saved: By_worker, only_nan: bool) -> None:
    expected = {
        (step, name, worker)
        for step, name, worker, value in every(saved)
        if any(one != one or (abs(one) == np.inf and not only_nan) for one in value.flat)
    }
    assert found_by(ExplodingTensor, saved, only_nan=only_nan) == expected


def slow_zeros(saved: By_worker, threshold: float, selected: str, *, literal: bool) -> Found:
    found = set()
    for step, name, worker, value in every(saved):
        zeros = [one for one in value.flat if one == 0]
        all_zero = len(zeros) == value.size and step == first_step(saved, name)
        new = name != "loss" and all_zero and not literal
        wanted = (name != "loss" or name == selected) and not new
        if wanted and 100 * len(zeros) / value.size >= threshold:
            found.add((step, name, worker))
    return found


@given(
    trials(TENSORS, (0.0, 1.0, np.nan)),
    st.sampled_from([50.0, 50.1, 100.0]),
    st.sampled_from(["fc.bias", "loss", ""]),
    st.booleans(),
)
def test_all_zero(saved: By_worker, threshold: float, selected: str, literal: bool) -> None:
    params = {"tensor_regex": selected, "literal": literal, "collection_names": "weights,biases"}
    expected = slow_zeros(saved, threshold, selected, literal=literal)
    assert found_by(with_defaults(AllZero, threshold=threshold), saved, **params) == expected


# -- LossNotDecreasing ---------------------------------------------------------------------------


def is_too_little(before: float, now: float, diff: float, rise: float) -> bool:
    change = 100 * (now - before) / abs(before)
    return change > rise if change > 0 else -change < diff or change == 0


def slow_losses(losses: dict[int, float], num_steps: int, diff: float, rise: float) -> list[int]:
    """Return the steps at which the documented sentence is met."""
    met: list[int] = []
    last: int | None = None
    for step, loss in losses.items():
        partners = [at for at in losses if at <= step - num_steps]
        if not partners or (last is not None and step < last + num_steps):
            continue
        last = step
        met += [step] if is_too_little(losses[partners[-1]], loss, diff, rise) else []
    return met


@settings(max_examples=20, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    slope=st.sampled_from([-0.02, -0.0005, 0.0, 0.001, 0.004]),
    noise=st.sampled_from([0.0, 0.001, 0.02, 0.1]),
    gaps=st.sampled_from([1, 3, 12]),
    num_steps=st.sampled_from([1, 10]),
)
def test_loss_not_decreasing(
    seed: int, slope: float, noise: float, gaps: int, num_steps: int
) -> None:
    rng = np.random.default_rng(seed)
    steps = np.cumsum(rng.integers(1, gaps + 1, 60))
    values = 2.0 * np.exp(slope * steps) * (1 + noise * rng.standard_normal(60))
    losses = {int(step): float(value) for step, value in zip(steps, values, strict=True)}
    with tempfile.TemporaryDirectory() as folder:
        save(Path(folder), {step: {"loss": loss} for step, loss in losses.items()})
        met = judge(LossNotDecreasing, Path(folder), num_steps=num_steps, literal=True).met
    assert met == slow_losses(losses, num_steps, 0.1, 5.0)


@settings(max_examples=20, deadline=None)
@given(st.lists(st.sampled_from([TRAIN := ModeKeys.TRAIN, ModeKeys.EVAL]), max_size=30), st.data())
@pytest.mark.parametrize("mode", ["TRAIN", "GLOBAL"])
def test_losses_of_modes_are_judged_apart(
    mode: str, modes: list[ModeKeys], data: st.DataObject
) -> None:
    draws = st.sampled_from([1.0, 0.5, 0.25, 0.125])
    values = {step: data.draw(draws) for step in range(len(modes))}
    with tempfile.TemporaryDirectory() as folder:
        named_modes = dict(enumerate(modes))
        save(Path(folder), {at: {"loss": one} for at, one in values.items()}, modes=named_modes)
        met = judge(LossNotDecreasing, Path(folder), num_steps=2, mode=mode, literal=True).met
    expected: set[int] = set()
    for one in {TRAIN} if mode == "TRAIN" else set(modes):
        places = [step for step, its in named_modes.items() if its is one]
        # Within a mode steps count from 0; over all modes each keeps its global step.
        numbers = {at if mode == "TRAIN" else step: step for at, step in enumerate(places)}
        losses = {number: values[step] for number, step in numbers.items()}
        expected |= {numbers[at] for at in slow_losses(losses, 2, 0.1, 5.0)}
    assert met == sorted(expected)
