"""Statistics: pieces give the result of the whole array, and rows that of each row alone."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pytest
import rawtrial
from hypothesis import given
from hypothesis import strategies as st

from rule_core.model import streaming_statistics
from rule_core.model.array_difference import ChangeNorms, Tolerance
from rule_core.model.element_statistics import NonFiniteCount, ZeroCount
from rule_core.model.reductions import (
    OPERATIONS,
    Reduction,
    compute,
    compute_all,
    is_in_pieces,
)
from rule_core.model.streaming_statistics import (
    Piece,
    StreamingStatistic,
    measure,
    measure_pieces,
    piece_length,
    to_computable,
)
from rule_core.model.swept_tensors import of_rows

REAL: Final = [dtype for dtype in rawtrial.NUMBERS if not dtype.startswith("complex")]
FLOATS: Final = ["float16", "bfloat16", "float32", "float64"]
PIECE: Final = 64  # bytes
WANTED: Final = [
    Reduction(operation, absolute)
    for operation in OPERATIONS
    for absolute in (False, True)
    if operation != "median"
]
EDGES: Final = [0.0, -0.0, 1.0, -3.5, 1e-45, 1e-38, -1e-30, 3e38, -3e38, np.nan, np.inf, -np.inf]


def sizes(dtype: str) -> list[int]:
    """Return numbers of elements around those of one and two pieces."""
    one = PIECE // rawtrial.dtype_of(dtype).itemsize
    return [1, one - 1, one, one + 1, 2 * one, 2 * one + 1]


def example(dtype: str, size: int, seed: int = 0) -> "np.ndarray":
    draw = np.random.default_rng([seed, size])
    return (draw.normal(0, 40, size) * draw.integers(0, 2, size)).astype(rawtrial.dtype_of(dtype))


def exact(array: "np.ndarray") -> "np.ndarray":
    """Return the elements as numbers in which nothing here is lost."""
    wide = {"f": np.float64, "V": np.float64, "u": np.uint64}
    return array.astype(wide.get(array.dtype.kind, np.int64))


@pytest.fixture
def _small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streaming_statistics, "PIECE_BYTES", PIECE)


class Noted:
    """Measures the pieces themselves."""

    def part(self, piece: Piece, before: Piece | None = None) -> Any:
        earlier = None if before is None else before.elements.tolist()
        return piece.elements.tolist(), earlier

    def join(self, parts: Sequence[Any], size: int, dtype: "np.dtype[Any]") -> Any:
        return [*parts], size, dtype


@pytest.mark.usefixtures("_small_pieces")
@pytest.mark.parametrize("dtype", REAL)
def test_pieces_are_the_whole_one_after_another(dtype: str) -> None:
    noted = Noted()
    length = piece_length(rawtrial.dtype_of(dtype))
    assert length == PIECE // rawtrial.dtype_of(dtype).itemsize
    for size in sizes(dtype):
        array, before = example(dtype, size), example(dtype, size, 1)
        pairs = [
            (array[at : at + length], before[at : at + length]) for at in range(0, size, length)
        ]
        alone = [(exact(part).tolist(), None) for part, _ in pairs]
        both = [(exact(part).tolist(), exact(other).tolist()) for part, other in pairs]
        assert measure(array, [noted])[noted] == (alone, size, array.dtype)
        assert measure(array, [noted], before)[noted] == (both, size, array.dtype)


@pytest.mark.usefixtures("_small_pieces")
def test_pieces_of_two_types_belong_together_too() -> None:
    one = Noted()
    result = measure(np.arange(20.0), [one], np.arange(20, dtype=np.float32))[one]
    assert [len(part) for part, _ in result[0]] == [8, 8, 4]
    assert [part == other for part, other in result[0]] == [True, True, True]


@pytest.mark.usefixtures("_small_pieces")
@pytest.mark.parametrize("dtype", REAL)
def test_counts_are_those_of_the_whole_array(dtype: str) -> None:
    zeros, wrong = ZeroCount(), NonFiniteCount()
    for size in sizes(dtype):
        array = example(dtype, size)
        if array.dtype.kind in "fV":
            array[0], array[-1] = np.nan, np.inf
        plain = exact(array)
        told = measure(array, [zeros, wrong])
        assert told[zeros] == ((plain == 0).sum(), size)
        assert told[wrong] == (
            np.isnan(plain).sum(),
            np.isinf(plain).sum(),
            size,
            array.dtype.kind,
        )


@pytest.mark.usefixtures("_small_pieces")
@pytest.mark.parametrize("dtype", [*FLOATS, "int8", "int64", "uint8", "bool"])
def test_differences_are_those_of_the_whole_arrays(dtype: str) -> None:
    change, tolerance = ChangeNorms(), Tolerance(0.5, 0.25)
    for size in sizes(dtype):
        array, before = example(dtype, size), example(dtype, size, 1)
        one, other = array.astype(np.float64), before.astype(np.float64)
        told = measure(array, [change, tolerance], before)
        norms = (np.linalg.norm(one - other), np.linalg.norm(other))
        assert told[change] == pytest.approx(norms, rel=1e-6)
        largest = (np.abs(one - other) / (0.25 + 0.5 * np.abs(one))).max()
        assert told[tolerance] == pytest.approx(largest, rel=1e-6)


@pytest.mark.usefixtures("_small_pieces")
@pytest.mark.parametrize("dtype", REAL)
def test_measures_together_tell_what_each_tells_alone(dtype: str) -> None:
    array = example(dtype, sizes(dtype)[-1])
    some: list[StreamingStatistic] = [*WANTED, ZeroCount(), NonFiniteCount()]
    together = measure(array, some)
    assert {one: told(measure(array, [one])[one]) for one in some} == {
        one: told(value) for one, value in together.items()
    }


def told(answer: Any) -> Any:
    """Return an answer so that equal ones are the same bit by bit."""
    return (answer.dtype, answer.tobytes()) if isinstance(answer, np.generic) else answer


def test_without_elements_there_is_one_empty_piece() -> None:
    one, empty = Noted(), np.zeros((0, 3), np.float32)
    assert measure(empty, [one])[one] == ([([], None)], 0, np.dtype(np.float32))
    assert float(compute(empty, "sum")) == 0.0


def test_order_of_dimensions_does_not_matter_to_where_elements_lie() -> None:
    one, array = Noted(), np.arange(6.0).reshape(2, 3)
    assert measure(array.T, [one])[one][0] == [([0.0, 3.0, 1.0, 4.0, 2.0, 5.0], None)]


@pytest.mark.parametrize("back", [1, 3])
def test_a_measure_gets_the_piece_of_its_own_distance(back: int) -> None:
    one, other = Noted(), Noted()
    pieces = {0: Piece(np.ones(1)), 1: Piece(np.zeros(1)), 3: Piece(np.full(1, 3.0))}
    wants = [(one, 0), (other, back)]
    found = measure_pieces([pieces], wants, 1, np.dtype(float))
    before = {1: 0.0, 3: 3.0}[back]
    assert [found[want][0] for want in wants] == [[([1.0], None)], [([1.0], [before])]]


# -- what several measures share ------------------------------------------------------------------


@pytest.mark.parametrize("spare", [None, np.zeros(3, np.float32)], ids=["new", "spare"])
def test_what_is_computed_once_lies_in_spare_memory_if_there_is_some(spare: Any) -> None:
    piece = Piece(np.array([-1.0, 2.0, -4.0], np.float32), spare)
    assert piece.magnitudes.tolist() == [1.0, 2.0, 4.0]
    assert piece.magnitudes is piece.magnitudes
    assert np.shares_memory(piece.magnitudes, piece.elements) is False
    assert (piece.magnitudes is spare) is (spare is not None)
    assert (piece.total(absolute=False), piece.total(absolute=True)) == (-3.0, 7.0)
    assert piece.doubles.tolist() == [-1.0, 2.0, -4.0]
    assert piece.doubles.dtype == np.dtype(np.float64)


@pytest.mark.parametrize("dtype", REAL)
@pytest.mark.parametrize("offset", [0, 1])
def test_comfortable_elements_are_aligned_and_equal(dtype: str, offset: int) -> None:
    array = example(dtype, 9)
    kept = np.zeros(array.nbytes + 1, np.uint8)
    kept[offset : offset + array.nbytes] = np.frombuffer(array.tobytes(), np.uint8)
    found = to_computable(kept[offset : offset + array.nbytes].view(array.dtype))
    assert found.flags.aligned
    assert exact(found).tolist() == exact(array).tolist()
    kind = array.dtype.kind
    expected = {"i": np.int64, "V": np.float32}.get(kind, array.dtype)
    assert found.dtype == (np.float32 if dtype == "float16" else expected)


# -- rows -----------------------------------------------------------------------------------------


@st.composite
def rows(draw: st.DrawFn) -> Any:
    """Return rows of any type, among whose elements are the largest and the least."""
    dtype = rawtrial.dtype_of(draw(st.sampled_from([*REAL, *FLOATS])))
    shape = draw(st.tuples(st.integers(1, 4), st.sampled_from([1, 2, 7, 8, 9, 33, 200])))
    seed = draw(st.integers(0, 1000))
    rng = np.random.default_rng(seed)
    if dtype.kind not in "fV":
        size = shape[0] * shape[1] * dtype.itemsize
        raw = np.frombuffer(rng.bytes(size), np.uint8)
        return (raw & 1 if dtype.kind == "b" else raw).view(dtype).reshape(shape)
    scale = draw(st.sampled_from([1.0, 1e-40, 1e-22, 1e18, 1e37, 1e300]))
    with np.errstate(all="ignore"):
        found = (rng.normal(size=shape) * scale).astype(dtype)
        edges = draw(st.lists(st.sampled_from(EDGES), max_size=3))
        for at, edge in enumerate(edges):
            found[at % shape[0], rng.integers(shape[1])] = edge
    return found


@given(rows())
def test_rows_tell_bit_by_bit_what_each_alone_tells(some: "np.ndarray") -> None:
    found = of_rows(some, WANTED)
    for one in WANTED:
        alone = [compute(row, *one) for row in some]
        assert [told(value) for value in found[one]] == [told(value) for value in alone]
        assert is_in_pieces(one, some.dtype, some.shape[1])


def test_rows_take_any_truth_value_for_magnitudes() -> None:
    some = np.array([[-1.0, 3.0]])
    reduction = Reduction("mean", "yes")  # type: ignore[arg-type] # as rules may call it
    assert of_rows(some, [reduction]) == {reduction: [2.0]}
    assert compute(some, *reduction) == 2.0


@pytest.mark.parametrize("dtype", ["complex64", "complex128", "<U3", "O"])
def test_what_is_no_real_number_is_not_told_in_pieces(dtype: str) -> None:
    assert not is_in_pieces(("mean", False), np.dtype(dtype), 3)


@pytest.mark.parametrize(
    ("operation", "size", "expected"),
    [("median", 3, False), ("nope", 3, False), ("mean", 0, False), ("sum", 0, True)],
)
def test_some_reductions_need_the_whole_or_are_missing(
    operation: str, size: int, expected: bool
) -> None:
    assert is_in_pieces((operation, False), np.dtype(np.float32), size) is expected


# -- single precision against double ---------------------------------------------------------------


@pytest.mark.parametrize("scale", [1e-45, 1e-40, 1e-25, 1e-20, 1.0, 1e18, 1e25, 3e38])
@pytest.mark.parametrize("size", [1, 3, 100])
def test_single_precision_tells_what_double_does_wherever_it_fits(scale: float, size: int) -> None:
    rng = np.random.default_rng(size)
    array = (rng.uniform(0.3, 1, size) * rng.choice([-1, 1], size) * scale).astype(np.float32)
    wide = array.astype(np.float64)
    wanted = [("sum", True), ("mean", True), ("std", False), ("l1", False), ("l2", False)]
    single, double = compute_all(array, wanted), compute_all(wide, wanted)
    for one in wanted:
        expected = float(double[one])
        expected = expected if expected <= float(np.finfo(np.float32).max) else np.inf
        assert float(single[one]) == pytest.approx(expected, rel=1e-5, abs=2 * 1e-45)
