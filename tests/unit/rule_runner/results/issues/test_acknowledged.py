"""Results with acknowledgements: what counts then, and what each report says."""

import json
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import jsonschema
import msgspec
import outcomes
import pytest
import reports
from structlog.testing import capture_logs

from rule_core.severity import Severity
from rule_runner.commands.github import _conclusion
from rule_runner.loading.loader import load_builtin
from rule_runner.report.html.page import page
from rule_runner.report.html.trials import TrialRow, trial_row
from rule_runner.report.junit import junit
from rule_runner.report.markdown import markdown, title
from rule_runner.report.sarif import sarif
from rule_runner.report.saved_results import Saved, read
from rule_runner.report.text import lines
from rule_runner.results.acknowledgements import (
    ACKNOWLEDGEMENTS,
    Acknowledgement,
    AcknowledgementKind,
    append_acknowledgement,
)
from rule_runner.results.issues.acknowledged import (
    acknowledged_if_readable,
    acknowledged_in,
    finding_ids,
    with_acknowledgements,
)
from rule_runner.results.json_text import dump_json
from rule_runner.results.schema import (
    EVALUATION_SCHEMA,
    EvaluationResult,
    Evidence,
    RuleResult,
    TrialSummary,
)
from rule_runner.results.status import FindingState, Outcome

NOW = datetime(2026, 11, 24, 12, tzinfo=UTC)


def said(kind: str, **fields: Any) -> Acknowledgement:
    scope = {} if "finding" in fields else {"rule": "Rule"}
    defaults: dict[str, Any] = {"who": "ann", "reason": "Known.", "at": NOW} | scope
    return Acknowledgement(kind=AcknowledgementKind(kind), **(defaults | fields))


def two() -> RuleResult:
    """Return a rule with an error at step 3 and a warning at step 4."""
    evidence = [
        Evidence(3, "a", None, 5, 2, None),
        Evidence(4, "b", None, 5, 2, None, severity=Severity.WARNING),
    ]
    return outcomes.met(evidence=evidence, severity=Severity.ERROR)


# --- what counts


def test_a_muted_rule_has_no_issue_and_keeps_its_verdict() -> None:
    rule = with_acknowledgements(two(), [said("muted")])
    assert (rule.outcome, rule.is_muted, rule.is_acknowledged) == ("IssuesFound", True, False)
    assert (rule.findings_count, rule.muted_count, rule.severity) == (0, 2, None)
    assert not rule.has_issues()
    assert rule.counted_severity is None


def test_an_acknowledged_rule_counts() -> None:
    rule = with_acknowledgements(two(), [said("acknowledged")])
    assert (rule.findings_count, rule.severity) == (2, Severity.ERROR)
    assert (rule.is_muted, rule.is_acknowledged) == (False, True)
    assert rule.has_issues(Severity.ERROR)


def test_muting_the_error_leaves_the_warning() -> None:
    error, warning = finding_ids(two())
    rule = with_acknowledgements(two(), [said("muted", finding=error)])
    assert (rule.findings_count, rule.muted_count) == (1, 1)
    assert (rule.has_issues(Severity.ERROR), rule.has_issues(Severity.WARNING)) == (False, True)
    assert not rule.is_muted
    both = [said("muted", finding=error), said("muted", finding=warning)]
    assert with_acknowledgements(two(), both).is_muted


def test_each_finding_must_be_acknowledged() -> None:
    error, warning = (said("acknowledged", finding=number) for number in finding_ids(two()))
    assert not with_acknowledgements(two(), [error]).is_acknowledged
    assert with_acknowledgements(two(), [error, warning]).is_acknowledged
    muted = said("muted", finding=warning.finding)
    assert with_acknowledgements(two(), [error, muted]).is_acknowledged


def test_findings_that_are_not_listed_count_unless_their_rule_is_muted() -> None:
    many = msgspec.structs.replace(two(), findings_count=500)
    listed = [said("muted", finding=number) for number in finding_ids(many)]
    rule = with_acknowledgements(many, listed)
    assert (rule.findings_count, rule.muted_count) == (498, 2)
    assert rule.has_issues(Severity.ERROR)
    assert not rule.is_muted
    seen = [said("acknowledged", finding=number) for number in finding_ids(many)]
    assert not with_acknowledgements(many, seen).is_acknowledged
    whole = with_acknowledgements(many, [said("muted")])
    assert (whole.findings_count, whole.is_muted) == (0, True)


def test_notes_and_mutes_of_the_job_file_stay_as_they_are() -> None:
    rule = with_acknowledgements(outcomes.mild("Rule"), [said("muted")])
    assert [finding.muted for finding in rule.evidence] == [msgspec.UNSET, "Known.", "Known."]
    assert [bool(finding.acknowledgement) for finding in rule.evidence] == [False, True, False]
    assert (rule.findings_count, rule.notes_count, rule.muted_count) == (0, 1, 2)


def test_what_concerns_others_changes_nothing() -> None:
    rule = two()
    others = [said("muted", rule="Other"), said("muted", finding="f")]
    assert with_acknowledgements(rule, others) is rule
    healthy = outcomes.result()
    assert not with_acknowledgements(healthy, [said("muted")]).is_muted


def test_the_ids_are_the_same_in_every_evaluation() -> None:
    again = msgspec.structs.replace(two(), run_id="another", started_at="2027-01-01T00:00:00Z")
    assert finding_ids(again) == finding_ids(two())
    assert len(set(finding_ids(two()))) == 2


# --- the folder


def test_those_in_the_output_folder_hold_if_they_have_not_expired(tmp_path: Path) -> None:
    append_acknowledgement(tmp_path, said("muted", until=date(2000, 1, 1)))
    assert not acknowledged_in(tmp_path, [two()])[0].is_muted
    append_acknowledgement(tmp_path, said("muted", until=date(9999, 1, 1)))
    assert acknowledged_in(tmp_path, [two()])[0].is_muted


def test_without_readable_acknowledgements_findings_count(tmp_path: Path) -> None:
    (tmp_path / ACKNOWLEDGEMENTS).mkdir()
    with capture_logs() as logs:
        assert acknowledged_if_readable(tmp_path, [two()]) == [two()]
    assert [log["event"] for log in logs] == ["acknowledgements_unreadable"]


# --- reports


@pytest.fixture
def muted() -> EvaluationResult:
    error, _ = finding_ids(two())
    until = date(2027, 1, 1)
    rules = [
        with_acknowledgements(two(), [said("muted", until=until, incident="Rule")]),
        with_acknowledgements(two(), [said("acknowledged", finding=error, who="b<i>b")]),
    ]
    trial = TrialSummary(
        name="t", path="/t", ended=True, steps=4, first_step=0, last_step=9, workers=[]
    )
    return EvaluationResult(trial=trial, rules=rules)


def test_text_names_who_why_and_until_when(muted: EvaluationResult) -> None:
    text = "\n".join(lines(muted))
    assert "Rule (AllZero): IssuesFound at step 3 (muted)" in text
    assert "  muted by ann until 2027-01-01 (Known): step 3, a, measured 5, limit 2" in text
    assert "  acknowledged by b<i>b (Known): step 3, a, measured 5, limit 2" in text


def test_junit_has_no_failure_for_a_muted_rule(muted: EvaluationResult) -> None:
    suite = ET.fromstring(junit(muted))[0]
    assert [case.find("failure") is not None for case in suite.iter("testcase")] == [False, True]
    output = next(suite.iter("testcase")).findtext("system-out") or ""
    assert "IssuesFound at step 3 (muted)" in output
    assert "muted by ann until 2027-01-01 (Known): step 3" in output


def test_sarif_has_suppressions_and_acknowledgements(muted: EvaluationResult) -> None:
    rules = [load_builtin("AllZero")] * 2
    results = json.loads(sarif(muted, rules, 0))["runs"][0]["results"]
    why = {
        "kind": "external",
        "status": "accepted",
        "justification": "muted by ann until 2027-01-01 (Known)",
    }
    suppressions = [entry.get("suppressions") for entry in results]
    assert suppressions == [[why], [why], None, None]
    notes = [entry["properties"].get("acknowledgement") for entry in results]
    assert notes == [None, None, "acknowledged by b<i>b (Known)", None]


def saved(root: Path, kind: str) -> Saved:
    reports.save(root / "Loss", reports.fired("Loss", severity=Severity.ERROR))
    append_acknowledgement(root, said(kind, rule="Loss", who="<script>ann"))
    return read([root])


def test_the_page_shows_a_muted_rule_apart(tmp_path: Path) -> None:
    html = page(saved(tmp_path, "muted"), "x")
    assert '<span class="badge Stopped"><span aria-hidden="true">○</span> Muted</span>' in html
    assert "All findings of this rule are muted by &lt;script&gt;ann (Known)." in html
    assert "<script>ann" not in html


def test_the_page_shows_an_acknowledged_rule_as_seen(tmp_path: Path) -> None:
    html = page(saved(tmp_path, "acknowledged"), "x")
    assert "Issues found, acknowledged</span>" in html
    assert html.count("acknowledged by &lt;script&gt;ann (Known)") == 2


def test_unreadable_acknowledgements_are_a_problem_of_the_page(tmp_path: Path) -> None:
    reports.save(tmp_path / "Loss", reports.fired("Loss"))
    (tmp_path / ACKNOWLEDGEMENTS).mkdir()
    (problem,) = read([tmp_path]).problems
    assert problem.endswith("acknowledgements.jsonl' cannot be read: Not a regular file.")


def test_github_passes_a_muted_rule(tmp_path: Path) -> None:
    results = saved(tmp_path / "a", "muted")
    assert title(results) == "No issues in 1 trial"
    assert "1 IssuesFound, 1 of them muted" in markdown(results)
    assert _conclusion(results, Severity.ERROR) == "success"
    seen = saved(tmp_path / "b", "acknowledged")
    assert "acknowledged by <script>ann (Known): step 20" in markdown(seen)
    assert _conclusion(seen, Severity.ERROR) == "failure"


def test_rows_of_many_trials_say_it() -> None:
    kinds = ("muted", "acknowledged")
    rules = [with_acknowledgements(two(), [said(kind)]) for kind in kinds]
    html = trial_row(TrialRow("t", "/t", Outcome.ISSUES_FOUND, rules, (), ""))
    assert '<span class="cell Stopped">Rule at step 3, muted</span>' in html
    assert '<span class="cell IssuesFound">Rule at step 3, acknowledged</span>' in html


def test_json_is_valid_against_the_schema(muted: EvaluationResult) -> None:
    schema = json.loads(EVALUATION_SCHEMA.read_text())
    document = json.loads(dump_json(muted))
    jsonschema.Draft202012Validator(schema).validate(document)
    first, second = document["rules"]
    assert first["acknowledgement"]["until"] == "2027-01-01"
    assert second["evidence"][0]["acknowledgement"]["kind"] == "acknowledged"


# --- incidents


def issue(name: str, step: int = 20, **fields: Any) -> RuleResult:
    finding = Evidence(step, None, None, 5, 2, None)
    plain = {"rule": name, "step": step, "evidence": [finding], "severity": Severity.ERROR}
    return outcomes.met(name, **(plain | fields))


SPIKE, DEAD, LOSS = issue("LossSpike", 20), issue("DeadRelu", 40), issue("LossNotDecreasing", 30)
BACK: dict[str, Any] = {"state": FindingState.RECOVERED, "recovered_at": 50}


def marked(output: Path, *rules: RuleResult) -> set[str]:
    """Return the rule jobs whose issues were acknowledged or muted."""
    return {
        rule.configuration_name
        for rule in acknowledged_in(output, rules)
        if rule.is_acknowledged or rule.is_muted
    }


@pytest.mark.parametrize("kind", ["acknowledged", "muted"])
def test_an_incident_covers_what_follows_and_joins_later(tmp_path: Path, kind: str) -> None:
    append_acknowledgement(tmp_path, said(kind, incident="LossSpike", rule=None))
    assert marked(tmp_path, SPIKE) == {"LossSpike"}
    assert marked(tmp_path, SPIKE, DEAD, LOSS) == {"LossSpike", "DeadRelu", "LossNotDecreasing"}
    apart = issue("TreeDepth", 30), issue("Mine", 30), issue("RepeatedBatches", 30)
    assert marked(tmp_path, SPIKE, *apart) == {"LossSpike"}
    append_acknowledgement(tmp_path, said("withdrawn", incident="LossSpike", rule=None))
    assert marked(tmp_path, SPIKE, DEAD, LOSS) == set()


def test_an_incident_covers_no_cause_that_is_found_later(tmp_path: Path) -> None:
    append_acknowledgement(tmp_path, said("muted", incident="DeadRelu", rule=None))
    assert marked(tmp_path, DEAD, LOSS) == {"DeadRelu", "LossNotDecreasing"}
    rules = acknowledged_in(tmp_path, [SPIKE, DEAD, LOSS])
    assert [rule.has_issues() for rule in rules] == [True, False, False]


def test_an_incident_whose_root_has_recovered_covers_what_had_followed(tmp_path: Path) -> None:
    append_acknowledgement(tmp_path, said("acknowledged", incident="LossSpike", rule=None))
    back = issue("LossSpike", 20, **BACK)
    assert marked(tmp_path, back, LOSS, DEAD) == {"LossSpike", "LossNotDecreasing", "DeadRelu"}
    assert marked(tmp_path, back, issue("DeadRelu", 60)) == {"LossSpike"}


def test_an_incident_that_is_not_there_covers_nothing_else(tmp_path: Path) -> None:
    append_acknowledgement(tmp_path, said("acknowledged", incident="LossSpike", rule=None))
    assert marked(tmp_path, DEAD, LOSS) == set()
    assert marked(tmp_path, outcomes.result("LossSpike"), DEAD) == set()


def test_a_rule_covers_its_own_findings_only(tmp_path: Path) -> None:
    append_acknowledgement(tmp_path, said("acknowledged", rule="LossSpike"))
    assert marked(tmp_path, SPIKE, DEAD) == {"LossSpike"}
