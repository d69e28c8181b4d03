"""JUnit: valid against its schema whatever happened, one case a rule, silence never a success."""

from pathlib import Path
from xml.etree.ElementTree import Element, fromstring

import outcomes
import pytest
import xmlschema

from rule_core.severity import Severity
from rule_runner.report.junit import junit
from rule_runner.results.schema import EvaluationResult, Evidence, RuleResult

SCHEMA = xmlschema.XMLSchema(Path(__file__).parents[3] / "data" / "schemas" / "junit-10.xsd")
FINDINGS = "step 3, fc/w of worker_0, measured 1.5, limit 2\nstep 3, measured 1, limit 2, n."


def parsed(result: EvaluationResult) -> Element:
    """Return the report, which is valid."""
    text = junit(result)
    SCHEMA.validate(text)
    return fromstring(text)


def case_of(rule: RuleResult) -> Element:
    (case,) = parsed(outcomes.of(rule)).iter("testcase")
    return case


def told(case: Element) -> list[str]:
    return (case.findtext("system-out") or "").splitlines()


def test_a_healthy_rule_is_a_case_with_its_coverage() -> None:
    case = case_of(outcomes.result("zeros"))
    assert case.attrib == {"name": "zeros", "classname": "AllZero", "time": "0.250"}
    assert [child.tag for child in case] == ["system-out"]
    assert told(case) == ["judged 3 of 4 steps (0 to 9); skipped 1: nothing read", "mode enforce"]


def test_what_was_found_is_a_failure_with_its_evidence() -> None:
    failure = case_of(outcomes.met()).find("failure")
    assert failure is not None
    assert failure.attrib == {"type": "IssuesFound", "message": "IssuesFound at step 3"}
    assert failure.text == FINDINGS


def test_a_failure_says_what_is_wrong_and_what_it_may_follow_from() -> None:
    up = Evidence(3, "a", None, 9.0, 2.0, None, summary="a is up.", advice="Mend.")
    loss = outcomes.met("Loss", rule="LossNotDecreasing", evidence=[up])
    root = parsed(outcomes.of(loss, outcomes.met("Spike", rule="LossSpike")))
    assert [failure.attrib["message"] for failure in root.iter("failure")] == [
        "IssuesFound at step 3, may follow from Spike: a is up. Mend.",
        "IssuesFound at step 3",
    ]


def test_what_a_rule_that_is_only_observed_found_is_reported_and_no_failure() -> None:
    case = case_of(outcomes.met(mode="observe"))
    assert [child.tag for child in case] == ["system-out"]
    expected = ["mode observe", "IssuesFound at step 3 (observed)", *FINDINGS.split("\n")]
    assert told(case)[1:] == expected


def test_an_issue_less_serious_than_the_limit_is_reported_and_no_failure() -> None:
    result = outcomes.of(outcomes.mild(), outcomes.met("Broken"))
    for severity, failed in ((Severity.WARNING, ["Mild", "Broken"]), (Severity.ERROR, ["Broken"])):
        root = fromstring(junit(result, severity))
        cases = {case.attrib["name"]: case for case in root.iter("testcase")}
        assert [name for name in cases if cases[name].find("failure") is not None] == failed
        assert root.attrib["failures"] == str(len(failed))
    assert any(line.startswith("IssuesFound") for line in told(cases["Mild"]))


def test_findings_that_are_not_listed_are_counted() -> None:
    failure = case_of(outcomes.met(findings_count=7)).find("failure")
    assert failure is not None
    assert (failure.text or "").splitlines()[2:] == ["and 5 more findings"]


@pytest.mark.parametrize(
    ("rule", "tag", "kind", "message"),
    [
        pytest.param(
            outcomes.failed(),
            "error",
            "Error",
            "Rule 'Rule' raised KeyError at step 3: 'x'.",
            id="error",
        ),
        pytest.param(
            outcomes.silent(),
            "skipped",
            "NotEvaluated",
            "Rule 'Rule' judged none of 4 known steps.",
            id="not-evaluated",
        ),
        pytest.param(outcomes.stopped(), "skipped", "Stopped", "Stopped by SIGTERM.", id="stopped"),
        pytest.param(
            outcomes.result(outcome="InProgress"),
            "skipped",
            "InProgress",
            "InProgress",
            id="whatever-else",
        ),
        pytest.param(
            outcomes.silent(mode="observe"),
            "skipped",
            "NotEvaluated",
            "Rule 'Rule' judged none of 4 known steps.",
            id="observed",
        ),
    ],
)
def test_no_verdict_is_no_success(rule: RuleResult, tag: str, kind: str, message: str) -> None:
    found = case_of(rule).find(tag)
    assert found is not None
    assert found.attrib == {"type": kind, "message": message}


def test_the_suite_counts_its_cases() -> None:
    rules = [outcomes.result("a"), outcomes.met("b"), outcomes.failed("c"), outcomes.silent("d")]
    root = parsed(outcomes.of(*rules, outcomes.stopped("e", duration_s=12.25), name="mnist"))
    (suite,) = root
    assert suite.attrib == {
        "name": "mnist",
        "timestamp": "2026-03-01T12:00:00.000Z",
        "tests": "5",
        "failures": "1",
        "errors": "1",
        "skipped": "2",
        "time": "12.250",
    }
    names = ["tests", "failures", "errors", "time"]
    assert [root.get(name) for name in names] == [suite.get(name) for name in names]


def test_properties_have_trial_mode_and_coverage() -> None:
    root = parsed(outcomes.of(outcomes.met("zeros", mode="observe")))
    found = {one.get("name"): one.get("value") for one in root.iter("property")}
    assert found == {
        "trial.path": "/trials/t",
        "trial.ended": "true",
        "trial.steps": "4",
        "trial.workers": "worker_0",
        "zeros.outcome": "IssuesFound",
        "zeros.status": "IssuesFound",
        "zeros.mode": "observe",
        "zeros.judged": "3",
        "zeros.skipped": "1",
        "zeros.known": "4",
        "zeros.severity": "none",
        "zeros.findings": "2",
        "zeros.notes": "0",
        "zeros.muted": "0",
    }


@pytest.mark.parametrize("mode", ["enforce", "observe"])
def test_hostile_names_make_no_invalid_file(mode: str) -> None:
    result = outcomes.of(outcomes.hostile(mode=mode), name=outcomes.HOSTILE)
    assert junit(result).isascii()
    (case,) = parsed(result).iter("testcase")
    harmless = "a\\x00\\x1b[31m\ufffd\ufffd\\ud800]]>&<b>\\u202e{0}[x](http://y)\\n\\x85é"
    assert case.get("name") == harmless
    assert f"note: {harmless}" in told(case)


def test_nothing_evaluated_is_an_empty_suite() -> None:
    (suite,) = parsed(outcomes.of())
    assert suite.get("tests") == "0"


def test_notes_and_muted_findings_are_no_failures() -> None:
    (case,) = parsed(outcomes.of(outcomes.mild())).iter("testcase")
    failure = case.find("failure")
    assert failure is not None
    assert failure.get("message") == "IssuesFound at step 3 (warning)"
    assert failure.text == "step 3, a, measured 5, limit 2"
    assert "noted: step 2, Odd." in told(case)
    assert "muted (Known): step 3, b, measured 5, limit 2" in told(case)
