"""The rules over kernels: healthy and faulty trainings, boundaries, and what is not judged."""

from pathlib import Path
from typing import Any

import pytest
from fake_profiler_trial import FakeProfilerTrial, Windows, event, judge_windows
from kineto_writer import Fault, KinetoTrace, write_training

from builtin_rules.profiler.statistics.window_rule import WindowRule
from builtin_rules.profiler.traces.gpu_idle_waits_for_host import GPUIdleWaitsForHost
from builtin_rules.profiler.traces.low_overlap import LowOverlap
from builtin_rules.profiler.traces.memory_grows import MemoryGrows
from builtin_rules.profiler.traces.small_kernels import SmallKernels
from builtin_rules.profiler.traces.straggler_rank import StragglerRank
from rule_core.trials.profiler_trial import ProfilerTrial

RULES: dict[Fault, type[WindowRule]] = {
    Fault.HOST: GPUIdleWaitsForHost,
    Fault.OVERLAP: LowOverlap,
    Fault.STRAGGLER: StragglerRank,
    Fault.SMALL: SmallKernels,
    Fault.MEMORY: MemoryGrows,
}


def opened(folder: Path) -> FakeProfilerTrial:
    events = ProfilerTrial("job", folder).framework_events(0, 1 << 53)
    trial = FakeProfilerTrial(events=events)
    trial.first_timestamp = int(events[0].end_time)
    return trial


def judged(folder: Path, rule: type[WindowRule], **parameters: Any) -> Windows:
    return judge_windows(rule, opened(folder), **parameters)


RANKS = {None: (1, 2, 8), Fault.OVERLAP: (2, 8), Fault.STRAGGLER: (2, 8)}  # others: 1, 2


@pytest.mark.parametrize(
    ("fault", "ranks"),
    [(fault, ranks) for fault in (None, *Fault) for ranks in RANKS.get(fault, (1, 2))],
)
def test_each_fault_meets_its_rule_and_no_healthy_training_any(
    tmp_path: Path, fault: Fault | None, ranks: int
) -> None:
    write_training(tmp_path, ranks, fault=fault)
    trial = opened(tmp_path)
    met = {cause for cause, rule in RULES.items() if judge_windows(rule, trial).met}
    expected = set() if fault is None else {fault}
    # Who waits for a straggler communicates without computing.
    assert met - ({Fault.OVERLAP} if fault is Fault.STRAGGLER else set()) == expected


def test_the_straggler_is_named(tmp_path: Path) -> None:
    write_training(tmp_path, 4, fault=Fault.STRAGGLER)
    findings = judged(tmp_path, StragglerRank).findings
    assert [finding.worker for finding in findings] == ["rank-1"]


def test_the_gpu_that_waits_is_named(tmp_path: Path) -> None:
    write_training(tmp_path, 2, fault=Fault.HOST)
    findings = judged(tmp_path, GPUIdleWaitsForHost).findings
    places = [(finding.worker, finding.tensor) for finding in findings]
    assert places == [("rank-0", "gpu0"), ("rank-1", "gpu1")]


def kernels_with_gaps(folder: Path, kernel_us: float, gap_us: float, count: int) -> None:
    trace = KinetoTrace()
    for number in range(count):
        start = number * (kernel_us + gap_us)
        trace.kernel("gemm", start, kernel_us, 7, max(start - gap_us / 2, 0.0))
    trace.write(folder)


@pytest.mark.parametrize(("threshold", "met"), [(19, [0]), (20, []), (21, [])])
def test_the_boundary_of_waits_for_the_process(
    tmp_path: Path, threshold: int, met: list[int]
) -> None:
    trace = KinetoTrace()
    trace.kernel("gemm", 0.0, 40.0, 7, 0.0)
    trace.kernel("gemm", 60.0, 40.0, 7, 50.0)
    trace.write(tmp_path)
    assert judged(tmp_path, GPUIdleWaitsForHost, threshold=threshold).met == met


@pytest.mark.parametrize(
    ("kernel_us", "count", "met"), [(8.0, 100, [0]), (10.0, 100, []), (8.0, 99, [])]
)
def test_the_boundaries_of_small_kernels(
    tmp_path: Path, kernel_us: float, count: int, met: list[int]
) -> None:
    kernels_with_gaps(tmp_path, kernel_us, 8.0, count)
    assert judged(tmp_path, SmallKernels).met == met


@pytest.mark.parametrize(("steps", "met"), [(7, [0]), (8, [])])
def test_memory_must_rise_at_as_many_steps_as_asked(
    tmp_path: Path, steps: int, met: list[int]
) -> None:
    write_training(tmp_path, fault=Fault.MEMORY)
    assert judged(tmp_path, MemoryGrows, steps=steps).met == met


def test_a_rise_of_memory_as_large_as_tolerated_is_none(tmp_path: Path) -> None:
    write_training(tmp_path, fault=Fault.MEMORY)  # 5 times 512 MiB, above 8 GiB
    assert judged(tmp_path, MemoryGrows, increase=31.25).met == []
    assert judged(tmp_path, MemoryGrows, increase=31).met == [0]


def test_collectives_of_which_a_rank_lacks_some_are_not_compared(tmp_path: Path) -> None:
    write_training(tmp_path, 2, fault=Fault.STRAGGLER)
    trace = KinetoTrace(rank=2, ranks=3)
    trace.collective(0.0, 10.0, 0.0)
    trace.write(tmp_path)
    assert judged(tmp_path, StragglerRank).met == [0]  # groups of two and of three ranks


@pytest.mark.parametrize("rule", RULES.values())
def test_events_of_other_profilers_are_not_judged(rule: type[WindowRule]) -> None:
    other = event("gemm", 1.0, 0.5, phase="gpu_functions-dev:0", device="0")
    result = judge_windows(rule, FakeProfilerTrial(events=[other]))
    assert (result.met, list(result.skipped)) == ([], [0])
