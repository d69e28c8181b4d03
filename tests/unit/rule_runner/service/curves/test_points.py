import math

import pytest

from rule_runner.service.curves.points import MARKS_KEPT, POINTS_KEPT, Mark, Points, of_even_groups


def test_a_long_curve_keeps_its_extremes_in_bounded_memory() -> None:
    points = Points()
    for step in range(20 * POINTS_KEPT):
        points.add(step, 7.0 if step == 12_345 else -3.0 if step == 60_001 else step % 5 / 10)
    assert len(points.steps) == len(points.values) <= POINTS_KEPT
    assert points.steps == sorted(points.steps)
    assert points.values[points.steps.index(12_345)] == 7.0
    assert points.values[points.steps.index(60_001)] == -3.0
    assert (points.steps[0], points.steps[-1]) == (0, 20 * POINTS_KEPT - 1)
    assert points.thinned == 20 * POINTS_KEPT - len(points.steps)


@pytest.mark.parametrize("count", [2, 10, 99])
def test_an_answer_has_the_extremes_in_few_points(count: int) -> None:
    points = Points()
    for step in range(1000):
        points.add(step, 50.0 if step == 501 else -50.0 if step == 777 else 0.0)
    steps, values = points.after(None, count)
    assert {501, 777, 0, 999} <= set(steps)
    assert len(steps) == len(values) <= count + 2


def test_only_what_is_new_is_returned_as_it_is() -> None:
    points = Points()
    for step in range(0, 100, 10):
        points.add(step, float(step))
    assert points.after(70, 50) == ([80, 90], [80.0, 90.0])
    assert points.after(90, 50) == ([], [])


def test_values_that_are_not_finite_are_gaps_with_marks() -> None:
    points = Points()
    for step, value in enumerate([1.0, math.nan, math.inf, -math.inf, 2.0]):
        points.add(step, value)
    assert points.values == [1.0, None, None, None, 2.0]
    assert points.marks == [Mark(1, "NaN"), Mark(2, "inf"), Mark(3, "-inf")]


def test_marks_are_bounded() -> None:
    points = Points()
    for step in range(2 * MARKS_KEPT):
        points.add(step, math.nan)
    assert len(points.marks) == MARKS_KEPT


def test_a_resumed_training_replaces_what_it_repeats() -> None:
    points = Points()
    for step, value in [(0, 1.0), (10, 2.0), (20, math.nan), (30, 4.0), (10, 5.0), (20, 6.0)]:
        points.add(step, value)
    assert (points.steps, points.values) == ([0, 10, 20], [1.0, 5.0, 6.0])
    assert points.marks == []


def test_a_group_without_numbers_stays_a_gap() -> None:
    values = [1.0, 2.0, None, None, 3.0, 4.0]
    assert of_even_groups(range(6), values, 3) == [0, 1, 2, 4, 5]


def test_old_and_new_parts_of_a_curve_keep_equally_many_points() -> None:
    points = Points(64)
    for step in range(10_000):
        points.add(step, step % 7)
    thirds = [
        sum(low <= step < low + 2500 for step in points.steps) for low in range(0, 7500, 2500)
    ]
    assert max(thirds) <= 2 * min(thirds)
