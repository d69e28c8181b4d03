"""SourceRecord: rows become columns, modes and segments."""

import math
from array import array
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rule_core.model.segments import MAX_SEGMENTS, global_step
from rule_core.modes import ModeKeys
from rule_core.reading.source_record import SourceRecord, TensorName, is_step, quoted


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
    assert [mode for _, mode in record.lanes] == [ModeKeys.TRAIN, ModeKeys.EVAL]
    assert [*record.lanes[0, ModeKeys.TRAIN].steps] == [10, 20]
    assert [*record.lanes[0, ModeKeys.EVAL].steps] == [10]
    assert math.isnan(column(record, "eval_loss")[10])
    assert record.members == {"losses": {"loss", "eval_loss"}, "scalars": {"lr"}}
    assert record.last == 20


def test_each_stream_of_a_worker_has_every_name(record: SourceRecord) -> None:
    record.row(1, {"loss": 1.0})
    record.turn_to(1)
    record.row(1, {"loss": 2.0})
    assert (column(record, "loss"), record.segment) == ({1: 2.0}, 0)
    record.turn_to(0)
    record.row(2, {"loss": 3.0})
    assert column(record, "loss") == {1: 1.0, 2: 3.0}


def test_the_mode_of_a_source_is_that_of_names_without_one() -> None:
    def says_mode(text: str) -> TensorName:
        return name(text)._replace(says_mode="_" in text)

    record = SourceRecord("log", "", says_mode, print, ModeKeys.EVAL)
    record.row(1, {"loss": 1.0, "train_loss": 2.0})
    modes = {text: column.lane.mode for text, column in record.columns.items()}
    assert modes == {"loss": ModeKeys.EVAL, "train_loss": ModeKeys.TRAIN}
    assert [*record.decisions()][:2] == [
        "eval: 'loss', by the file",
        "train: 'train_loss', by its name",
    ]


def test_lines_of_one_step_without_a_common_name_are_one_row(record: SourceRecord) -> None:
    record.row(5, {"loss": 1.0})
    record.row(5, {"lr": 0.1})
    assert record.segment == 0
    assert [*record.lanes[0, ModeKeys.TRAIN].steps] == [5]


@pytest.mark.parametrize("step", [10, 7])
def test_a_row_whose_step_does_not_grow_begins_a_segment(record: SourceRecord, step: int) -> None:
    record.row(10, {"loss": 1.0})
    record.row(step, {"loss": 2.0})
    record.row(11, {"loss": 3.0, "eval_loss": 4.0})
    assert record.segment == 1
    assert column(record, "loss") == {10: 1.0, global_step(1, step): 2.0, global_step(1, 11): 3.0}
    assert column(record, "eval_loss") == {global_step(1, 11): 4.0}


def test_a_number_that_is_repeated_begins_no_segment(record: SourceRecord) -> None:
    record.row(10, {"loss": 1.0, "epoch": 0.5, "nan": math.nan})
    record.row(10, {"eval_loss": 2.0, "epoch": 0.5, "nan": math.nan})
    record.point("epoch", 10, 0.5)
    assert record.segment == 0
    assert column(record, "epoch") == {10: 0.5}
    assert column(record, "eval_loss") == {10: 2.0}
    record.point("epoch", 10, 0.6)
    assert record.segment == 1


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
    assert [*record.lanes[0, ModeKeys.TRAIN].steps] == [100, 200, 201]


@pytest.mark.parametrize(("is_ordered", "steps"), [(True, [100, 200, 201]), (False, [0, 1, 2])])
def test_an_evaluation_may_count_epochs_beside_batches(
    record: SourceRecord, is_ordered: bool, steps: list[int]
) -> None:
    record.is_ordered = is_ordered
    record.point("loss", 100, 1.0)
    record.point("eval_loss", 0, 2.0)
    record.point("loss", 200, 3.0)
    record.point("eval_loss", 1, 4.0)
    record.point("eval_loss", 2, 5.0)  # without a batch between
    assert [*column(record, "eval_loss")] == steps
    assert record.segment == 0


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
    for loss in range(MAX_SEGMENTS + 5):
        record.row(0, {"loss": float(loss)})
    assert record.segment == MAX_SEGMENTS - 1
    assert len(record.columns["loss"].steps) == MAX_SEGMENTS
    assert {key for key, _ in problems} == {"log"}
    assert "go back more than" in problems[0][1]


def test_the_mode_of_a_source_stands_above_that_of_names() -> None:
    record = SourceRecord("log", "1.", name, lambda *_: None, ModeKeys.EVAL)
    record.row(1, {"loss": 1.0})
    assert [lane.part for lane in record.lanes.values()] == ["worker_0@1.EVAL"]


def test_a_name_that_changes_its_step_counter_has_each_step_once(record: SourceRecord) -> None:
    record.point("loss", 100, 1.0)
    record.point("accuracy", 1, 2.0)
    record.point("accuracy", 100, 3.0)
    assert column(record, "accuracy") == {100: 2.0, 101: 3.0}


def test_a_name_is_a_number_or_a_histogram(
    record: SourceRecord, problems: list[tuple[str, str]]
) -> None:
    record.summary("weights", 1, {("min", False): -1.0, ("max", False): 2.0})
    record.point("weights", 2, 1.0)
    record.point("loss", 2, 1.0)
    record.summary("loss", 3, {("min", False): -1.0, ("max", False): 2.0})
    assert [*record.columns["weights"].steps] == [1]
    assert column(record, "loss") == {2: 1.0}
    assert [text for _, text in problems] == [
        "'weights' names numbers and histograms; only histograms are read.",
        "'loss' names numbers and histograms; only numbers are read.",
    ]


def test_names_of_one_stream_do_not_wait_for_another(record: SourceRecord) -> None:
    record.point("loss", 1000, 1.0)
    record.stream = 1
    record.point("other", 10, 1.0)
    record.point("eval_other", 10, 1.0)
    record.point("loss", 1001, 2.0)
    assert column(record, "other") == {10: 1.0}
    assert column(record, "loss") == {1000: 1.0, 1001: 2.0}
    assert record.lasts == [1001, 10]
    assert [lane.part for lane in record.lanes.values()] == [
        "worker_0@TRAIN",
        "worker_0@s1.TRAIN",
        "worker_0@s1.EVAL",
    ]


Point = tuple[int, int, float]
NAMES = ["loss", "lr", "eval_loss", "weights"]


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(-1, 3), st.floats()), max_size=60),
    st.lists(st.integers(1, 60), max_size=3),
    st.booleans(),
)
def test_many_points_at_once_are_as_one_after_the_other(
    points: list[Point], cuts: list[int], is_shared: bool
) -> None:
    step = 0
    rows = []
    for place, growth, value in points:
        step = max(step + growth, 0) if growth >= 0 else max(step - 5, 0)
        rows.append((place, step, value, step / 2))
    single, many = (
        SourceRecord(
            "log", "", name, lambda *_: None, None, steps=array("q") if is_shared else None
        )
        for _ in range(2)
    )
    for record in (single, many):
        record.summary("weights", 0, {("min", False): -1.0, ("max", False): 2.0})
    for place, step, value, time in rows:
        single.point(NAMES[place], step, value, time)
    bounds = sorted({0, len(rows), *(cut for cut in cuts if cut < len(rows))})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rule_core.reading.source_record.FEW_POINTS", 1)
        for start, end in pairwise(bounds):
            which, steps, values, times = zip(*rows[start:end], strict=True)
            many.points(NAMES, np.array(which), np.array(steps), np.array(values), np.array(times))
    assert contents(many) == contents(single)


def contents(record: SourceRecord) -> object:
    return (
        {
            name: (repr([*its.values]), [*its.steps])
            for name, its in record.columns.items()
            if its.values
        },
        {
            lane.part: ([*lane.steps], [lane.times[place] for place in range(len(lane.steps))])
            for lane in record.lanes.values()
            if lane.steps
        },
        record.segment,
    )


def test_the_only_lane_shares_its_steps() -> None:
    shared = array("q")
    record = SourceRecord("log", "", name, lambda *_: None, steps=shared)
    record.point("loss", 1, 1.0)
    record.point("lr", 1, 0.1)
    record.point("loss", 2, 1.0)
    assert record.lanes[0, ModeKeys.TRAIN].steps is shared
    assert record.columns["loss"].steps is shared
    assert [*record.columns["lr"].steps] == [1]
    record.point("lr", 3, 0.1)  # a step that "loss" lacks
    assert [*record.columns["loss"].steps] == [1, 2]
    record.point("eval_loss", 3, 1.0)
    assert record.lanes[0, ModeKeys.TRAIN].steps is not shared
    assert [*record.lanes[0, ModeKeys.TRAIN].steps] == [1, 2, 3]


@pytest.mark.parametrize("number", [-1, 0.5, math.nan, math.inf, 2**48])
def test_some_numbers_are_no_steps(number: float) -> None:
    assert not is_step(number)


MAPPED = {"my_loss": "loss", "other": "loss", "eval_mine": "loss"}


def mapped(text: str) -> TensorName:
    return name(text)._replace(name=MAPPED.get(text, ""), collection="losses")


@pytest.mark.parametrize("names", [("loss", "my_loss"), ("my_loss", "loss")])
def test_a_mapped_series_takes_the_name_of_another(
    names: tuple[str, str], problems: list[tuple[str, str]]
) -> None:
    record = SourceRecord("log", "", mapped, lambda *problem: problems.append(problem))
    for step in (1, 2):
        record.row(step, {name: float(name == "my_loss") for name in names})
    record.row(2, {"eval_mine": 3.0})
    columns = record.lanes[0, ModeKeys.TRAIN].columns
    assert {name: [*column.values] for name, column in columns.items()} == {
        "loss": [1.0, 1.0],
        "loss (as written)": [0.0, 0.0],
    }
    assert [*record.lanes[0, ModeKeys.EVAL].columns] == ["loss"]
    assert record.members == {"losses": {"loss"}, "scalars": {"loss (as written)"}}
    assert not problems
    decisions = [*record.decisions()]
    assert "'my_loss' is read as 'loss', by --map" in decisions
    assert "'loss' is read as 'loss (as written)', by --map" in decisions
    assert "scalars: 'loss (as written)', by --map" in decisions


def test_of_two_series_with_one_name_the_second_keeps_its_own(
    problems: list[tuple[str, str]],
) -> None:
    record = SourceRecord("log", "", mapped, lambda *problem: problems.append(problem))
    record.row(1, {"my_loss": 1.0, "other": 2.0})
    assert [*record.lanes[0, ModeKeys.TRAIN].columns] == ["loss", "other"]
    assert problems == [("log", "'other' is not called 'loss': another series is.")]


def test_an_option_decides_the_mode_before_the_file() -> None:
    def decided(text: str) -> TensorName:
        return name(text)._replace(mode_by="--mode" if text == "lr" else "")

    record = SourceRecord("log", "", decided, print, ModeKeys.EVAL)
    record.row(1, {"lr": 0.1, "loss": 1.0, "other_loss": 1.0})
    assert [*record.decisions()] == [
        "train: 'lr', by --mode",
        "eval: 'loss', 'other_loss', by the file",
        "scalars: 'lr', by its name",
        "losses: 'loss', 'other_loss', by their names",
    ]


def test_long_lists_of_names_are_cut() -> None:
    assert quoted([f"n{number}" for number in range(12)]).endswith("'n8', 'n9' and 2 more")
    assert len(quoted(["n" * 1000])) == 100
