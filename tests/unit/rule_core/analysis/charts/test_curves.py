"""Curves: joined by time, whatever the number and the place of their samples."""

import numpy as np
import pytest

from rule_core.analysis.charts.curves import Curve, mean_of, moments, nearest_of

S = 1_000_000


def curve(times: list[float], values: list[float]) -> Curve:
    return Curve((np.array(times) * S).astype(np.int64), np.array(values, dtype=float))


@pytest.mark.parametrize(
    ("curves", "expected"),
    [
        pytest.param([([0, 1], [1, 3])], [(0, 1), (1, 3)], id="one"),
        pytest.param([([0, 1], [0, 10]), ([0, 1], [20, 30])], [(0, 10), (1, 20)], id="alike"),
        pytest.param(
            [([0, 1, 2], [0, 0, 0]), ([1, 2], [10, 10])],
            [(0, 0), (1, 5), (2, 5)],
            id="one-begins-later",
        ),
        pytest.param(
            [([0, 1, 2], [0, 0, 0]), ([0.02, 0.99], [10, 30])],
            [(0, 5), (1, 15), (2, 0)],
            id="not-quite-on-time-and-ends-earlier",
        ),
        pytest.param(
            [([0, 1, 5, 6], [0, 0, 0, 0]), ([3], [8])],
            [(0, 0), (1, 0), (3, 8), (5, 0), (6, 0)],
            id="alone-in-a-gap",
        ),
        pytest.param(
            [([0, 1, 2, 3], [0, 0, 0, 0]), ([0, 2], [10, 20])],
            [(0, 5), (1, 5), (2, 10), (3, 10)],
            id="half-as-often",
        ),
        pytest.param([([0], [1]), ([0.1], [3])], [(0, 2)], id="one-sample-each"),
        pytest.param([([], []), ([0], [3])], [(0, 3)], id="one-is-empty"),
        pytest.param([([], []), ([], [])], [], id="all-are-empty"),
    ],
)
def test_the_mean_is_taken_at_the_same_time(
    curves: list[tuple[list[float], list[float]]], expected: list[tuple[float, float]]
) -> None:
    found = mean_of([curve(*one) for one in curves])
    assert [*zip((found.time_us / S).tolist(), found.value.tolist(), strict=True)] == expected


def test_moments_of_no_curves() -> None:
    times, near_us = moments([])
    assert (times.tolist(), near_us) == ([], 0)


def test_the_nearest_time() -> None:
    times = np.array([10, 20, 40])
    wanted = np.array([-5, 10, 15, 16, 29, 31, 99])
    assert nearest_of(times, wanted).tolist() == [0, 0, 0, 1, 1, 2, 2]
    assert nearest_of(times[:1], wanted[:3]).tolist() == [0, 0, 0]


def test_what_is_not_near_is_missing() -> None:
    found = curve([0, 1], [5, 6]).at(np.array([0, S // 2, 3 * S]), S)
    np.testing.assert_array_equal(found, [5, 5, np.nan])
    assert np.isnan(curve([], []).at(np.array([0]), S)).all()
