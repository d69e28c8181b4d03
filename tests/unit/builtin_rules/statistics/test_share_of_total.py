"""Shares: bounds that hold for each of many shares, however small the counts."""

import math

import numpy as np
import pytest

from builtin_rules.statistics.share_of_total import deviations, lower, upper


@pytest.mark.parametrize("hits", [0, 1, 7, 49, 50])
@pytest.mark.parametrize("compared", [1, 45])
def test_a_bound_is_where_the_count_becomes_improbable(hits: int, compared: int) -> None:
    away = deviations(compared)
    for bound, side in ((lower(hits, 50, compared), 1), (upper(hits, 50, compared), -1)):
        spread = math.sqrt(bound * (1 - bound) / 50)
        assert side * (hits / 50 - bound) == pytest.approx(away * spread, abs=1e-12)


@pytest.mark.parametrize(("hits", "bound"), [(0, 0.0), (5, 0.15), (10, 0.57)])
def test_more_comparisons_lower_the_bound(hits: int, bound: float) -> None:
    bounds = [lower(hits, 10, compared) for compared in (0, 1, 10, 1000)]
    assert bounds == sorted(bounds, reverse=True)
    assert bounds[0] == bounds[1] >= bound
    assert [upper(10 - hits, 10, one) for one in (1, 10)] == pytest.approx(
        [1 - one for one in bounds[1:3]]
    )


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_bounds_are_seldom_wrong_over_all_that_are_compared(share: float) -> None:
    hits = np.random.default_rng(0).binomial(100, share, (400, 20))
    wrong = [any(lower(int(one), 100, 20) > share for one in row) for row in hits]
    assert sum(wrong) <= 20
