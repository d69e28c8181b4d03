"""StepOutlier: which steps are outliers, and in which windows there are too many."""

from typing import Any

import numpy as np
import pytest
from fake_profiler_trial import FakeProfilerTrial, event, judge_windows
from profiler_writer import cpu

from builtin_rules.profiler import step_outlier as module
from builtin_rules.profiler.step_outlier import NO_STEPS, TOO_FEW, StepOutlier
from rule_core.profiler.traces.event import TraceEvent

LITERAL = {"literal": True}
TRAIN, EVAL = "Step:ModeKeys.TRAIN", "Step:ModeKeys.EVAL"


def steps(durations: Any, name: str = TRAIN, begin_s: float = 0.0, **more: Any) -> list[TraceEvent]:
    """Return steps behind one another."""
    ends = begin_s + np.cumsum(durations)
    return [
        event(name, float(end - duration), float(duration), step_num=str(at), **more)
        for at, (end, duration) in enumerate(zip(ends, durations, strict=True))
    ]


def slow(outliers: int, of: int, duration: float = 1.0) -> list[float]:
    """Return durations of 0.1 s, of which the last ones are longer."""
    return [0.1] * (of - outliers) + [duration] * outliers


@pytest.mark.parametrize(
    ("durations", "params", "met"),
    [
        pytest.param([0.1] * 500, {}, [], id="steady"),
        pytest.param(slow(10, 400), {}, [], id="exactly-n_outliers"),
        pytest.param(slow(11, 400), {}, [0], id="one-more"),
        pytest.param(slow(30, 400), {"n_outliers": 30}, [], id="n_outliers"),
        pytest.param(slow(1, 150), {"n_outliers": 0}, [0], id="none-tolerated"),
        pytest.param(slow(11, 400, 0.2), {}, [], id="costs-3-percent"),
        pytest.param(slow(11, 400, 0.2), LITERAL, [0], id="literal-and-cheap"),
        pytest.param(slow(11, 400, 0.2), {"n_outliers": 10}, [], id="a-default-is-not-given"),
        pytest.param(slow(11, 400, 0.2), {"n_outliers": 9}, [0], id="n_outliers-bind"),
        pytest.param(slow(11, 400, 0.2), {"stddev": 4}, [0], id="stddev-binds"),
        pytest.param(slow(11, 400, 0.2), {"stddev": 5}, [], id="a-documented-default"),
        pytest.param([0.1] * 380 + [0.001] * 20, {}, [], id="short-steps"),
        pytest.param([1.0] * 89 + [40.0] * 11, {}, [], id="exactly-100-steps"),
        pytest.param(slow(1, 100), {"n_outliers": 0}, [], id="a-hundred"),
        pytest.param(slow(1, 101), {"n_outliers": 0}, [0], id="a-hundred-and-one"),
        pytest.param([*[0.1] * 5, 1.0] * 39, LITERAL, [], id="too-many-to-be-outliers"),
        pytest.param([*[0.1] * 5, 1.0] * 39, {"stddev": 2, **LITERAL}, [0], id="stddev"),
        pytest.param([*[0.1] * 4, 0.5] * 60, {}, [0], id="every-fifth-at-five-times"),
        pytest.param([*[0.1] * 2, 0.15] * 60, {}, [], id="half-longer"),
        pytest.param([*[0.1] * 2, 0.16] * 60, {}, [0], id="more-than-half-longer"),
        pytest.param([0.1, 0.5, 0.5] * 100, {}, [], id="most-are-slow"),
        pytest.param(slow(20, 400), {"mode": "TRAIN"}, [0], id="mode"),
        pytest.param(slow(20, 400), {"mode": "train"}, [0], id="mode-in-any-case"),
        pytest.param(slow(20, 400), {"mode": TRAIN}, [0], id="name-of-the-event"),
        pytest.param(slow(20, 400), {"mode": "EVAL"}, [], id="another-mode"),
        pytest.param([0.0] * 400, {}, [], id="no-length"),
    ],
)
def test_windows(durations: list[float], params: dict[str, Any], met: list[int]) -> None:
    assert (
        judge_windows(StepOutlier, FakeProfilerTrial(events=steps(durations)), **params).met == met
    )


def test_a_duration_at_the_limit_is_no_outlier() -> None:
    # Mean 2, standard deviation 1: the limit is 3 with a factor of 1.
    trial = FakeProfilerTrial(events=steps([1.0, 3.0] * 59))
    more: dict[str, Any] = {"n_outliers": 0, **LITERAL}
    assert judge_windows(StepOutlier, trial, stddev=1, **more).met == []
    assert judge_windows(StepOutlier, trial, stddev=0.9, **more).met == [3]


@pytest.mark.parametrize("noise", [0.03, 0.1, 0.5])
@pytest.mark.parametrize(("literal", "met"), [(False, False), (True, True)])
def test_noise_alone_makes_no_outliers(noise: float, literal: bool, met: bool) -> None:
    rng = np.random.default_rng(0)
    durations = 0.01 * np.exp(noise * rng.standard_normal(22_000))
    trial = FakeProfilerTrial(events=steps(durations))
    assert bool(judge_windows(StepOutlier, trial, literal=literal).met) is met


def test_spread_raises_the_limit() -> None:
    # The median is 2, the median deviation 1: a limit of 2 + 3 * 1.4826 = 6.45 by durations,
    # and 2 * exp(3 * 1.4826 * log(1.5)) = 12.1 by their logarithms.
    durations = [*[1.0] * 60, *[2.0] * 60, *[3.0] * 60]
    for slow_step, met in ((12.0, []), (12.5, [0])):
        trial = FakeProfilerTrial(events=steps(durations + [slow_step] * 11))
        assert judge_windows(StepOutlier, trial, scan_interval_us=10**10).met == met


def test_violations_grow_by_all_outliers_in_each_window_that_fires() -> None:
    durations = slow(11, 400) + [0.1] * 600
    judged = judge_windows(StepOutlier, FakeProfilerTrial(events=steps(durations)))
    assert judged.met == [0, 1]
    report = judged.report
    assert (report["RuleTriggered"], report["Violations"], report["Datapoints"]) == (
        2,
        22,
        1000,
    )
    assert [one.note for one in judged.findings] == [
        "Of 500 steps (2.2 %), above 0.15 s; they cost 16.5 % of the time.",
        "Of 1000 steps (1.1 %), above 0.15 s; they cost 9.01 % of the time.",
    ]


def test_nodes_and_modes_are_judged_apart() -> None:
    events = [
        *steps(slow(20, 300), node="algo-1-51"),
        *steps([0.1] * 300, node="algo-2-51"),
        *steps([3.0] * 4 + [0.01] * 200, EVAL, node="algo-2-51"),
        *steps(slow(5, 50), EVAL, node="algo-1-51"),
    ]
    judged = judge_windows(StepOutlier, FakeProfilerTrial(events=events), n_outliers=3)
    assert [(one.worker, one.tensor, one.measured) for one in judged.findings] == [
        ("algo-1-51", TRAIN, 20),
        ("algo-2-51", EVAL, 4),
    ]
    details = judged.report["Details"]["step_details"]
    assert {node: one["phase"] for node, one in details.items()} == {
        "algo-1-51": TRAIN,
        "algo-2-51": EVAL,
    }


def test_what_is_not_judged() -> None:
    trial = FakeProfilerTrial(
        cpu([1.0] * 360), events=[*steps([0.1] * 50), event("load", 130.0, 1.0)]
    )
    assert judge_windows(StepOutlier, trial).skipped == {0: TOO_FEW, 1: NO_STEPS, 2: NO_STEPS}


def test_details() -> None:
    operators = [
        event("aten::mm", 9.5, 0.2, phase="gpu_functions-dev:0"),
        event("aten::add", 14.95, 0.2, phase="cpu_functions"),
    ]
    trial = FakeProfilerTrial(events=[*steps([0.1] * 149 + [2.1] * 1), *operators])
    report = judge_windows(StepOutlier, trial, n_outliers=0).report
    assert report["RuleParameters"] == "threshold:3\nmode:None\nn_outliers:0\nstddev:3"
    details = report["Details"]
    found = details["step_details"]["algo-1-51"]
    assert found["step_stats"] == pytest.approx(
        {"mean": 17 / 150, "max": 2.1, "p99": 0.1, "p95": 0.1, "p50": 0.1, "min": 0.1}
    )
    assert (found["number_of_outliers"], found["phase"], found["step_numbers"]) == (1, TRAIN, [149])
    assert (len(found["probs"]), len(found["binedges"])) == (100, 101)
    assert found["stddev"] == pytest.approx(np.std([0.1] * 149 + [2.1]))
    assert (details["CPU"], details["GPU"]) == ({"aten::add": 100.0}, {})
    assert details["phase"] == {TRAIN: 100.0}


@pytest.mark.parametrize("step_num", [None, "seven", [7], 1 << 63, float("inf")])
def test_a_step_without_a_number_has_number_minus_1(step_num: object) -> None:
    events = steps([0.1] * 150)
    events[-1].duration = 3_000_000
    events[-1].event_args = {"step_num": step_num}
    trial = FakeProfilerTrial(events=events)
    found = judge_windows(StepOutlier, trial).report["Details"]["step_details"]["algo-1-51"]
    assert found["step_numbers"] == [-1]


def test_of_very_many_steps_the_newest_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "STEPS_KEPT", 400)
    trial = FakeProfilerTrial(events=steps(slow(20, 300) + [0.1] * 900))
    judged = judge_windows(StepOutlier, trial)
    assert judged.met == [0]
    assert judged.report["Datapoints"] == 1200
