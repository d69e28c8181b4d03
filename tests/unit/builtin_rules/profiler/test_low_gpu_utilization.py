"""LowGPUUtilization: which windows meet it, and which are skipped."""

from typing import Any

import numpy as np
import pytest
from fake_profiler_trial import FakeProfilerTrial, judge_windows
from profiler_writer import BEGIN_US, cpu, gpu

from builtin_rules.profiler.low_gpu_utilization import TOO_FEW, LowGPUUtilization
from builtin_rules.profiler.statistics.samples import NO_GPU

EARLY = {"patience": 0, "window": 100}
BUSY = [95.0] * 120
IDLE = [5.0] * 120
SOON = {"patience": 0}
ONE_PAUSE = [*BUSY * 9, *BUSY[:90], *[0.0] * 30]


@pytest.mark.parametrize(
    ("values", "params", "met"),
    [
        pytest.param(BUSY * 3, EARLY, [], id="busy"),
        pytest.param(IDLE * 2, EARLY, [0, 1], id="idle"),
        pytest.param([70.0] * 120, EARLY, [], id="exactly-p95"),
        pytest.param([69.9] * 120, EARLY, [0], id="below-p95"),
        pytest.param([0.0, *[95.0] * 9] * 12, EARLY, [0], id="fluctuates"),
        pytest.param([10.0, *[95.0] * 9] * 12, EARLY, [], id="exactly-p5"),
        pytest.param([0.0, *[70.0] * 9] * 12, EARLY, [], id="neither-at-exactly-p95"),
        pytest.param([0.0] * 4 + [95.0] * 96, EARLY, [], id="too-rare-to-be-p5"),
        pytest.param(BUSY + IDLE * 2, EARLY, [1, 2], id="becomes-idle"),
        pytest.param(IDLE + BUSY * 2, EARLY, [0], id="only-the-newest-count"),
        pytest.param(IDLE * 2, {"patience": 120, "window": 9}, [1], id="exactly-patience"),
        pytest.param(IDLE * 2, {"patience": 119, "window": 9}, [0, 1], id="one-more"),
        pytest.param(IDLE, {"patience": 10, "window": 500}, [0], id="shorter-than-window"),
        pytest.param(ONE_PAUSE, SOON, [], id="one-pause"),
        pytest.param(ONE_PAUSE, {**SOON, "window": 499}, [9], id="in-a-given-window"),
        pytest.param(ONE_PAUSE, {**SOON, "threshold_p5": 9}, [9], id="below-a-given-threshold"),
        pytest.param(ONE_PAUSE, {**SOON, "threshold_p5": 10}, [], id="a-default-is-not-given"),
        pytest.param(ONE_PAUSE, {**SOON, "literal": True}, [9], id="one-pause-literal"),
        pytest.param([*BUSY, *[*BUSY[:100], *[0.0] * 20] * 2], EARLY, [1, 2], id="two-pauses"),
        pytest.param([120.0] * 120, EARLY, [], id="above-100"),
        pytest.param([np.nan, *[95.0] * 119], EARLY, [], id="not-a-number"),
        pytest.param([5.0] * 5, {"patience": 4}, [0], id="last-window-is-short"),
        pytest.param(IDLE * 9, {}, [8], id="defaults"),
        pytest.param([30.0] * 120, {**EARLY, "threshold_p95": 30}, [], id="threshold_p95"),
        pytest.param([4.0, 95.0] * 60, {**EARLY, "threshold_p5": 4}, [], id="threshold_p5"),
    ],
)
def test_windows(values: list[float], params: dict[str, Any], met: list[int]) -> None:
    assert judge_windows(LowGPUUtilization, FakeProfilerTrial(gpu(values)), **params).met == met


def test_no_gpu_and_too_few_data_points_are_no_health() -> None:
    trial = FakeProfilerTrial(cpu([5.0] * 360), gpu(BUSY, begin_s=60.0))
    judged = judge_windows(LowGPUUtilization, trial)
    assert judged.skipped == {0: NO_GPU, 1: TOO_FEW, 2: NO_GPU}
    assert judged.report["RuleTriggered"] == 0


def test_each_gpu_of_each_node_is_judged_and_named() -> None:
    trial = FakeProfilerTrial(
        gpu(BUSY, "gpu0"),
        gpu(IDLE, "gpu1"),
        gpu([0.0, 95.0] * 60, "gpu0", node="algo-2"),
    )
    judged = judge_windows(LowGPUUtilization, trial, **EARLY)
    assert [(one.worker, one.tensor, one.measured, one.limit) for one in judged.findings] == [
        ("algo-1", "gpu1", 5.0, 70),
        ("algo-2", "gpu0", 0.0, 10),
    ]
    assert [one.note for one in judged.findings] == [
        "Underused.",
        "Fluctuates: its 95th percentile is 95 percent.",
    ]
    assert (judged.report["RuleTriggered"], judged.report["Violations"]) == (2, 2)


def test_a_gpu_that_appears_late_and_a_node_that_dies() -> None:
    trial = FakeProfilerTrial(
        gpu(BUSY * 3), gpu(IDLE, "gpu1", begin_s=120.0), gpu(IDLE, node="algo-2")
    )
    judged = judge_windows(LowGPUUtilization, trial, **EARLY)
    assert [(one.step, one.worker, one.tensor) for one in judged.findings] == [
        (0, "algo-2", "gpu0"),
        (2, "algo-1", "gpu1"),
    ]


def test_a_clock_that_jumps_leaves_windows_without_samples() -> None:
    trial = FakeProfilerTrial(gpu(IDLE), gpu(IDLE, begin_s=180.0), gpu(IDLE, begin_s=30.0))
    judged = judge_windows(LowGPUUtilization, trial, **EARLY)
    assert (judged.met, judged.skipped) == ([0, 1, 3], {2: NO_GPU})


def test_report() -> None:
    trial = FakeProfilerTrial(gpu([*[10.0] * 100, *[20.0] * 20]))
    report = judge_windows(LowGPUUtilization, trial, patience=0, window=20).report
    assert report == {
        "RuleTriggered": 1,
        "Violations": 1,
        "Datapoints": 120,
        "RuleParameters": "threshold_p95:70\nthreshold_p5:10\nwindow:20\npatience:0",
        "Details": {
            "algo-1": {
                "gpu0": {
                    "gpu_max": 20.0,
                    "gpu_95": 20.0,
                    "gpu_5": 20.0,
                    "p25": 10.0,
                    "p50": 10.0,
                    "p75": 10.0,
                    "p95": 20.0,
                    "upper": 10.0,
                    "lower": 10.0,
                }
            },
            "last_timestamp": BEGIN_US,
        },
    }
