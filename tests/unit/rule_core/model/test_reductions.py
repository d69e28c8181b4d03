from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from rule_core.exceptions import SMDebugTypeError, SMDebugValueError
from rule_core.model import streaming_statistics
from rule_core.model.reductions import NEED_ELEMENTS, OPERATIONS, compute, compute_all

TYPES = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
FLOATS = ("float16", "float32", "float64")
COMPLEX = ("complex64", "complex128")
SHAPES = arrays.array_shapes(min_dims=0, max_dims=4, min_side=1, max_side=2)
WANTED = [(operation, absolute) for operation in OPERATIONS for absolute in (False, True)]
TOLERANCE = {"float16": 2e-3, "float32": 2e-6, "float64": 1e-12}
NUMPY: dict[str, Any] = {
    "variance": np.var,
    "l1": lambda flat: np.abs(flat).sum(),
    "l2": lambda flat: np.sqrt((np.abs(flat) ** 2).sum()),
}


def oracle(array: "np.ndarray", operation: str, absolute: bool) -> float:
    """Return the reduction in double precision (integers: of as many digits as it takes)."""
    wide = array.reshape(-1).astype(np.complex128 if array.dtype.kind == "c" else np.float64)
    wide = np.abs(wide) if absolute else wide
    return NUMPY.get(operation, getattr(np, operation, None))(wide)


def elements(dtype: str) -> st.SearchStrategy[Any]:
    """Return numbers of which sixteen have a product that every type can hold."""
    if dtype in FLOATS:
        return st.integers(-24, 24).map(lambda one: one / 16)
    return st.booleans() if dtype == "bool" else st.integers(0 if dtype[0] == "u" else -3, 3)


@given(st.data())
def test_every_reduction_of_every_type_and_shape_is_numpys(data: st.DataObject) -> None:
    dtype = data.draw(st.sampled_from([*TYPES, *FLOATS]))
    array = data.draw(arrays.arrays(dtype, SHAPES, elements=elements(dtype)))
    flat = array.reshape(-1)
    for (operation, absolute), result in compute_all(array, WANTED).items():
        tolerance = TOLERANCE.get(dtype, 1e-12)
        expected = oracle(array, operation, absolute)
        assert float(result) == pytest.approx(expected, rel=tolerance, abs=tolerance)
        if operation not in {"l1", "l2"}:
            plain = NUMPY.get(operation, getattr(np, operation, None))
            assert result.dtype == plain(np.abs(flat) if absolute else flat).dtype


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("operation", ["l1", "l2"])
def test_norms_of_integers_are_double(dtype: str, operation: str) -> None:
    assert compute(np.ones((2, 2), dtype), operation).dtype == np.float64


@pytest.mark.parametrize("dtype", COMPLEX)
def test_complex_numbers_reduce_by_their_magnitudes(dtype: str) -> None:
    array = np.array([[3 + 4j, -1], [0, 2j]], dtype)
    found = compute_all(array, WANTED)
    for one, value in found.items():
        assert complex(value) == pytest.approx(complex(oracle(array, *one)), rel=1e-6)
    assert (found["l1", False], found["max", True]) == (8, 5)


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 9])
@pytest.mark.parametrize("dtype", ["float32", "int32", "bool"])
def test_parts_join_to_the_whole(dtype: str, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    array = np.random.default_rng(size).integers(-2, 5, size=(3, 3)).astype(dtype)
    whole = compute_all(array, WANTED)
    monkeypatch.setattr(streaming_statistics, "PIECE_BYTES", size * array.itemsize)
    for one, value in compute_all(array, WANTED).items():
        assert float(value) == pytest.approx(float(whole[one]), rel=1e-6)
        assert value.dtype == whole[one].dtype


def test_a_large_array_is_added_up_exactly_enough() -> None:
    array = np.random.default_rng(3).normal(5, 1e-2, size=200_001).astype(np.float32)
    for operation in ("mean", "std", "variance", "sum", "l1", "l2", "median"):
        expected = oracle(array, operation, absolute=False)
        assert float(compute(array, operation)) == pytest.approx(expected, rel=1e-5)


def test_norms_are_those_of_all_elements_never_of_a_matrix() -> None:
    array = np.array([[1.0, -2.0], [3.0, -4.0]])
    assert float(compute(array, "l1")) == 10.0
    assert float(compute(array, "l2")) == pytest.approx(30**0.5)
    assert float(compute(np.array(-2.0), "l1")) == 2.0


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("dtype", [*FLOATS, *COMPLEX])
def test_nan_anywhere_gives_nan(operation: str, dtype: str) -> None:
    array = np.ones(9, dtype)
    array[4] = np.nan
    assert np.isnan(compute(array, operation))
    assert np.isnan(compute(array, operation, absolute=True))


@pytest.mark.parametrize(
    ("operation", "expected"),
    [("max", np.inf), ("min", 1.0), ("sum", np.inf), ("mean", np.inf), ("l1", np.inf)],
)
def test_infinity_is_kept(operation: str, expected: float) -> None:
    assert float(compute(np.array([1.0, np.inf], np.float32), operation)) == expected


def test_sums_that_do_not_fit_the_type_are_infinite_only_at_the_end() -> None:
    array = np.full(4, 3e38, np.float32)
    assert float(compute(array, "mean")) == pytest.approx(3e38, rel=1e-6)
    assert float(compute(array, "sum")) == np.inf
    assert float(compute(array, "std")) == 0.0
    half = np.full(100, 60_000, np.float16)
    assert float(compute(half, "mean")) == pytest.approx(60_000, rel=1e-3)


def test_the_least_integer_has_a_magnitude() -> None:
    array = np.array([-128, 3], np.int8)
    assert int(compute(array, "max", absolute=True)) == 128
    assert int(compute(array, "sum", absolute=True)) == 131
    assert compute(array, "min", absolute=True) == np.int8(3)


def test_bfloat16_reduces_as_float32() -> None:
    found = compute_all(np.array([1.5, -2.5]).astype(ml_dtypes.bfloat16), WANTED)
    assert float(found["sum", True]) == 4.0
    assert {value.dtype for value in found.values()} == {np.dtype(np.float32)}


@pytest.mark.parametrize("operation", OPERATIONS)
def test_an_empty_array_has_sums_only(operation: str) -> None:
    array = np.zeros((0, 3), np.float32)
    if operation in NEED_ELEMENTS:
        with pytest.raises(
            SMDebugValueError, match=rf"^A tensor without elements has no {operation}"
        ):
            compute(array, operation)
    else:
        assert float(compute(array, operation)) == (1.0 if operation == "prod" else 0.0)


def test_nothing_wanted_is_nothing_done() -> None:
    assert compute_all(np.ones(3), []) == {}


def test_what_cannot_be_reduced_is_reported() -> None:
    with pytest.raises(
        SMDebugValueError, match=r"^Reduction 'mode' must be one of min, max, .*, l2\.$"
    ):
        compute(np.ones(3), "mode")
    with pytest.raises(SMDebugTypeError, match=r"^A tensor of type <U1 has no reductions\.$"):
        compute(np.array(["a"]), "max")
    with pytest.raises(SMDebugTypeError, match=r"^A tensor of type object has no reductions\.$"):
        compute(np.array(["a"], object), "l1")
