"""LoadBalancing: which pairs of GPUs meet it, and that edges of bins do not."""

import math
from typing import Any

import numpy as np
import pytest
from fake_profiler_trial import FakeProfilerTrial, judge_windows
from profiler_writer import cpu, gpu

from builtin_rules.profiler.load_balancing import (
    NO_PAIR,
    TOO_FEW,
    LoadBalancing,
    coarse,
    distances,
    fine_histogram,
    gaps,
)
from builtin_rules.profiler.statistics.samples import NO_GPU

EARLY = {"patience": 100}
N = 120
NOISE = np.random.default_rng(0).normal(0, 3, N)
FARTHEST = math.sqrt(math.log(2))


def constant(value: float) -> list[float]:
    return [value] * N


@pytest.mark.parametrize(
    ("one", "other", "params", "met"),
    [
        pytest.param(constant(95), constant(95), {**EARLY, "threshold": 0}, [], id="identical"),
        pytest.param(NOISE + 90, NOISE + 90, {**EARLY, "threshold": 0}, [], id="identical-noise"),
        pytest.param(constant(94), constant(93), EARLY, [], id="94-against-93"),
        pytest.param(constant(94), constant(93), {**EARLY, "literal": True}, [0], id="literal"),
        pytest.param(constant(94), constant(93), {**EARLY, "threshold": 0.5}, [], id="documented"),
        pytest.param(constant(94), constant(93), {**EARLY, "threshold": "0.4"}, [0], id="given"),
        pytest.param(NOISE + 94, NOISE[::-1] + 93, EARLY, [], id="94-against-93-with-noise"),
        pytest.param(constant(93.9), constant(98), EARLY, [], id="4.1-points"),
        pytest.param(constant(90), constant(95), EARLY, [0], id="exactly-5-points"),
        pytest.param(constant(90), constant(94.9), EARLY, [], id="4.9-points"),
        pytest.param(constant(95), constant(40), EARLY, [0], id="one-works-less"),
        pytest.param(constant(95), constant(0), EARLY, [0], id="one-is-idle"),
        pytest.param(constant(100), constant(150), EARLY, [], id="above-100"),
        pytest.param(constant(-5), constant(0), EARLY, [], id="below-0"),
        # By turns busy and idle, against half busy all the time: of one mean.
        pytest.param([0, 100] * 60, constant(50), EARLY, [0], id="one-mean"),
        pytest.param([0, 100] * 60, [100, 0] * 60, EARLY, [], id="one-distribution"),
        pytest.param(constant(95), constant(40), {"patience": 120}, [], id="exactly-patience"),
        pytest.param(constant(95), constant(40), {"patience": 119}, [0], id="one-more"),
        pytest.param(constant(95), constant(40), {}, [], id="defaults"),
        pytest.param(constant(95), constant(40), {**EARLY, "threshold": 0.84}, [], id="0.84"),
        pytest.param(constant(95), constant(40), {**EARLY, "threshold": 0.83}, [0], id="0.83"),
        pytest.param([95] * 114 + [0] * 6, constant(95), EARLY, [], id="seldom-idle"),
    ],
)
def test_windows(one: Any, other: Any, params: dict[str, Any], met: list[int]) -> None:
    trial = FakeProfilerTrial(gpu(one, "gpu0"), gpu(other, "gpu1"))
    assert judge_windows(LoadBalancing, trial, **params).met == met


def test_a_distance_of_exactly_the_threshold_is_none() -> None:
    trial = FakeProfilerTrial(gpu(constant(95), "gpu0"), gpu([95, 10] * 60, "gpu1"))
    (finding,) = judge_windows(LoadBalancing, trial, **EARLY).findings
    assert finding.measured > 0.2
    again = judge_windows(LoadBalancing, trial, patience=100, threshold=finding.measured)
    assert again.met == []


def test_each_pair_of_a_node_is_judged_and_named() -> None:
    loads = {"gpu0": 95, "gpu1": 94, "gpu2": 30}
    trial = FakeProfilerTrial(
        *(gpu(constant(load), name) for name, load in loads.items()),
        *(gpu(constant(load), node=f"algo-{load}") for load in (2, 90)),
    )
    judged = judge_windows(LoadBalancing, trial, **EARLY)
    assert [(one.worker, one.tensor, one.limit) for one in judged.findings] == [
        ("algo-1", "gpu0, gpu2", 0.2),
        ("algo-1", "gpu1, gpu2", 0.2),
    ]
    assert [one.measured for one in judged.findings] == [pytest.approx(FARTHEST)] * 2
    note = "Average use: gpu0 95 %, gpu2 30 %; they differ by 65.0 points."
    assert judged.findings[0].note == note
    assert (judged.report["RuleTriggered"], judged.report["Violations"]) == (2, 2)


def test_identical_workloads_never_fire() -> None:
    values = np.random.default_rng(1).uniform(0, 100, 10 * N)
    trial = FakeProfilerTrial(*(gpu(values, f"gpu{at}") for at in range(4)))
    report = judge_windows(LoadBalancing, trial, threshold=0).report
    assert (report["Violations"], report["Datapoints"]) == (0, 10 * N)


def test_what_is_not_judged() -> None:
    trial = FakeProfilerTrial(
        cpu([1.0] * 3 * N), gpu(constant(9) * 2, begin_s=60), gpu(constant(9), "gpu1", begin_s=120)
    )
    assert judge_windows(LoadBalancing, trial).skipped == {0: NO_GPU, 1: NO_PAIR, 2: TOO_FEW}


def test_a_gpu_that_appears_late_is_compared_from_then_on() -> None:
    trial = FakeProfilerTrial(gpu(constant(95) * 3), gpu(constant(40), "gpu1", begin_s=120))
    assert judge_windows(LoadBalancing, trial, **EARLY).met == [2]
    judged = judge_windows(LoadBalancing, trial, patience=200)
    assert judged.skipped == {0: NO_PAIR, 1: NO_PAIR, 2: TOO_FEW}


def test_details_have_the_documented_histograms() -> None:
    trial = FakeProfilerTrial(gpu([0, 1.9, 2, 96, 97.9, 98, 100, 130], "gpu0"), gpu([95], "gpu1"))
    report = judge_windows(LoadBalancing, trial).report
    node = report["Details"]["algo-1"]
    assert node["workloads"]["gpu0"] == [2, 1, *[0] * 46, 5]
    assert node["distances"] == {"gpu0": {"gpu1": pytest.approx(FARTHEST)}}
    assert report["RuleParameters"] == "threshold:0.2\npatience:1000"


def test_distance_of_histograms() -> None:
    counts = np.array([[3, 1, 0], [1, 1, 2], [0, 0, 9]])
    p, q = np.array([0.75, 0.25, 0.0]), np.array([0.25, 0.25, 0.5])
    m = (p + q) / 2

    def divergence(one: Any) -> float:
        return float(sum(a * math.log(a / b) for a, b in zip(one, m, strict=True) if a))

    found = distances(counts)
    assert found[0, 1] == pytest.approx(math.sqrt((divergence(p) + divergence(q)) / 2))
    assert found[0, 2] == pytest.approx(FARTHEST)
    assert (np.diag(found) == 0).all()
    assert (found == found.T).all()


@pytest.mark.parametrize("step", np.arange(0, 100.05, 0.1).round(1).tolist()[::37])
def test_fine_bins_begin_at_tenths(step: float) -> None:
    assert int(fine_histogram(np.array([step])).argmax()) == round(step * 10)


def test_bins_and_gaps() -> None:
    counts = np.array([fine_histogram(np.array(one)) for one in ([10.0, 20.0], [30.0, 30.0])])
    assert gaps(counts)[0, 1] == pytest.approx(15.0)
    assert coarse(counts).shape == (2, 49)
    assert coarse(counts).sum(axis=1).tolist() == [2, 2]
