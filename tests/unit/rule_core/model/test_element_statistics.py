"""Activity: the flags of a whole array out of its pieces, whatever their lengths and types."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from rule_core.model import streaming_statistics
from rule_core.model.element_statistics import Activity, ActivityFlags
from rule_core.model.streaming_statistics import measure

TYPES = [np.float16, np.float32, np.float64, ml_dtypes.bfloat16, np.int8, np.uint8, np.bool_]


def told(array: Any, low: float, high: float | None = None) -> ActivityFlags:
    one = Activity(low, high)
    found: ActivityFlags = measure(array, [one])[one]
    return found


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", [(), (1,), (7,), (3, 5), (4, 2, 8), (2, 3, 3, 3)])
def test_flags_are_those_of_the_whole_array(
    dtype: Any, shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streaming_statistics, "PIECE_BYTES", 40)
    draw = np.random.default_rng(len(shape))
    array = np.asarray(draw.integers(0, 4, shape)).astype(dtype)
    wide = array.astype(np.float64)
    for low, high in ((0.0, None), (0.5, 2.5), (1.0, 3.0)):
        found = told(array, low, high)
        expected = (low < wide) & (wide < (np.inf if high is None else high))
        assert found.active(shape).tolist() == expected.tolist()
        assert found.nan(shape) is None


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, ml_dtypes.bfloat16])
def test_nan_is_found_beside_infinity(dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streaming_statistics, "PIECE_BYTES", 16)
    array = np.array([[1, 2, 3, 4, 5, 6], [np.inf, np.nan, -np.inf, 0, np.nan, 1]]).astype(dtype)
    found = told(array, 0.0)
    assert found.active((2, 6)).tolist() == [[True] * 6, [True, *[False] * 4, True]]
    nan = found.nan((2, 6))
    assert nan is not None
    assert nan.tolist() == [[False] * 6, [False, True, False, False, True, False]]


def test_infinity_is_no_nan() -> None:
    found = told(np.array([np.inf, -np.inf, 1.0]), -1.0, 1.5)
    assert found.nan((3,)) is None
    assert found.active((3,)).tolist() == [False, False, True]


def test_measures_that_tell_alike_are_equal_and_others_are_not() -> None:
    assert len({Activity(0.0), Activity(0.0), Activity(0.0, 1.0), Activity(1.0)}) == 3
