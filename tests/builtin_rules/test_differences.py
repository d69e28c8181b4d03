"""Differences: tolerances as numpy has them, norms over all elements."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from builtin_rules.differences import Tolerance, norms, tolerances
from smdebug.core.measures import PIECE_BYTES

PIECE = PIECE_BYTES // 4
NUMBERS = st.sampled_from([0.0, 1.0, 1.0 + 1e-5, 1.1, -1.0, 1e-8, 1e300, np.inf, -np.inf, np.nan])
PAIRS = st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=4)


@given(PAIRS, st.sampled_from([0.0, 1e-5, 0.1]), st.sampled_from([0.0, 1e-8]), st.booleans())
def test_at_most_one_is_what_numpy_calls_close(
    pairs: list[tuple[float, float]], rtol: float, atol: float, equal_nan: bool
) -> None:
    value, reference = np.array(pairs).T
    with np.errstate(all="ignore"):
        expected = bool(np.allclose(value, reference, rtol, atol, equal_nan))
    found = tolerances(value, reference, Tolerance(rtol, atol, equal_nan))
    assert (found <= 1) is expected


@pytest.mark.parametrize("size", [1, PIECE, PIECE + 1])
def test_every_piece_is_looked_at(size: int) -> None:
    value, before = np.zeros(size, np.float32), np.zeros(size, np.float32)
    value[-1], before[-1] = 7.0, 3.0
    assert tolerances(value, before, Tolerance(0.0, 2.0)) == 2.0
    assert norms(value, before) == (4.0, 3.0)


def test_norms_are_those_of_all_elements_whatever_the_shape() -> None:
    value, before = np.array([[3.0, 1.0]]), np.array([[0.0, -3.0]])
    assert norms(value, before) == (5.0, 3.0)


def test_a_norm_with_nan_is_nan() -> None:
    assert np.isnan(norms(np.array([np.nan]), np.array([1.0])).change)
