"""Levels: means of the latest quarter of a series, the best before, and their noise."""

import math
import random
import statistics
from itertools import pairwise, permutations

import numpy as np
import pytest

from builtin_rules.statistics.noise_levels import (
    LevelProgress,
    Levels,
    NoiseWindow,
    RobustWindow,
    falls,
    noise,
    rises,
)


def levels_of(values: "list[float] | np.ndarray", shortest: int) -> Levels:
    levels = Levels(shortest)
    for value in values:
        levels.add(float(value))
    return levels


@pytest.mark.parametrize(
    ("values", "shortest", "expected"),
    [
        pytest.param([], 1, None, id="none"),
        pytest.param([1.0], 1, None, id="one"),
        pytest.param([3.0, 1.0], 1, (1.0, 3.0), id="two"),
        pytest.param([3.0, 1.0, 2.0], 1, (2.0, 1.0), id="the-best-before"),
        pytest.param([3.0, 1.0, 2.0], 2, None, id="too-few-for-two-levels"),
        pytest.param([4.0, 2.0, 2.0, 0.0], 2, (1.0, 3.0), id="two-levels"),
        pytest.param([9.0, 4.0, 2.0, 2.0, 0.0], 2, (1.0, 3.0), id="the-rest-is-left-out"),
        pytest.param([*[5.0] * 9, 1.0, 1.0, 1.0], 1, (1.0, 5.0), id="a-quarter"),
    ],
)
def test_the_latest_level_is_compared_with_the_best_before(
    values: list[float], shortest: int, expected: tuple[float, float] | None
) -> None:
    progress = levels_of(values, shortest).progress()
    assert (progress and progress[:2]) == expected


def test_a_fall_is_positive() -> None:
    assert (LevelProgress(1.0, 3.0, 0.0, 0.0).fall, LevelProgress(3.0, 1.0, 0.0, 0.0).fall) == (
        2.0,
        -2.0,
    )


@pytest.mark.parametrize("shortest", [1, 5, 40])
def test_a_long_series_is_kept_in_few_blocks(shortest: int) -> None:
    levels = levels_of(np.arange(10_000.0, 0, -1), shortest)
    most = max(64, 4 * shortest)
    kept = (len(levels._blocks), len(levels._open), len(levels._latest))
    assert kept[0] < most
    assert kept[1] * most <= 2 * 10_000
    assert kept[2] == 41
    progress = levels.progress()
    assert progress is not None
    quarter = 10_000 / 4
    assert progress.fall == pytest.approx(quarter, rel=0.1)
    assert progress.level == pytest.approx(quarter / 2, rel=0.2)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        pytest.param([4.0] * 4, None, id="too-few"),
        pytest.param([4.0, 1.0, 1.0, 1.0, 1.0], (1.0, 4.0), id="one-before"),
        pytest.param([2.0, 4.0, 3.0, *[1.0] * 4], (1.0, 2.0), id="the-best-of-them"),
        pytest.param([9.0] * 22 + [5.0, 7.0] + [1.0] * 8, (1.0, 6.0), id="they-grow-with-it"),
    ],
)
def test_earlier_levels_may_be_shorter(
    values: list[float], expected: tuple[float, float] | None
) -> None:
    levels = Levels(4, earlier=1)
    for value in values:
        levels.add(value)
    progress = levels.progress()
    assert (progress and progress[:2]) == expected


def test_the_first_value_is_kept() -> None:
    assert (levels_of([], 2).first, levels_of([4.0, 2.0], 2).first) == (None, 4.0)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([], 0.0),
        ([1.0], 0.0),
        ([1.0, 5.0], 0.0),
        ([1.0, 2.0, 3.0, 4.0], 0.0),
        ([0.0, 1.0, 0.0, 1.0, 0.0], 1.4826 / 2**0.5),
    ],
    ids=["none", "one", "two", "a-trend", "up-and-down"],
)
def test_noise_is_that_of_differences(values: list[float], expected: float) -> None:
    assert noise(values) == pytest.approx(expected)


def test_noise_is_the_deviation_of_a_value() -> None:
    values = np.random.default_rng(0).normal(0.0, 0.2, 2000) - np.arange(2000)
    assert noise(list(values)) == pytest.approx(0.2, rel=0.1)


def test_the_error_is_that_of_the_difference_of_two_levels() -> None:
    rng = np.random.default_rng(0)
    progress = [levels_of(rng.normal(0.0, 1.0, 60), 5).progress() for _ in range(200)]
    known = [one for one in progress if one is not None]
    doubt = 1 + 8 / 41
    assert np.mean([one.error for one in known]) == pytest.approx(doubt * (2 / 15) ** 0.5, rel=0.1)
    assert np.mean([one.noise for one in known]) == pytest.approx(doubt, rel=0.1)


@pytest.mark.parametrize(
    ("values", "fall", "expected"),
    [
        pytest.param([-math.inf, 1.0, 2.0, math.inf], 0.0, True, id="infinite"),
        pytest.param([math.inf] * 4, 0.0, False, id="equal-infinities"),
        pytest.param([1.0] * 4, math.inf, False, id="infinite-fall"),
    ],
)
def test_large_numbers_are_compared(values: list[float], fall: float, expected: bool) -> None:
    assert rises(values, fall) is expected


@pytest.mark.parametrize("error_rate", [0.05, 0.01])
@pytest.mark.parametrize("count", [3, 4, 5, 6, 7])
def test_chance_rises_no_more_often_than_the_error_rate(count: int, error_rate: float) -> None:
    orders = [*permutations(map(float, range(count)))]
    chance = sum(rises(order, error_rate=error_rate) for order in orders) / len(orders)
    pairs = [[(a < b) - (a > b) for at, a in enumerate(one) for b in one[at:]] for one in orders]
    shares = [sum(signs) for signs in pairs]
    possible = [sum(each >= least for each in shares) / len(orders) for least in set(shares)]
    assert chance == max((share for share in possible if share <= error_rate), default=0.0)


def test_a_fall_is_refuted_by_rows_that_do_not_show_it() -> None:
    rng = np.random.default_rng(0)
    level = 2.3 + 0.01 * rng.standard_normal((3000, 12))
    falling = level - 0.1 * np.linspace(0.0, 1.0, 12)
    assert np.mean([rises(rows, fall=0.1) for rows in level]) > 0.95
    assert np.mean([rises(rows, fall=0.1) for rows in falling]) < 0.06
    assert np.mean([falls(rows) for rows in falling]) > 0.95


def deviation(values: list[float]) -> float:
    """Return the noise of values, from its definition."""
    differences = [after - before for before, after in pairwise(values)] or [0.0]
    middle = statistics.median(differences)
    absolute = statistics.median([abs(difference - middle) for difference in differences])
    return 1.4826 * absolute / math.sqrt(2)


@pytest.mark.parametrize("size", [2, 3, 4, 8, 41])
@pytest.mark.parametrize("seed", range(5))
def test_a_window_has_the_noise_of_its_values(size: int, seed: int) -> None:
    rng = random.Random(seed)
    window, values = NoiseWindow(size), [0.0]
    window.add(0.0)
    for _ in range(120):
        values.append(rng.choice([rng.gauss(0, 1), float(rng.randint(0, 3)), values[-1]]))
        window.add(values[-1])
        assert noise(values) == deviation(values)
        if rng.random() < 0.8:
            assert window.noise() == deviation(values[-size:])
    assert len(window) == size


def test_a_robust_window_forgets_what_it_answered() -> None:
    window, values = RobustWindow(3, 5), [5.0, 1.0, 4.0, 2.0, 8.0, 3.0]
    for count, value in enumerate(values, start=1):
        window.add(value)
        latest = values[max(0, count - 5) : count]
        assert (window.level(), window.noise()) == (
            statistics.median(latest[-3:]),
            deviation(latest),
        )
