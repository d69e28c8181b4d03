"""Metrics of each rule of an event, for dashboards."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from rule_runner.notify.event import Event, statuses
from rule_runner.results.status import RuleStatus

NAMESPACE: Final = "RuleRunner/Rules"
VALUE_LIMIT: Final = 1024  # characters of a dimension's value
UNITS: Final = {
    "IssuesFound": "Count",
    "StepsEvaluated": "Count",
    "LastStep": "None",
    "EvaluationLagSeconds": "Seconds",
    "EvaluatorErrors": "Count",
}


@dataclass(frozen=True, slots=True)
class RuleMetrics:
    """The metrics of one rule at one time.

    Attributes
    ----------
    run, rule
        Values of the dimensions ``Run`` and ``Rule``.
    at_ms
        Milliseconds since the epoch.
    values
        Finite values by name. ``LastStep`` is missing before the first step is judged.
    """

    run: str
    rule: str
    at_ms: int
    values: dict[str, float]


def rule_metrics(event: Event) -> Iterator[RuleMetrics]:
    """Yield the metrics of each rule of an event."""
    detail: Any = event["detail"]
    for rule in statuses(detail):
        status = rule["RuleEvaluationStatus"]
        values = {
            "IssuesFound": int(status == RuleStatus.ISSUES_FOUND),
            "StepsEvaluated": rule.get("StepsEvaluated", 0),
            "LastStep": rule.get("LastStep"),
            "EvaluationLagSeconds": rule.get("EvaluationLagSeconds", 0.0),
            "EvaluatorErrors": int(status == RuleStatus.ERROR),
        }
        yield RuleMetrics(
            dimension(detail["TrainingJobName"]),
            dimension(rule["RuleConfigurationName"]),
            rule["LastModifiedTime"],
            {name: value for name, value in values.items() if value is not None},
        )


def dimension(text: str) -> str:
    """Return `text` in the form that CloudWatch accepts as the value of a dimension.

    >>> dimension("Läuft: 1"), dimension(":x"), dimension(" ")
    ('L_uft: 1', '_x', '_')
    """
    plain = "".join(char if char.isascii() and char.isprintable() else "_" for char in text)
    if plain.startswith(":"):
        plain = f"_{plain[1:]}"
    return plain[:VALUE_LIMIT].strip() or "_"
