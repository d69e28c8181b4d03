"""SARIF: results as JSON for code hosts and editors, one result for each finding."""

import inspect
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from builtin_rules.rule_page import rule_summary
from rule_core.model.segments import step_text
from rule_core.severity import Severity
from rule_runner.errors import EXIT_ISSUES
from rule_runner.escape import printable
from rule_runner.report.rule_pages import page
from rule_runner.report.text import coverage, evidence, mark, reason
from rule_runner.results.issues.acknowledged import finding_ids
from rule_runner.results.json_text import dump_json
from rule_runner.results.schema import WINDOW, EvaluationResult, Evidence, RuleResult
from rule_runner.results.status import FindingState, Outcome

if TYPE_CHECKING:
    from rule_runner.loading.loader import LoadedRule

SCHEMA: Final = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
_NO_VERDICT: Final = {Outcome.NOT_EVALUATED: "warning", Outcome.STOPPED: "warning"}

Json = dict[str, Any]


def sarif(result: EvaluationResult, rules: "Sequence[LoadedRule]", exit_code: int) -> str:
    """Return `result` as a SARIF log of one run.

    Parameters
    ----------
    rules
        The rule of each rule job, in the order of the results.
    exit_code
        Exit code of the command; 0, and 10 for issues, mean successful execution.
    """
    kinds = [*dict.fromkeys(rules)]  # two rule jobs may have the same rule
    pairs = [
        (rule, {"id": printable(rule.rule), "index": kinds.index(loaded)})
        for rule, loaded in zip(result.rules, rules, strict=True)
    ]
    run = {
        "tool": {"driver": _driver(result, kinds)},
        "automationDetails": {"id": f"rule-runner/{printable(result.trial.name)}"},
        "invocations": [_invocation(pairs, exit_code)],
        "results": [entry for rule, ref in pairs for entry in results_of(result, rule, ref)],
        "properties": {
            "trial": result.trial,
            "rules": {printable(rule.configuration_name): _summary(rule) for rule, _ in pairs},
        },
    }
    return dump_json({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2)


def _driver(result: EvaluationResult, kinds: "Sequence[LoadedRule]") -> Json:
    versions = {rule.versions.get("rule-runner", "unknown") for rule in result.rules}
    return {
        "name": "rule-runner",
        "version": ", ".join(sorted(versions)) or "unknown",
        "rules": [descriptor_of(loaded) for loaded in kinds],
    }


def descriptor_of(loaded: "LoadedRule") -> Json:
    """Return the description of a rule, independent of results."""
    doc = inspect.cleandoc(loaded.rule_class.__doc__ or f"Rule {loaded.name}.")
    descriptor: Json = {"id": printable(loaded.name), "fullDescription": {"text": doc}}
    if not loaded.builtin:
        return descriptor | {
            "shortDescription": {"text": " ".join(doc.partition("\n\n")[0].split())}
        }
    text = page(loaded.name)
    return descriptor | {
        "shortDescription": {"text": rule_summary(loaded.rule_class)},
        "help": {"text": text, "markdown": text},
        "properties": {"page": f"docs/rules/{loaded.name}.md"},
    }


def _invocation(pairs: Sequence[tuple[RuleResult, Json]], exit_code: int) -> Json:
    rules = [rule for rule, _ in pairs]
    times = {
        "startTimeUtc": min((rule.started_at for rule in rules), default=None),
        "endTimeUtc": max((rule.ended_at for rule in rules if rule.ended_at), default=None),
    }
    return {
        "executionSuccessful": exit_code in {0, EXIT_ISSUES},
        "exitCode": exit_code,
        **{name: time for name, time in times.items() if time},
        "toolExecutionNotifications": [
            entry for rule, ref in pairs for entry in notifications_of(rule, ref)
        ],
    }


def notifications_of(rule: RuleResult, ref: Json) -> list[Json]:
    """Return why a rule has no verdict, and its notes; `ref` is as in `results_of`."""
    name = rule.configuration_name
    messages = []
    if rule.outcome not in {Outcome.NO_ISSUES_FOUND, Outcome.ISSUES_FOUND}:
        messages.append((_NO_VERDICT.get(Outcome(rule.outcome), "error"), reason(rule)))
    if rest := rule.findings_count - len(rule.findings):
        messages.append(("note", f"{rest} more findings are in findings.jsonl."))
    messages += [("note", note) for note in rule.notes]
    return [
        {
            "level": level,
            "message": message(f"{name}: {text}"),
            "associatedRule": ref,
            "properties": {"outcome": rule.outcome},
        }
        for level, text in messages
    ]


def results_of(result: EvaluationResult, rule: RuleResult, ref: Json) -> list[Json]:
    """Return the findings of a rule; `ref` says which of the described rules it is."""
    return [
        {
            "ruleId": ref["id"],
            "ruleIndex": ref["index"],
            "level": _level(rule, finding),
            "message": message(
                f"{rule.configuration_name}: {evidence(finding, rule.unit).rstrip('.')}."
            ),
            "locations": [_location(result, rule, finding)],
            "partialFingerprints": {"findingId/v1": number},
            **_suppression(finding),
            "properties": {
                **_acknowledgement(finding),
                "mode": rule.mode,
                "severity": finding.severity,
                "measured": finding.measured,
                "limit": finding.limit,
                **_if_set(finding, "segment", "resumed_from", "state", "recovered_at"),
            },
        }
        for number, finding in zip(finding_ids(rule), rule.evidence, strict=True)
    ]


def _level(rule: RuleResult, finding: Evidence) -> str:
    """Return the level of a finding, its severity, lower if it is observed or has recovered."""
    if finding.state == FindingState.RECOVERED:
        return str(Severity.NOTE)
    observed = rule.mode == "observe" and finding.severity is Severity.ERROR
    return str(Severity.WARNING if observed else finding.severity)


def _suppression(finding: Evidence) -> Json:
    """Return that a finding is muted, and why."""
    if finding.muted is msgspec.UNSET:
        return {}
    why = mark(finding.acknowledgement) if finding.acknowledgement else printable(finding.muted)
    return {"suppressions": [{"kind": "external", "status": "accepted", "justification": why}]}


def _acknowledgement(finding: Evidence) -> Json:
    """Return what somebody said about a finding that counts."""
    said = finding.acknowledgement
    if said is msgspec.UNSET or not finding.counts:
        return {}
    return {"acknowledgement": mark(said)}


def _if_set(found: Evidence | RuleResult, *names: str) -> Json:
    """Return the fields of these names that are set."""
    values = ((name, getattr(found, name)) for name in names)
    return {name: value for name, value in values if value is not msgspec.UNSET}


def _location(result: EvaluationResult, rule: RuleResult, finding: Evidence) -> Json:
    """Return the location of a finding: folder of the trial, step, worker and tensor."""
    step = step_text(finding.global_step)
    places = {"step": step, "worker": finding.worker, "tensor": finding.tensor}
    profiler_trial = result.profiler_trial if rule.unit == WINDOW else None
    trial = profiler_trial or result.trial
    path = trial.path
    return {
        "physicalLocation": {
            "artifactLocation": {"uri": path if "://" in path else Path(path).as_uri()}
        },
        "logicalLocations": [
            {
                "kind": kind,
                "name": printable(name),
                "fullyQualifiedName": f"{printable(trial.name)}/{kind}/{printable(name)}",
            }
            for kind, name in places.items()
            if name is not None
        ],
    }


def _summary(rule: RuleResult) -> Json:
    """Return verdict and coverage: a rule without results may not have judged anything."""
    return {
        "rule": rule.rule,
        "outcome": rule.outcome,
        "mode": rule.mode,
        "step": rule.step,
        **_if_set(rule, "segment", "resumed_from"),
        "severity": rule.severity,
        "findings": rule.findings_count,
        "coverage": rule.coverage,
        "coverageText": coverage(rule),
    }


def message(text: str) -> Json:
    """Return a message without placeholders and links."""
    plain = printable(text).replace("{", "{{").replace("}", "}}")
    return {"text": plain.replace("[", "\\[") if "](" in plain else plain}
