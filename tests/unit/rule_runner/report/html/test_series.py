"""What a chart draws: series and findings as lines, thinned without losing what stands out."""

import math

import pytest
import reports

from rule_core.model.segments import global_step
from rule_runner.report.html.series import (
    NAME_LENGTH,
    Point,
    display_name,
    drawings,
    reported,
)
from rule_runner.results.measurements import QuantityRecord
from rule_runner.results.schema import Evidence


def test_series_become_lines() -> None:
    record = reports.series({0: 0.5, 10: "NaN", 20: "-Infinity"}, [1e-7, "Infinity", 1], met=[20])
    (drawing,) = drawings([reports.MEAN], [record])
    (line,) = drawing.lines
    assert (line.name, drawing.limit) == ("gradient/fc", None)
    assert line.points[0] == Point(0, 0.5, 1e-7, met=False)
    assert math.isnan(line.points[1].measured)
    assert line.points[2] == Point(20, -math.inf, 1, met=True)
    assert line.met == [line.points[2]]


def test_one_limit_stands_for_all_steps() -> None:
    every, one = (
        reports.series({0: 1.0, 1: 2.0, 2: 3.0}, limit) for limit in ([1.5, 1.5, 1.5], [1.5])
    )
    assert drawings([reports.MEAN], [one]) == drawings([reports.MEAN], [every])


def test_a_quantity_without_points_is_not_drawn() -> None:
    other = QuantityRecord("other", "other")
    assert drawings([other, reports.MEAN], [reports.series({})]) == []


@pytest.mark.parametrize(
    ("workers", "names"),
    [
        (["worker_0"], ["gradient/fc"]),
        (["worker_0", "worker_1"], ["gradient/fc of worker_0", "gradient/fc of worker_1"]),
    ],
)
def test_workers_are_named_where_there_are_several(workers: list[str], names: list[str]) -> None:
    records = [reports.series({0: 1}, worker=worker) for worker in workers]
    (drawing,) = drawings([reports.MEAN], records)
    assert [line.name for line in drawing.lines] == names


def test_a_measurement_of_no_tensor_has_a_name_too() -> None:
    (drawing,) = drawings([reports.MEAN], [reports.series({0: 1}, tensor=None)])
    assert drawing.lines[0].name == "all tensors"


def test_one_limit_is_the_drawings() -> None:
    (drawing,) = drawings([reports.MEAN], [reports.series({0: 1, 1: 2}, 0.5)])
    assert drawing.limit == 0.5


def test_the_worst_point_is_on_the_limits_wrong_side() -> None:
    (drawing,) = drawings([reports.MEAN], [reports.series({0: 5, 1: 0.25, 2: 4}, 1)])
    assert drawing.lines[0].worst("below").step == 1
    assert drawing.lines[0].worst("above").step == 0


def test_rules_that_only_report_have_a_drawing() -> None:
    found = [
        Evidence(0, "a", None, 1.0, 0.5, None),
        Evidence(1, "b", None, 2, 0.5, None),
        Evidence(2, "a", None, 3, 0.5, None),
        Evidence(3, "a", None, "text", 0.5, None),
        Evidence(4, None, None, None, None, "a note"),
    ]
    (drawing,) = reported(found)
    assert [(line.name, [one.step for one in line.met]) for line in drawing.lines] == [
        ("a", [0, 2]),
        ("b", [1]),
    ]


def test_what_was_reported_without_numbers_is_not_drawn() -> None:
    assert reported([Evidence(0, "a", None, None, None, None)]) == []


def test_names_are_harmless_and_short() -> None:
    assert display_name("a\u202eb\x1b") == "a\\u202eb\\x1b"
    assert len(display_name("x" * 1000)) == NAME_LENGTH


def test_the_segments_of_a_run_are_one_line() -> None:
    records = [reports.series({0: 5, 10: 4, 20: 9}), reports.series({10: 3, 20: 2}, segment=1)]
    (drawing,) = drawings([reports.MEAN], records, [0, global_step(1, 10)])
    (line,) = drawing.lines
    assert [(point.label, point.is_repeated) for point in line.points] == [
        ("0", False),
        ("10", True),
        ("20", True),
        ("10 of segment 2", False),
        ("20 of segment 2", False),
    ]
