"""RepeatedBatches: batches that repeat, are sorted by class, or were evaluated and trained with."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from judging import Judged, judge, save

from builtin_rules import RepeatedBatches
from builtin_rules.tensors.data.repeated_batches import FULL, TOO_FEW
from smdebug.core.modes import ModeKeys

INPUTS, LABELS = "fingerprints/inputs", "fingerprints/labels"
EVAL = ModeKeys.EVAL


def rows(start: int, size: int = 32) -> "np.ndarray":
    return np.arange(start, start + size, dtype=np.int64)


def shuffled(data: int, batches: int, size: int = 32) -> "list[np.ndarray]":
    """Return batches of epochs over so many rows."""
    rng = np.random.default_rng(0)
    epochs = [rng.permutation(data) for _ in range(1 + batches * size // (data // size * size))]
    order = [epoch[at : at + size] for epoch in epochs for at in range(0, data - size + 1, size)]
    return order[:batches]


FRESH = [rows(100 * at) for at in range(12)]
STUCK = rows(5000)


def judged(
    root: Path, *values: Any, name: str = INPUTS, evaluated: Any = (), **params: Any
) -> Judged:
    """Judge training batches after evaluated ones."""
    steps = {at: {INPUTS: batch} for at, batch in enumerate(evaluated)}
    modes = dict.fromkeys(steps, EVAL)
    for at, batch in enumerate(values, start=len(steps)):
        steps[at], modes[at] = {name: batch}, ModeKeys.TRAIN
    return judge(RepeatedBatches, save(root, steps, modes=modes), **params)


@pytest.mark.parametrize(
    ("batches", "met"),
    [
        pytest.param([*FRESH, *[STUCK] * 8], [18, 19], id="stuck"),
        pytest.param([*FRESH, *[STUCK] * 6], [], id="five-repeats"),
        pytest.param([*FRESH, *FRESH], [], id="fixed-order-of-12-batches"),
        pytest.param(FRESH[:5] * 6, [], id="fixed-order-of-5-batches"),
        pytest.param([*FRESH, *shuffled(128, 10)], [21], id="four-batches-shuffled"),
        pytest.param([STUCK] * 20, [], id="full-batch"),
        pytest.param([rows(0), rows(50)] * 10, [], id="every-tenth-of-a-fixed-order"),
        pytest.param(shuffled(128, 60), [], id="four-batches-an-epoch"),
        pytest.param(shuffled(64, 60), [], id="two-batches-an-epoch"),
        pytest.param(shuffled(34, 60), [], id="a-batch-is-nearly-all"),
        pytest.param([*FRESH, *[np.append(STUCK[2:], at) for at in range(8)]], [18, 19], id="most"),
    ],
)
def test_batches_that_repeat_meet_it_if_the_data_have_more(
    batches: "list[np.ndarray]", met: list[int], tmp_path: Path
) -> None:
    assert judged(tmp_path, *batches).met == met


@pytest.mark.parametrize(("size", "met"), [(64, True), (63, False)])
def test_a_batch_that_repeats_from_the_start_is_compared_with_evaluations(
    size: int, met: bool, tmp_path: Path
) -> None:
    found = judged(tmp_path, *[STUCK] * 8, evaluated=[rows(0, size)])
    assert bool(found.met) is met
    assert found.skipped[1] == TOO_FEW
    assert found.skipped.get(8) == (None if met else FULL)


def test_evaluations_tell_nothing_about_several_batches_in_a_fixed_order(tmp_path: Path) -> None:
    assert not judged(tmp_path, *FRESH[:3] * 6, evaluated=[rows(0, 200)]).met


def of_class(*classes: int, size: int = 32) -> "np.ndarray":
    return np.resize(np.array(classes, np.int64) * 7919, size)


@pytest.mark.parametrize(
    ("labels", "met"),
    [
        pytest.param([of_class(at // 8) for at in range(48)], True, id="sorted"),
        pytest.param([of_class(at // 4, at // 4 + 1) for at in range(48)], True, id="two-classes"),
        pytest.param([of_class(*range(10))] * 20, False, id="shuffled"),
        pytest.param([of_class(at // 8, size=7) for at in range(48)], False, id="7-labels"),
        pytest.param([of_class(at // 30) for at in range(60)], False, id="two-classes-at-all"),
        pytest.param(
            [of_class(*[0] * 31, 1 + at % 5 if at % 4 == 0 else 0) for at in range(48)],
            False,
            id="rare-classes",
        ),
        pytest.param([rows(at) for at in range(48)], False, id="regression"),
    ],
)
def test_batches_of_few_classes_meet_it_if_shuffled_ones_had_more(
    labels: "list[np.ndarray]", met: bool, tmp_path: Path
) -> None:
    assert bool(judged(tmp_path, *labels, name=LABELS).met) is met


def twins(count: int) -> "np.ndarray":
    """Return a batch of 100 rows, of which some occur twice."""
    return np.resize(rows(2000, 100 - count), 100)


def leaks(root: Path, *evaluated: "np.ndarray") -> Judged:
    """Judge evaluations after training with rows 0 to 999."""
    steps = {0: {INPUTS: rows(0, 1000)}}
    steps |= {at: {INPUTS: batch} for at, batch in enumerate(evaluated, start=1)}
    return judge(
        RepeatedBatches,
        save(root, steps, modes={0: ModeKeys.TRAIN, **dict.fromkeys(range(1, 9), EVAL)}),
    )


@pytest.mark.parametrize(
    ("evaluated", "met"),
    [
        pytest.param([rows(1000, 300)], False, id="apart"),
        pytest.param([rows(969, 300)], True, id="31-of-300"),
        pytest.param([rows(970, 300)], False, id="30-of-300-is-equal"),
        pytest.param([rows(970, 299)], True, id="30-of-299"),
        pytest.param([rows(998, 100)], False, id="2-of-100-are-few"),
        pytest.param([rows(990, 99)], False, id="99-rows"),
        pytest.param([rows(985, 60), rows(1100, 60)], True, id="two-batches"),
        pytest.param([rows(0, 300), rows(1000, 300)], False, id="training-data-on-purpose"),
        pytest.param([rows(969, 300)[-200:]] * 5, False, id="repeated-evaluations"),
        pytest.param([twins(1), rows(995, 200)], False, id="data-with-twins"),
        pytest.param([twins(1), rows(960, 200)], True, id="more-than-twins"),
    ],
)
def test_evaluated_rows_that_were_trained_with_meet_it(
    evaluated: "list[np.ndarray]", met: bool, tmp_path: Path
) -> None:
    assert bool(leaks(tmp_path, *evaluated).met) is met


@pytest.mark.parametrize(
    ("evaluated", "met"),
    [
        pytest.param(rows(0, 200), False, id="training-data-on-purpose"),
        pytest.param(rows(1000, 200), False, id="apart"),
        pytest.param(rows(920, 200), True, id="leak"),
    ],
)
def test_rows_drawn_at_random_are_evaluated_before_all_were_trained_with(
    evaluated: "np.ndarray", met: bool, tmp_path: Path
) -> None:
    data, drawn = rows(0, 1000), np.random.default_rng(0).integers(0, 1000, (30, 32))
    steps = {at: {INPUTS: data[numbers]} for at, numbers in enumerate(drawn)}
    modes = {**dict.fromkeys(range(30), ModeKeys.TRAIN), 30: EVAL}
    trial = save(tmp_path, {**steps, 30: {INPUTS: evaluated}}, modes=modes)
    assert bool(judge(RepeatedBatches, trial).met) is met


def test_values_are_hashed_without_fingerprints(tmp_path: Path) -> None:
    batches = [np.full((32, 2), at) + np.arange(32)[:, None] * 100 for at in range(8)]
    steps = {at: {"labels": one} for at, one in enumerate([*batches, *[batches[0]] * 9])}
    assert judge(RepeatedBatches, save(tmp_path, steps)).met == []
    tokens = {
        at: {"fingerprints/inputs": one[:, 0]}
        for at, one in enumerate([*batches, *[batches[0]] * 9])
    }
    assert judge(RepeatedBatches, save(tmp_path / "marked", tokens)).met != []


def test_reinforcement_learning_repeats_batches_by_design(tmp_path: Path) -> None:
    steps = {
        at: {INPUTS: one, "policy_loss": np.ones(1)}
        for at, one in enumerate([*FRESH, *[STUCK] * 8])
    }
    assert judge(RepeatedBatches, save(tmp_path, steps)).met == []
