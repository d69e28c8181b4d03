"""RisingSeries: series that rise, stay level, or lose what they gained."""

from collections.abc import Iterable

import numpy as np
import pytest

from builtin_rules.statistics.series.rising_series import RisingSeries

AT = np.arange(100)


def series_of(values: Iterable[float], lost_share: float = 0.5) -> RisingSeries:
    series = RisingSeries(lost_share)
    for value in values:
        series.add(float(value), 1)
    return series


@pytest.mark.parametrize(
    ("values", "has_risen", "stays"),
    [(AT / 100, True, False), (np.ones(100), False, True), (-AT / 100, False, True)],
)
def test_trends(values: np.ndarray, *, has_risen: bool, stays: bool) -> None:
    series = series_of(values)
    assert series.has_risen() == has_risen
    assert series.stays() == stays


def test_a_series_that_stays_may_rise_by_less_than_asked() -> None:
    noise = np.random.default_rng(0).normal(0.0, 0.01, 20)
    assert not series_of(noise).stays()
    assert series_of(noise).stays(rise=0.05)
    assert not series_of(np.ones(4)).stays(rise=0.05)  # too few


@pytest.mark.parametrize("last", [0.2, 0.2001])
def test_a_constant_series_has_equal_rows(last: float) -> None:
    series = series_of(np.array([0.2] * 30 + [last] * 10))
    assert series.is_constant() == (last == 0.2)


def test_rows_highest_and_means() -> None:
    series = series_of([-3.0, 1.0, 1.0, 1.0])
    assert (series.rows, series.highest, series.mean()) == (4, 3.0, 0.0)
    assert series.ends() == (1.0, -3.0)


@pytest.mark.parametrize(("lost_share", "is_lost"), [(0.5, True), (0.7, False)])
def test_a_gain_is_lost_by_its_share(lost_share: float, *, is_lost: bool) -> None:
    values = np.where(AT < 50, AT / 50, 0.4)
    series = series_of(values, lost_share)
    assert series.is_lost == is_lost
    assert (series.end() is not None) == is_lost
