"""MaxInitializationTime: a first step that comes late or never, and jobs that are not judged."""

import pytest
from fake_profiler_trial import FakeProfilerTrial, event, judge_windows
from profiler_writer import BEGIN_US, cpu

from builtin_rules.profiler.max_initialization_time import NO_EVENTS, MaxInitializationTime

EARLY = event("load", 1.0, 1.0, phase="DataLoaderIter")
STEP = "Step:ModeKeys.TRAIN"


@pytest.mark.parametrize(
    ("first_step_s", "threshold", "met"),
    [
        pytest.param(30.0, 3, [], id="in-time"),
        pytest.param(170.0, 3, [], id="just-in-time"),
        pytest.param(200.0, 3, [3], id="late-within-a-window"),
        pytest.param(250.0, 3, [3, 4], id="late"),
        pytest.param(None, 3, [3, 4], id="never"),
        pytest.param(None, 4.5, [4], id="threshold-within-a-window"),
        pytest.param(None, 5, [], id="no-longer-than-the-job"),
        pytest.param(None, 20, [], id="default"),
    ],
)
def test_windows(first_step_s: float | None, threshold: float, met: list[int]) -> None:
    steps = [] if first_step_s is None else [event(STEP, first_step_s, 1.0)]
    trial = FakeProfilerTrial(cpu([1.0] * 600), events=[EARLY, *steps])
    judged = judge_windows(MaxInitializationTime, trial, threshold=threshold)
    assert (judged.met, judged.skipped) == (met, {})
    assert judged.report["RuleTriggered"] == len(met)


def test_by_default_it_fires_after_twenty_minutes() -> None:
    trial = FakeProfilerTrial(events=[EARLY], end_s=1260.0)
    assert judge_windows(MaxInitializationTime, trial).met == [20, 21]


@pytest.mark.parametrize(("end_s", "met"), [(120.0, []), (120.5, [2]), (180.0, [2, 3])])
def test_of_the_last_window_what_there_is_counts(end_s: float, met: list[int]) -> None:
    trial = FakeProfilerTrial(events=[EARLY], end_s=end_s)
    assert judge_windows(MaxInitializationTime, trial, threshold=2).met == met


def test_a_step_that_begins_in_time_and_ends_later_is_not_late() -> None:
    trial = FakeProfilerTrial(events=[event(STEP, 100.0, 50.0)], end_s=400.0)
    assert judge_windows(MaxInitializationTime, trial, threshold=2).met == []


def test_the_first_event_of_all_may_be_the_late_step() -> None:
    trial = FakeProfilerTrial(cpu([1.0] * 600), events=[event(STEP, 250.0, 1.0)])
    judged = judge_windows(MaxInitializationTime, trial, threshold=4)
    assert judged.met == [4]
    assert judged.skipped == dict.fromkeys(range(4), NO_EVENTS)
    (finding,) = judged.findings
    assert (finding.measured, finding.limit) == (pytest.approx(250 / 60), 4)
    assert finding.note == "The first step started after 4.2 minutes."


def test_a_job_without_framework_data_is_not_judged() -> None:
    judged = judge_windows(MaxInitializationTime, FakeProfilerTrial(cpu([1.0] * 600)), threshold=1)
    assert judged.skipped == dict.fromkeys(range(5), NO_EVENTS)
    assert (judged.report["RuleTriggered"], judged.report["Details"]["step_num"]) == (0, {})


def test_report() -> None:
    steps = [event(STEP, at, 0.5) for at in (10.0, 20.0, 80.0)]
    report = judge_windows(
        MaxInitializationTime, FakeProfilerTrial(cpu([1.0] * 201), events=steps)
    ).report
    assert report == {
        "RuleTriggered": 0,
        "Violations": 0,
        "Datapoints": 3,
        "RuleParameters": "threshold:20",
        "Details": {
            "step_num": {"first": BEGIN_US + 10_000_000, "last": BEGIN_US + 80_000_000},
            "job_start": BEGIN_US / 1e6,
            "job_end": BEGIN_US / 1e6 + 100,
        },
    }


def test_a_step_of_no_length_is_one() -> None:
    trial = FakeProfilerTrial(events=[event(STEP, 10.0, 0.0)], end_s=300.0)
    assert judge_windows(MaxInitializationTime, trial, threshold=1).met == []
