"""Reductions against a second, slow version: plain Python, one element after the other."""

import math
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from rule_core.model.reductions import NEED_ELEMENTS, OPERATIONS, compute_all
from rule_core.model.streaming_statistics import PIECE_BYTES
from smdebug.core.reductions import compute
from smdebug.exceptions import SMDebugTypeError, SMDebugValueError

INTEGERS = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
FLOATS = ("float16", "bfloat16", "float32", "float64")
COMPLEX = ("complex64", "complex128")
WANTED = [(operation, absolute) for operation in OPERATIONS for absolute in (False, True)]
RELATIVE = {2: 2e-3, 4: 1e-5, 8: 1e-11}  # by size of the result's real numbers
NAN, INF = math.nan, math.inf
CHUNK = PIECE_BYTES // 2  # elements: one piece of halves, several of wider types


# -- the slow version ----------------------------------------------------------------------------


def total(values: list[Any]) -> Any:
    if any(isinstance(value, complex) for value in values):
        return complex(total([value.real for value in values]), total([v.imag for v in values]))
    if any(isinstance(value, float) for value in values):
        if any(map(math.isnan, values)) or {INF, -INF} <= set(values):
            return NAN
        return math.fsum(values)
    return sum(values)


def variance(values: list[Any]) -> float:
    mean = total(values) / len(values)
    if not np.isfinite(mean):
        return NAN
    return math.fsum(abs(value - mean) ** 2 for value in values) / len(values)


def median(values: list[Any]) -> Any:
    if any(map(math.isnan, values)):
        return NAN
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else total(ordered[middle - 1 : middle + 1]) / 2


def extreme(choose: Callable[[list[Any]], Any]) -> Callable[[list[Any]], Any]:
    return lambda values: NAN if any(map(math.isnan, values)) else choose(values)


SLOW: dict[str, Callable[[list[Any]], Any]] = {
    "min": extreme(min),
    "max": extreme(max),
    "mean": lambda values: total(values) / len(values),
    "std": lambda values: math.sqrt(variance(values)),
    "variance": variance,
    "sum": total,
    "prod": math.prod,
    "median": median,
    "l1": lambda values: total([abs(value) for value in values]),
    "l2": lambda values: math.sqrt(total([abs(value) ** 2 for value in values])),
}


def result_type(dtype: str, operation: str, absolute: bool) -> "np.dtype[Any]":
    """Return the type of a result, as the documentation has it."""
    if dtype == "bfloat16":
        return np.dtype("float32")
    if dtype in COMPLEX:
        real = absolute or operation in {"l1", "l2", "std", "variance"}
        return np.dtype({"complex64": "float32", "complex128": "float64"}[dtype] if real else dtype)
    if dtype in FLOATS or operation in {"min", "max"}:
        return np.dtype(dtype)
    whole = operation in {"sum", "prod"}
    return np.dtype(("uint64" if dtype[0] == "u" else "int64") if whole else "float64")


def elements(array: "np.ndarray") -> list[Any]:
    """Return the elements in order as Python numbers; True is 1."""
    wide = array.astype(np.float32) if array.dtype.kind == "V" else array
    return [one if isinstance(one, (float, complex)) else int(one) for one in wide.ravel().tolist()]


def check(array: "np.ndarray", wanted: list[tuple[str, bool]]) -> None:
    """Compare all reductions of an array with the slow version."""
    values = elements(array)
    for (operation, absolute), found in compute_all(array, wanted).items():
        expected_type = result_type(array.dtype.name, operation, absolute)
        with np.errstate(over="ignore"):
            slow = SLOW[operation]([abs(one) for one in values] if absolute else values)
            expected = np.asarray(slow).astype(expected_type)
        size = expected_type.itemsize // (2 if expected_type.kind == "c" else 1)
        near = RELATIVE.get(size, 0.0) if expected_type.kind in "fc" else 0.0
        assert (operation, absolute, found.dtype) == (operation, absolute, expected_type)
        np.testing.assert_allclose(
            np.asarray(found),
            expected,
            rtol=near,
            atol=near,
            equal_nan=True,
            err_msg=f"{operation} {absolute} of {array!r}",
        )


# -- random arrays -------------------------------------------------------------------------------


def numbers(dtype: str, *, finite: bool) -> st.SearchStrategy[Any]:
    """Return numbers whose sums are exact, and whose products every type can hold."""
    if dtype == "bool":
        return st.booleans()
    if dtype in INTEGERS:
        return st.integers(0 if dtype[0] == "u" else -2, 2)
    real = st.integers(-16, 16).map(lambda one: one / 16)
    if dtype in COMPLEX:
        return st.builds(complex, real, real)
    return real if finite else st.one_of(real, st.sampled_from([NAN, INF, -INF]))


def drawn(data: st.DataObject, dtype: str, *, finite: bool, min_side: int = 1) -> "np.ndarray":
    """Return an array of up to four dimensions."""
    shape = data.draw(arrays.array_shapes(min_dims=0, max_dims=4, min_side=min_side, max_side=2))
    kind = "float32" if dtype == "bfloat16" else dtype
    array = data.draw(arrays.arrays(kind, shape, elements=numbers(dtype, finite=finite)))
    return array.astype(ml_dtypes.bfloat16) if dtype == "bfloat16" else array


def wanted_of(dtype: str, size: int) -> list[tuple[str, bool]]:
    """Return the reductions that an array has: complex numbers have no order."""
    return [
        (operation, absolute)
        for operation, absolute in WANTED
        if (size or operation not in NEED_ELEMENTS)
        and (absolute or dtype not in COMPLEX or operation not in {"min", "max", "median"})
    ]


@given(st.data())
@pytest.mark.parametrize("finite", [True, False], ids=["finite", "with-nan-and-infinity"])
def test_arrays_of_all_types_and_shapes(finite: bool, data: st.DataObject) -> None:
    dtype = data.draw(st.sampled_from([*INTEGERS, *FLOATS, *COMPLEX] if finite else FLOATS))
    array = drawn(data, dtype, finite=finite)
    check(array, wanted_of(dtype, array.size))


@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS, *COMPLEX])
@pytest.mark.parametrize("shape", [(0,), (2, 0), (0, 1, 3, 1)])
def test_empty_arrays(dtype: str, shape: tuple[int, ...]) -> None:
    array = np.zeros(shape, ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    check(array, wanted_of(dtype, 0))
    for operation in NEED_ELEMENTS:
        with pytest.raises(SMDebugValueError, match=f"without elements has no {operation}"):
            compute(array, operation)


def test_what_is_no_number_and_what_is_no_reduction_is_refused() -> None:
    with pytest.raises(SMDebugTypeError, match=r"A tensor of type <U1 has no reductions\."):
        compute(np.array(["a"]), "sum")
    with pytest.raises(SMDebugValueError, match=r"Reduction 'mode' must be one of min, max, .*\."):
        compute(np.zeros(1), "mode")


# -- parts of large arrays -----------------------------------------------------------------------


@pytest.mark.parametrize("size", [CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK + 1])
@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_sizes_around_the_parts_that_are_taken(size: int, dtype: str) -> None:
    rng = np.random.default_rng(size)
    array = (rng.integers(-1000, 1000, size) / (16 if dtype == "float32" else 8)).astype(dtype)
    check(array, [one for one in WANTED if one[0] != "prod"])


@pytest.mark.parametrize("dtype", ["bool", "float16", "bfloat16"])
def test_types_whose_parts_are_widened(dtype: str) -> None:
    rng = np.random.default_rng(1)
    array = rng.integers(0, 3, (CHUNK + 1) // 2 * 2).reshape(2, -1)
    converted = array.astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    check(converted, [one for one in WANTED if one[0] != "prod"])


@pytest.mark.parametrize("at", [CHUNK - 1, CHUNK])
@pytest.mark.parametrize("bad", [NAN, INF, -INF])
def test_one_element_that_is_not_finite(at: int, bad: float) -> None:
    array = np.ones(CHUNK + 2, np.float32)
    array[at] = bad
    check(array, WANTED)


@pytest.mark.parametrize("at", [CHUNK - 1, CHUNK])
def test_one_element_that_is_the_extreme(at: int) -> None:
    array = np.ones(CHUNK + 1, np.float64)
    array[at] = -3.0
    check(array, WANTED)


def test_a_mean_far_from_zero_does_not_drown_the_variance() -> None:
    array = np.where(np.arange(CHUNK + 7) % 2, 1e6 + 1, 1e6)
    check(array, [("variance", False), ("std", False), ("mean", False)])


# -- numbers that do not fit ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        pytest.param([60000.0] * 10, "float16", id="half-sum"),
        pytest.param([60000.0, -60000.0], "float16", id="half-variance"),
        pytest.param([300.0, 300.0], "float16", id="half-squares"),
        pytest.param([60000.0] * (CHUNK + 1), "float16", id="half-parts"),
        pytest.param([3e38, 3e38, 3e38], "float32", id="single-sum"),
        pytest.param([3e38, -3e38, 1e30], "float32", id="single-that-cancels"),
        pytest.param([1e30, 1e30], "float32", id="single-squares"),
        pytest.param([3e38] * 3, "bfloat16", id="brain-sum"),
        pytest.param([-128, -128], "int8", id="magnitude-of-the-least-byte"),
        pytest.param([-(2**31), 2**31 - 1], "int32", id="magnitude-of-the-least-integer"),
        pytest.param([127] * 300, "int8", id="byte-sum"),
        pytest.param([255] * 300, "uint8", id="unsigned-byte-sum"),
        pytest.param([True] * 300, "bool", id="truth-sum"),
        pytest.param([2**63, 2**62], "uint64", id="large-unsigned"),
    ],
)
def test_sums_are_taken_in_a_type_that_holds_them(values: list[Any], dtype: str) -> None:
    array = np.array(values, ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    least = dtype[0] == "i" and min(values) == np.iinfo(dtype).min
    wanted = [
        (operation, absolute)
        for operation, absolute in WANTED
        if operation != "prod"
        and not (least and absolute and operation in {"min", "max", "median"})
    ]
    check(array, wanted)


@pytest.mark.parametrize(("dtype", "bits"), [("int8", 8), ("int16", 16), ("int32", 32)])
def test_the_magnitude_of_the_least_integer_is_of_a_wider_type(dtype: str, bits: int) -> None:
    found = compute(np.array([-(2 ** (bits - 1))], dtype), "max", absolute=True)
    assert (int(found), found.dtype) == (2 ** (bits - 1), np.int64)


def test_the_median_of_magnitudes_holds_that_of_the_least_integer() -> None:
    assert compute(np.array([-128, -128], np.int8), "median", absolute=True) == 128


def test_several_at_once_are_what_each_is_alone() -> None:
    array = np.random.default_rng(5).standard_normal(CHUNK + 3).astype(np.float32)
    together = compute_all(array, WANTED)
    assert together == {one: compute(array, *one) for one in WANTED}
