"""Results of every outcome, with names that are up to no good, for those who write them down."""

from typing import Any

from rule_core.severity import Severity
from rule_runner.results.schema import EvaluationResult, Evidence, RuleResult, TrialSummary
from rule_runner.results.state import Coverage
from rule_runner.results.status import NOT_ENOUGH

# What terminals, XML, Markdown or browsers would take for more than text.
HOSTILE = "a\x00\x1b[31m\ufffe\uffff\ud800]]>&<b>\u202e{0}[x](http://y)\n\x85é"


def result(name: str = "Rule", **more: Any) -> RuleResult:
    """Return the result of a healthy rule, with other fields as given."""
    plain: dict[str, Any] = {
        "configuration_name": name,
        "rule": "AllZero",
        "status": "NoIssuesFound",
        "outcome": "NoIssuesFound",
        "status_details": None,
        "step": None,
        "evidence": [],
        "findings_count": 0,
        "coverage": Coverage(judged=3, known=4, first=0, last=9, skipped={"nothing read": 1}),
        "parameters": {},
        "trial": "/trials/t",
        "trial_ended": True,
        "mode": "enforce",
        "started_at": "2026-03-01T12:00:00.000Z",
        "ended_at": "2026-03-01T12:00:01.500Z",
        "duration_s": 1.5,
        "rule_time_s": 0.25,
        "versions": {"rule-runner": "1.2.3"},
        "fingerprint": "f" * 64,
        "notes": [],
    }
    return RuleResult(**(plain | more))


def met(name: str = "Rule", **more: Any) -> RuleResult:
    """Return the result of a rule that found something at step 3."""
    evidence = [Evidence(3, "fc/w", "worker_0", 1.5, 2, None), Evidence(3, None, None, 1, 2, "n.")]
    plain = {"outcome": "IssuesFound", "status": "IssuesFound", "step": 3, "evidence": evidence}
    return result(name, **(plain | {"findings_count": len(evidence)} | more))


def mild(name: str = "Mild", **more: Any) -> RuleResult:
    """Return the result of a rule with a warning, a note and a muted finding."""
    evidence = [
        Evidence(2, None, None, None, None, "Odd.", severity=Severity.NOTE),
        Evidence(3, "a", None, 5, 2, None, severity=Severity.WARNING),
        Evidence(3, "b", None, 5, 2, None, severity=Severity.WARNING, muted="Known."),
    ]
    counts = {"findings_count": 1, "notes_count": 1, "muted_count": 1}
    return met(name, severity=Severity.WARNING, evidence=evidence, **(counts | more))


def failed(name: str = "Rule", **more: Any) -> RuleResult:
    """Return the result of a rule that raised."""
    details = "ClientError: Rule 'Rule' raised KeyError at step 3: 'x'."
    plain = {"outcome": "Error", "status": "Error", "status_details": details}
    return result(name, **(plain | more))


def silent(name: str = "Rule", **more: Any) -> RuleResult:
    """Return the result of a rule that judged nothing."""
    details = f"{NOT_ENOUGH}Rule 'Rule' judged none of 4 known steps.\n"
    plain = {"outcome": "NotEvaluated", "status": "Error", "status_details": details}
    return result(name, **(plain | more))


def stopped(name: str = "Rule", **more: Any) -> RuleResult:
    """Return the result of a rule that was stopped."""
    plain = {"outcome": "Stopped", "status": "Stopped", "status_details": "Stopped by SIGTERM."}
    return result(name, **(plain | more))


def hostile(**more: Any) -> RuleResult:
    """Return a result all of whose text is `HOSTILE`."""
    return met(
        HOSTILE,
        rule=HOSTILE,
        evidence=[Evidence(1, HOSTILE, HOSTILE, HOSTILE, HOSTILE, HOSTILE)],
        coverage=Coverage(skipped={HOSTILE: 1}, missing_workers={HOSTILE: 1}),
        notes=[HOSTILE],
        status_details=HOSTILE,
        **more,
    )


def of(*rules: RuleResult, name: str = "t") -> EvaluationResult:
    """Return the result of an evaluation of some rules."""
    summary = TrialSummary(
        name=name,
        path="/trials/t",
        ended=True,
        steps=4,
        first_step=0,
        last_step=9,
        workers=["worker_0"],
    )
    return EvaluationResult(trial=summary, rules=list(rules))
