"""StalledTrainingRule: which silences meet the condition, by recorded times and by this clock."""

from pathlib import Path
from typing import Any

import pytest
import rawtrial
from clocks import PatientClock
from judging import judge, opened
from timed import BEGAN, Times, files

from builtin_rules import StalledTrainingRule
from builtin_rules.tensors.losses.stalled_training_rule import ASKED
from rule_core.rules.actions.base import ActionOutcome, ActionState
from rule_runner.engine.invocation import UNREADABLE, InProcessInvoker, InvocationOutcome
from smdebug.exceptions import SMDebugValueError
from smdebug.rules.action import Actions
from smdebug.rules.action.action import StopTrainingAction
from smdebug.rules.extensions import Finding

FIRST = "the first step has no predecessor"
NO_TIME = "no time is recorded at this step"


def write(root: Path, *times: Times) -> Path:
    """Save steps at seconds after the beginning, those of each worker."""
    return rawtrial.write(root, files(times))


def at(*times: float | None) -> dict[int, float | None]:
    return dict(enumerate(times))


@pytest.mark.parametrize(
    ("times", "met"),
    [
        pytest.param(at(0, 1, 2), [], id="steady"),
        pytest.param(at(0, 1, 2000, 2001), [2], id="a-gap"),
        pytest.param(at(0, 1800), [], id="equal-is-not-longer"),
        pytest.param(at(0, 1800.001), [1], id="just-longer"),
        pytest.param(at(0, 2000, 4000, 4001), [1, 2], id="each-gap"),
        pytest.param(at(0, 1000, 2000, 3000), [], id="gaps-are-not-added"),
        pytest.param(at(5000, 0, 1), [], id="backwards"),
        pytest.param({0: 0, 500: 1799, 1000: 4000}, [1000], id="every-500th-step"),
        pytest.param(at(0, None, 2000), [2], id="a-step-without-a-time"),
        pytest.param(at(0), [], id="one-step"),
        pytest.param(at(-BEGAN, 0), [], id="no-time-at-all-at-first"),
    ],
)
def test_it_is_met_where_the_gap_is_longer(times: Times, met: list[int], tmp_path: Path) -> None:
    assert judge(StalledTrainingRule, write(tmp_path, times)).met == met


def test_steps_without_anything_to_compare_are_skipped(tmp_path: Path) -> None:
    root = write(tmp_path, at(None, 0, None, 1))
    found = judge(StalledTrainingRule, root)
    assert found.skipped == {0: NO_TIME, 1: FIRST, 2: NO_TIME}


def test_a_damaged_event_file_is_skipped(tmp_path: Path) -> None:
    root = write(tmp_path, at(0, 1, 2000))
    (root / rawtrial.event_key(1)).write_bytes(bytes(100))
    found = judge(StalledTrainingRule, root)
    assert (found.met, found.skipped) == ([2], {0: FIRST, 1: UNREADABLE})


def test_evidence_names_worker_gap_and_threshold(tmp_path: Path) -> None:
    found = judge(StalledTrainingRule, write(tmp_path, at(0, 90)), threshold="60.0")
    assert found.findings == [Finding(1, None, "worker_0", 90.0, 60, None)]


def test_what_later_steps_hold_makes_no_difference(tmp_path: Path) -> None:
    times = [0.0, 1, 2000, 2001, 5000]
    whole = judge(StalledTrainingRule, write(tmp_path / "whole", at(*times)))
    for last in range(1, 6):
        part = write(tmp_path / str(last), at(*times[:last]))
        assert judge(StalledTrainingRule, part).met == [one for one in whole.met if one < last]


# -- workers -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "second", "found"),
    [
        pytest.param(at(0, 1), at(0, 2000), [(1, "worker_1")], id="the-slower-one"),
        pytest.param(at(0, 2000), at(0, 2000), [(1, "worker_0"), (1, "worker_1")], id="both"),
        pytest.param(
            at(0, 1000, 2000, 3000), at(0), [(2, "worker_1")], id="one-that-stops-once-reported"
        ),
        pytest.param(
            at(0, 2000, 2001, 4000),
            {0: 0, 2: 2001, 3: 2002},
            [(1, "worker_0"), (1, "worker_1"), (2, "worker_1"), (3, "worker_0")],
            id="one-that-comes-back",
        ),
        pytest.param(at(0, 1000, 1800), at(0), [], id="silent-for-the-threshold"),
        pytest.param(at(0, 1), {1: 1}, [], id="one-that-comes-later"),
        pytest.param(at(0, 1), {1: 5000, 2: 5001}, [(2, "worker_0")], id="one-then-the-other"),
    ],
)
def test_each_worker_is_judged(
    first: Times, second: Times, found: list[tuple[int, str]], tmp_path: Path
) -> None:
    findings = judge(StalledTrainingRule, write(tmp_path, first, second)).findings
    assert [(one.step, one.worker) for one in findings if one.counts] == found


@pytest.mark.parametrize(
    ("first", "second", "back"),
    [
        pytest.param(at(0, 1, 2000, 2001), at(0, 1, 2000, 2001), [3, 3], id="both"),
        pytest.param(at(0, 1, 2000, 5000), at(0, 1, 2000, 5000), [], id="again"),
        pytest.param(at(0, 2000, 2001, 2002), {0: 0, 3: 2002}, [2], id="one-is-late"),
        pytest.param(at(0, 2000, 2001), at(0), [2], id="one-never-comes-back"),
    ],
)
def test_a_worker_that_saves_in_time_again_has_recovered(
    first: Times, second: Times, back: list[int], tmp_path: Path
) -> None:
    findings = judge(StalledTrainingRule, write(tmp_path, first, second)).findings
    assert [one.step for one in findings if one.recovered_at is not None] == back


def test_a_training_that_saves_rarely_is_not_stalled(tmp_path: Path) -> None:
    root = write(tmp_path, at(*range(0, 18000, 2000), 22000, 28001))
    assert judge(StalledTrainingRule, root).met == [1, 2, 3, 10]
    assert judge(StalledTrainingRule, root, threshold=1900).met == [*range(1, 11)]


# -- while a running job is waited for -----------------------------------------------------------


def invoker_of(
    root: Path, clock: PatientClock, **params: Any
) -> tuple[InProcessInvoker, list[int]]:
    trial = opened(root)
    rule = type("Clocked", (StalledTrainingRule,), {"clock": clock})(trial, **params)
    return InProcessInvoker("StalledTrainingRule", rule, [trial]), trial.steps(
        show_incomplete_steps=True
    )


def test_silence_is_judged_by_this_clock_and_reported_once(tmp_path: Path) -> None:
    clock = PatientClock()
    invoker, steps = invoker_of(write(tmp_path, at(0, 1)), clock)
    assert [invoker.judge(step).did for step in steps] == [
        InvocationOutcome.SKIPPED,
        InvocationOutcome.CLEAR,
    ]
    answers = []
    for seconds in (1, 1801, 1801.5, 1802, 9999):
        clock.now = BEGAN + seconds
        answer = invoker.wait(1)
        assert answer is not None
        answers.append(answer)
    assert [one.did is InvocationOutcome.MET for one in answers] == [
        False,
        False,
        True,
        False,
        False,
    ]
    assert answers[2].findings == (Finding(1, None, "worker_0", 1800.5, 1800, None),)


def test_the_next_silence_is_reported_again(tmp_path: Path) -> None:
    clock = PatientClock()
    invoker, _ = invoker_of(write(tmp_path, at(0, 1, 2)), clock)
    met = []
    for step in range(3):
        invoker.judge(step)
        clock.now = BEGAN + step + 1801
        answer = invoker.wait(step)
        met.append(answer is not None and answer.did is InvocationOutcome.MET)
    assert met == [True, True, True]


def test_a_worker_is_waited_for_by_itself(tmp_path: Path) -> None:
    """The other goes on, which makes no step ready: all known steps count."""
    clock = PatientClock()
    invoker, _ = invoker_of(write(tmp_path, at(0, 1), at(0, 1, 1000, 2000)), clock)
    assert [invoker.judge(step).did for step in (0, 1)] == [
        InvocationOutcome.SKIPPED,
        InvocationOutcome.CLEAR,
    ]
    clock.now = BEGAN + 2500
    answer = invoker.wait(3)
    assert answer is not None
    assert answer.findings == (Finding(3, None, "worker_0", 2499.0, 1800, None),)


def test_steps_that_are_not_ready_are_news(tmp_path: Path) -> None:
    clock = PatientClock()
    root = write(tmp_path, at(0, 1) | {2: 1500}, at(0, 1) | {3: 2000})
    invoker, _ = invoker_of(root, clock)
    assert [invoker.judge(step).did for step in (0, 1)] == [
        InvocationOutcome.SKIPPED,
        InvocationOutcome.CLEAR,
    ]
    clock.now = BEGAN + 3000
    answer = invoker.wait(3)
    assert answer is not None
    assert answer.findings == ()


def test_a_job_that_saved_one_step_only_is_waited_for_too(tmp_path: Path) -> None:
    clock = PatientClock()
    invoker, _ = invoker_of(write(tmp_path, at(0)), clock)
    clock.now = BEGAN + 1801
    answer = invoker.wait(0)
    assert answer is not None
    assert answer.did is InvocationOutcome.MET


def test_without_any_time_nothing_is_reported(tmp_path: Path) -> None:
    clock = PatientClock()
    clock.now = BEGAN
    invoker, _ = invoker_of(write(tmp_path, at(None)), clock)
    answer = invoker.wait(0)
    assert answer is not None
    assert answer.did is InvocationOutcome.SKIPPED


# -- to the letter -------------------------------------------------------------------------------


def test_to_the_letter_news_is_what_this_machine_sees(tmp_path: Path) -> None:
    clock = PatientClock()
    root = write(tmp_path, at(0, 5000, 5001))
    invoker, _ = invoker_of(root, clock, literal="yes")
    met = []
    for step, now in enumerate([1800.0, 1801.0, 3602.0]):
        clock.now = now
        met.append(invoker.judge(step).did is InvocationOutcome.MET)
    assert met == [False, False, True]


def test_to_the_letter_silence_begins_with_the_rule(tmp_path: Path) -> None:
    clock = PatientClock()
    invoker, _ = invoker_of(write(tmp_path, at(0)), clock, literal=True)
    met = []
    for now in (1800.0, 1801.0, 1802.0):
        clock.now = now
        answer = invoker.wait(0)
        met.append(answer is not None and answer.did is InvocationOutcome.MET)
    invoker.judge(0)
    clock.now = 1802.0 + 1801.0
    again = invoker.wait(0)
    assert (met, again is not None and again.did) == ([False, True, False], InvocationOutcome.MET)


# -- stopping ------------------------------------------------------------------------------------


def test_a_finding_says_that_the_training_is_to_be_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        StopTrainingAction, "resolve", lambda *_: ActionOutcome(ActionState.DONE, "")
    )
    root = write(tmp_path, at(0, 1, 9999))
    params = {"stop_training_on_fire": "true", "training_job_name_prefix": "my-job"}
    found = judge(StalledTrainingRule, root, **params)
    assert [one.note for one in found.findings] == [ASKED]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({}, []),
        ({"training_job_name_prefix": "My-job"}, []),
        ({"stop_training_on_fire": False, "training_job_name_prefix": "My-job"}, []),
        ({"stop_training_on_fire": True}, [""]),
        ({"stop_training_on_fire": True, "training_job_name_prefix": "My-job"}, ["My-job"]),
    ],
)
def test_the_rule_declares_an_action_and_stops_nothing_itself(
    arguments: dict[str, Any], expected: list[str]
) -> None:
    stops = [StopTrainingAction("R", one) for one in expected]
    assert Actions(StalledTrainingRule.declared_actions(arguments), "R").actions == stops
    rule = StalledTrainingRule(None, **arguments)
    stops = [StopTrainingAction("StalledTrainingRule", one) for one in expected]
    assert rule.actions.actions == stops


# -- parameters ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"threshold": "0"}, r"'threshold' must be a whole number >= 1, got '0'\."),
        ({"threshold": "1.5"}, r"'threshold' must be a whole number >= 1, got '1\.5'\."),
        ({"stop_training_on_fire": "x"}, r"'stop_training_on_fire' must be true, false, .*'x'\."),
        (
            {"training_job_name_prefix": "a_b"},
            r"'training_job_name_prefix' must be letters, digits and hyphens, got 'a_b'\.",
        ),
    ],
)
def test_bad_parameters_are_refused(params: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(SMDebugValueError, match=message):
        judge(StalledTrainingRule, write(tmp_path, at(0)), **params)


def test_the_machines_clock_is_the_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trial = opened(write(tmp_path, at(0)))
    monkeypatch.setattr("time.time", lambda: BEGAN + 1801)
    rule = StalledTrainingRule(trial)
    assert (rule.threshold, rule.invoke_while_waiting(0)) == (1800, True)
