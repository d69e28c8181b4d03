"""SnsSink: each event as one message to a topic, with attributes to filter by."""

import json
from collections.abc import Sequence
from typing import Any, Final

from rule_runner.events import Event, statuses
from rule_runner.results import dump_json
from rule_runner.sinks.aws_calls import AwsSink, RefusedError
from rule_runner.sinks.fitting import TOO_LARGE, fitted
from rule_runner.sinks.protocol import Refused, Sent, one_by_one

MESSAGE_BYTES: Final = 256 * 1024  # with the attributes
SUBJECT_LIMIT: Final = 99  # characters
FIFO: Final = ".fifo"
ATTRIBUTE_VALUES: Final = 100  # names in a list that is an attribute
REFUSALS: Final = frozenset({"InvalidParameter", "InvalidParameterValue", "ParameterValueInvalid"})


class SnsSink(AwsSink):
    """Publishes each event to a topic; a FIFO topic keeps their order and drops repetitions.

    Parameters
    ----------
    topic
        Its ARN.
    """

    def __init__(
        self, topic: str, region: str | None = None, name: str = "sns", label: str = ""
    ) -> None:
        super().__init__("sns", region, name, label)
        self._topic = topic

    def send(self, events: Sequence[Event]) -> Sent:
        """Publish `events` one after another; see `EventSink`."""
        return one_by_one(self._send, events)

    def _send(self, event: Event) -> Refused | None:
        given = attributes(event)
        room = MESSAGE_BYTES - sum(
            len(part.encode())
            for name, value in given.items()
            for part in (name, value["DataType"], value["StringValue"])
        )
        found = fitted(event, lambda one: len(dump_json(one).encode()) <= room)
        if found is None:
            return Refused(str(event["id"]), TOO_LARGE)
        try:
            with self.calls(REFUSALS):
                self.client.publish(
                    TopicArn=self._topic,
                    Subject=subject(event),
                    Message=dump_json(found),
                    MessageAttributes=given,
                    **(_order(event) if self._topic.endswith(FIFO) else {}),
                )
        except RefusedError as err:
            return Refused(str(event["id"]), str(err))
        return None


def _order(event: Event) -> dict[str, object]:
    """Return what makes a FIFO topic keep the order, and drop repetitions."""
    resources: Any = event["resources"]
    group = resources[0].rpartition("/")[2]
    return {"MessageGroupId": group, "MessageDeduplicationId": event["id"]}


def _changed(event: Event) -> tuple[list[str], list[str]]:
    """Return the rules whose status changed, and the statuses that they have now."""
    detail: Any = event["detail"]
    rules = statuses(detail)
    names = detail.get("ChangedRules", [rule["RuleConfigurationName"] for rule in rules])
    changed = [rule for rule in rules if rule["RuleConfigurationName"] in names]
    words = {rule["RuleEvaluationStatus"]: None for rule in changed}
    return names, [*words] or [detail["TrainingJobStatus"]]


def attributes(event: Event) -> dict[str, dict[str, str]]:
    """Return the lists ``rule`` and ``status`` of what changed, for filter policies."""
    names, statuses = _changed(event)
    found = {"rule": names[:ATTRIBUTE_VALUES], "status": statuses}
    return {
        name: {
            "DataType": "String.Array",
            "StringValue": json.dumps(values, ensure_ascii=False),
        }
        for name, values in found.items()
        if values
    }


def subject(event: Event) -> str:
    """Return a line for people that the API takes: printable ASCII, fewer than 100 characters."""
    detail: Any = event["detail"]
    names, statuses = _changed(event)
    what = names[0] if names else "training"
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    end = f": {', '.join(statuses)}{more}"
    begin = f"{what} of {detail['TrainingJobName']}"
    plain = "".join(char if char.isascii() and char.isprintable() else "_" for char in begin)
    return plain[: SUBJECT_LIMIT - len(end)].strip() + end
