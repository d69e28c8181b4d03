"""Differences: tolerances as numpy has them, norms over all elements."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rule_core.model.array_difference import ChangeNorms, Tolerance
from rule_core.model.streaming_statistics import PIECE_BYTES, Piece

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
    found = Tolerance(rtol, atol, equal_nan).between(value, reference)
    assert (found <= 1) is expected


@pytest.mark.parametrize("size", [1, PIECE, PIECE + 1])
def test_every_piece_is_looked_at(size: int) -> None:
    value, before = np.zeros(size, np.float32), np.zeros(size, np.float32)
    value[-1], before[-1] = 7.0, 3.0
    assert Tolerance(0.0, 2.0).between(value, before) == 2.0
    assert ChangeNorms().between(value, before) == (4.0, 3.0)


def test_norms_are_those_of_all_elements_whatever_the_shape() -> None:
    value, before = np.array([[3.0, 1.0]]), np.array([[0.0, -3.0]])
    assert ChangeNorms().between(value, before) == (5.0, 3.0)


def test_a_norm_with_nan_is_nan() -> None:
    assert np.isnan(ChangeNorms().between(np.array([np.nan]), np.array([1.0])).change)


SINGLE = st.floats(width=32, allow_nan=False, allow_infinity=False)
STEPS = st.floats(0.99, 1.01) | st.sampled_from([1.0, 0.0, 0.5, 2.0])


@given(
    st.lists(st.tuples(SINGLE, STEPS, st.sampled_from([-1, 1])), min_size=1, max_size=5),
    st.sampled_from([0.0, 1e-40, 1e-31, 1e-5, 0.1, 1.0, 3.0, 1e39]),
    st.sampled_from([0.0, 1e-44, 1e-31, 1e-8, 1.0, 1e31, 1e39]),
)
def test_single_precision_draws_the_line_where_double_does(
    pairs: list[tuple[float, float, int]], rtol: float, atol: float
) -> None:
    reference = np.array([one for one, _, _ in pairs])
    factor = np.array([step * sign for _, step, sign in pairs])
    with np.errstate(all="ignore"):  # beside the line, on it, and behind it
        value = (reference + factor * (atol + rtol * np.abs(reference))).astype(np.float32)
        single = reference.astype(np.float32)
        wide = value.astype(np.float64)
        expected = bool(np.allclose(wide, reference, rtol, atol))
        ratios = np.abs(wide - reference) / (atol + rtol * np.abs(reference))
    ratios[wide == reference] = 0.0
    found = Tolerance(rtol, atol).between(value, single)
    assert (found <= 1) is expected
    largest = np.inf if np.isnan(ratios).any() else ratios.max()
    assert found == pytest.approx(largest, rel=1e-4, abs=1e-30)


@pytest.mark.parametrize("scale", [1e-45, 1e-40, 1e-22, 1e-15, 1.0, 1e18, 1e20, 3e38])
@pytest.mark.parametrize("signs", [(1, 1), (1, -1)])
def test_norms_of_single_precision_are_those_of_double(
    scale: float, signs: tuple[int, int]
) -> None:
    numbers = np.random.default_rng(1).uniform(0.3, 1, (2, 50)) * scale
    value, before = (numbers * np.array(signs)[:, None]).astype(np.float32)
    wide, earlier = value.astype(np.float64), before.astype(np.float64)
    expected = (np.linalg.norm(wide - earlier), np.linalg.norm(earlier))
    assert ChangeNorms().between(value, before) == pytest.approx(expected, rel=1e-6, abs=0)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "uint8", "bool"])
def test_equal_arrays_differ_by_nothing(dtype: str) -> None:
    array = np.array([0, 1, 1, 0]).astype(dtype)
    assert Tolerance(0.0, 0.0).between(array, array.copy()) == 0.0
    assert ChangeNorms().between(array, array.copy()) == (0.0, 2**0.5)


@pytest.mark.parametrize(("equal_nan", "expected"), [(False, np.inf), (True, 0.0)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_nan_is_equal_to_nan_where_it_shall_be(
    equal_nan: bool, expected: float, dtype: str
) -> None:
    array = np.array([np.nan, np.inf, 1.0], dtype)
    assert Tolerance(1.0, 1.0, equal_nan).between(array, array) == expected
    assert Tolerance(1, 1, equal_nan).between(np.array([1.0, 1.0, 1.0], dtype), array) == np.inf


def test_measures_that_tell_alike_are_equal_and_others_are_not() -> None:
    assert (ChangeNorms(), Tolerance(0.1, 0.2)) == (ChangeNorms(), Tolerance(0.1, 0.2))
    different = {ChangeNorms(), Tolerance(0.1, 0.2), Tolerance(0.1, 0.2, equal_nan=True)}
    assert len(different | {Tolerance(0.2, 0.1)}) == 4


@pytest.mark.parametrize("one", [Tolerance(0.1, 0.2), ChangeNorms()])
def test_without_an_earlier_value_there_is_no_difference(one: Any) -> None:
    assert one.part(Piece(np.ones(3))) in {0.0, (0.0, 0.0)}


def test_too_close_to_the_line_single_precision_does_not_decide() -> None:
    draw = np.random.default_rng(0)
    reference = draw.uniform(1e-3, 1, 200).astype(np.float32)
    value = (reference + (0.25 + 0.3 * reference.astype(np.float64))).astype(np.float32)
    pairs = zip(value[:, None], reference[:, None], strict=True)
    expected = [
        bool(np.allclose(one.astype(np.float64), other.astype(np.float64), 0.3, 0.25))
        for one, other in zip(value, reference, strict=True)
    ]
    assert [Tolerance(0.3, 0.25).between(*pair) <= 1 for pair in pairs] == expected
    assert {*expected} == {True, False}
