#!/usr/bin/env python3
"""Compares libraries by one task: counts, extremes and sums of 65,536 float32 in the cache.

NaN, infinite and zero elements are counted; the minimum, the maximum, and the sums of elements, of
magnitudes and of squares are computed. Prints a row of a Markdown table for each library that is
installed; docs/decisions/0070-compiled-code-for-statistics.md has the last one.

    pip install bottleneck numba numexpr numkong polars pyarrow simsimd
    python benchmarks/speed/one_pass.py
"""

import math
import os
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, Final

os.environ |= {"NUMEXPR_NUM_THREADS": "1", "POLARS_MAX_THREADS": "1"}
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np

from rule_core.kernels.operations import KernelCode, KernelOperation
from rule_core.kernels.sweep import Read, Sweep, SweptPiece, processors

SIZE: Final = 65_536
ROUNDS: Final = 41
CALLS: Final = 10  # of a round
CODES: Final = (
    *(KernelCode.NOT_FINITE, KernelCode.ZEROS, KernelCode.MINIMUM, KernelCode.MAXIMUM),
    *(KernelCode.SUM, KernelCode.SUM_MAGNITUDE, KernelCode.SQUARES),
)
Measure = Callable[[Any], tuple[float, ...]]
Call = Callable[[Any], object]


def counts(x: Any) -> tuple[float, ...]:
    """Return the three counts by numpy, for libraries that have none."""
    nan, infinite = np.count_nonzero(np.isnan(x)), np.count_nonzero(np.isinf(x))
    return nan, infinite, x.size - np.count_nonzero(x)


def by_numpy(x: Any) -> tuple[float, ...]:
    """Measure with numpy alone."""
    return (*counts(x), x.min(), x.max(), x.sum(), np.abs(x).sum(), np.dot(x, x))


def by_numpy_doubles(x: Any) -> tuple[float, ...]:
    """Measure with numpy alone, with sums in float64."""
    magnitudes, double = np.abs(x), np.float64
    squares = np.square(x, dtype=double).sum()
    sums = x.sum(dtype=double), magnitudes.sum(dtype=double), squares
    return (*counts(x), x.min(), x.max(), *sums)


def by_bottleneck() -> tuple[Measure, Call]:
    """Return what measures with Bottleneck, and its sum of squares."""
    bn: Any = import_module("bottleneck")

    def measure(x: Any) -> tuple[float, ...]:
        sums = bn.nansum(x), bn.nansum(np.abs(x)), bn.ss(x)
        return (*counts(x), bn.nanmin(x), bn.nanmax(x), *sums)

    return measure, bn.ss


def by_numexpr() -> tuple[Measure, Call]:
    """Return what measures with numexpr, and its sum of squares."""
    ne: Any = import_module("numexpr")
    texts = (
        *("sum(where(x != x, 1, 0))", "sum(where(abs(x) == inf, 1, 0))"),
        *("sum(where(x == 0, 1, 0))", "min(x)", "max(x)", "sum(x)", "sum(abs(x))", "sum(x * x)"),
    )
    names = {"inf": np.float32(np.inf)}

    def measure(x: Any) -> tuple[float, ...]:
        return tuple(float(ne.evaluate(text, {"x": x} | names)) for text in texts)

    return measure, lambda x: ne.evaluate(texts[-1], {"x": x})


def by_pyarrow() -> tuple[Measure, Call]:
    """Return what measures with pyarrow, and its sum of squares."""
    pa: Any = import_module("pyarrow")
    pc: Any = import_module("pyarrow.compute")
    pa.set_cpu_count(1)

    def measure(x: Any) -> tuple[float, ...]:
        values = pa.Array.from_buffers(pa.float32(), x.size, [None, pa.py_buffer(x)])
        flags = pc.is_nan(values), pc.is_inf(values), pc.equal(values, np.float32(0))
        limits = pc.min_max(values)
        sums = values, pc.abs(values), pc.multiply(values, values)
        every = (*map(pc.sum, flags), limits["min"], limits["max"], *map(pc.sum, sums))
        return tuple(value.as_py() for value in every)

    return measure, lambda x: pc.sum(pc.multiply(pa.array(x), pa.array(x)))


def by_polars() -> tuple[Measure, Call]:
    """Return what measures with polars, and its sum of squares."""
    pl: Any = import_module("polars")
    x = pl.col("x")
    every = [
        *(x.is_nan().sum(), x.is_infinite().sum(), (x == 0).sum(), x.min(), x.max()),
        *(x.sum(), x.abs().sum(), (x * x).sum()),
    ]
    named = [expression.alias(str(index)) for index, expression in enumerate(every)]

    def measure(values: Any) -> tuple[float, ...]:
        return tuple(pl.DataFrame({"x": values}).select(named).row(0))

    return measure, lambda values: pl.DataFrame({"x": values}).select(named[-1])


def by_simsimd() -> tuple[Measure, Call]:
    """Return what measures with SimSIMD, and its sum of squares."""
    simsimd: Any = import_module("simsimd")

    def measure(x: Any) -> tuple[float, ...]:
        return (*counts(x), x.min(), x.max(), x.sum(), np.abs(x).sum(), simsimd.dot(x, x))

    return measure, lambda x: simsimd.dot(x, x)


def by_numkong() -> tuple[Measure, Call]:
    """Return what measures with NumKong, and its sum of squares."""
    nk: Any = import_module("numkong")

    def measure(x: Any) -> tuple[float, ...]:
        least, _, most, _ = nk.minmax(x)
        total, squares = nk.moments(x)
        return (*counts(x), least, most, total, nk.sum(np.abs(x)), squares)

    return measure, nk.moments


def by_numba() -> tuple[Measure, Call]:
    """Return what measures with Numba, in one loop, and its sum of squares."""
    numba: Any = import_module("numba")

    def measure(x: Any) -> tuple[float, ...]:
        nan = infinite = zeros = 0
        least, most = np.float32(np.inf), np.float32(-np.inf)
        total = magnitudes = squares = 0.0
        for value in x:
            nan += value != value
            infinite += abs(value) == np.float32(np.inf)
            zeros += value == 0
            least = value if value < least else least
            most = value if value > most else most
            double = np.float64(value)
            total += double
            magnitudes += abs(double)
            squares += double * double
        return nan, infinite, zeros, least, most, total, magnitudes, squares

    compiled: Measure = numba.njit(nogil=True, fastmath={"reassoc", "nsz"})(measure)
    return compiled, compiled


def by_kernel() -> tuple[Measure, Call]:
    """Return what measures with the kernel of this project, and its sum of squares."""
    operations = tuple((KernelOperation(code), 0) for code in CODES)
    sweeps: dict[int, Sweep] = {}  # prepared once, as for the tensors of a trial

    def measure(x: Any) -> tuple[float, ...]:
        if x.size not in sweeps:
            read = Read(-1, 0, 0, x.nbytes, 0, 0)
            sweeps[x.size] = Sweep([SweptPiece(x.dtype, [read], operations)])
        (results,) = sweeps[x.size].run(sources=[x.view(np.uint8)])
        unfinite, zeros, *others = results
        return (unfinite.first, unfinite.second, zeros.first, *(each.first for each in others))

    return measure, measure


def contenders() -> Iterator[tuple[str, Measure, Call]]:
    """Yield the name and functions of everything that is installed."""
    yield "numpy", by_numpy, np.square
    yield "numpy, sums in float64", by_numpy_doubles, np.square
    for name, make in (
        ("Bottleneck; counts by numpy", by_bottleneck),
        ("numexpr", by_numexpr),
        ("pyarrow.compute", by_pyarrow),
        ("polars", by_polars),
        ("SimSIMD; all but squares by numpy", by_simsimd),
        ("NumKong; counts and magnitudes by numpy", by_numkong),
        ("Numba", by_numba),
    ):
        try:
            yield name, *make()
        except ImportError as err:
            sys.stderr.write(f"{err}\n")
    if processors():
        yield f"the kernel ({processors()[-1]})", *by_kernel()


def error(results: tuple[float, ...], x: Any) -> float:
    """Return the largest relative error of the sums; counts and extremes must be exact."""
    assert tuple(map(float, results[:5])) == tuple(map(float, by_numpy(x)[:5]))
    double = x.astype(np.float64)
    magnitudes, squares = math.fsum(abs(double)), math.fsum(double**2)
    exact = math.fsum(double), magnitudes, squares
    sizes = magnitudes, magnitudes, squares
    rows = zip(results[5:], exact, sizes, strict=True)
    return max(abs(float(result) - value) / size for result, value, size in rows)


def releases_lock(call: Call, x: Any) -> bool:
    """Return whether another thread runs during a call: it never stands still for long."""
    sys.setswitchinterval(1e-4)  # far less than a call takes
    shares = []
    for _ in range(5):
        ended, spans, longest = threading.Event(), list[float](), 0.0

        def work(spans: list[float] = spans, ended: threading.Event = ended) -> None:
            time.sleep(0.02)
            start = time.perf_counter()
            call(x)
            spans.append(time.perf_counter() - start)
            ended.set()

        thread = threading.Thread(target=work)
        thread.start()
        last = time.perf_counter()
        while not ended.is_set():
            now = time.perf_counter()
            longest, last = max(longest, now - last), now
        thread.join()
        shares.append(longest / spans[0])
    return min(shares) < 0.4


def main() -> None:
    """Measure in turns, and print the table."""
    x = np.random.default_rng(1).normal(0.1, 1, SIZE).astype(np.float32)
    x[::1000] = 0
    everything = list(contenders())
    times: dict[str, list[float]] = {name: [] for name, _, _ in everything}
    for _ in range(ROUNDS):
        for name, measure, _ in everything:
            measure(x)
            start = time.process_time_ns()
            for _ in range(CALLS):
                measure(x)
            times[name].append((time.process_time_ns() - start) / CALLS / 1000)
    large = np.tile(x, 1600)
    print("| library | us | relative error | releases the lock |")
    print("|---|---|---|---|")
    for name, measure, call in everything:
        median, wrong = statistics.median(times[name]), error(measure(x), x)
        released = "yes" if releases_lock(call, large) else "no"
        print(f"| {name} | {median:.0f} | {wrong:.0e} | {released} |")


if __name__ == "__main__":
    main()
