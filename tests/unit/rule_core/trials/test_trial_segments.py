"""Trials of resumed runs: what a view shows of segments, and of parts of one worker."""

import math

import numpy as np
import pytest
from list_source import ListSource, source_index, source_trial

from rule_core.exceptions import (
    InvalidWorker,
    StepUnavailable,
    TensorUnavailable,
    TensorUnavailableForStep,
)
from rule_core.model.array_difference import ChangeNorms
from rule_core.model.sampled_times import SampledTimes
from rule_core.model.segments import global_step
from rule_core.modes import ModeKeys
from rule_core.trials.snapshot_view import snapshot
from rule_core.trials.tensor import StepState
from rule_core.trials.trial import Trial

TRAIN, EVAL = ModeKeys.TRAIN, ModeKeys.EVAL
FIRST = [(step, {"loss": 10.0 - step, "old": 1.0}) for step in range(5)]
SECOND = [(step, {"loss": 20.0 - step, "new": 1.0}) for step in range(2, 7)]
AGAIN = [global_step(1, step) for step in range(2, 7)]


def resumed(*sources: ListSource, ended: bool = True) -> Trial:
    index = source_index(*(sources or [ListSource(*FIRST, *SECOND)]), modes={1: EVAL})
    index.refresh()
    if ended:
        index.finish()
    return source_trial(index)


def test_a_rule_sees_the_steps_of_its_segment() -> None:
    trial = resumed()
    assert trial.steps() == [0, 1, 2, 3, 4, *AGAIN]
    assert [trial.segment(step) for step in (4, AGAIN[0])] == [0, 1]
    with snapshot(trial, 3):
        assert trial.steps() == [0, 1, 2, 3]
        assert trial.tensor("loss").steps() == [0, 1, 2, 3]
    with snapshot(trial, AGAIN[2]):
        assert trial.steps() == trial.tensor("loss").steps() == AGAIN[:3]
        assert [*trial.any_steps_back(AGAIN[1])] == [AGAIN[1], AGAIN[0]]
        assert [*trial.any_steps_back(3)] == []
        assert trial.steps(TRAIN) == trial.tensor("loss").steps(TRAIN) == [2, 3, 4]
        assert trial.tensor("loss").prev_steps(AGAIN[2]) == AGAIN[:3]
        assert trial.tensor("loss").prev_steps(4, 2, TRAIN) == [3, 4]
        assert trial.tensor("loss").first_step == AGAIN[0]
        assert trial.modes() == [TRAIN]
        assert trial.mode_modestep(3) == (None, None)
        assert trial.wall_times(3) == {}
        assert trial.saved_by(3, ["loss"]) == {}
        assert trial.tensor_names(step=3) == []
        assert trial.has_passed_step(3) is StepState.UNAVAILABLE
        with pytest.raises(StepUnavailable):
            trial.tensor("loss").value(3)


def test_names_of_other_segments_are_hidden() -> None:
    trial = resumed()
    assert trial.tensor_names() == ["loss", "new", "old"]
    with snapshot(trial, AGAIN[0]):
        assert trial.tensor_names() == ["loss", "new"]
        assert not trial.has_tensor("old")
        with pytest.raises(TensorUnavailable):
            trial.tensor("old")
    with snapshot(trial, 4):
        assert trial.tensor_names() == ["loss", "old"]
        assert not trial.has_tensor("new")


def test_mode_steps_are_those_of_the_segment() -> None:
    trial = resumed()
    assert trial.global_step(TRAIN, 3) == AGAIN[1]  # the last segment that has it
    assert trial.global_step(TRAIN, 1) == 1
    assert trial.mode_modestep(AGAIN[1]) == (TRAIN, 3)
    with snapshot(trial, 4):
        assert trial.global_step(TRAIN, 3) == 3
        assert trial.tensor("loss").value(3, TRAIN)[0] == 7.0
    with snapshot(trial, AGAIN[2]):
        assert trial.global_step(TRAIN, 3) == AGAIN[1]
        assert trial.tensor("loss").value(3, TRAIN)[0] == 17.0
        assert trial.global_step(TRAIN, 1) is None
        assert trial.global_step(TRAIN, 5) is None
        with pytest.raises(StepUnavailable):
            trial.tensor("loss").value(1, TRAIN)


def test_without_a_horizon_the_steps_of_a_mode_are_distinct() -> None:
    trial = resumed()
    assert trial.steps(TRAIN) == trial.tensor("loss").steps(TRAIN) == [0, 1, 2, 3, 4, 5, 6]
    assert trial.tensor("loss").prev_steps(3, mode=TRAIN) == [0, 1, 2, 3]
    assert trial.tensor("loss").value(3, TRAIN)[0] == 17.0


def test_a_mode_that_another_segment_began_is_hidden() -> None:
    trial = resumed(ListSource((0, {"loss": 1.0, "eval_loss": 1.0}), (0, {"loss": 2.0})))
    assert trial.modes() == [TRAIN, EVAL]
    with snapshot(trial, global_step(1, 0)):
        assert trial.modes() == [TRAIN]
        assert trial.steps(EVAL) == []
        assert trial.tensor_names(mode=EVAL) == []


def test_two_parts_are_one_worker() -> None:
    trial = resumed(
        ListSource((1, {"loss": 1.0, "lr": 0.1})), ListSource((1, {"loss": 2.0, "accuracy": 0.5}))
    )
    tensor = trial.tensor("loss")
    assert trial.workers() == tensor.workers(1) == ["worker_0"]
    pairs = [("loss", "worker_0"), ("loss", "worker_0@1.EVAL"), ("accuracy", "worker_0")]
    assert [*trial.saved_by(1, ["loss", "accuracy"])] == pairs
    assert [trial.tensor(name).value(1, worker=worker)[0] for name, worker in pairs] == [1, 2, 0.5]
    assert trial.wall_times(1) == {"worker_0": 1001.0}
    assert trial.wall_time(1) == trial.wall_time(1, "worker_0") == 1001.0
    assert tensor.value(1)[0] == tensor.value(1, worker="worker_0")[0] == 1.0
    assert tensor.value(1, EVAL)[0] == tensor.value(1, EVAL, "worker_0")[0] == 2.0
    assert trial.tensor("accuracy").value(1, worker="worker_0")[0] == 0.5
    with pytest.raises(InvalidWorker):
        tensor.value(1, worker="worker_1")
    with pytest.raises(TensorUnavailableForStep):
        trial.tensor("accuracy").value(1, TRAIN)


def test_a_value_is_compared_with_one_of_another_part() -> None:
    trial = resumed(
        ListSource((1, {"loss": 1.0}), (2, {"lr": 0.1})), ListSource((2, {"loss": 4.0}))
    )
    change = trial.tensor("loss").measure(2, ChangeNorms(), before=1)
    assert change.change == 3.0


def test_the_time_of_a_row_counts_as_read() -> None:
    trial = resumed(ListSource((0, {"loss": 1.0})))
    assert trial.wall_times(0) == {"worker_0": 1000.0}
    assert trial.reads == 1


def test_the_time_of_a_row_without_a_time_is_unknown() -> None:
    trial = resumed(ListSource((0, {"loss": 1.0})))
    lane = next(iter(trial.index._records[0].lanes.values()))  # type: ignore[attr-defined]
    lane.times = SampledTimes()
    lane.times.append(math.nan)
    assert trial.wall_times(0) == {}
    assert trial.reads == 0
    assert np.isfinite(trial.tensor("loss").value(0)[0])
