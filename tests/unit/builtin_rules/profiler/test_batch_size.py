"""BatchSize: which windows meet it, and which are skipped."""

from typing import Any

import numpy as np
import pytest
from fake_profiler_trial import FakeProfilerTrial, judge_windows
from profiler_writer import BEGIN_US, cpu, gpu, memory

from builtin_rules.profiler.batch_size import TOO_FEW, BatchSize
from builtin_rules.profiler.statistics.samples import NO_GPU

EARLY = {"patience": 100, "window": 100}
N = 120


@pytest.mark.parametrize(
    ("used", "params", "met"),
    [
        pytest.param((30, 30, 30), EARLY, [0, 1], id="room-everywhere"),
        pytest.param((80, 30, 30), EARLY, [], id="processors-busy"),
        pytest.param((30, 80, 30), EARLY, [], id="gpu-busy"),
        pytest.param((30, 30, 80), EARLY, [], id="memory-full"),
        pytest.param((69, 69, 69), EARLY, [0, 1], id="just-below"),
        pytest.param((70, 69, 69), EARLY, [], id="processors-exactly"),
        pytest.param((69, 70, 69), EARLY, [], id="gpu-exactly"),
        pytest.param((69, 69, 70), EARLY, [], id="memory-exactly"),
        pytest.param((30, 30, 130), EARLY, [], id="above-100"),
        pytest.param((50, 30, 30), {**EARLY, "cpu_threshold_p95": 50}, [], id="cpu_threshold"),
        pytest.param((30, 50, 30), {**EARLY, "gpu_threshold_p95": 50}, [], id="gpu_threshold"),
        pytest.param(
            (30, 30, 50), {**EARLY, "gpu_memory_threshold_p95": 50}, [], id="memory_threshold"
        ),
        pytest.param((30, 30, 30), {"patience": 120, "window": 9}, [1], id="exactly-patience"),
        pytest.param((30, 30, 30), {"patience": 9, "window": 120}, [1], id="exactly-window"),
        pytest.param((30, 30, 30), {"patience": 9, "window": 119}, [0, 1], id="one-more"),
        pytest.param((30, 30, 30), {}, [], id="defaults"),
    ],
)
def test_windows(used: tuple[float, ...], params: dict[str, Any], met: list[int]) -> None:
    busy, working, full = ([value] * 2 * N for value in used)
    trial = FakeProfilerTrial(cpu(busy), gpu(working), memory(full))
    assert judge_windows(BatchSize, trial, **params).met == met


def test_processors_are_the_mean_over_the_cores_of_the_node() -> None:
    trial = FakeProfilerTrial(
        cpu([100.0] * N, "cpu0"),
        cpu([30.0] * N, "cpu1"),
        # Not quite at the same time, and a node with more cores.
        cpu([100.0] * N, "cpu0", node="algo-2"),
        cpu([30.0] * N, "cpu1", node="algo-2", begin_s=0.01),
        cpu([100.0] * N, "cpu2", node="algo-2", begin_s=0.02),
        *(gpu([10.0] * N, node=node) for node in ("algo-1", "algo-2")),
        *(memory([10.0] * N, node=node) for node in ("algo-1", "algo-2")),
    )
    judged = judge_windows(BatchSize, trial, **EARLY)
    assert [(one.worker, one.tensor) for one in judged.findings] == [("algo-1", "gpu0")]
    assert judged.findings[0].note == "Memory 10 percent, processors 65 percent."
    details = judged.report["Details"]
    assert round(details["algo-2"]["cpu"]["p50"], 3) == 76.667
    assert judged.report["Datapoints"] == N


def test_each_gpu_counts() -> None:
    trial = FakeProfilerTrial(
        cpu([10.0] * N),
        *(gpu([10.0] * N, name) for name in ("gpu0", "gpu1", "gpu2")),
        *(memory([10.0] * N, name) for name in ("gpu0", "gpu1")),  # of gpu2 nothing is known
    )
    judged = judge_windows(BatchSize, trial, **EARLY)
    assert [one.tensor for one in judged.findings] == ["gpu0", "gpu1"]
    assert (judged.report["RuleTriggered"], judged.report["Violations"]) == (2, 2)


def test_only_the_newest_data_points_count() -> None:
    trial = FakeProfilerTrial(
        cpu([10.0] * 3 * N), gpu([95.0] * N + [10.0] * 2 * N), memory([10.0] * 3 * N)
    )
    assert judge_windows(BatchSize, trial, patience=0, window=100).met == [1, 2]


def test_without_gpus_nothing_is_judged() -> None:
    judged = judge_windows(BatchSize, FakeProfilerTrial(cpu([10.0] * 216)))
    assert judged.skipped == {0: NO_GPU, 1: NO_GPU}
    box = {"p25": 10.0, "p50": 10.0, "p75": 10.0, "p95": 10.0, "upper": 10.0, "lower": 10.0}
    assert judged.report == {
        "RuleTriggered": 0,
        "Violations": 0,
        "Datapoints": 216,
        "RuleParameters": (
            "cpu_threshold_p95:70\ngpu_threshold_p95:70\n"
            "gpu_memory_threshold_p95:70\npatience:1000\nwindow:500"
        ),
        "Details": {"algo-1": {"cpu": box}, "last_timestamp": BEGIN_US + 60_000_000},
    }


def test_before_patience_nothing_is_judged() -> None:
    trial = FakeProfilerTrial(cpu([10.0] * N), gpu([10.0] * N), memory([10.0] * N))
    judged = judge_windows(BatchSize, trial)
    assert judged.skipped == {0: TOO_FEW}


def test_details() -> None:
    values = np.arange(101.0)
    trial = FakeProfilerTrial(cpu(values), gpu([*values[:-1], 1000.0]), memory(values / 2))
    details = judge_windows(BatchSize, trial).report["Details"]["algo-1"]
    assert details["gpu0"] == {
        "p25": 25.0,
        "p50": 50.0,
        "p75": 75.0,
        "p95": 95.0,
        "upper": 150.0,
        "lower": 0.0,
    }
    assert details["gpu0_memory"]["p95"] == 47.5
