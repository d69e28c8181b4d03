"""Metrics of rules: sent to CloudWatch, or printed in its embedded metric format."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, TextIO
from urllib.parse import quote

from rule_runner.notify.event import Event, statuses
from rule_runner.notify.sinks.aws import AwsSink
from rule_runner.notify.sinks.base import Sent, batches, one_by_one
from rule_runner.notify.sinks.local import StdoutSink
from rule_runner.results.json_text import dump_json
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
METRICS: Final = 1000  # of one request
REQUEST_BYTES: Final = 1_000_000  # below 1 MB and 1 MiB
METRIC_BYTES: Final = 1000  # upper bound without names, for any protocol of botocore
REFUSALS: Final = frozenset(
    {
        "InvalidParameterValue",
        "InvalidParameterValueException",
        "InvalidParameterCombination",
        "InvalidParameterCombinationException",
        "MissingParameter",
        "MissingRequiredParameterException",
        "ValidationError",
    }
)


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


class CloudWatchMetricsSink(AwsSink):
    """Puts the metrics of every rule of an event; a partly sent event is sent again."""

    def __init__(self, namespace: str = NAMESPACE, region: str | None = None) -> None:
        super().__init__("cloudwatch", region)
        self._namespace = namespace

    def send(self, events: Sequence[Event]) -> Sent:
        """Put the metrics of `events`; see `EventSink`."""
        return one_by_one(self._send, events)

    def _send(self, event: Event) -> None:
        data = [datum for metrics in rule_metrics(event) for datum in _data(metrics)]
        for request in requests(data):
            with self.calls(REFUSALS):
                self.client.put_metric_data(Namespace=self._namespace, MetricData=request)


def _data(metrics: RuleMetrics) -> Iterator[dict[str, Any]]:
    for name, value in metrics.values.items():
        yield {
            "MetricName": name,
            "Dimensions": [
                {"Name": "Run", "Value": metrics.run},
                {"Name": "Rule", "Value": metrics.rule},
            ],
            "Timestamp": datetime.fromtimestamp(metrics.at_ms / 1000, UTC),
            "Value": value,
            "Unit": UNITS[name],
        }


def requests(data: Sequence[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """Split `data` into one list per request."""
    return batches(data, _size, REQUEST_BYTES, METRICS)


def _size(datum: dict[str, Any]) -> int:
    return METRIC_BYTES + sum(len(quote(dimension["Value"])) for dimension in datum["Dimensions"])


class EmfSink(StdoutSink):
    """One line of the embedded metric format per rule of an event on a text stream.

    An agent of AWS that reads the stream as a log turns the lines into metrics.
    """

    def __init__(self, namespace: str = NAMESPACE, stream: TextIO | None = None) -> None:
        super().__init__(stream)
        self._namespace = namespace

    def lines(self, event: Event) -> list[str]:
        """Return the lines for an event."""
        return [dump_json(self._embedded(metrics)) for metrics in rule_metrics(event)]

    def _embedded(self, metrics: RuleMetrics) -> dict[str, Any]:
        definitions = [{"Name": name, "Unit": UNITS[name]} for name in metrics.values]
        directive = {
            "Namespace": self._namespace,
            "Dimensions": [["Run", "Rule"]],
            "Metrics": definitions,
        }
        return {
            "_aws": {"Timestamp": metrics.at_ms, "CloudWatchMetrics": [directive]},
            "Run": metrics.run,
            "Rule": metrics.rule,
            **metrics.values,
        }
