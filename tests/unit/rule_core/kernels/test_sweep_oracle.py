"""The compiled kernel against numpy: equal to the last bit, on every kind of processor."""

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import pytest
import rawtrial
from hypothesis import given
from hypothesis import strategies as st
from kernels import using

from rule_core.kernels.lanes import LANES
from rule_core.kernels.sweep import Read, Sweep, SweptPiece, has_kernel, processors
from rule_core.model.array_difference import ChangeNorms, Tolerance
from rule_core.model.element_statistics import Activity, NonFiniteCount, SingleNumber, ZeroCount
from rule_core.model.reductions import OPERATIONS, Reduction
from rule_core.model.streaming_statistics import (
    Piece,
    StreamingStatistic,
    kernel_operation,
    to_computable,
)

pytestmark = pytest.mark.skipif(not has_kernel(), reason="the compiled kernel")

TYPES: Final = [dtype for dtype in rawtrial.NUMBERS if dtype[:4] not in {"comp", "bool"}]
KINDS: Final = ["baseline", "avx2", "avx512"]
LIMITS: Final = [0.0, 1e-8, 1e-40, 1e-5, 0.25, 1.0, 1e31]
STATISTICS: Final[list[StreamingStatistic]] = [
    *(Reduction(operation, absolute) for operation in OPERATIONS for absolute in (False, True)),
    *(
        ZeroCount(),
        NonFiniteCount(),
        ChangeNorms(),
        Activity(0.1),
        Activity(-1.0, 2.5),
        SingleNumber(),
    ),
    *(Tolerance(0.1, 0.2), Tolerance(0.0, 0.0, equal_nan=True), Tolerance(1e-5, 1e-8)),
]
EDGES: Final = [0.0, -0.0, 1.0, -1.0, 1e-45, -1e-40, 6e-8, 65504.0, 3e38, np.nan, np.inf, -np.inf]


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> Iterator[str]:
    """Each kind of processor that this one can be."""
    if request.param not in processors():
        pytest.skip(f"a processor with {request.param}")
    with using(request.param):
        yield request.param


def elements(dtype: str, size: int, seed: int, edges: list[float]) -> Any:
    """Return elements of any bits if there are edges, and otherwise of similar size."""
    kind, rng = rawtrial.dtype_of(dtype), np.random.default_rng([seed, size])
    if kind.kind not in "fV":
        raw = np.frombuffer(rng.bytes(size * kind.itemsize), kind)
        return raw if edges else raw % kind.type(5)
    with np.errstate(all="ignore"):
        array = (rng.normal(0, 40, size) * rng.integers(0, 2, size)).astype(kind)
        for edge in edges if size else ():
            array[rng.integers(size)] = edge
    return array


def numpy_parts(value: Any, before: Any, wanted: list[Any]) -> list[Any]:
    with np.errstate(all="ignore"), using(None):
        pieces = [Piece(to_computable(array)) for array in (value, before)]
        return [told(statistic.part(*pieces)) for statistic in wanted]


def kernel_parts(
    value: Any, before: Any, wanted: list[Any], offset: int = 0, threads: int = 1
) -> list[Any]:
    """Return what the kernel makes of arrays that begin at an offset in memory of their own."""
    sources, reads = [], []
    for index, array in enumerate((value, before)):
        start = (index + 1) * offset
        # An array of numpy ends with its last byte, so that AddressSanitizer sees what reads on.
        sources.append(np.frombuffer(b"?" * start + array.tobytes(), np.uint8).copy())
        reads.append(Read(-1 - index, start, 0, array.nbytes, 0, 0))
    operations = tuple((kernel_operation(statistic, 1), 1) for statistic in wanted)
    assert None not in {operation for operation, _ in operations}
    sweep = Sweep([SweptPiece(value.dtype, reads, operations)] * 3, threads)  # type: ignore[arg-type]
    every = [
        [told(one.kernel_part(result)) for one, result in zip(wanted, results, strict=True)]
        for results in sweep.run(sources=sources)
    ]
    assert every == every[:1] * 3
    return every[0]


def told(part: Any) -> Any:
    """Return a partial result so that equal ones are the same bit by bit."""
    if isinstance(part, tuple):
        return tuple(map(told, part))
    if isinstance(part, np.ndarray):
        return part.tobytes()
    if part is None or isinstance(part, int):
        return part
    if isinstance(part, np.integer | np.bool_):
        return int(part)
    return "nan" if np.isnan(part) else float(part).hex()


def of_kernel(size: int) -> list[Any]:
    """Return the statistics that the kernel computes of so many elements."""
    return [
        statistic
        for statistic in STATISTICS
        if kernel_operation(statistic, 1) is not None
        and (size or not isinstance(statistic, Reduction))
    ]


@given(
    st.sampled_from(TYPES),
    st.integers(1, 200) | st.sampled_from([LANES - 1, LANES, 8 * LANES, 9 * LANES + 3]),
    st.integers(0, 100),
    st.lists(st.sampled_from(EDGES), max_size=4),
    st.sampled_from([0, 1, 3, 8]),
)
def test_results_are_those_of_numpy(
    dtype: str, size: int, seed: int, edges: list[float], offset: int
) -> None:
    value = elements(dtype, size, seed, edges)
    before = elements(dtype, size, seed + 1, edges[1:])
    wanted = of_kernel(size)
    assert len(wanted) >= 20
    expected = numpy_parts(value, before, wanted)
    for kind in processors():
        with using(kind):
            assert kernel_parts(value, before, wanted, offset) == expected


@pytest.mark.parametrize("dtype", TYPES)
def test_results_of_large_pieces_are_those_of_numpy(dtype: str, kind: str) -> None:
    del kind
    size = 40_000 + 77
    value, before = elements(dtype, size, 1, []), elements(dtype, size, 2, [])
    wanted = of_kernel(size)
    expected = numpy_parts(value, before, wanted)
    assert kernel_parts(value, before, wanted) == expected
    assert kernel_parts(value, before, wanted, threads=3) == expected


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_nan_is_flagged_anywhere_in_a_large_piece(dtype: str, kind: str) -> None:
    del kind
    value = elements(dtype, 20_000, 1, [])
    value[[5, 4096, 12_345, -1]] = np.nan
    wanted = [Activity(0.0), NonFiniteCount()]
    assert kernel_parts(value, value, wanted) == numpy_parts(value, value, wanted)


@given(
    st.lists(
        st.tuples(*[st.floats(width=32) | st.sampled_from(EDGES[:4])] * 2), min_size=1, max_size=9
    ),
    st.sampled_from(LIMITS),
    st.sampled_from(LIMITS),
    st.booleans(),
    st.sampled_from(["float32", "float64", "float16", "bfloat16"]),
)
def test_tolerances_are_those_of_numpy(
    pairs: list[tuple[float, float]], rtol: float, atol: float, equal_nan: bool, dtype: str
) -> None:
    with np.errstate(all="ignore"):
        value, before = np.array(pairs).T.astype(rawtrial.dtype_of(dtype))
    wanted = [Tolerance(rtol, atol, equal_nan), ChangeNorms()]
    expected = numpy_parts(value, before, wanted)
    for kind in processors():
        with using(kind):
            assert kernel_parts(value, before, wanted) == expected


def test_close_to_the_limit_double_precision_decides(kind: str) -> None:
    del kind
    rng = np.random.default_rng(0)
    before = rng.uniform(1e-3, 1, (50, 1)).astype(np.float32)
    value = ((before + 0.25) / 0.7).astype(np.float32)  # the ratio is 1 but for rounding
    wanted = [Tolerance(0.3, 0.25)]
    for pair in zip(value, before, strict=True):
        (ratio,) = numpy_parts(*pair, wanted)
        assert float.fromhex(ratio) == pytest.approx(1, abs=1e-6)
        assert kernel_parts(*pair, wanted) == [ratio]


def test_halves_are_widened_exactly(kind: str) -> None:
    del kind
    for dtype in ("float16", "bfloat16"):
        tops = np.arange(64, dtype=np.uint16) << 10  # signs and exponents
        every = (tops[:, None] + np.array([0, 1, 2, 0x1FF, 0x3FF], np.uint16)).reshape(-1, 1)
        for number in every.view(rawtrial.dtype_of(dtype)):
            (least,) = kernel_parts(number, number, [Reduction("min")])
            assert least == told(float(number[0]) + 0.0)


def test_a_range_of_integers_wraps_as_in_numpy(kind: str) -> None:
    del kind
    for dtype in ("int64", "uint64"):
        limits = np.iinfo(dtype)
        value = np.array([limits.min, limits.max, limits.min, 3, limits.max], dtype)
        wanted = of_kernel(5)
        assert kernel_parts(value, value[::-1], wanted) == numpy_parts(value, value[::-1], wanted)
