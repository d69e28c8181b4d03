"""Sums by lanes: in the order that is documented, and as exact."""

import math

import numpy as np
import pytest

from rule_core.kernels.lanes import LANES, lane_sum, lane_sums


def by_hand(row: list[float]) -> float:
    """Return the sum of numbers, one addition after the other."""
    lanes = [0.0] * LANES
    for position, number in enumerate(row):
        lanes[position % LANES] += number
    width = LANES // 2
    while width:
        lanes = [lanes[lane] + lanes[lane + width] for lane in range(width)]
        width //= 2
    return lanes[0]


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "uint64"])
@pytest.mark.parametrize(
    "size", [0, 1, 2, 9, LANES - 1, LANES, LANES + 1, 8 * LANES, 33 * LANES + 5]
)
def test_order_is_the_documented_one(dtype: str, size: int) -> None:
    rng = np.random.default_rng(size)
    rows = (rng.normal(0, 1, (3, size)) * 10.0 ** rng.integers(0, 15, (3, size))).astype(dtype)
    expected = [by_hand([float(number) for number in row]) for row in rows]
    assert lane_sums(rows).tolist() == expected
    assert [lane_sum(row) for row in rows] == expected


@pytest.mark.parametrize("size", [1, 1000, 65_536, 300_001])
def test_error_is_within_the_documented_bound(size: int) -> None:
    numbers = np.random.default_rng(size).normal(0.1, 1e5, size) ** 3
    bound = (math.ceil(size / LANES) + 8) * 2**-53 * math.fsum(map(abs, numbers))
    assert abs(lane_sum(numbers) - math.fsum(numbers)) <= bound


def test_a_sum_of_negative_zeros_is_zero() -> None:
    assert math.copysign(1, lane_sum(np.full(3, -0.0))) == 1.0
