"""EventBridgeSink: PutEvents, in requests of what goes together; only what failed goes again."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from rule_runner.events import Event
from rule_runner.results import dump_json
from rule_runner.sinks.aws_calls import AwsSink
from rule_runner.sinks.fitting import TOO_LARGE, fitted
from rule_runner.sinks.protocol import Refused, Sent, SinkError

ENTRIES: Final = 10  # of one request
REQUEST_BYTES: Final = 256 * 1024
TIME_BYTES: Final = 14  # that ``Time`` counts
# Codes of an entry that say it will never be taken.
REFUSALS: Final = frozenset(
    {
        "AccessDeniedException",
        "InvalidAccountIdException",
        "InvalidArgument",
        "MalformedDetail",
        "RedactionFailure",
        "NotAuthorizedForSourceException",
        "NotAuthorizedForDetailTypeException",
    }
)


class EventBridgeSink(AwsSink):
    """Puts events on an event bus.

    EventBridge promises no order, and of one request it may take a later event and fail an
    earlier one; that one goes again, alone. So events are begun in order, no event is begun
    while one of an earlier request is missing, and ``EventSequence`` tells the order within.

    Parameters
    ----------
    bus
        Name or ARN; "" is the account's default bus.
    """

    def __init__(
        self,
        bus: str = "",
        region: str | None = None,
        name: str = "eventbridge",
        label: str = "",
    ) -> None:
        super().__init__("events", region, name, label)
        self._bus = bus
        self._answered: dict[str, str] = {}  # id of an event that is done: why it was refused

    def send(self, events: Sequence[Event]) -> Sent:
        """Send those of the first request that have not been taken yet; see `EventSink`."""
        entries = _request([_entry(event, self._bus) for event in events])
        ids = [str(event["id"]) for event in events[: len(entries)]]
        waiting: dict[str, dict[str, Any]] = {}
        for event_id, entry in zip(ids, entries, strict=True):
            if entry is None:
                self._answered[event_id] = TOO_LARGE
            elif event_id not in self._answered:
                waiting[event_id] = entry
        failure = self._put(waiting) if waiting else ""
        done = next((at for at, one in enumerate(ids) if one not in self._answered), len(ids))
        if not done:
            raise SinkError(failure, transient=True)
        answers = [(one, self._answered.pop(one)) for one in ids[:done]]
        refused = tuple(Refused(one, reason) for one, reason in answers if reason)
        return Sent(done, refused, failure)

    def _put(self, waiting: dict[str, dict[str, Any]]) -> str:
        """Make one request; keep what came of each entry, and return why one failed, or ""."""
        with self.calls():
            answers = self.client.put_events(Entries=[*waiting.values()])["Entries"]
        failure = ""
        for event_id, answer in zip(waiting, answers, strict=True):
            code = answer.get("ErrorCode")
            reason = f"{code}: {answer.get('ErrorMessage') or 'no message'}".rstrip(".")
            if not code:
                self._answered[event_id] = ""
            elif code in REFUSALS:
                self._answered[event_id] = reason
            else:
                failure = failure or reason
        return failure


def size(entry: dict[str, Any]) -> int:
    """Return the bytes that EventBridge counts for an entry."""
    texts = (entry["Source"], entry["DetailType"], entry["Detail"], *entry["Resources"])
    return TIME_BYTES + sum(len(text.encode()) for text in texts)


def _entry(event: Event, bus: str) -> dict[str, Any] | None:
    """Return the entry for an event; None if it cannot be made small enough."""
    found = fitted(event, lambda one: size(_entry_of(one)) < REQUEST_BYTES)
    return None if found is None else _entry_of(found) | ({"EventBusName": bus} if bus else {})


def _entry_of(event: Any) -> dict[str, Any]:
    return {
        "Time": datetime.fromisoformat(event["time"]),
        "Source": event["source"],
        "Resources": event["resources"],
        "DetailType": event["detail-type"],
        "Detail": dump_json(event["detail"]),
    }


def _request(entries: Sequence[dict[str, Any] | None]) -> list[dict[str, Any] | None]:
    """Return the first of `entries` that go into one request; those too large take no room."""
    found: list[dict[str, Any] | None] = []
    room = REQUEST_BYTES - 1
    for entry in entries[:ENTRIES]:
        room -= 0 if entry is None else size(entry)
        if room < 0:
            break
        found.append(entry)
    return found
