"""PoorWeightInitialization against a second, slow version of it, over random trials."""

import math
import statistics
import tempfile
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from judging import judge, save, with_defaults

from builtin_rules import PoorWeightInitialization
from smdebug.core.modes import ModeKeys

INPUTS = ("ReLU_input_0", "relu1_input_0", "relu2_input_0")
GRADIENTS = ("gradient/a.weight", "gradient/b.weight", "gradient/c.weight")
WORKERS = ("worker_0", "worker_1")
Found = set[tuple[int, str, str]]  # step, tensor, worker ("" for losses)


class Settings(NamedTuple):
    """Parameters of the rule."""

    threshold: float
    distribution_range: float
    patience: int
    steps: int
    literal: bool


class Step(NamedTuple):
    """What one worker saved: elements of inputs and gradients by name, and the loss."""

    inputs: dict[str, list[float]]
    gradients: dict[str, list[float]]
    loss: float | None


elements = st.lists(st.sampled_from([0.0, 1.0, -1.0, 4.0, 0.01, np.nan]), min_size=1, max_size=4)
small = st.lists(st.sampled_from([0.0, 0.0, 1e-5, -1e-5, 1e-3, 0.5]), min_size=2, max_size=5)
losses = st.none() | st.sampled_from([1.0, 1.0, 1.0005, 1.1, 1.2, 0.9, np.nan])
saved = st.builds(
    Step,
    st.dictionaries(st.sampled_from(INPUTS), elements),
    st.dictionaries(st.sampled_from(GRADIENTS), small),
    losses,
)
params = st.builds(
    Settings,
    st.sampled_from([2.0, 10.0]),
    st.sampled_from([1e-4, 1e-2]),
    st.integers(1, 3),
    st.integers(1, 9),
    st.booleans(),
)


def variance(value: list[float]) -> float:
    mean = sum(value) / len(value)
    return sum((one - mean) ** 2 for one in value) / len(value)


def percentile(value: list[float], share: float) -> float:
    ordered = sorted(value)
    at = share * (len(ordered) - 1)
    low = int(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (at - low) * (ordered[high] - ordered[low])


def is_normalised(value: list[float]) -> bool:
    return abs(sum(value) / len(value)) <= 0.1 and abs(variance(value) - 1) <= 0.1


def leap(inputs: dict[str, list[float]], how: Settings) -> tuple[str, float] | None:
    """Return the input whose variance is farthest above another, and their ratio."""
    known = {
        name: variance(value)
        for name, value in inputs.items()
        if len(value) > 1 and (how.literal or not is_normalised(value))
    }
    layers = sorted((value, name) for name, value in known.items() if not math.isnan(value))
    if len(layers) < 2:
        return None
    pairs = [(layers[0], layers[-1])] if how.literal else [*pairwise(layers)]
    ratios = [
        (high[0] / low[0] if low[0] else (math.inf if high[0] else 1.0)) for low, high in pairs
    ]
    largest = max(ratios)
    return pairs[ratios.index(largest)][1][1], largest


def narrow(every: dict[tuple[str, str], list[float]], how: Settings) -> set[tuple[str, str]]:
    """Return the gradients whose elements lie too close together."""
    counted = {
        key: value if how.literal else [one for one in value if one != 0]
        for key, value in every.items()
    }
    spreads = {
        key: percentile(value, 0.95) - percentile(value, 0.05) if value else 0.0
        for key, value in counted.items()
    }
    limit, are_small = how.distribution_range, True
    if spreads and not how.literal:
        middle = statistics.median(spreads.values())
        are_small = middle < 0.01 * limit  # else the typical gradients are not small
        limit *= min(1.0, middle)
    return {
        key
        for key, spread in spreads.items()
        if (spread < limit and are_small) or (spread == 0 and not how.literal)
    }


def stands(series: list[float], how: Settings) -> bool:
    before, latest = series[: -how.patience], series[-how.patience :]
    if not before:
        return False
    return all(one >= min(before) for one in latest)


def lasting(leaps: list[tuple[str, float]], how: Settings) -> str:
    """Return the input whose variance is too far above another, of a worker's rows; "" for none."""
    if not leaps:
        return ""
    name, ratio = leaps[-1]
    enough = 1 if ratio > 2 * how.threshold else min(how.patience, how.steps)
    always = all(one > how.threshold for _, one in leaps)
    is_far = ratio > how.threshold and (how.literal or (always and len(leaps) >= enough))
    return name if is_far else ""


def slow(trial: dict[int, list[Step]], how: Settings) -> Found:
    found: Found = set()
    series: list[float] = []
    rows: dict[tuple[str, str], int] = {}
    leaps: dict[str, list[tuple[str, float] | None]] = {}  # by worker
    judged = 0
    for step, workers in trial.items():
        if judged >= how.steps or not any(
            one.inputs or one.gradients or (how.literal and one.loss is not None) for one in workers
        ):
            continue
        judged += 1
        pairs = list(zip(WORKERS, workers, strict=False))
        for worker, one in pairs:
            leaps.setdefault(worker, []).append(leap(one.inputs, how))
            name = lasting([one for one in leaps[worker] if one], how)
            if name and leaps[worker][-1]:
                found.add((step, name, worker))
        every = {(name, w): value for w, one in pairs for name, value in one.gradients.items()}
        close = narrow(every, how)
        for key in every:
            rows[key] = rows.get(key, 0) + 1 if key in close else 0
            if rows[key] >= (1 if how.literal else min(how.patience, how.steps)):
                found.add((step, *key))
        values = [one.loss for one in workers if one.loss is not None]
        if values and not any(math.isnan(one) for one in values):
            series.append(sum(values) / len(values))
            if how.literal and stands(series, how):
                found.add((step, "loss", ""))
    return found


@given(st.lists(st.lists(saved, min_size=2, max_size=2), min_size=1, max_size=11), params)
def test_poor_weight_initialization(workers: list[list[Step]], how: Settings) -> None:
    count = len(workers[0]) if len(workers) % 2 else 1
    trial = {3 * at: one[:count] for at, one in enumerate(workers)}
    with tempfile.TemporaryDirectory() as folder:
        for number, worker in enumerate(WORKERS[:count]):
            steps = {
                step: {name: np.array(value) for name, value in one[number].inputs.items()}
                | {name: np.array([value]) for name, value in one[number].gradients.items()}
                | ({} if one[number].loss is None else {"loss": np.array(one[number].loss)})
                | {"x": np.ones(1)}
                for step, one in trial.items()
            }
            modes = dict.fromkeys(steps, ModeKeys.TRAIN)
            save(Path(folder), steps, modes=modes, worker=worker, num_workers=count)
        rule = with_defaults(PoorWeightInitialization, **how._asdict())
        findings = judge(rule, Path(folder)).findings
    found = {(one.step, str(one.tensor), one.worker or "") for one in findings}
    assert found == slow(trial, how)
