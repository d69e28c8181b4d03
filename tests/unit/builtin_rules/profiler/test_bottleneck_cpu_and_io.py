"""CPUBottleneck and IOBottleneck: what is a snapshot, and in which windows they are met."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from fake_profiler_trial import FakeProfilerTrial, event, judge_windows
from profiler_writer import BEGIN_US, Series, cpu, gpu, io_wait, memory

from builtin_rules.profiler import bottleneck as module
from builtin_rules.profiler.bottleneck import NEVER_BOTH, TOO_FEW, Bottleneck
from builtin_rules.profiler.cpu_bottleneck import CPUBottleneck
from builtin_rules.profiler.io_bottleneck import IOBottleneck
from builtin_rules.profiler.statistics.samples import NO_GPU

N = 120
EARLY = {"patience": 0}
BOTH = pytest.mark.parametrize(
    ("rule", "core", "limit"),
    [
        pytest.param(CPUBottleneck, cpu, 90.0, id="processors"),
        pytest.param(IOBottleneck, io_wait, 50.0, id="reading"),
    ],
)
Make = Callable[..., Series]


def share(bad: int, of: int, good: float, worse: float) -> list[float]:
    """Return a minute of values of which `bad` of `of` are worse."""
    return ([worse] * bad + [good] * (of - bad)) * (N // of)


@BOTH
@pytest.mark.parametrize(
    ("waits", "holds", "params", "met"),
    [
        pytest.param(0.0, 100.0, EARLY, [0, 1], id="always"),
        pytest.param(9.9, 0.1, EARLY, [0, 1], id="just"),
        pytest.param(10.0, 0.1, EARLY, [], id="gpu-exactly"),
        pytest.param(9.9, 0.0, EARLY, [], id="core-exactly"),
        pytest.param(0.0, 100.0, {"patience": 120}, [1], id="exactly-patience"),
        pytest.param(0.0, 100.0, {"patience": 119}, [0, 1], id="one-more"),
        pytest.param(0.0, 100.0, {}, [], id="defaults"),
        pytest.param(0.0, 100.0, {**EARLY, "threshold": 100}, [], id="share-exactly"),
        pytest.param(20.0, 1.0, {**EARLY, "gpu_threshold": 21}, [0, 1], id="gpu_threshold"),
    ],
)
def test_windows(
    rule: type[Bottleneck],
    core: Make,
    limit: float,
    waits: float,
    holds: float,
    params: dict[str, Any],
    met: list[int],
) -> None:
    trial = FakeProfilerTrial(gpu([waits] * 2 * N), core([limit + holds] * 2 * N))
    assert judge_windows(rule, trial, **params).met == met


@pytest.mark.parametrize(
    ("bad", "threshold", "met"),
    [(60, 50, []), (61, 50, [0]), (30, 25, []), (31, 25, [0]), (120, 100, []), (1, 0, [0])],
)
def test_the_share_must_exceed_the_threshold(bad: int, threshold: int, met: list[int]) -> None:
    trial = FakeProfilerTrial(gpu([0.0] * N), cpu(share(bad, N, 1.0, 99.0)))
    judged = judge_windows(CPUBottleneck, trial, patience=0, threshold=threshold)
    assert judged.met == met
    assert (judged.report["Violations"], judged.report["Datapoints"]) == (bad, N)


def test_320_snapshots_with_105_bottlenecks_are_silent_by_default() -> None:
    trial = FakeProfilerTrial(gpu([0.0] * 320), cpu([99.0] * 105 + [5.0] * 215))
    judged = judge_windows(CPUBottleneck, trial)
    report = judged.report
    assert (report["RuleTriggered"], report["Violations"], report["Datapoints"]) == (0, 105, 320)
    assert judged.skipped == {0: TOO_FEW, 1: TOO_FEW, 2: TOO_FEW}


def test_319_of_320_snapshots_trigger_in_each_of_three_windows() -> None:
    trial = FakeProfilerTrial(gpu([5.0] * 319 + [100.0]), cpu([99.0] * 320))
    report = judge_windows(
        CPUBottleneck, trial, gpu_threshold=100, cpu_threshold=0, patience=0
    ).report
    assert (report["RuleTriggered"], report["Violations"], report["Datapoints"]) == (3, 319, 320)


def test_the_share_is_of_the_whole_job_and_recomputed() -> None:
    trial = FakeProfilerTrial(gpu([0.0] * N + [90.0] * 3 * N), cpu([99.0] * 4 * N))
    judged = judge_windows(CPUBottleneck, trial, patience=0)
    assert judged.met == [0]
    assert judged.report["Details"]["low_gpu_utilization"] == N


@pytest.mark.parametrize(
    ("late_s", "bottlenecks", "snapshots"),
    [
        pytest.param(0.0, N, N, id="same-time"),
        pytest.param(0.02, N, N, id="20-ms"),
        pytest.param(0.021, 0, 2 * N, id="more"),
    ],
)
def test_samples_within_20_ms_are_one_snapshot(
    late_s: float, bottlenecks: int, snapshots: int
) -> None:
    trial = FakeProfilerTrial(gpu([0.0] * N), cpu([99.0] * N, begin_s=late_s))
    report = judge_windows(CPUBottleneck, trial, patience=0).report
    assert (report["Violations"], report["Datapoints"]) == (bottlenecks, snapshots)


def test_samples_that_chain_are_split_after_20_ms() -> None:
    # 0, 15, 30, 45 ms: two snapshots of two samples each.
    chain = [cpu([99.0], f"cpu{at}", begin_s=0.015 * at) for at in range(4)]
    judged = judge_windows(CPUBottleneck, FakeProfilerTrial(gpu([0.0]), *chain), patience=0)
    assert (judged.report["Violations"], judged.report["Datapoints"]) == (1, 2)
    assert list(judged.report["Details"]["bottlenecks"].values()) == [
        {"GPUs": {"algo-1": {"gpu0": 0.0}}, "CPUs": {"algo-1": {"cpu0": 99.0, "cpu1": 99.0}}}
    ]


def test_a_snapshot_may_lie_on_the_border_of_two_windows() -> None:
    trial = FakeProfilerTrial(
        gpu([0.0, 0.0], begin_s=59.99, every_s=1.0),
        cpu([99.0, 5.0], begin_s=60.005, every_s=1.0),
    )
    judged = judge_windows(CPUBottleneck, trial, patience=0, threshold=40)
    assert (judged.report["Violations"], judged.report["Datapoints"]) == (1, 2)
    assert judged.skipped == {0: NEVER_BOTH}
    assert judged.met == [1]
    assert judged.report["Details"]["low_gpu_utilization"] == 2


def test_a_bottleneck_that_goes_on_across_the_border_counts_once() -> None:
    trial = FakeProfilerTrial(
        gpu([0.0], begin_s=59.99),
        cpu([99.0], begin_s=59.99),
        gpu([0.0], "gpu1", begin_s=60.005),
        cpu([99.0], "cpu1", begin_s=60.005),
    )
    report = judge_windows(CPUBottleneck, trial, patience=0).report
    assert (report["Violations"], report["Datapoints"]) == (1, 1)
    assert report["Details"]["low_gpu_utilization"] == 1


def test_a_gpu_of_one_node_does_not_wait_for_a_core_of_another() -> None:
    trial = FakeProfilerTrial(
        gpu([0.0] * N, node="algo-1"),
        cpu([5.0] * N, node="algo-1"),
        gpu([95.0] * N, node="algo-2"),
        cpu([99.0] * N, node="algo-2"),
    )
    report = judge_windows(CPUBottleneck, trial, patience=0, threshold=0).report
    assert (report["Violations"], report["Datapoints"]) == (0, 2 * N)


def test_the_node_and_the_gpu_that_waits_most_are_named() -> None:
    trial = FakeProfilerTrial(
        *(gpu([95.0] * N, node=node) for node in ("algo-1", "algo-2")),
        *(cpu([99.0] * N, node=node) for node in ("algo-1", "algo-2")),
        gpu([0.0] * N, "gpu1", node="algo-2"),
        gpu([5.0] * 119, "gpu2", node="algo-2"),
    )
    (finding,) = judge_windows(CPUBottleneck, trial, patience=0).findings
    assert (finding.worker, finding.tensor, finding.measured, finding.limit, finding.note) == (
        "algo-2",
        "gpu1",
        100.0,
        50,
        "120 of 120 snapshots; gpu1 waits in 120 of them.",
    )


def test_other_dimensions_make_no_snapshots() -> None:
    trial = FakeProfilerTrial(
        gpu([0.0] * N), cpu([99.0] * N), memory([50.0] * N, begin_s=0.1), io_wait([9.0] * N)
    )
    assert judge_windows(CPUBottleneck, trial, patience=0).report["Datapoints"] == N


def test_what_is_not_judged() -> None:
    trial = FakeProfilerTrial(
        cpu([99.0] * 3 * N), gpu([0.0] * N, begin_s=60.1), gpu([np.nan] * N, begin_s=120.0)
    )
    judged = judge_windows(CPUBottleneck, trial)
    assert judged.skipped == {0: NO_GPU, 1: NEVER_BOTH, 2: NO_GPU}


def test_the_report_keeps_some_bottlenecks_of_very_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ENTRIES", 10)
    trial = FakeProfilerTrial(gpu([0.0] * 2 * N), cpu([99.0] * 2 * N))
    found = judge_windows(CPUBottleneck, trial, patience=0).report["Details"]["bottlenecks"]
    seconds = [float(time) - BEGIN_US / 1e6 for time in found]
    assert seconds == [0, 16, 32, 48, 64, 80, 96, 112]


def test_the_report_says_what_the_framework_did_at_the_bottlenecks() -> None:
    events = [
        event("Step:ModeKeys.TRAIN", 0.0, 1.2),
        event("conv", 0.4, 0.3, phase="gpu_functions-dev:0"),
        event("copy", 0.9, 0.2, phase="cpu_functions"),
        event("elsewhere", 1.6, 0.3, phase="cpu_functions"),
        event("Step:ModeKeys.TRAIN", 1.9, 62.0),  # ends in the next window
    ]
    trial = FakeProfilerTrial(gpu([0.0] * N), cpu([99.0] * 4 + [1.0] * 116), events=events)
    details = judge_windows(CPUBottleneck, trial, patience=0).report["Details"]
    assert details["phase"] == {"Step:ModeKeys.TRAIN": 75.0, "others": 25.0}
    assert details["CPU"] == {"copy": 100.0}
    assert details["GPU_total"] == {"conv": 300_000}
    assert details["ratio"] == {"GPU": 60.0, "CPU": 40.0}


def test_order_of_the_reported_parameters() -> None:
    trial = FakeProfilerTrial(gpu([1.0]))
    names = {
        rule: judge_windows(rule, trial).report["RuleParameters"]
        for rule in (CPUBottleneck, IOBottleneck)
    }
    assert names == {
        CPUBottleneck: "threshold:50\ncpu_threshold:90\ngpu_threshold:10\npatience:1000",
        IOBottleneck: "threshold:50\nio_threshold:50\ngpu_threshold:10\npatience:1000",
    }
