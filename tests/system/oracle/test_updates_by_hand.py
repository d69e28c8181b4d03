"""UnchangedTensor and WeightUpdateRatio against second, slow versions, over random trials."""

import math
import operator
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st
from judging import judge, save, with_defaults

from builtin_rules import UnchangedTensor, WeightUpdateRatio
from smdebug.core.modes import ModeKeys

NAMES = ("a.weight", "b.weight")
GRADIENTS = ((), ("gradient/a.weight",), ("gradient/a.weight", "gradient/b.weight"))
Found = set[tuple[int, str, str]]  # step, tensor, worker

numbers = st.sampled_from([0.0, 1.0, 1.0, 1.0, 1.0 + 1e-9, 1.5, -40.0, np.nan, np.inf])
values = st.tuples(numbers, numbers) | st.tuples(numbers)
tensors = st.dictionaries(st.sampled_from(NAMES), values)


class Random(NamedTuple):
    """A trial: its modes by step, and what each worker saved of the weights by step."""

    modes: dict[int, ModeKeys]
    saved: dict[str, dict[int, dict[str, tuple[float, ...]]]]
    gradients: tuple[str, ...]


@st.composite
def trials(draw: st.DrawFn) -> Random:
    steps = sorted(draw(st.sets(st.integers(0, 25), min_size=1, max_size=14)))
    kinds = draw(
        st.sampled_from([[ModeKeys.GLOBAL], [ModeKeys.TRAIN, ModeKeys.TRAIN, ModeKeys.EVAL]])
    )
    modes = {step: draw(st.sampled_from(kinds)) for step in steps}
    workers = ("worker_0", "worker_1")[: draw(st.integers(1, 2))]
    saved = {worker: {step: draw(tensors) for step in steps} for worker in workers}
    return Random(modes, saved, draw(st.sampled_from(GRADIENTS)))


def found_by(rule: Any, trial: Random, **params: Any) -> Found:
    """Return where the real rule is met; each step also has a loss and the gradients."""
    with tempfile.TemporaryDirectory() as folder:
        for worker, steps in trial.saved.items():
            arrays = {
                step: {name: np.array(value) for name, value in weights.items()}
                | {"loss": np.array(0.5)}
                | {name: np.array([1.0]) for name in trial.gradients}
                for step, weights in steps.items()
            }
            workers = len(trial.saved)
            save(Path(folder), arrays, modes=trial.modes, worker=worker, num_workers=workers)
        findings = judge(rule, Path(folder), **params).findings
    return {(one.step, str(one.tensor), str(one.worker)) for one in findings}


def tells(trial: Random, step: int) -> bool:
    """Return whether a weight that was saved so far has a gradient."""
    names = {
        name
        for steps in trial.saved.values()
        for at, weights in steps.items()
        if at <= step
        for name in weights
    }
    return any(f"gradient/{name}" in trial.gradients for name in names)


def is_frozen(trial: Random, name: str, step: int) -> bool:
    return tells(trial, step) and f"gradient/{name}" not in trial.gradients


def is_still(trial: Random, step: int) -> bool:
    return trial.modes[step] is ModeKeys.EVAL


def begins_phase(trial: Random, step: int) -> bool:
    before = [at for at in trial.modes if at < step]
    return not before or trial.modes[before[-1]] is not trial.modes[step]


# -- UnchangedTensor -----------------------------------------------------------------------------


def is_close(one: tuple[float, ...], now: tuple[float, ...]) -> bool:
    pairs = zip(one, now, strict=True)
    return all(a == b or abs(a - b) <= 1e-8 + 1e-5 * abs(b) < math.inf for a, b in pairs)


def is_half(value: tuple[float, ...]) -> bool:
    """Return whether a value is a single number with a fraction in half precision."""
    has_fraction = len(value) == 1 and math.isfinite(value[0]) and value[0] % 1 != 0
    return has_fraction and float(np.float16(value[0])) == value[0]


def is_same(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    """Return whether no element has changed; NaN has."""
    return len(one) == len(other) and all(map(operator.eq, one, other))


def may_accumulate(trial: Random, worker: str, name: str, counted: list[int], count: int) -> bool:
    """Return whether gradients may add up: all weights stand still, this one for 16 steps at most.

    Gradients are never 0 here.
    """
    steps, last, compared = trial.saved[worker], counted[-1], counted[-count:]
    stand_still = all(
        is_same(steps[at][other], value)
        for other, value in steps[last].items()
        for at in compared
        if other in steps[at]
    )
    since = counted[-17:]
    lasts = len(since) == 17 and all(is_same(steps[at][name], steps[last][name]) for at in since)
    return bool(trial.gradients) and stand_still and not lasts


def slow_unchanged(trial: Random, count: int, *, literal: bool) -> Found:
    found = set()
    for worker, steps in trial.saved.items():
        for step, weights in steps.items():
            for name in weights:
                counted = [
                    at
                    for at in steps
                    if at <= step and name in steps[at]
                    if literal
                    or (
                        trial.modes[at] is trial.modes[step]
                        and (not is_still(trial, at) or begins_phase(trial, at))
                    )
                ]
                frozen = is_frozen(trial, name, step) and not literal
                needed = count if literal or not is_half(weights[name]) else 4 * count
                if len(counted) < needed or counted[-1] != step or frozen:
                    continue
                if not literal and may_accumulate(trial, worker, name, counted, needed):
                    continue
                series = [steps[at][name] for at in counted[-needed:]]
                others = series[1:] if literal else [series[-1]] * (needed - 1)
                if len({len(one) for one in series}) == 1 and all(
                    is_close(*pair) for pair in zip(series, others, strict=False)
                ):
                    found.add((step, name, worker))
    return found


def standing_still(steps: int) -> Random:
    """Return a trial of which no weight moves although gradients add up."""
    weights = {"a.weight": (1.0, -40.0), "b.weight": (1.5,)}
    modes = dict.fromkeys(range(steps), ModeKeys.GLOBAL)
    return Random(modes, {"worker_0": dict.fromkeys(range(steps), weights)}, GRADIENTS[2])


@given(trials(), st.integers(2, 3), st.booleans())
@example(trial=standing_still(16), count=3, literal=False)
@example(trial=standing_still(18), count=3, literal=False)
def test_unchanged_tensor(trial: Random, count: int, literal: bool) -> None:
    expected = slow_unchanged(trial, count, literal=literal)
    rule = with_defaults(UnchangedTensor, num_steps=count)
    assert found_by(rule, trial, collection_names="weights", literal=literal) == expected


# -- WeightUpdateRatio ---------------------------------------------------------------------------


def number(trial: Random, step: int) -> int:
    """Return the step within its mode."""
    if trial.modes[step] is ModeKeys.GLOBAL:
        return step
    return sum(at < step and trial.modes[at] is trial.modes[step] for at in trial.modes)


def norm(numbers: list[float]) -> float:
    return math.sqrt(sum(one * one for one in numbers))


class Move(NamedTuple):
    """One comparison: of the step with the one before it; the ratio is None if it is not judged."""

    before: int
    change: float
    ratio: float | None


def moves_of(
    trial: Random, worker: str, name: str, window: int | None, *, literal: bool
) -> dict[int, Move]:
    """Return the comparisons of one weight of one worker by step."""
    series = {
        at: weights[name]
        for at, weights in trial.saved[worker].items()
        if name in weights and not is_still(trial, at)
    }
    found = {}
    for step, value in series.items():
        earlier = [at for at in series if at < step]
        if window is not None:
            earlier = [at for at in earlier if number(trial, at) >= number(trial, step) - window]
        if not earlier:
            continue
        at = earlier[-1] if window is None else earlier[0]
        if len(series[at]) != len(value):
            continue
        change = norm([a - b for a, b in zip(value, series[at], strict=True)])
        size = norm(list(series[at]))
        ratio = change / (size + 1e-9)
        judged = math.isfinite(ratio) and (size > 0 or literal)
        found[step] = Move(at, change, ratio if judged else None)
    return found


def slow_ratios(trial: Random, window: int | None, *, literal: bool) -> Found:
    moves = {
        (worker, name): moves_of(trial, worker, name, window, literal=literal)
        for worker in trial.saved
        for name in NAMES
    }
    found = set()
    for (worker, name), series in moves.items():
        for step, (_, _, ratio) in series.items():
            if ratio is None:
                continue
            so_far = {at: one for at, one in series.items() if at <= step}
            judged = [one for one in so_far.values() if one.ratio is not None]
            streak = []
            for one in reversed(judged):
                if one.ratio is None or one.ratio >= 1e-8:
                    break
                streak.append(one)
            moved = any(one.change > 0 for one in so_far.values())
            any_moved = any(
                one.change > 0
                for others in moves.values()
                for at, one in others.items()
                if at <= step
            )
            frozen = is_frozen(trial, name, step) if tells(trial, step) else any_moved
            lasts = len(streak) >= 10
            small = streak and (literal or (lasts and (ratio > 0 or moved or not frozen)))
            if ratio > 10 or small:
                found.add((step, name, worker))
    return found


@given(trials(), st.sampled_from([None, 1, 8]), st.booleans())
def test_weight_update_ratio(trial: Random, window: int | None, literal: bool) -> None:
    expected = slow_ratios(trial, window, literal=literal)
    rule = with_defaults(WeightUpdateRatio, num_steps=window)
    assert found_by(rule, trial, literal=literal) == expected
