"""SourceRecord: rows become columns, modes and segments."""

import math

import pytest

from rule_core.model.segments import MAX_SEGMENTS, global_step
from rule_core.modes import ModeKeys
from rule_core.reading.source_record import SourceRecord, TensorName, is_step


def name(text: str) -> TensorName:
    mode = ModeKeys.EVAL if text.startswith("eval_") else ModeKeys.TRAIN
    return TensorName(mode, "losses" if "loss" in text else "")


@pytest.fixture
def problems() -> list[tuple[str, str]]:
    return []


@pytest.fixture
def record(problems: list[tuple[str, str]]) -> SourceRecord:
    return SourceRecord("log", "", name, lambda key, text: problems.append((key, text)))


def column(record: SourceRecord, name: str) -> dict[int, float]:
    return dict(zip(record.columns[name].steps, record.columns[name].values, strict=True))


def test_the_columns_of_a_row_have_the_modes_of_their_names(record: SourceRecord) -> None:
    record.row(10, {"loss": 0.5, "lr": 0.1})
    record.row(10, {"eval_loss": math.nan})
    record.row(20, {"loss": math.inf})
    assert column(record, "loss") == {10: 0.5, 20: math.inf}
    assert list(record.lanes) == [ModeKeys.TRAIN, ModeKeys.EVAL]
    assert [*record.lanes[ModeKeys.TRAIN].steps] == [10, 20]
    assert [*record.lanes[ModeKeys.EVAL].steps] == [10]
    assert math.isnan(column(record, "eval_loss")[10])
    assert record.members == {"losses": {"loss", "eval_loss"}}
    assert record.last == 20


def test_lines_of_one_step_without_a_common_name_are_one_row(record: SourceRecord) -> None:
    record.row(5, {"loss": 1.0})
    record.row(5, {"lr": 0.1})
    assert record.segment == 0
    assert [*record.lanes[ModeKeys.TRAIN].steps] == [5]


@pytest.mark.parametrize("step", [10, 7])
def test_a_row_whose_step_does_not_grow_begins_a_segment(record: SourceRecord, step: int) -> None:
    record.row(10, {"loss": 1.0})
    record.row(step, {"loss": 2.0})
    record.row(11, {"loss": 3.0, "eval_loss": 4.0})
    assert record.segment == 1
    assert column(record, "loss") == {10: 1.0, global_step(1, step): 2.0, global_step(1, 11): 3.0}
    assert column(record, "eval_loss") == {global_step(1, 11): 4.0}


def test_a_row_with_new_names_may_not_go_back_either(record: SourceRecord) -> None:
    record.row(10, {"loss": 1.0})
    record.row(9, {"lr": 0.1})
    assert record.segment == 1


def test_an_evaluation_may_lag_behind_the_training(record: SourceRecord) -> None:
    record.row(10, {"loss": 1.0})
    record.row(9, {"eval_loss": 1.0})
    assert record.segment == 0
    assert record.last == 10


def test_a_point_that_counts_epochs_belongs_to_the_latest_step(record: SourceRecord) -> None:
    record.point("loss", 100, 1.0)
    record.point("epoch_loss", 0, 2.0)
    record.point("loss", 200, 3.0)
    record.point("epoch_loss", 1, 4.0)
    record.point("epoch_loss", 2, 5.0)  # without a batch between
    assert record.segment == 0
    assert column(record, "epoch_loss") == {100: 2.0, 200: 4.0, 201: 5.0}
    assert [*record.lanes[ModeKeys.TRAIN].steps] == [100, 200, 201]


def test_a_point_whose_own_step_does_not_grow_begins_a_segment(record: SourceRecord) -> None:
    record.point("loss", 100, 1.0)
    record.point("loss", 50, 2.0)
    assert column(record, "loss") == {100: 1.0, global_step(1, 50): 2.0}


def test_a_summary_has_its_reductions_alone(record: SourceRecord) -> None:
    record.summary("weights", 1, {("min", False): -1.0, ("max", False): 2.0})
    record.summary("weights", 2, {("max", False): 3.0})
    weights = record.columns["weights"]
    assert weights.reductions == (("min", False), ("max", False))
    assert [*weights.steps] == [1, 2]
    assert [*weights.values][:2] == [-1.0, 2.0]
    assert math.isnan(weights.values[2])
    assert weights.values[3] == 3.0


def test_a_segment_without_steps_is_not_followed_by_another(record: SourceRecord) -> None:
    assert record.begin_segment()
    assert record.segment == 0
    record.row(1, {"loss": 1.0})
    assert record.begin_segment()
    assert record.begin_segment()
    assert record.segment == 1


def test_too_many_segments_are_reported_and_skipped(
    record: SourceRecord, problems: list[tuple[str, str]]
) -> None:
    for _ in range(MAX_SEGMENTS + 5):
        record.row(0, {"loss": 1.0})
    assert record.segment == MAX_SEGMENTS - 1
    assert len(record.columns["loss"].steps) == MAX_SEGMENTS
    assert {key for key, _ in problems} == {"log"}
    assert "go back more than" in problems[0][1]


def test_the_mode_of_a_source_stands_above_that_of_names() -> None:
    record = SourceRecord("log", "1.", name, lambda *_: None, ModeKeys.EVAL)
    record.row(1, {"loss": 1.0})
    assert [lane.part for lane in record.lanes.values()] == ["worker_0@1.EVAL"]


@pytest.mark.parametrize("number", [-1, 0.5, math.nan, math.inf, 2**48])
def test_some_numbers_are_no_steps(number: float) -> None:
    assert not is_step(number)
