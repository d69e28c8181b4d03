"""Metrics of rules: to CloudWatch itself, or as lines of its embedded metric format."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, Final, TextIO
from urllib.parse import quote

from rule_runner.events import Event
from rule_runner.results import dump_json
from rule_runner.sinks.aws_calls import AwsSink, RefusedError
from rule_runner.sinks.local import StdoutSink
from rule_runner.sinks.numbers import NAMESPACE, UNITS, RuleNumbers, numbers
from rule_runner.sinks.protocol import Refused, Sent, one_by_one

METRICS: Final = 1000  # of one request
REQUEST_BYTES: Final = 1_000_000  # below the limit of 1 MB, whichever MB is meant
METRIC_BYTES: Final = 1000  # more than one takes besides its names, in any protocol of botocore
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


class CloudWatchMetricsSink(AwsSink):
    """Puts the numbers of every rule of an event; an event that fails half-way goes again."""

    def __init__(
        self,
        namespace: str = NAMESPACE,
        region: str | None = None,
        name: str = "cloudwatch-metrics",
        label: str = "",
    ) -> None:
        super().__init__("cloudwatch", region, name, label)
        self._namespace = namespace

    def send(self, events: Sequence[Event]) -> Sent:
        """Put the numbers of `events`; see `EventSink`."""
        return one_by_one(self._send, events)

    def _send(self, event: Event) -> Refused | None:
        data = [datum for each in numbers(event) for datum in _data(each)]
        try:
            for request in requests(data):
                with self.calls(REFUSALS):
                    self.client.put_metric_data(Namespace=self._namespace, MetricData=request)
        except RefusedError as err:
            return Refused(str(event["id"]), str(err))
        return None


def _data(found: RuleNumbers) -> Iterator[dict[str, Any]]:
    for name, value in found.values.items():
        yield {
            "MetricName": name,
            "Dimensions": [
                {"Name": "Run", "Value": found.run},
                {"Name": "Rule", "Value": found.rule},
            ],
            "Timestamp": datetime.fromtimestamp(found.at_ms / 1000, UTC),
            "Value": value,
            "Unit": UNITS[name],
        }


def requests(data: Sequence[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """Yield `data` in parts that are each one request."""
    part: list[dict[str, Any]] = []
    room = REQUEST_BYTES
    for datum in data:
        size = METRIC_BYTES + sum(len(quote(one["Value"])) for one in datum["Dimensions"])
        if part and (size > room or len(part) == METRICS):
            yield part
            part, room = [], REQUEST_BYTES
        part.append(datum)
        room -= size
    if part:
        yield part


class EmfSink(StdoutSink):
    """One line of the embedded metric format per rule of an event on a text stream.

    An agent that reads the stream as a log, as those of AWS do, makes metrics of them.
    """

    def __init__(
        self,
        namespace: str = NAMESPACE,
        stream: TextIO | None = None,
        name: str = "emf",
        label: str = "",
    ) -> None:
        super().__init__(stream, name, label)
        self._namespace = namespace

    def lines(self, event: Event) -> list[str]:
        """Return the lines for an event."""
        return [dump_json(self._embedded(found)) for found in numbers(event)]

    def _embedded(self, found: RuleNumbers) -> dict[str, Any]:
        metrics = [{"Name": name, "Unit": UNITS[name]} for name in found.values]
        directive = {
            "Namespace": self._namespace,
            "Dimensions": [["Run", "Rule"]],
            "Metrics": metrics,
        }
        return {
            "_aws": {"Timestamp": found.at_ms, "CloudWatchMetrics": [directive]},
            "Run": found.run,
            "Rule": found.rule,
            **found.values,
        }
