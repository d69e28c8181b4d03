"""Results: what a rule job came to, as JSON that machines can rely on."""

import hashlib
import json
import math
import operator
import platform
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec
import numpy as np

from rule_runner.evaluation import Coverage, Evaluation
from rule_runner.rule_source import RuleSource

if TYPE_CHECKING:
    from smdebug.rules.evidence import Finding

SCHEMA_VERSION: Final = 1
STEP: Final = "step"
WINDOW: Final = "window"
TEXT_LIMIT: Final = 200  # characters of an object that JSON has no word for
RULE_SCHEMA: Final = Path(__file__).with_name("rule_result.schema.json")
EVALUATION_SCHEMA: Final = Path(__file__).with_name("evaluation_result.schema.json")

JsonScalar = str | int | float | bool | None

_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_UNPRINTABLE: Final = re.compile("[\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")


class Evidence(msgspec.Struct, frozen=True):
    """One finding: where the condition was met, and what was measured against which limit."""

    step: int
    tensor: str | None
    worker: str | None
    measured: JsonScalar
    limit: JsonScalar
    note: str | None


class ActionResult(msgspec.Struct, frozen=True):
    """One action: what and whom it concerns, masked, how far it came, what came of it, and when."""

    name: str
    target: str
    state: str
    detail: str
    at: str


class RuleResult(msgspec.Struct, frozen=True, kw_only=True):
    """What one rule job came to: the content of ``rule_result.json``.

    Attributes
    ----------
    unit
        What was judged one at a time: ``step``, or ``window`` of time. The steps of `coverage` and
        `evidence` are numbers of those.
    step
        Step of the first condition met.
    mode
        ``enforce``, or ``observe``: a condition met is told, and nothing else comes of it.
    trial_ended
        Whether the trial had its end mark; if not, more steps may have come later.
    ended_at
        None while the evaluation goes on.
    source
        The rule's file; None for a built-in rule, and for one that could not be loaded.
    actions
        What was done for the first condition met, in order.
    duration_s, rule_time_s
        Seconds from start to end, and those of them that the rule's own code took.
    """

    schema_version: int = SCHEMA_VERSION
    configuration_name: str
    rule: str
    source: RuleSource | None = None
    unit: str = STEP
    status: str
    outcome: str
    status_details: str | None
    step: int | None
    evidence: list[Evidence]
    findings_count: int
    coverage: Coverage
    parameters: dict[str, JsonScalar]
    trial: str
    trial_ended: bool
    mode: str
    started_at: str
    ended_at: str | None
    duration_s: float
    rule_time_s: float
    versions: dict[str, str]
    fingerprint: str
    actions: list[ActionResult] = []
    notes: list[str]


class TrialSummary(msgspec.Struct, frozen=True, kw_only=True):
    """The trial that was judged."""

    name: str
    path: str
    ended: bool
    steps: int
    first_step: int | None
    last_step: int | None
    workers: list[str]


class EvaluationResult(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that one command evaluated: the one object of ``--format json``.

    Attributes
    ----------
    trial, profiler_trial
        The trial of tensors, and that of profiler data if both were judged; else the one.
    notes
        What concerns no single rule job, such as rules that were asked for and not evaluated.
    """

    schema_version: int = SCHEMA_VERSION
    trial: TrialSummary
    profiler_trial: TrialSummary | None = None
    rules: list[RuleResult]
    notes: list[str] = []


@dataclass(frozen=True, slots=True)
class RuleJobFacts:
    """What is known of a rule job before its first step.

    Attributes
    ----------
    trial
        Real path or URI.
    mode
        ``enforce`` or ``observe``.
    source
        The rule's file, if it is not a built-in rule.
    unit
        See `RuleResult`.
    """

    parameters: Mapping[str, object]
    trial: str
    mode: str
    fingerprint: str
    versions: Mapping[str, str]
    source: RuleSource | None = None
    unit: str = STEP


def rule_result(
    evaluation: Evaluation,
    facts: RuleJobFacts,
    *,
    trial_ended: bool,
    duration_s: float,
    rule_time_s: float,
    actions: Sequence[ActionResult] = (),
) -> RuleResult:
    """Return the result of `evaluation` as it stands now, finished or not."""
    seen = evaluation.coverage
    coverage = replace(
        seen,
        known=max(seen.known, seen.seen),
        skipped=dict(seen.skipped),
        missing_workers=dict(seen.missing_workers),
    )
    return RuleResult(
        configuration_name=evaluation.configuration_name,
        rule=evaluation.rule,
        source=facts.source,
        unit=facts.unit,
        status=str(evaluation.status),
        outcome=str(evaluation.outcome),
        status_details=evaluation.status_details,
        step=evaluation.step,
        evidence=[evidence(finding) for finding in evaluation.evidence],
        findings_count=evaluation.findings_count,
        coverage=coverage,
        parameters={name: json_scalar(value) for name, value in facts.parameters.items()},
        trial=facts.trial,
        trial_ended=trial_ended,
        mode=str(facts.mode),
        started_at=rfc3339(evaluation.started_at),
        ended_at=None if evaluation.ended_at is None else rfc3339(evaluation.ended_at),
        duration_s=duration_s,
        rule_time_s=rule_time_s,
        versions=dict(facts.versions),
        fingerprint=facts.fingerprint,
        actions=[*actions],
        notes=evaluation.notes,
    )


def evidence(finding: "Finding") -> Evidence:
    """Return `finding` with its values as JSON has them."""
    return Evidence(
        step=operator.index(finding.step),
        tensor=_text_or_none(finding.tensor),
        worker=_text_or_none(finding.worker),
        measured=json_scalar(finding.measured),
        limit=json_scalar(finding.limit),
        note=_text_or_none(finding.note),
    )


def json_scalar(value: object) -> JsonScalar:
    """Return `value` as JSON can hold it.

    Numbers and arrays of one element become plain numbers; NaN and infinities the strings
    ``NaN``, ``Infinity``, ``-Infinity``; strings stay, and a tuple of them is joined by commas;
    anything else, and integers beyond 64 bits, becomes its text, cut to 200 characters.
    """
    if isinstance(value, np.generic) or (isinstance(value, np.ndarray) and value.size == 1):
        value = _plain(value)
    match value:
        case None | bool():
            return value
        case str():
            return str(value)
        case tuple() if all(isinstance(one, str) for one in value):
            return ",".join(value)
        case int() if -(2**63) <= value < 2**64:
            return int(value)
        case float():
            return _finite_or_name(float(value))
        case _:
            return _short_text(value)


def _plain(value: Any) -> object:
    """Return what a numpy scalar or array of one element holds, as a Python object."""
    plain = value.item()
    if isinstance(plain, np.complexfloating):  # complex longdouble
        return str(plain)
    return float(plain) if isinstance(plain, np.generic) else plain  # longdouble, small floats


def _finite_or_name(value: float) -> float | str:
    if math.isfinite(value):
        return value
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"


def _short_text(value: object) -> str:
    try:
        return str(value)[:TEXT_LIMIT]
    except Exception:  # noqa: BLE001 - the object is the rule's; its text must not cost a verdict
        return f"<{type(value).__name__}>"


def _text_or_none(value: object) -> str | None:
    if value is None:
        return None
    return str(value) if isinstance(value, str) else _short_text(value)


def rfc3339(moment: datetime) -> str:
    """Return an aware `moment` as RFC 3339 in UTC with milliseconds."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def dump_json(value: object, *, indent: int | None = None) -> str:
    """Return `value` as JSON that is valid UTF-8 and harmless on a terminal.

    Lone surrogates become U+FFFD; control characters and those that turn the direction of
    writing are escaped. `value` holds no NaN or infinity.
    """
    text = json.dumps(
        msgspec.to_builtins(value), ensure_ascii=False, allow_nan=False, indent=indent
    )
    return _harmless(text)


def dump_numbers(value: object) -> str:
    """Return `value` as `dump_json` does, without blanks: much sooner if it is mostly numbers."""
    try:
        text = msgspec.json.encode(value).decode()
    except UnicodeEncodeError:  # a lone surrogate
        return dump_json(value)
    return _harmless(text)


def _harmless(text: str) -> str:
    if text.isprintable():
        return text
    text = _SURROGATE.sub("\ufffd", text)
    return _UNPRINTABLE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def versions() -> dict[str, str]:
    """Return the versions that a verdict may depend on."""
    return {name: _version(name) for name in ("rule-runner", "numpy")} | {
        "python": platform.python_version()
    }


def _version(distribution: str) -> str:
    try:
        return version(distribution)
    except PackageNotFoundError:  # run from a checkout
        return "unknown"


def fingerprint(
    *,
    rule_source: bytes,
    rule: str,
    configuration_name: str,
    parameters: Mapping[str, object],
    trial: str,
    other_trials: Sequence[str],
    start_step: int | None,
    end_step: int | None,
    keep_going: bool,
) -> str:
    """Return the identity of a rule job: equal exactly if a new start may resume the old one.

    `trial` and `other_trials` are real paths or URIs. This package's version counts too.
    """
    identity = {
        "source": hashlib.sha256(rule_source).hexdigest(),
        "rule": rule,
        "configuration_name": configuration_name,
        "parameters": {name: repr(value) for name, value in sorted(parameters.items())},
        "trials": [trial, *other_trials],
        "range": [start_step, end_step],
        "keep_going": keep_going,
        "version": _version("rule-runner"),
    }
    return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()
