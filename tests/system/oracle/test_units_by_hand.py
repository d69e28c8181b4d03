"""DeadRelu and SaturatedActivation against second, slow versions of them, over random trials."""

import itertools
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from judging import judge, save
from numpy.typing import NDArray

from builtin_rules import DeadRelu, SaturatedActivation
from smdebug.core.modes import ModeKeys

Saved = list[tuple[ModeKeys, NDArray[Any]]]  # mode and value of each step
Found = list[tuple[int, str]]  # step, and how many units of how many
# Names, and shapes between which a trial changes.
SHAPES: Any = (
    ("tanh_input_0 relu_output_0", [(8,), (8, 3), (45, 3), (45, 3), (130, 3), (45, 2)]),
    ("tanh_input_0 relu_output_0", [(7, 3, 2, 2), (30, 3, 3, 3), (30, 2, 3, 3), (2, 3, 9, 9)]),
    ("tanh/inputs relu/outputs", [(7, 2, 2, 3), (30, 3, 3, 3), (30, 2, 3, 2), (2, 9, 9, 3)]),
    ("tanh relu", [(40, 3, 3, 2), (40, 2, 3, 3), (40, 3, 4, 5), (40, 2, 2, 2)]),
    ("tanh_input_0 relu_output_0", [(40, 3, 2), (40, 4, 2), (40, 3, 5), (40, 6, 7), ()]),
)


def flat_units(name: str, value: NDArray[Any], axis: int | None) -> list[list[float]]:
    """Return the samples of each unit, one number at a time."""
    if value.ndim < 2:
        return [[float(one) for one in value.ravel()]]
    if value.ndim > 3:
        axis = value.ndim - 1 if "/" in name else 1
        if name in {"tanh", "relu"} and value.shape[1] == value.shape[2] != value.shape[3]:
            axis = 3
    units: dict[Any, list[float]] = {}
    for place in itertools.product(*map(range, value.shape)):
        unit = place[1:] if axis is None else place[axis]
        units.setdefault(unit, []).append(float(value[place]))
    return [units[unit] for unit in sorted(units)]


def learned(before: tuple[int, ...] | None, shape: tuple[int, ...], axis: int | None) -> int | None:
    """Return which axis of three holds the units, once the other one changed."""
    if before is not None and len(before) == len(shape) == 3:
        if before[1] == shape[1] and before[2] != shape[2]:
            return 1
        if before[2] == shape[2] and before[1] != shape[1]:
            return 2
    return axis


def share(
    units: list[list[float]], low: float, high: float, needed: int, *, literal: bool
) -> str | None:
    """Return the verdict on a layer as text, or None if it does not meet the condition."""
    lost = known = 0
    for samples in units:
        numbers = samples if literal else [one for one in samples if one == one]
        if len(numbers) >= needed:
            known += 1
            active = sum(low < one < high for one in numbers)
            lost += 100 * active / len(numbers) < 1.0
    return f"{lost} of {known}" if 100 * lost / known > 50 else None


def slow(name: str, saved: Saved, low: float, high: float, *, literal: bool) -> Found:
    """Return where the condition is met: from all pooled steps, recomputed at each step."""
    found: Found = []
    pools: dict[ModeKeys, list[tuple[list[list[float]], tuple[int, ...], int | None, int]]] = {}
    axes: dict[ModeKeys, int | None] = {}
    latest: dict[ModeKeys, tuple[int, ...]] = {}
    for step, (mode, value) in enumerate(saved):
        if literal:
            whole = value.reshape(len(value), -1) if value.ndim > 1 else value
            verdict = share(flat_units(name, whole, None), low, high, 1, literal=True)
            found += [(step, verdict)] if verdict else []
            continue
        axes[mode] = learned(latest.get(mode), value.shape, axes.get(mode))
        if value.ndim < 4:
            latest[mode] = value.shape
        axis = axes[mode] if value.ndim == 3 else None
        units = flat_units(name, value, axis)
        pool = pools.setdefault(mode, [])
        positions = value.shape[1:] if axis is None and value.ndim < 4 else ()
        layout = (value.ndim, len(units), *positions)
        if pool and (pool[0][1] != layout or pool[0][2] != axis):
            pool.clear()
        pool.append((units, layout, axis, value.shape[0] if value.ndim else 1))
        merged = [[x for one in pool for x in one[0][at]] for at in range(len(units))]
        numbers = max(sum(x == x for x in samples) for samples in merged)
        if numbers >= 100 and sum(one[3] for one in pool) >= 10:
            verdict = share(merged, low, high, 100, literal=False)
            found += [(step, verdict)] if verdict else []
            pool.clear()
    return found


@st.composite
def trials(draw: st.DrawFn, values: tuple[float, ...]) -> tuple[str, Saved]:
    """Return names of a tanh's input and a ReLU's output, and what was saved."""
    names, shapes = draw(st.sampled_from(SHAPES))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    kinds = st.sampled_from(
        [(0.0, 0.0), (0.0, 0.0), (0.01, 0.0), (0.004, 0.02), (0.5, 0.01), (0.0, 0.5)]
    )
    some = st.lists(st.sampled_from(shapes), min_size=1, max_size=2)
    few = draw(some)
    saved: Saved = []
    for _ in range(draw(st.integers(3, 8))):
        shape = draw(st.sampled_from(few))
        active, nan = draw(kinds)
        chosen = rng.choice(np.array([*values, np.nan]), shape, p=[1 - active - nan, active, nan])
        saved.append((draw(st.sampled_from([ModeKeys.TRAIN, ModeKeys.EVAL])), np.array(chosen)))
    return names, saved


def found_by(rule: Any, name: str, saved: Saved, *, literal: bool) -> Found:
    """Return where the real rule is met."""
    with tempfile.TemporaryDirectory() as folder:
        steps = {step: {name: value} for step, (_, value) in enumerate(saved)}
        save(Path(folder), steps, modes={step: mode for step, (mode, _) in enumerate(saved)})
        findings = judge(rule, Path(folder), tensor_regex="tanh, relu", literal=literal).findings
    return [(one.step, str(one.note).partition(" units")[0]) for one in findings]


@pytest.mark.parametrize("literal", [False, True])
@given(trial=trials((0.0, 0.25)))
def test_dead_relu(trial: tuple[str, Saved], literal: bool) -> None:
    name = trial[0].split()[1]
    expected = slow(name, trial[1], 0.0, float("inf"), literal=literal)
    assert found_by(DeadRelu, name, trial[1], literal=literal) == expected


@pytest.mark.parametrize("literal", [False, True])
@given(trial=trials((9.75, -9.25)))
def test_saturated_activation(trial: tuple[str, Saved], literal: bool) -> None:
    name = trial[0].split()[0]
    expected = slow(name, trial[1], -9.4999, 9.4999, literal=literal)
    assert found_by(SaturatedActivation, name, trial[1], literal=literal) == expected
