"""Announcer: what each event says of every rule, also after an evaluation was killed."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import evaluating
import pytest
from told import ListSink

from rule_core.model.segments import global_step
from rule_runner.errors import OutputError
from rule_runner.notify.event import EventSubject
from rule_runner.notify.publisher import EventPublisher
from rule_runner.results.cursors import feeds_sinks
from rule_runner.results.state import RuleJobState
from smdebug.rules.extensions import Finding, Severity

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def published_detail(
    folder: Path, evaluation: RuleJobState, mode: str, *, ended: bool = False
) -> dict[str, str]:
    """Announce where a rule stands, and return what the last event says of it."""
    publisher = EventPublisher(
        EventSubject("job", NOW),
        folder,
        (),
        [evaluation],
        lambda: NOW,
        modes={"zeros": mode},
    )
    publisher.publish_status(trial_ended=ended)
    publisher.close()
    detail = evaluating.json_lines(folder / "events.jsonl")[-1]["detail"]
    (entry,) = detail["DebugRuleEvaluationStatuses"]
    return {name: entry[f"RuleEvaluation{name}"] for name in ("Status", "Mode")}


@pytest.mark.parametrize("mode", ["enforce", "observe"])
def test_an_event_has_the_mode_of_each_rule(tmp_path: Path, mode: str) -> None:
    evaluation = RuleJobState("AllZero", "zeros", False, NOW)
    assert published_detail(tmp_path, evaluation, mode) == {"Status": "InProgress", "Mode": mode}


def test_what_was_reported_as_final_stays_and_the_mode_is_todays(tmp_path: Path) -> None:
    before = RuleJobState("AllZero", "zeros", False, NOW)
    before.condition_met(3, [Finding(3)], NOW)
    assert published_detail(tmp_path, before, "enforce")["Status"] == "IssuesFound"
    again = RuleJobState("AllZero", "zeros", False, NOW)
    found = published_detail(tmp_path, again, "observe", ended=True)
    assert found == {"Status": "IssuesFound", "Mode": "observe"}


def entries(folder: Path) -> list[Any]:
    return [one["detail"] for one in evaluating.json_lines(folder / "events.jsonl")]


def publisher(folder: Path, evaluations: list[RuleJobState], *sinks: ListSink) -> EventPublisher:
    return EventPublisher(
        EventSubject("job", NOW),
        folder,
        sinks,
        evaluations,
        lambda: NOW,
        modes={"a": "enforce", "b": "observe"},
        lag={"a": 1.5, "b": 0.0}.__getitem__,
    )


def two() -> list[RuleJobState]:
    return [RuleJobState("AllZero", name, False, NOW) for name in ("a", "b")]


def test_an_event_names_the_rules_that_changed_also_after_a_crash(tmp_path: Path) -> None:
    rules = two()
    first = publisher(tmp_path, rules)
    first.publish_status(trial_ended=False)
    rules[1].condition_met(3, [Finding(3)], NOW)
    first.publish_status(trial_ended=False)
    first.close()
    again = two()
    second = publisher(tmp_path, again)
    second.publish_status(trial_ended=False)
    again[0].rule_failed("ClientError: x.", NOW)
    second.publish_status(trial_ended=False)
    second.publish_status(trial_ended=True)
    second.close()
    found = entries(tmp_path)
    assert [one["ChangedRules"] for one in found] == [["a", "b"], ["b"], ["a"], []]
    told = [one["DebugRuleEvaluationStatuses"][1] for one in found]
    assert [one["StepsEvaluated"] for one in told] == [0, 1, 1, 1]
    assert [one.get("LastStep") for one in told] == [None, 3, 3, 3]
    assert [one["RuleEvaluationStatus"] for one in told] == ["InProgress"] + ["IssuesFound"] * 3
    assert found[0]["DebugRuleEvaluationStatuses"][0]["EvaluationLagSeconds"] == 1.5


def test_sinks_get_each_event_once(tmp_path: Path) -> None:
    rules, sink = two(), ListSink()
    told = publisher(tmp_path, rules, sink)
    told.publish_status(trial_ended=False)
    rules[0].condition_met(3, [Finding(3)], NOW)
    told.publish_status(trial_ended=False)
    assert told.drain(60, lambda: False) == []
    told.close()
    ids = [one["id"] for one in evaluating.json_lines(tmp_path / "events.jsonl")]
    assert sink.taken == ids
    assert feeds_sinks(tmp_path)


def test_folders_are_free_if_a_sink_cannot_be_begun(tmp_path: Path) -> None:
    (tmp_path / ".sagemaker-ignore" / "cursor-b.tmp").mkdir(parents=True)
    with pytest.raises(OutputError, match="cursor-b"):
        publisher(tmp_path, two()[:1], ListSink("a"), ListSink("b"))
    publisher(tmp_path, two()[:1]).close()


def test_an_issue_that_recovers_and_comes_back_has_an_event_each(tmp_path: Path) -> None:
    def judge(evaluation: RuleJobState) -> None:
        back = Finding(5, severity=Severity.NOTE, recovered_at=5)
        publishes = publisher(tmp_path, [evaluation])
        for finding in (Finding(3), back, Finding(global_step(1, 6))):
            step = finding.step
            if finding.counts:
                evaluation.condition_met(step, [finding], NOW)
            else:
                evaluation.finding_only(step, [finding])
            assert evaluation.follow(step) is (step != 3)
            assert not evaluation.follow(step)
            publishes.publish_status(trial_ended=False)
        publishes.close()

    for _ in range(2):  # a restart judges the same, and publishes nothing again
        judge(RuleJobState("AllZero", "a", False, NOW, follows=True))
    states = [
        {key: one for key, one in entry.items() if "State" in key}
        for detail in entries(tmp_path)
        for entry in detail["DebugRuleEvaluationStatuses"]
    ]
    assert states == [
        {"RuleEvaluationState": "open"},
        {"RuleEvaluationState": "recovered", "StateStep": 5},
        {"RuleEvaluationState": "open", "StateStep": 6, "StateSegment": 1},
    ]
    assert all(detail["ChangedRules"] == ["a"] for detail in entries(tmp_path))
    statuses = {
        entry["RuleEvaluationStatus"]
        for detail in entries(tmp_path)
        for entry in detail["DebugRuleEvaluationStatuses"]
    }
    assert statuses == {"IssuesFound"}
