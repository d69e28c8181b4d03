"""SourceIndex: sources answer as the index of a trial does."""

import math
import time

import numpy as np
import pytest
from list_source import ListSource, source_index, source_trial

from rule_core.exceptions import TensorUnavailable, TensorUnavailableForStep
from rule_core.model.segments import global_step, resumed_at
from rule_core.modes import ModeKeys
from rule_core.reading.source_record import SourceRecord

ROWS = [(step, {"loss": 1 / (step + 1), "lr": 0.1}) for step in range(5)]


def test_a_source_is_a_trial() -> None:
    index = source_index(ListSource(*ROWS, (4, {"eval_loss": math.nan})))
    index.refresh()
    index.finish()
    trial = source_trial(index)
    assert trial.steps() == [0, 1, 2, 3, 4]
    assert trial.tensor_names() == ["eval_loss", "loss", "lr"]
    assert trial.tensor_names(step=4, mode=ModeKeys.EVAL) == ["eval_loss"]
    assert trial.collection("losses").tensor_names == {"loss", "eval_loss"}
    assert trial.modes() == [ModeKeys.TRAIN, ModeKeys.EVAL]
    assert trial.mode_modestep(4) == (ModeKeys.TRAIN, 4)
    assert trial.steps(ModeKeys.EVAL) == [4]
    value = trial.tensor("loss").value(1)
    assert value.shape == (1,)
    assert value.dtype == np.float64
    assert value[0] == 0.5
    assert np.isnan(trial.tensor("eval_loss").value(4, ModeKeys.EVAL)[0])
    assert trial.tensor("loss").reduction_value(3, "max") == 0.25
    with pytest.raises(TensorUnavailable):
        trial.tensor("accuracy")
    with pytest.raises(TensorUnavailableForStep):
        trial.tensor("eval_loss").value(3)


def test_the_last_step_may_still_grow() -> None:
    source = ListSource(*ROWS)
    index = source_index(source)
    assert index.refresh()
    assert index.settled_step == 3
    assert not index.settled([4])
    source.rows.append((4, {"eval_loss": 1.0}))
    assert index.refresh()
    assert index.settled_step == 3
    source.rows.append((5, {"loss": 1.0}))
    assert index.refresh()
    assert index.settled_step == 4
    assert not index.refresh()


def test_a_step_waits_for_the_sources_that_fall_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    train, evaluation = ListSource(*ROWS), ListSource((1, {"loss": 2.0}))
    index = source_index(train, evaluation, modes={1: ModeKeys.EVAL})
    index.refresh()
    assert index.settled_step == 0
    evaluation.rows.append((3, {"loss": 2.0}))
    index.refresh()
    assert index.settled_step == 2
    monkeypatch.setenv("RULE_RUNNER_SOURCE_WAIT_S", "0")
    assert index.refresh()
    assert index.settled_step == 3  # the last one of the source that leads stays open


def test_a_source_that_falls_far_behind_is_no_longer_waited_for() -> None:
    index = source_index(ListSource(*ROWS), ListSource(), window=2)
    index.refresh()
    assert index.settled_step == 1


def test_one_name_in_two_modes_has_two_values() -> None:
    train, evaluation = ListSource(*ROWS), ListSource((1, {"loss": 2.0}), (3, {"loss": 3.0}))
    index = source_index(train, evaluation, modes={1: ModeKeys.EVAL})
    index.refresh()
    index.finish()
    loss = source_trial(index).tensor("loss")
    assert loss.steps() == [0, 1, 2, 3, 4]
    assert loss.steps(ModeKeys.EVAL) == [1, 3]
    assert loss.value(3, ModeKeys.EVAL)[0] == 3.0
    assert loss.value(3, ModeKeys.TRAIN)[0] == 0.25


def test_segments_and_what_was_abandoned() -> None:
    rows = [*ROWS, (3, {"loss": 7.0}), (4, {"loss": 8.0}), (5, {"loss": 9.0}), (4, {"loss": 1.0})]
    index = source_index(ListSource(*rows))
    index.refresh()
    assert index.segments == [0, global_step(1, 3), global_step(2, 4)]
    assert [resumed_at(step, index.segments) for step in (2, 3)] == [None, global_step(1, 3)]
    assert resumed_at(global_step(1, 3), index.segments) is None
    assert resumed_at(global_step(1, 5), index.segments) == global_step(2, 4)


@pytest.mark.parametrize(
    ("says", "written", "ends"),
    [(True, 0.0, True), (False, 1.0, False), (None, 1.0, True), (None, 0.0, False)],
)
def test_a_run_ends_when_its_format_is_reported_or_nothing_is_written(
    says: bool | None, written: float, ends: bool
) -> None:
    source = ListSource(*ROWS, ended=says)
    source.written = written
    assert source_index(source).has_ended() is ends
    assert source_index(source).is_running() is (says is False)


def test_a_run_that_was_written_lately_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    source = ListSource(*ROWS)
    source.written = time.time() - 5
    assert not source_index(source).has_ended()
    monkeypatch.setenv("RULE_RUNNER_SOURCE_QUIET_S", "1")
    assert source_index(source).has_ended()


def test_a_histogram_has_its_reductions_alone() -> None:
    class Histograms(ListSource):
        def read_new(self, record: SourceRecord) -> bool:
            if record.lanes:
                return False
            record.summary("weight", 1, {("min", False): -1.0, ("mean", False): 0.5})
            record.summary("weight", 2, {("min", False): -2.0, ("mean", False): 0.25})
            return True

    index = source_index(Histograms())
    index.refresh()
    index.finish()
    weight = source_trial(index).tensor("weight")
    assert weight.steps() == [1, 2]
    assert weight.reduction_value(2, "mean")[0] == 0.25
    assert weight.reduction_value(1, "min")[0] == -1.0
    for unknown in (lambda: weight.value(1), lambda: weight.reduction_value(1, "max")):
        with pytest.raises(TensorUnavailableForStep):
            unknown()


def test_steps_of_slower_sources_are_put_in_their_places() -> None:
    train, evaluation = ListSource(*ROWS), ListSource()
    index = source_index(train, evaluation, modes={1: ModeKeys.EVAL})
    steps = index.steps
    index.refresh()
    evaluation.rows += [(2, {"loss": 1.0}), (7, {"loss": 1.0})]
    train.rows.append((6, {"loss": 1.0}))
    index.refresh()
    assert [*steps] == [0, 1, 2, 3, 4, 6, 7]
    assert steps is index.steps  # others hold it


def test_only_the_steps_of_a_range_are_known() -> None:
    source = ListSource(*ROWS, (2, {"loss": 1.0}))
    index = source_index(source, range_steps=(1, 3))
    index.refresh()
    assert [*index.steps] == [1, 2, global_step(1, 2)]


def test_a_run_that_pauses_for_long_is_waited_for_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RULE_RUNNER_SOURCE_QUIET_S", "1")
    source = ListSource(*ROWS)
    index = source_index(source)
    source.written = time.time() - 600
    assert index.has_ended()
    source.written += 300
    assert not index.has_ended()  # seen to pause for 300 seconds, now silent for as long
    source.written -= 700
    assert index.has_ended()


def test_a_step_that_was_queried_gets_what_is_read_of_it_later() -> None:
    train, evaluation = ListSource((5, {"loss": 1.0})), ListSource((3, {"loss": 1.0}))
    index = source_index(train, evaluation, modes={1: ModeKeys.EVAL})
    index.refresh()
    trial = source_trial(index)
    trial.dynamic_refresh = False
    assert trial.tensor_names(step=5) == ["loss"]
    train.rows.append((5, {"lr": 0.1}))
    assert index.refresh()
    assert trial.tensor_names(step=5) == trial.tensor_names() == ["loss", "lr"]
    train.rows.append((10, {"loss": 1.0}))
    evaluation.rows += [(5, {"loss": 2.0}), (8, {"loss": 2.0})]
    index.refresh()
    assert trial.tensor_names(step=5, mode=ModeKeys.EVAL) == ["loss"]
    assert trial.tensor("loss").value(5, ModeKeys.EVAL)[0] == 2.0


class _Deciding(ListSource):
    """A source that says how it counts steps."""

    def decisions(self) -> list[str]:
        """Return a sentence; see `DecidingSource`."""
        return ["steps: epoch x 2 iterations, from 'epoch' and 'iter'"]


def test_the_decisions_of_a_source_precede_those_about_its_names() -> None:
    index = source_index(_Deciding(*ROWS), ListSource((0, {"val_acc": 1.0})))
    index.refresh()
    assert [*index.decisions()] == [
        [
            "steps: epoch x 2 iterations, from 'epoch' and 'iter'",
            "train: 'loss', 'lr', by their names",
            "losses: 'loss', by its name",
            "learning_rates: 'lr', by its name",
        ],
        ["eval: 'val_acc', by its name", "metrics: 'val_acc', by its name"],
    ]
