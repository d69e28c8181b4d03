"""GPUMemoryIncrease: which windows meet it, and which are skipped."""

from typing import Any

import numpy as np
import pytest
from fake_profiler_trial import FakeProfilerTrial, judge_windows
from profiler_writer import cpu, memory

from builtin_rules.profiler.gpu_memory_increase import NO_MEMORY, TOO_FEW, GPUMemoryIncrease

EARLY = {"patience": 0}
N = 120


def jump(at: int, low: float, high: float, n: int = 2 * N) -> list[float]:
    return [low] * at + [high] * (n - at)


@pytest.mark.parametrize(
    ("values", "params", "violations"),
    [
        pytest.param([50.0] * 2 * N, EARLY, {}, id="constant"),
        pytest.param(jump(60, 10, 90), EARLY, {0: 10}, id="jump"),
        pytest.param(jump(60, 90, 10), EARLY, {}, id="fall"),
        pytest.param(jump(60, 20, 70), EARLY, {}, id="exactly-the-increase"),
        pytest.param(jump(60, 20, 70.2), EARLY, {0: 10}, id="more-than-the-increase"),
        pytest.param(jump(115, 10, 90), EARLY, {0: 5, 1: 5}, id="across-windows"),
        # Data points are counted from 1: the first one that is judged is the twelfth.
        pytest.param(jump(2, 10, 90), EARLY, {0: 1}, id="one-more-than-window-and-one"),
        pytest.param(jump(1, 10, 90), EARLY, {}, id="exactly-window-and-one"),
        pytest.param(jump(60, 10, 90), {"patience": 70}, {}, id="exactly-patience"),
        pytest.param(jump(60, 10, 90), {"patience": 69}, {0: 1}, id="one-more-than-patience"),
        pytest.param(jump(60, 10, 90), {"patience": 130}, {}, id="patience-of-two-windows"),
        pytest.param(jump(60, 10, 21), {**EARLY, "increase": 1}, {0: 10}, id="increase"),
        pytest.param(jump(60, 10, 21), {**EARLY, "window": 2}, {0: 2}, id="window"),
        pytest.param(np.linspace(0, 100, 2 * N), EARLY, {}, id="slow-leak"),
        pytest.param(
            np.linspace(0, 120, 2 * N + 1)[:-1],
            {**EARLY, "slow": True},
            {},
            id="slow-leak-exactly",
        ),
        pytest.param(
            np.linspace(0, 144, 2 * N + 1)[:-1],
            {**EARLY, "slow": True, "window": 50},
            {0: 21, 1: 120},
            id="slow-leak-slow",
        ),
        pytest.param(jump(60, 10, 90), {}, {}, id="defaults"),
        pytest.param([10.0] * 1100 + [90.0] * 40, {}, {9: 10}, id="late"),
        pytest.param([10.0] * 60 + [np.nan] + [90.0] * 59, EARLY, {0: 10}, id="not-a-number"),
    ],
)
def test_windows(values: Any, params: dict[str, Any], violations: dict[int, int]) -> None:
    judged = judge_windows(GPUMemoryIncrease, FakeProfilerTrial(memory(values)), **params)
    notes = {one.step: int((one.note or "").split()[1]) for one in judged.findings}
    assert (judged.met, notes) == (list(violations), violations)
    total = sum(violations.values())
    assert (judged.report["Violations"], judged.report["RuleTriggered"]) == (total, total)


def test_how_a_finding_reads() -> None:
    trial = FakeProfilerTrial(memory(jump(60, 10, 90), "gpu3", node="algo-2"))
    (finding,) = judge_windows(GPUMemoryIncrease, trial, patience=0).findings
    assert (finding.worker, finding.tensor, finding.measured, finding.limit, finding.note) == (
        "algo-2",
        "gpu3",
        8.0,
        5,
        "At 10 data points; memory use is at 90 percent.",
    )


def test_what_is_not_judged() -> None:
    trial = FakeProfilerTrial(cpu([1.0] * 2 * N), memory([1.0] * N, begin_s=60.0))
    judged = judge_windows(GPUMemoryIncrease, trial)
    assert judged.skipped == {0: NO_MEMORY, 1: TOO_FEW}
    assert judged.report["Datapoints"] == N


def test_a_gpu_that_appears_late_has_its_own_patience() -> None:
    trial = FakeProfilerTrial(
        memory([10.0] * 4 * N), memory(jump(30, 10, 90, N), "gpu1", begin_s=120.0)
    )
    assert judge_windows(GPUMemoryIncrease, trial, patience=100).met == []
    assert judge_windows(GPUMemoryIncrease, trial, patience=30).met == [2]


def test_details() -> None:
    trial = FakeProfilerTrial(memory(jump(60, 10, 61)))
    report = judge_windows(GPUMemoryIncrease, trial, patience=0).report
    assert report["Details"]["algo-1"]["gpu0"] == {
        "increase": 5.1,
        "gpu_max": 61.0,
        "p05": 10.0,
        "p25": 48.25,
        "p50": 61.0,
        "p75": 61.0,
        "p95": 61.0,
        "upper": 61.0,
        "lower": 29.125,
    }
    assert report["RuleParameters"] == "increase:5\npatience:0\nwindow:10"
