"""The section `ignore` of a job file: what it mutes, until when, and what is wrong with it."""

import json
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import evaluating
import numpy as np
import pytest
from memory_store import MemoryStore

from rule_core.rules.evidence import Finding
from rule_core.severity import Severity
from rule_runner.config.job_file.ignore import Mute, mutes
from rule_runner.config.job_file.reader import definition_from
from rule_runner.config.request import EvaluationRequest, read_request
from rule_runner.config.resolve import resolve
from rule_runner.engine.outcome import exit_code
from rule_runner.errors import JobError
from smdebug.rules import Rule


class Finds(Rule):
    """Finds tensor a at each step, and tensor b at step 2."""

    def invoke_at_step(self, step: int) -> bool:
        return self.found(step, tensor="a") | (step == 2 and self.found(step, tensor="b"))


@pytest.mark.parametrize(
    ("muted", "outcome", "step", "counts"),
    [
        ([], "IssuesFound", 0, (1, 0)),
        ([Mute("Known.", tensor="^a$")], "IssuesFound", 2, (1, 3)),
        ([Mute("Known."), Mute("Other.")], "NoIssuesFound", None, (0, 4)),
    ],
)
def test_muted_findings_are_evidence_only(
    tmp_path: Path, muted: list[Mute], outcome: str, step: int | None, counts: tuple[int, int]
) -> None:
    files = evaluating.trial({at: {"loss": np.float32([1])} for at in range(3)}, ended=True)
    job = evaluating.rule_job(Finds, mutes=tuple(muted))
    found = evaluating.runner(evaluating.configured(tmp_path, [job]), MemoryStore(files)).run()
    (result,) = found.result.rules
    assert (result.outcome, result.step) == (outcome, step)
    assert (result.findings_count, result.muted_count) == counts
    assert [finding.muted for finding in result.asides] == ["Known."] * counts[1]
    assert exit_code(found, fail_on=Severity.WARNING) == (10 if result.findings else 0)
    lines = evaluating.json_lines(tmp_path / "findings.jsonl")
    assert [line.get("muted") for line in lines].count("Known.") == counts[1]


@pytest.mark.parametrize(
    ("entry", "applies"),
    [
        ({"rule": "Zeros"}, True),
        ({"rule": "AllZero"}, True),
        ({"rule": "Zero"}, False),
        ({"run": "mn.st"}, True),
        ({"run": "^other"}, False),
        ({"rule": "Zeros", "run": "^other"}, False),
        ({"tensor": "x", "until": "today"}, True),
        ({"tensor": "x", "until": "yesterday"}, False),
    ],
)
def test_entries_apply_to_rules_and_runs_until_they_expire(
    tmp_path: Path, entry: dict[str, str], applies: bool
) -> None:
    if "until" in entry:  # days of the test, not of the start of a run that passes midnight
        days = 1 if entry["until"] == "yesterday" else 0
        entry = entry | {"until": str(datetime.now(UTC).date() - timedelta(days))}
    parameters = {"rule_to_invoke": "AllZero", "tensor_regex": "x"}
    job = {
        "DebugRuleConfigurations": [
            {"RuleConfigurationName": "Zeros", "RuleParameters": parameters}
        ],
        "stopOn": "warning",
        "ignore": [entry | {"reason": "Known."}],
    }
    request = EvaluationRequest(trial=str(tmp_path / "mnist"), job=definition_from(job))
    assert read_request(request.to_json()) == request
    config = resolve(request)
    assert [mute.reason for mute in config.rules[0].mutes] == ["Known."] * applies
    expired = "until" in entry and not applies
    misspelt = entry.get("rule") == "Zero"
    unknown = "mutes nothing: no rule is called 'Zero'. Did you mean 'Zeros'?"
    assert ["expired" in note for note in config.notes if unknown not in note] == [True] * expired
    assert any(unknown in note for note in config.notes) is misspelt
    assert config.stop_on is Severity.WARNING


def test_a_finding_without_a_tensor_is_muted_by_its_rule_only() -> None:
    assert Mute("r", rule="A").covers_finding(Finding(0))
    assert not Mute("r", tensor="x").covers_finding(Finding(0))


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ({}, "ignore of the job must be a list."),
        (["x"], r"ignore\[0\] of the job must be an object with rule, tensor, run, reason, until."),
        ([{"rule": "A"}], "must have a reason"),
        ([{"reason": "r"}], "must have a rule, a tensor or a run."),
        ([{"rule": "A", "reasn": "r"}], "unknown field 'reasn'. Did you mean 'reason'"),
        ([{"rule": 1, "reason": "r"}], "rule in .* must be a string, got 1."),
        ([{"run": "(", "reason": "r"}], "run in .* is not a regular expression"),
        ([{"run": "a", "reason": "r", "until": "May"}], "until in .* must be a date"),
    ],
)
def test_a_wrong_entry_is_one_sentence(section: Any, message: str) -> None:
    with pytest.raises(JobError, match=message):
        mutes(section, "the job")


def test_a_wrong_severity_is_one_sentence() -> None:
    job = {"DebugRuleConfigurations": [{"RuleConfigurationName": "A"}], "stopOn": "note"}
    with pytest.raises(JobError, match=r"^stopOn of .* must be 'error' or 'warning', got 'note'"):
        definition_from(json.loads(json.dumps(job)))


def test_why_a_finding_is_muted_has_the_last_day() -> None:
    assert Mute("Known.", rule="a").why == "Known."
    assert Mute("Known.", rule="a", until=date(2026, 12, 31)).why == "Known, until 2026-12-31"
