"""Thinned and Series: what is remembered of a series, and how much of it."""

import numpy as np
import pytest

from builtin_rules.profiler.statistics.growth import DeviceHistories, DeviceHistory, ThinnedValues
from builtin_rules.profiler.statistics.samples import Device


def thinned(parts: list[int], limit: int) -> ThinnedValues:
    """Return what is left of ascending numbers that come in parts."""
    found, begin = ThinnedValues(limit), 0
    for part in parts:
        found.extend(np.arange(begin, begin + part, dtype=np.float64))
        begin += part
    return found


@pytest.mark.parametrize(
    ("parts", "kept"),
    [
        pytest.param([], [], id="nothing"),
        pytest.param([3, 4], [0, 1, 2, 3, 4, 5, 6], id="all"),
        pytest.param([8], [0, 2, 4, 6], id="every-second-from-the-limit-on"),
        pytest.param([10], [0, 2, 4, 6, 8], id="beyond"),
        pytest.param([5, 5], [0, 2, 4, 6, 8], id="in-parts"),
        pytest.param([1] * 10, [0, 2, 4, 6, 8], id="one-by-one"),
        pytest.param([9, 7], [0, 4, 8, 12], id="every-fourth"),
        pytest.param([100], [0, 16, 32, 48, 64, 80, 96], id="all-at-once"),
        pytest.param([33, 0, 33, 34], [0, 16, 32, 48, 64, 80, 96], id="parts-of-any-length"),
    ],
)
def test_thinned(parts: list[int], kept: list[float]) -> None:
    found = thinned(parts, 8)
    assert found.values.tolist() == kept
    assert found.count == sum(parts)


def test_a_thinned_series_stays_within_its_limit_and_its_quantiles() -> None:
    found = thinned([120] * 1000, 1 << 12)
    assert len(found.values) <= 1 << 12
    assert abs(np.percentile(found.values, 95) - 0.95 * 120_000) < 120


def test_a_series_keeps_the_newest_values_exactly() -> None:
    series = DeviceHistory(3)
    for part in ([0.1], [0.2, 0.3], [9.0, 0.4, 0.5, 0.6], [0.7]):
        series.extend(np.array(part))
    assert series.newest.tolist() == [0.5, 0.6, 0.7]
    assert (series.count, series.largest) == (8, 9.0)
    assert series.values.tolist() == np.float32([0.1, 0.2, 0.3, 9, 0.4, 0.5, 0.6, 0.7]).tolist()


def test_series_begin_when_their_device_is_first_seen() -> None:
    one, other = Device("algo-1", "gpu0"), Device("algo-1", "gpu1")
    histories = DeviceHistories(2)
    assert histories.points == 0
    histories.extend({one: np.ones(2)})
    histories.extend({one: np.ones(1), other: np.ones(1)})
    assert {device: series.count for device, series in histories.items()} == {one: 3, other: 1}
    assert histories.points == 3


def test_percentiles_of_several_devices_are_those_of_each() -> None:
    random = np.random.default_rng(0)
    histories = DeviceHistories(50)
    devices = [Device("algo-1", f"gpu{number}") for number in range(6)]
    for number, device in enumerate(devices):
        histories.extend({device: 100 * random.random(10 + 20 * (number % 3))})
    expected = {
        device: np.percentile(histories[device].newest, (95, 5)).tolist() for device in devices
    }
    assert histories.percentiles(devices, 95, 5) == expected
    assert histories.percentiles([], 95) == {}


@pytest.mark.parametrize("count", [1, 2, 20, 21, 22, 61, 500])
def test_whether_a_percentile_is_below_a_limit(count: int) -> None:
    random = np.random.default_rng(count)
    series = DeviceHistory(3)
    series.extend(random.integers(0, 20, count) / 3)
    limits = {*series.values.tolist(), *np.percentile(series.values, range(101)).tolist(), -1, 9}
    for limit in sorted(limits):
        for percent in (0, 5, 50, 95, 100):
            is_below = float(np.percentile(series.values, percent)) < limit
            assert series.has_percentile_below(percent, limit) is is_below
