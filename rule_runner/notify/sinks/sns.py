"""SnsSink: each event as one message to a topic, with attributes for filters."""

import json
from collections.abc import Sequence
from typing import Any, Final

from rule_runner.notify.event import Event, statuses
from rule_runner.notify.sinks.aws import AwsSink
from rule_runner.notify.sinks.base import TOO_LARGE, RefusedError, Sent, one_by_one, shorten
from rule_runner.results.json_text import dump_json

MESSAGE_BYTES: Final = 256 * 1024  # including attributes
SUBJECT_LIMIT: Final = 99  # characters
FIFO: Final = ".fifo"
ATTRIBUTE_VALUES: Final = 100  # names in an attribute
REFUSALS: Final = frozenset({"InvalidParameter", "InvalidParameterValue", "ParameterValueInvalid"})


class SnsSink(AwsSink):
    """Publishes each event to a topic; a FIFO topic keeps the order and drops duplicates.

    Parameters
    ----------
    topic
        ARN of the topic.
    """

    def __init__(self, topic: str, region: str | None = None) -> None:
        super().__init__("sns", region)
        self._topic = topic

    def send(self, events: Sequence[Event]) -> Sent:
        """Publish `events` one after another; see `EventSink`."""
        return one_by_one(self._send, events)

    def _send(self, event: Event) -> None:
        message_attributes = attributes(event)
        room = MESSAGE_BYTES - sum(
            len(field.encode())
            for name, value in message_attributes.items()
            for field in (name, value["DataType"], value["StringValue"])
        )
        message = shorten(event, lambda candidate: len(dump_json(candidate).encode()) <= room)
        if message is None:
            raise RefusedError(TOO_LARGE)
        with self.calls(REFUSALS):
            self.client.publish(
                TopicArn=self._topic,
                Subject=subject(event),
                Message=dump_json(message),
                MessageAttributes=message_attributes,
                **(_order(event) if self._topic.endswith(FIFO) else {}),
            )


def _order(event: Event) -> dict[str, object]:
    """Return the parameters for order and deduplication in a FIFO topic."""
    resources: Any = event["resources"]
    group = resources[0].rpartition("/")[2]
    return {"MessageGroupId": group, "MessageDeduplicationId": event["id"]}


def _changed(event: Event) -> tuple[list[str], list[str]]:
    """Return the rules whose status changed, and their new statuses."""
    detail: Any = event["detail"]
    rules = statuses(detail)
    names = detail.get("ChangedRules", [rule["RuleConfigurationName"] for rule in rules])
    changed = [rule for rule in rules if rule["RuleConfigurationName"] in names]
    words = {rule["RuleEvaluationStatus"]: None for rule in changed}
    return names, [*words] or [detail["TrainingJobStatus"]]


def attributes(event: Event) -> dict[str, dict[str, str]]:
    """Return the lists ``rule`` and ``status`` of the changes, for filter policies."""
    names, statuses = _changed(event)
    lists = {"rule": names[:ATTRIBUTE_VALUES], "status": statuses}
    return {
        name: {
            "DataType": "String.Array",
            "StringValue": json.dumps(values, ensure_ascii=False),
        }
        for name, values in lists.items()
        if values
    }


def subject(event: Event) -> str:
    """Return a subject that the API accepts: printable ASCII, fewer than 100 characters."""
    detail: Any = event["detail"]
    names, statuses = _changed(event)
    rule_name = names[0] if names else "training"
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    end = f": {', '.join(statuses)}{more}"
    begin = f"{rule_name} of {detail['TrainingJobName']}"
    plain = "".join(char if char.isascii() and char.isprintable() else "_" for char in begin)
    return plain[: SUBJECT_LIMIT - len(end)].strip() + end
