"""SARIF: results as the JSON that code hosts and editors show, one result for each finding."""

import inspect
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rule_runner.errors import EXIT_ISSUES
from rule_runner.finding_ids import FindingIds
from rule_runner.pages import page, sentence
from rule_runner.results import WINDOW, EvaluationResult, Evidence, RuleResult, dump_json
from rule_runner.show import coverage, evidence, printable, reason
from rule_runner.status import Outcome

if TYPE_CHECKING:
    from rule_runner.loader import LoadedRule

SCHEMA: Final = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
_LEVELS: Final = {"enforce": "error", "observe": "warning"}
_NO_VERDICT: Final = {Outcome.NOT_EVALUATED: "warning", Outcome.STOPPED: "warning"}

Json = dict[str, Any]


def sarif(result: EvaluationResult, rules: "Sequence[LoadedRule]", exit_code: int) -> str:
    """Return `result` as a SARIF log of one run.

    Parameters
    ----------
    rules
        The rule of each rule job, in the order of the results.
    exit_code
        What the command ends with: the execution was successful if it is 0, or 10 for issues.
    """
    kinds = [*dict.fromkeys(rules)]  # two rule jobs may have the same rule
    of_rules = [
        {"id": printable(rule.rule), "index": kinds.index(loaded)}
        for rule, loaded in zip(result.rules, rules, strict=True)
    ]
    pairs = [*zip(result.rules, of_rules, strict=True)]
    run = {
        "tool": {"driver": _driver(result, kinds)},
        "automationDetails": {"id": f"rule-runner/{printable(result.trial.name)}"},
        "invocations": [_invocation(pairs, exit_code)],
        "results": [found for rule, ref in pairs for found in _results(result, rule, ref)],
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
        "rules": [_descriptor(loaded) for loaded in kinds],
    }


def _descriptor(loaded: "LoadedRule") -> Json:
    """Return what there is to say about a rule, whatever it found."""
    about = inspect.cleandoc(loaded.rule_class.__doc__ or f"Rule {loaded.name}.")
    found: Json = {"id": printable(loaded.name), "fullDescription": {"text": about}}
    if not loaded.builtin:
        return found | {"shortDescription": {"text": " ".join(about.partition("\n\n")[0].split())}}
    text = page(loaded.name)
    return found | {
        "shortDescription": {"text": sentence(loaded.rule_class)},
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
            told for rule, ref in pairs for told in _notifications(rule, ref)
        ],
    }


def _notifications(rule: RuleResult, ref: Json) -> list[Json]:
    """Return what hindered a rule: why there is no verdict, and what was noted."""
    name = rule.configuration_name
    told = []
    if rule.outcome not in {Outcome.NO_ISSUES_FOUND, Outcome.ISSUES_FOUND}:
        told.append((_NO_VERDICT.get(Outcome(rule.outcome), "error"), reason(rule)))
    if rule.findings_count > len(rule.evidence):
        rest = rule.findings_count - len(rule.evidence)
        told.append(("note", f"{rest} more findings are in findings.jsonl."))
    told += [("note", note) for note in rule.notes]
    return [
        {
            "level": level,
            "message": _message(f"{name}: {text}"),
            "associatedRule": ref,
            "properties": {"outcome": rule.outcome},
        }
        for level, text in told
    ]


def _results(result: EvaluationResult, rule: RuleResult, ref: Json) -> list[Json]:
    ids = FindingIds(rule.fingerprint)
    return [
        {
            "ruleId": ref["id"],
            "ruleIndex": ref["index"],
            "level": _LEVELS[rule.mode],
            "message": _message(
                f"{rule.configuration_name}: {evidence(found, rule.unit).rstrip('.')}."
            ),
            "locations": [_location(result, rule, found)],
            "partialFingerprints": {"findingId/v1": ids.next(found)},
            "properties": {"mode": rule.mode, "measured": found.measured, "limit": found.limit},
        }
        for found in rule.evidence
    ]


def _location(result: EvaluationResult, rule: RuleResult, found: Evidence) -> Json:
    """Return where a finding was made: in the folder of the trial, at which step, in what."""
    places = {"step": str(found.step), "worker": found.worker, "tensor": found.tensor}
    of_windows = result.profiler_trial if rule.unit == WINDOW else None
    trial = of_windows or result.trial
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
    """Return verdict and coverage: that a rule has no results does not say that it judged."""
    return {
        "rule": rule.rule,
        "outcome": rule.outcome,
        "mode": rule.mode,
        "step": rule.step,
        "findings": rule.findings_count,
        "coverage": rule.coverage,
        "coverageText": coverage(rule),
    }


def _message(text: str) -> Json:
    """Return a message in which nothing is a placeholder or a link, whatever names it holds."""
    plain = printable(text).replace("{", "{{").replace("}", "}}")
    return {"text": plain.replace("[", "\\[") if "](" in plain else plain}
