"""SweptTensors: what is formed together is what each tensor comes to alone."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pytest
from kernels import using

from rule_core.kernels.operations import KernelOperation, KernelResult
from rule_core.kernels.sweep import Read, Sweep, SweptPiece, has_kernel
from rule_core.model.element_statistics import NonFiniteCount
from rule_core.model.reductions import Reduction
from rule_core.model.streaming_statistics import Piece, StreamingStatistic, measure
from rule_core.model.swept_tensors import Results, SweptTensor, SweptTensors

pytestmark = pytest.mark.skipif(not has_kernel(), reason="the compiled kernel")

STATISTICS: Final = (
    *(Reduction(name, absolute) for name in ("min", "max", "mean") for absolute in (False, True)),
    *(Reduction(name) for name in ("sum", "variance", "std", "l1", "l2")),
    NonFiniteCount(),
)


class Failing:
    """A statistic of a user that cannot be formed."""

    kernel_operation = Reduction("mean").kernel_operation

    def part(self, piece: Piece, before: Piece | None = None) -> Any:
        raise NotImplementedError(piece, before)

    def join(self, parts: Sequence[Any], size: int, dtype: "np.dtype[Any]") -> Any:
        raise ZeroDivisionError(parts, size, dtype)

    def kernel_part(self, result: KernelResult) -> Any:
        return result.first


def swept(
    values: dict[str, Any], statistics: Sequence[StreamingStatistic], length: int
) -> tuple[SweptTensors, Sweep]:
    """Return tensors in memory, cut into pieces of so many elements."""
    program = [(getattr(each, "kernel_operation", None), 0) for each in statistics]
    operations = tuple((one, back) for one, back in program if isinstance(one, KernelOperation))
    pieces: list[SweptPiece] = []
    tensors = []
    for source, (name, array) in enumerate(values.items()):
        first, step = len(pieces), length * array.itemsize
        for start in range(0, array.nbytes, step):
            read = Read(-1 - source, start, 0, min(step, array.nbytes - start), 0, 0)
            pieces.append(SweptPiece(array.dtype, [read], operations))
        wants = [(statistic, 0) for statistic in statistics]
        own = range(first, len(pieces))
        tensors.append(SweptTensor(name, array.size, array.dtype, wants, own))
    sweep = Sweep(pieces)
    return SweptTensors(tensors, sweep), sweep


def formed(
    values: dict[str, Any], statistics: Sequence[StreamingStatistic], length: int, without: str = ""
) -> Results:
    """Return the statistics of tensors."""
    results: Results = defaultdict(dict)
    tensors, sweep = swept(values, statistics, length)
    tensors.add_to(results, sweep.run(sources=[*values.values()]), {*without.split()})
    return results


@pytest.mark.parametrize("length", [4, 100])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "int32", "uint64"])
def test_each_tensor_comes_to_what_numpy_says(dtype: str, length: int) -> None:
    random = np.random.default_rng(0)
    values = {f"t{n}": (40 * random.standard_normal(7 + n // 2)).astype(dtype) for n in range(6)}
    if dtype.startswith("f"):
        values["t1"][3], values["t2"][:] = np.nan, np.inf
    results = formed(values, STATISTICS, length)
    with using(None), pytest.MonkeyPatch.context() as patch:
        item = np.dtype(dtype).itemsize
        patch.setattr("rule_core.model.streaming_statistics.PIECE_BYTES", length * item)
        for name, array in values.items():
            for statistic, expected in measure(array, STATISTICS).items():
                found = results[statistic, 0][name]
                assert type(found) is type(expected), (statistic, name)
                np.testing.assert_array_equal(found, expected, f"{statistic} of {name}")


def test_some_are_left_out() -> None:
    values = {
        name: np.arange(size, dtype=np.float32) for name, size in zip("abc", (3, 3, 9), strict=True)
    }
    together, apart = Reduction("mean"), NonFiniteCount()
    results = formed(values, [together, apart], 4, without="a c")
    assert results[together, 0] == {"b": np.float32(1)}
    assert [*results[apart, 0]] == ["b"]


def test_what_cannot_be_formed_is_left_out() -> None:
    values = {"a": np.ones(3, np.float32), "b": np.ones(3, np.float32)}
    failing = Failing()
    results = formed(values, [failing, Reduction("sum")], 4)
    assert not results.get((failing, 0))
    assert results[Reduction("sum"), 0] == {"a": 3, "b": 3}


def test_truncated_tensors_are_named() -> None:
    values = {name: np.ones(8, np.float32) for name in "ab"}
    tensors, sweep = swept(values, [Reduction("sum")], 4)
    results = sweep.run(sources=[*values.values()])
    assert tensors.truncated(results) == set()
    results.truncated = frozenset({3})
    assert tensors.truncated(results) == {"b"}
