"""Evaluation: verdicts, coverage, findings and notes of one rule job."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rule_core.model.segments import global_step
from rule_core.rules.evidence import Finding
from rule_core.severity import Severity
from rule_runner.results.state import RuleJobState
from rule_runner.results.status import INTERNAL_ERROR, RuleStatus

START = datetime(2026, 3, 1, 12, tzinfo=UTC)
MET = (
    "RuleEvaluationConditionMet: Evaluation of the rule AllZero at step {} "
    "resulted in the condition being met\n"
)


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def begun(*, known: int = 0, keep_going: bool = False) -> RuleJobState:
    evaluation = RuleJobState("AllZero", "zeros", keep_going, START)
    evaluation.coverage.known = known
    return evaluation


def summary(evaluation: RuleJobState) -> tuple[str, str, str | None]:
    return str(evaluation.status), str(evaluation.outcome), evaluation.status_details


def test_it_begins_in_progress() -> None:
    evaluation = begun()
    assert summary(evaluation) == ("InProgress", "InProgress", None)
    assert not evaluation.done
    assert evaluation.ended_at is None


def test_all_steps_clear_is_no_issues_found() -> None:
    evaluation = begun(known=2)
    evaluation.step_judged(0)
    evaluation.step_judged(10)
    assert evaluation.ended(at(3), trial_ended=True, contents="Unused.")
    assert summary(evaluation) == ("NoIssuesFound", "NoIssuesFound", None)
    assert evaluation.done
    assert at(3) == evaluation.ended_at


def test_without_waiting_the_verdict_is_that_of_the_steps_there_are() -> None:
    evaluation = begun(known=1)
    evaluation.step_judged(0)
    assert evaluation.ended(at(1), trial_ended=False)
    assert evaluation.status == "NoIssuesFound"


def test_the_first_condition_met_is_the_verdict() -> None:
    evaluation = begun(known=5)
    evaluation.step_judged(0)
    assert evaluation.condition_met(10, [Finding(10, "w")], at(1))
    assert ("IssuesFound", "IssuesFound", MET.format(10)) == summary(evaluation)
    assert evaluation.done
    assert at(1) == evaluation.ended_at
    assert not evaluation.ended(at(2), trial_ended=True)
    assert ("IssuesFound", "IssuesFound", MET.format(10)) == summary(evaluation)
    assert at(1) == evaluation.ended_at
    assert evaluation.step == 10
    assert [Finding(10, "w")] == evaluation.evidence


def test_keep_going_adds_findings_and_keeps_the_verdict() -> None:
    evaluation = begun(known=3, keep_going=True)
    assert evaluation.condition_met(1, [Finding(1)], at(1))
    assert not evaluation.done
    assert evaluation.ended_at is None
    assert not evaluation.condition_met(2, [Finding(2), Finding(2, "w")], at(2))
    evaluation.step_judged(3)
    assert not evaluation.ended(at(4), trial_ended=True)
    assert ("IssuesFound", "IssuesFound", MET.format(1)) == summary(evaluation)
    assert evaluation.findings_count == 3
    assert [Finding(1), Finding(2), Finding(2, "w")] == evaluation.evidence
    assert at(4) == evaluation.ended_at
    assert evaluation.done


def test_a_rule_that_asks_to_end_ends_in_spite_of_keep_going() -> None:
    evaluation = begun(known=3, keep_going=True)
    evaluation.condition_met(1, [Finding(1)], at(1), end_of_rule=True)
    assert evaluation.done
    assert at(1) == evaluation.ended_at


def test_an_error_after_a_hit_is_a_note() -> None:
    evaluation = begun(known=3, keep_going=True)
    evaluation.condition_met(1, [Finding(1)], at(1))
    assert not evaluation.rule_failed("ClientError: Rule 'AllZero' raised.", at(2))
    assert ("IssuesFound", "IssuesFound", MET.format(1)) == summary(evaluation)
    assert evaluation.notes == ["Rule 'AllZero' raised."]
    assert evaluation.done
    assert at(2) == evaluation.ended_at


def test_a_stop_after_a_hit_is_a_note() -> None:
    evaluation = begun(known=3, keep_going=True)
    evaluation.condition_met(1, [Finding(1)], at(1))
    assert not evaluation.stop_requested("Stopped by SIGTERM.", at(2))
    assert evaluation.notes == ["Stopped by SIGTERM."]
    assert not evaluation.ended(at(3), trial_ended=True)
    assert ("IssuesFound", "IssuesFound", MET.format(1)) == summary(evaluation)
    assert evaluation.done
    assert at(2) == evaluation.ended_at


def test_a_stop_after_the_end_leaves_no_trace() -> None:
    evaluation = begun(known=1)
    evaluation.step_judged(0)
    evaluation.ended(at(1), trial_ended=True)
    assert not evaluation.stop_requested("Stopped by SIGTERM.", at(2))
    assert evaluation.notes == []
    assert summary(evaluation) == ("NoIssuesFound", "NoIssuesFound", None)


@pytest.mark.parametrize("details", ["ClientError: Rule 'AllZero' raised.", INTERNAL_ERROR])
def test_a_rule_that_fails_is_an_error(details: str) -> None:
    evaluation = begun()
    evaluation.step_judged(0)
    assert evaluation.rule_failed(details, at(1))
    assert ("Error", "Error", details) == summary(evaluation)
    assert evaluation.done
    assert at(1) == evaluation.ended_at
    assert not evaluation.ended(at(2), trial_ended=True)


def test_keep_going_does_not_keep_a_failed_rule_going() -> None:
    evaluation = begun(keep_going=True)
    evaluation.rule_failed("ClientError: x.", at(1))
    assert evaluation.done
    assert at(1) == evaluation.ended_at


def test_details_are_cut_for_the_wire() -> None:
    evaluation = begun()
    evaluation.rule_failed("ClientError: " + "x" * 5000, at(1))
    assert evaluation.status_details == "ClientError: " + "x" * 1011


def test_a_stop_is_stopping_and_then_stopped() -> None:
    evaluation = begun(known=9)
    evaluation.step_judged(0)
    assert evaluation.stop_requested("Stopped by SIGTERM.", at(1))
    assert summary(evaluation) == ("Stopping", "Stopping", None)
    assert not evaluation.done
    assert not evaluation.stop_requested("Stopped by SIGINT.", at(2))
    evaluation.step_judged(1)
    assert evaluation.ended(at(3), trial_ended=True)
    assert summary(evaluation) == ("Stopped", "Stopped", "Stopped by SIGTERM.")
    assert evaluation.notes == ["Stopped by SIGTERM.", "Stopped by SIGINT."]


def test_a_condition_met_in_the_step_in_hand_counts_while_stopping() -> None:
    evaluation = begun(known=9)
    evaluation.stop_requested("Stopped by SIGTERM.", at(1))
    assert evaluation.condition_met(4, [Finding(4)], at(2))
    assert evaluation.status == "IssuesFound"
    assert evaluation.done


def test_an_error_in_the_step_in_hand_counts_while_stopping() -> None:
    evaluation = begun(known=9)
    evaluation.stop_requested("Stopped by SIGTERM.", at(1))
    evaluation.rule_failed("ClientError: x.", at(2))
    assert summary(evaluation) == ("Error", "Error", "ClientError: x.")


@pytest.mark.parametrize(
    ("trial_ended", "known", "expected"),
    [
        pytest.param(True, 2, ("NoIssuesFound", "NoIssuesFound", None), id="cut-nothing-short"),
        pytest.param(True, 3, ("Stopped", "Stopped", "Idle."), id="a-step-is-left"),
        pytest.param(False, 2, ("Stopped", "Stopped", "Idle."), id="trial-goes-on"),
    ],
)
def test_a_verdict_over_all_steps_of_an_ended_trial_stands(
    trial_ended: bool, known: int, expected: tuple[str, str, str | None]
) -> None:
    evaluation = begun(known=known)
    evaluation.step_judged(0)
    evaluation.step_skipped(1, "nothing_read")
    evaluation.stop_requested("Idle.", at(1))
    evaluation.ended(at(2), trial_ended=trial_ended)
    assert expected == summary(evaluation)


def test_nothing_judged_is_not_evaluated() -> None:
    evaluation = begun(known=3)
    evaluation.step_skipped(0, "nothing_read")
    evaluation.step_skipped(1, "TensorUnavailableForStep")
    evaluation.step_skipped(2, "nothing_read")
    changed = evaluation.ended(at(1), True, "It reads 'gradients'; the trial holds 'losses'.")
    details = (
        "InsufficientInformationForRuleInvocation: Rule 'AllZero' judged none of 3 known steps "
        "(skipped for nothing_read: 2, TensorUnavailableForStep: 1). "
        "It reads 'gradients'; the trial holds 'losses'."
    )
    assert changed
    assert ("Error", "NotEvaluated", details) == summary(evaluation)
    assert evaluation.done


def test_no_step_at_all_is_not_evaluated() -> None:
    evaluation = begun()
    evaluation.ended(at(1), trial_ended=True)
    details = (
        "InsufficientInformationForRuleInvocation: Rule 'AllZero' judged none of 0 known steps."
    )
    assert ("Error", "NotEvaluated", details) == summary(evaluation)


def test_a_trial_without_data_has_the_text_of_the_contract() -> None:
    evaluation = begun()
    evaluation.ended(at(1), trial_ended=True, contents="'/x' is empty.", no_data=True)
    details = "ClientError: No debugging data was saved by the training job. '/x' is empty."
    assert ("Error", "NotEvaluated", details) == summary(evaluation)


def test_stopped_with_nothing_judged_is_stopped_and_is_reported() -> None:
    evaluation = begun(known=3)
    evaluation.stop_requested("Nothing new for 1 h.", at(1))
    evaluation.ended(at(1), trial_ended=False, contents="Unused.")
    assert summary(evaluation) == ("Stopped", "Stopped", "Nothing new for 1 h. Nothing was judged.")


def test_an_error_is_not_not_evaluated() -> None:
    evaluation = begun()
    evaluation.rule_failed("ClientError: x.", at(1))
    evaluation.ended(at(2), trial_ended=True)
    assert summary(evaluation) == ("Error", "Error", "ClientError: x.")


def test_coverage_counts_each_step_once() -> None:
    evaluation = begun(known=9, keep_going=True)
    evaluation.step_skipped(0, "nothing_read")
    evaluation.step_skipped(0, "nothing_read")
    evaluation.missing_workers(1, ["b"])
    evaluation.missing_workers(1, ["b"])
    evaluation.step_judged(1)
    evaluation.step_judged(1)
    evaluation.step_skipped(1, "late")
    evaluation.missing_workers(2, ["a", "b"])
    evaluation.condition_met(2, [Finding(2)], at(1))
    evaluation.step_judged(2)
    coverage = evaluation.coverage
    assert (coverage.judged, coverage.skipped, coverage.known) == (2, {"nothing_read": 1}, 9)
    assert (coverage.first, coverage.last, coverage.missing_workers) == (1, 2, {"b": 2, "a": 1})


def test_reasons_and_workers_are_bounded() -> None:
    evaluation = begun()
    for step in range(60):
        evaluation.step_skipped(step, f"because {step}")
    evaluation.step_skipped(60, "because 0")
    evaluation.missing_workers(0, [f"worker_{i}" for i in range(1005)])
    skipped = evaluation.coverage.skipped
    assert (len(skipped), skipped["other"], skipped["because 0"]) == (51, 10, 2)
    assert evaluation.coverage.seen == 61
    assert evaluation.coverage.missing_workers["other"] == 5


def test_evidence_is_bounded_and_all_findings_are_counted() -> None:
    evaluation = begun(keep_going=True)
    for step in range(30):
        evaluation.condition_met(step, [Finding(step)] * 7, at(1))
    assert (len(evaluation.evidence), evaluation.findings_count) == (100, 210)
    assert Finding(14) == evaluation.evidence[-1]


@pytest.mark.parametrize(
    ("keep_going", "kept", "fate"), [(True, 1, "listed"), (False, 0, "dropped")]
)
def test_found_without_a_true_answer_does_not_count(keep_going: bool, kept: int, fate: str) -> None:
    evaluation = begun(known=1, keep_going=keep_going)
    evaluation.finding_only(0, [Finding(0)])
    assert kept == len(evaluation.kept)
    note = f"Rule 'AllZero' reported findings but returned False; they are {fate} and do not count."
    assert [note] == evaluation.notes
    assert kept == evaluation.findings_count == len(evaluation.evidence)
    evaluation.ended(at(1), trial_ended=True)
    assert summary(evaluation) == ("NoIssuesFound", "NoIssuesFound", None)


def test_notes_and_muted_findings_are_evidence_only() -> None:
    evaluation = begun(known=200)
    note, muted = Finding(0, severity=Severity.NOTE), Finding(0, muted="Known.")
    for step in range(25):
        evaluation.finding_only(step, [note, muted])
    assert (evaluation.status, evaluation.severity, evaluation.notes) == ("InProgress", None, [])
    assert (evaluation.findings_count, evaluation.notes_count, evaluation.muted_count) == (
        0,
        25,
        25,
    )
    assert evaluation.evidence == [note, muted] * 20
    assert evaluation.kept == []
    evaluation.condition_met(25, [Finding(25, severity=Severity.WARNING)] * 200, at(1))
    assert (len(evaluation.evidence), evaluation.findings_count) == (140, 200)


def test_a_more_serious_finding_raises_the_severity_of_the_verdict() -> None:
    evaluation = begun(known=9, keep_going=True)
    note, warning = Finding(0, severity=Severity.NOTE), Finding(0, severity=Severity.WARNING)
    assert evaluation.condition_met(0, [note, warning], at(0))
    assert (evaluation.severity, evaluation.step) == ("warning", 0)
    assert not evaluation.condition_met(1, [warning, Finding(1, muted="Known.")], at(1))
    assert evaluation.condition_met(2, [Finding(2)], at(2))
    assert (evaluation.severity, evaluation.step) == ("error", 0)
    assert not evaluation.condition_met(3, [warning], at(3))
    assert evaluation.severity == "error"


def test_notes_are_distinct_and_bounded() -> None:
    evaluation = begun()
    for number in [*range(100), *range(103)]:
        evaluation.note(f"note {number}")
    assert [*(f"note {n}" for n in range(100)), "3 more notes were left out."] == evaluation.notes
    evaluation = begun()
    evaluation.note("x" * 9999)
    assert evaluation.notes == ["x" * 1000]


INPUTS: dict[str, Callable[[RuleJobState, int], object]] = {
    "clear": lambda e, step: e.step_judged(step),
    "skipped": lambda e, step: e.step_skipped(step, "r"),
    "met": lambda e, step: e.condition_met(step, [Finding(step)], at(step)),
    "ends itself": lambda e, step: e.condition_met(step, [], at(step), end_of_rule=True),
    "found only": lambda e, step: e.finding_only(step, [Finding(step)]),
    "failed": lambda e, step: e.rule_failed("ClientError: x.", at(step)),
    "stop": lambda e, step: e.stop_requested("s", at(step)),
    "ended": lambda e, step: e.ended(at(step), trial_ended=step % 2 == 0),
}

GOING_ON = {RuleStatus.IN_PROGRESS, RuleStatus.STOPPING, RuleStatus.ISSUES_FOUND}


@given(st.lists(st.sampled_from(sorted(INPUTS))), st.booleans())
def test_a_verdict_absorbs_all_that_comes_after(names: list[str], keep_going: bool) -> None:
    evaluation = begun(known=4, keep_going=keep_going)
    verdict = None
    done = False
    for step, name in enumerate(names):
        INPUTS[name](evaluation, step)
        if verdict is None and evaluation.status.final:
            verdict = summary(evaluation)
        assert verdict in {None, summary(evaluation)}
        assert evaluation.done or evaluation.status in GOING_ON
        assert evaluation.done or not done
        done = evaluation.done
        assert (evaluation.ended_at is not None) == done


# -- recovery ------------------------------------------------------------------------------------


def follows(*, keep_going: bool = False) -> RuleJobState:
    """Return a state that judges on to learn whether a condition recovers."""
    return RuleJobState("AllZero", "zeros", keep_going, START, follows=True)


def back(step: int, tensor: str | None = None) -> Finding:
    """Return the note of a rule whose condition no longer holds."""
    return Finding(step, tensor, severity=Severity.NOTE, recovered_at=step)


def test_what_repeats_an_open_finding_is_neither_kept_nor_counted() -> None:
    evaluation = follows()
    both = [Finding(1, "w", limit=1.0), Finding(1, "w", limit=2.0)]
    assert evaluation.condition_met(1, both, at(1))
    assert evaluation.kept == both
    assert not evaluation.done
    new = Finding(2, "x")
    assert not evaluation.condition_met(2, [Finding(2, "w"), Finding(2, "w"), new], at(2))
    assert evaluation.kept == [new]
    assert evaluation.findings_count == 3
    assert evaluation.recovered_at() is None


def test_a_more_serious_finding_is_kept_though_one_is_open() -> None:
    evaluation = follows()
    evaluation.condition_met(1, [Finding(1, severity=Severity.WARNING)], at(1))
    for step in (2, 3):
        evaluation.condition_met(step, [Finding(step)], at(step))
    assert [finding.step for finding in evaluation.evidence] == [1, 2]
    assert evaluation.severity is Severity.ERROR


@pytest.mark.parametrize("keep_going", [False, True])
def test_a_condition_recovers_when_the_rule_says_so_and_may_be_met_again(keep_going: bool) -> None:
    evaluation = (begun if keep_going else follows)(keep_going=keep_going)
    evaluation.condition_met(1, [Finding(1, "v"), Finding(1, "w")], at(1))
    evaluation.finding_only(5, [back(5, "w")])
    assert evaluation.recovered_at() is None  # v is not
    evaluation.finding_only(6, [back(6, "v")])
    assert evaluation.recovered_at() == 6
    assert [finding.recovered_at for finding in evaluation.evidence] == [6, 5, 5, 6]
    evaluation.condition_met(8, [Finding(8, "w")], at(8))
    assert evaluation.recovered_at() is None
    assert [finding.recovered_at for finding in evaluation.evidence] == [6, 5, 5, 6, None]
    assert evaluation.status is RuleStatus.ISSUES_FOUND
    assert evaluation.findings_count == 3


def test_two_conditions_of_a_tensor_are_two_findings_and_recover_together() -> None:
    evaluation = follows()
    for step, quantity in ((1, "few"), (2, "many"), (3, "few")):
        evaluation.condition_met(step, [Finding(step, "w", quantity=quantity)], at(step))
    assert [finding.step for finding in evaluation.evidence] == [1, 2]
    evaluation.finding_only(4, [back(4, "w")])
    assert evaluation.recovered_at() == 4
    assert [finding.recovered_at for finding in evaluation.evidence] == [4, 4, 4]


def test_what_was_not_met_does_not_recover() -> None:
    evaluation = follows()
    evaluation.finding_only(1, [back(1)])
    assert (evaluation.evidence, evaluation.notes_count) == ([], 0)
    assert evaluation.recovered_at() is None


def test_a_rule_that_ends_with_its_first_finding_has_no_recoveries() -> None:
    evaluation = begun()
    evaluation.condition_met(1, [back(1), Finding(1)], at(1))
    assert evaluation.evidence == [Finding(1)]


def test_a_run_that_was_resumed_and_has_passed_the_latest_finding_has_recovered() -> None:
    evaluation = follows()
    for step in (30, 45):
        evaluation.condition_met(step, [Finding(step, "w")], at(step))
    (found,) = evaluation.evidence
    resumed = global_step(1, 40)
    evaluation.step_judged(resumed)
    assert evaluation.recovered_at() is None
    assert evaluation.finding_recovered_at(found) is None
    evaluation.step_judged(global_step(1, 45))
    assert evaluation.recovered_at() == resumed
    assert evaluation.finding_recovered_at(found) == resumed
    again = global_step(1, 50)
    evaluation.condition_met(again, [Finding(again, "w")], at(50))
    assert [finding.step for finding in evaluation.evidence] == [30, again]
    assert evaluation.recovered_at() is None
    assert evaluation.finding_recovered_at(evaluation.evidence[1]) is None


def test_a_run_that_was_resumed_after_the_latest_finding_has_not_recovered() -> None:
    evaluation = follows()
    evaluation.condition_met(30, [Finding(30, "w")], at(30))
    for own in (40, 50):
        evaluation.step_judged(global_step(1, own))
    assert evaluation.recovered_at() is None
    assert evaluation.finding_recovered_at(evaluation.evidence[0]) is None
