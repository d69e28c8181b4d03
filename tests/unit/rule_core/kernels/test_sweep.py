"""Sweep: reads files as they are, from any thread, and refuses tables that do not fit."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from fleets import wait_until
from kernels import using

from rule_core.kernels import sweep as sweep_module
from rule_core.kernels.operations import KernelCode, KernelOperation
from rule_core.kernels.sweep import (
    KERNEL,
    MAX_BACKS,
    Read,
    Sweep,
    SweepReadError,
    SweepRun,
    SweptPiece,
    has_kernel,
    is_supported,
    processors,
    sweep_arrays,
)

NEEDS_KERNEL: Final = pytest.mark.skipif(not has_kernel(), reason="the compiled kernel")
FLOAT: Final = np.dtype(np.float32)
SUM: Final = ((KernelOperation(KernelCode.TOTAL), 0),)


@pytest.fixture
def descriptor(tmp_path: Path) -> Iterator[int]:
    """A file of three bytes, a thousand numbers and two bytes."""
    path = tmp_path / "file"
    path.write_bytes(b"abc" + np.arange(1000, dtype=FLOAT).tobytes() + b"de")
    opened = os.open(path, os.O_RDONLY)
    yield opened
    os.close(opened)


def tasks() -> int:
    """Return the number of threads of this process."""
    return len([*Path("/proc/self/task").iterdir()])


def in_process(code: str, descriptor: int) -> None:
    """Run Python in a process that can import this file and has a descriptor."""
    command = [sys.executable, "-W", "ignore", "-c", code]
    path = os.pathsep.join([*sys.path, str(Path(__file__).parent)])
    subprocess.run(
        command, check=True, pass_fds=[descriptor], env=os.environ | {"PYTHONPATH": path}
    )


def pieces(size: int = 100) -> list[SweptPiece]:
    """Return the pieces of the numbers."""
    total = 4000
    return [
        SweptPiece(
            FLOAT,
            [
                Read(
                    0,
                    start + 3 * (start > 0),
                    3 if start == 0 else 0,
                    min(4 * size, total - start),
                    2 if start + 4 * size >= total else 0,
                    3 * (start > 0),
                )
            ],
            SUM,
        )
        for start in range(0, total, 4 * size)
    ]


@NEEDS_KERNEL
@pytest.mark.parametrize("threads", [1, 2, 7, 1000])
@pytest.mark.parametrize("size", [1, 33, 100, 1000])
def test_pieces_of_a_file_are_read_with_their_frames(
    descriptor: int, threads: int, size: int
) -> None:
    frames = bytearray(5)
    swept = Sweep(pieces(size), threads).run([descriptor], frames=frames)
    totals = [results[0].first for results in swept]
    numbers = np.arange(1000)
    assert totals == [float(numbers[at : at + size].sum()) for at in range(0, 1000, size)]
    assert not swept.truncated
    assert frames == b"abcde"


@NEEDS_KERNEL
def test_what_a_file_lacks_is_truncated_and_the_rest_is_measured(
    descriptor: int, tmp_path: Path
) -> None:
    os.truncate(tmp_path / "file", 3 + 4 * 250)
    swept = Sweep(pieces(100), 2).run([descriptor], frames=bytearray(5))
    assert swept.truncated == {*range(2, 10)}
    assert [results[0].first for results in swept][:2] == [4950.0, 14950.0]


@NEEDS_KERNEL
def test_a_file_that_cannot_be_read_is_named(descriptor: int, tmp_path: Path) -> None:
    folder = os.open(tmp_path, os.O_RDONLY)
    try:
        row = pieces(1000)[0]
        reads = [row.reads[0], row.reads[0]._replace(source=1)]
        with pytest.raises(SweepReadError) as caught:
            Sweep([SweptPiece(FLOAT, reads, SUM)]).run([descriptor, folder], frames=bytearray(5))
    finally:
        os.close(folder)
    assert (caught.value.source, caught.value.reason) == (1, "Is a directory")


@NEEDS_KERNEL
def test_threads_may_run_one_sweep_together(descriptor: int) -> None:
    swept = Sweep(pieces(10), 2)

    def totals(_: int) -> list[Any]:
        results = swept.run([descriptor], frames=bytearray(5))
        return [result[0].first for result in results]

    with ThreadPoolExecutor(3) as pool:
        every = [*pool.map(totals, range(30))]
    assert every == [[float(np.arange(at, at + 10).sum()) for at in range(0, 1000, 10)]] * 30


@NEEDS_KERNEL
@pytest.mark.parametrize("threads", [1, 2, 7])
def test_calls_of_a_run_have_results_of_their_own(descriptor: int, threads: int) -> None:
    sweeps = [Sweep(pieces(size), count) for size, count in ((10, threads), (1000, 1), (33, 2))]
    calls = [sweep.prepare([descriptor], frames=bytearray(5)) for sweep in sweeps]
    SweepRun(calls).finish()
    totals = [[results[0].first for results in call.results()] for call in calls]
    assert [sum(each) for each in totals] == [499500.0] * 3
    assert [*map(len, totals)] == [100, 1, 31]


@NEEDS_KERNEL
def test_a_run_begins_at_once_and_is_finished_once(descriptor: int) -> None:
    call = Sweep(pieces(10), 2).prepare([descriptor], frames=bytearray(5))
    run = SweepRun([call])
    totals = call.job[7]
    wait_until(lambda: totals[-1, 0])  # the other thread measures all of it
    run.finish()
    assert totals[:, 0].sum() == 499500.0
    with pytest.raises(ValueError, match="the run is finished"):
        run.finish()


@NEEDS_KERNEL
def test_with_one_thread_nothing_is_measured_before_the_end(descriptor: int) -> None:
    call = Sweep(pieces(10), 1).prepare([descriptor], frames=bytearray(5))
    threads = tasks()
    run = SweepRun([call])
    assert tasks() <= threads
    assert not call.job[7].any()
    run.finish()
    assert call.job[7][:, 0].sum() == 499500.0


@NEEDS_KERNEL
def test_a_run_that_is_released_ends_its_threads(descriptor: int) -> None:
    threads, frames, source = tasks(), bytearray(5), bytearray(8)
    sweep = Sweep(pieces(10), 4)
    for release in (SweepRun.release, lambda _: None):
        run = SweepRun([sweep.prepare([descriptor], [source], frames)])
        for buffer in (frames, source):
            with pytest.raises(BufferError):
                buffer.append(1)
        release(run)
        del run
        for buffer in (frames, source):
            buffer.append(1)
        wait_until(lambda: tasks() <= threads)


@NEEDS_KERNEL
def test_a_run_that_is_released_leaves_pieces(descriptor: int) -> None:
    sweep = Sweep(pieces(2), 2)

    def leaves_some() -> bool:
        call = sweep.prepare([descriptor], frames=bytearray(5))
        SweepRun([call]).release()
        return not call.job[7][:, 0].all()

    wait_until(leaves_some, 10)  # unless the other thread is faster, again and again


@NEEDS_KERNEL
def test_other_threads_take_no_signals(descriptor: int) -> None:
    sweep, folder = Sweep(pieces(1) * 10, 2), Path("/proc/self/task")
    before, status = {*folder.iterdir()}, ""

    def is_seen() -> bool:
        nonlocal status
        call = sweep.prepare([descriptor], frames=bytearray(5))
        run = SweepRun([call])
        wait_until(call.job[7].any)  # the C library blocks signals while a thread starts
        with suppress(OSError):  # it has ended
            status = "".join((task / "status").read_text() for task in {*folder.iterdir()} - before)
        run.finish()
        return "SigBlk" in status

    wait_until(is_seen)
    blocked = int(status.partition("SigBlk:")[2].split(maxsplit=1)[0], 16)
    assert blocked >> (signal.SIGTERM - 1) & 1


@NEEDS_KERNEL
def test_a_forked_process_measures_by_itself(descriptor: int) -> None:
    code = f"""if True:
        import os
        from test_sweep import Sweep, SweepRun, pieces, wait_until
        sweep = Sweep(pieces(10), 3)
        calls = [sweep.prepare([{descriptor}], frames=bytearray(5)) for _ in range(2)]
        run, other = (SweepRun([call]) for call in calls)
        totals = calls[0].job[7][:, 0]
        wait_until(lambda: totals.all())
        totals[:] = 0
        child = os.fork()
        if child:
            assert os.waitpid(child, 0)[1] == 0
            run.finish()
            assert not totals.any()
            other.finish()
            assert calls[1].job[7][:, 0].sum() == 499500.0
        else:
            other.release()
            run.finish()
            os._exit(int(totals.sum() != 499500.0))
    """
    in_process(code, descriptor)


@NEEDS_KERNEL
def test_a_process_may_exit_with_runs_that_are_not_finished(descriptor: int) -> None:
    code = f"""if True:
        import sys
        from test_sweep import Sweep, SweepRun, pieces
        sweep = Sweep(pieces(1), 7)
        def begin():
            return SweepRun([sweep.prepare([{descriptor}], frames=bytearray(5))])
        run, sys.kept = begin(), begin()
        kept = [begin()]
        kept.append(kept)
    """
    in_process(code, descriptor)


@NEEDS_KERNEL
@pytest.mark.parametrize("wrong", ["piece", "sources", "files"])
def test_jobs_before_one_that_does_not_fit_are_released(descriptor: int, wrong: str) -> None:
    frames = bytearray(5)
    sweep = Sweep(pieces(10), 2)
    fits, other = (sweep.prepare([descriptor], [b"12"], frames) for _ in range(2))
    rows, *rest = other.job
    if wrong == "piece":
        rows[-1, 0] = 99
    elif wrong == "sources":
        rest[3] = (b"12", 1)
    else:
        rest[2] = None
    threads = tasks()
    with pytest.raises((ValueError, TypeError)):
        SweepRun([fits, other._replace(job=(rows, *rest))])
    frames.append(1)
    assert tasks() <= threads


@NEEDS_KERNEL
@pytest.mark.parametrize(
    "read",
    [
        Read(0, -1, 0, 4, 0, 0),
        Read(0, 0, -1, 4, 0, 0),
        Read(0, 0, 6, 4, 0, 0),
        Read(0, 0, 3, 4, 3, 0),
        Read(0, 0, 3, 4, 0, 3),
        Read(0, 0, 3, 4, 0, -1),
        Read(1, 0, 0, 4, 0, 0),
        Read(-1, 0, 0, 8, 0, 0),
        Read(-1, 4, 0, 4, 0, 0),
        Read(-1, -1, 0, 4, 0, 0),
        Read(-1, 0, 1, 4, 0, 0),
        Read(-2, 0, 0, 4, 0, 0),
        Read(0, 0, 0, 5, 0, 0),
    ],
)
def test_reads_outside_their_buffers_are_refused(descriptor: int, read: Read) -> None:
    with pytest.raises(ValueError, match="piece 0 does not fit its buffers"):
        Sweep([SweptPiece(FLOAT, [read], SUM)]).run(
            [descriptor], sources=[bytes(4)], frames=bytearray(5)
        )


@NEEDS_KERNEL
def test_comparisons_outside_their_piece_are_refused() -> None:
    operation = KernelOperation(KernelCode.CHANGE)
    for back in (-1, 1, 2):
        with pytest.raises(ValueError, match="piece 0 does not fit"):
            sweep_arrays([np.ones(3)], ((operation, back),))
    reads = [Read(-1, 0, 0, 4, 0, 0)] * (MAX_BACKS + 2)
    with pytest.raises(ValueError, match="piece 0 does not fit"):
        Sweep([SweptPiece(FLOAT, reads, SUM)]).run(sources=[bytes(4)])
    with pytest.raises(ValueError, match="too many sources"):
        Sweep([]).run(sources=[bytes(4)] * 20)


@NEEDS_KERNEL
def test_values_that_do_not_fit_the_memory_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep_module, "_room", lambda _: 64)
    sweep_arrays([np.ones(16, np.float16)], SUM)
    with pytest.raises(ValueError, match="piece 0 does not fit"):
        sweep_arrays([np.ones(17, np.float16)], SUM)


@NEEDS_KERNEL
def test_a_piece_without_elements_has_results() -> None:
    operations = tuple((KernelOperation(code), 0) for code in KernelCode)
    results = sweep_arrays([np.ones(0)] * 2, operations[:3] + operations[11:13])
    assert [result.first for result in results] == [0.0] * 5


@NEEDS_KERNEL
def test_this_processor_is_used_to_its_best() -> None:
    flags = Path("/proc/cpuinfo").read_text("ascii")
    expected = ["baseline"]
    if os.uname().machine == "x86_64" and " avx2 " in flags:
        expected.append("avx2")
        if {"avx512f", "avx512bw", "avx512dq", "avx512vl"} <= {*flags.split()}:
            expected.append("avx512")
    assert [*processors()] == expected
    with pytest.raises(ValueError, match="'z80' is not among processors"), using("z80"):
        pass


def test_without_the_kernel_nothing_is_supported() -> None:
    with using(None):
        assert (has_kernel(), is_supported(FLOAT), processors()) == (False, False, ())
    assert is_supported(FLOAT) is has_kernel()


@NEEDS_KERNEL
@pytest.mark.parametrize("dtype", [">f4", "bool", "complex64", "<U3", "O", "float128", "M8[s]"])
def test_other_types_are_left_to_numpy(dtype: str) -> None:
    assert not is_supported(np.dtype(dtype))


@pytest.mark.parametrize("value", ["off", " OFF", ""])
def test_environment_switches_it_off(value: str) -> None:
    is_built = find_spec("rule_core.kernels._sweep") is not None
    code = "from rule_core.kernels.sweep import has_kernel; print(has_kernel())"
    command = [sys.executable, "-c", code]
    environ = os.environ | {KERNEL: value}
    found = subprocess.check_output(command, text=True, env=environ).strip()
    assert found == str(is_built and not value)


def test_it_may_be_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rule_core.kernels._sweep", None)
    assert sweep_module._load() is None
