"""EventBridgeSink: PutEvents in batches; only failed entries are sent again."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from rule_runner.notify.event import Event
from rule_runner.notify.sinks.aws import AwsSink
from rule_runner.notify.sinks.base import (
    TOO_LARGE,
    Refused,
    RefusedError,
    Sent,
    SinkError,
    batches,
    shorten,
)
from rule_runner.results.json_text import dump_json

ENTRIES: Final = 10  # per request
REQUEST_BYTES: Final = 256 * 1024
TIME_BYTES: Final = 14  # counted for ``Time``
# Error codes of an entry that is refused for good.
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
# Error codes of a request that contains a refused entry.
INVALID: Final = frozenset(
    {"RequestEntityTooLarge", "SerializationException", "ValidationError", "ValidationException"}
)


class EventBridgeSink(AwsSink):
    """Puts events on an event bus.

    EventBridge guarantees no order, and may take a later event of a request but not an earlier
    one, which is then sent again alone. So no event is sent before all earlier requests are
    complete, and ``EventSequence`` gives the order within a request.

    Parameters
    ----------
    bus
        Name or ARN; "" is the account's default bus.
    """

    def __init__(self, bus: str = "", region: str | None = None) -> None:
        super().__init__("events", region)
        self._bus = bus
        self._answered: dict[str, str] = {}  # reasons of refused events by id; "" if taken

    def send(self, events: Sequence[Event]) -> Sent:
        """Send the events of the first request that are not taken yet; see `EventSink`."""
        entries = _request([_entry(event, self._bus) for event in events])
        ids = [str(event["id"]) for event in events[: len(entries)]]
        waiting: dict[str, dict[str, Any]] = {}
        for event_id, entry in zip(ids, entries, strict=True):
            if entry is None:
                self._answered[event_id] = TOO_LARGE
            elif event_id not in self._answered:
                waiting[event_id] = entry
        failure = self._put(waiting) if waiting else ""
        done = next(
            (i for i, event_id in enumerate(ids) if event_id not in self._answered), len(ids)
        )
        if not done:
            raise SinkError(failure, transient=True)
        answers = [(event_id, self._answered.pop(event_id)) for event_id in ids[:done]]
        refused = tuple(Refused(*answer) for answer in answers if answer[1])
        return Sent(done, refused, failure)

    def _put(self, waiting: dict[str, dict[str, Any]]) -> str:
        """Make one request, record the answer to each entry, and return the first failure or ""."""
        try:
            with self.calls(INVALID):
                answers = self.client.put_events(Entries=[*waiting.values()])["Entries"]
        except RefusedError as err:
            if len(waiting) > 1:  # a single entry is at fault: send each alone
                failures = (self._put({event_id: entry}) for event_id, entry in waiting.items())
                return next(filter(None, failures), "")
            self._answered |= dict.fromkeys(waiting, str(err))
            return ""
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
    """Return the size of an entry in bytes, as counted by EventBridge."""
    texts = (entry["Source"], entry["DetailType"], entry["Detail"], *entry["Resources"])
    return TIME_BYTES + sum(len(text.encode()) for text in texts)


def _entry(event: Event, bus: str) -> dict[str, Any] | None:
    """Return the entry for an event; None if it is too large even when shortened."""
    short = shorten(event, lambda candidate: size(_entry_of(candidate)) < REQUEST_BYTES)
    return None if short is None else _entry_of(short) | ({"EventBusName": bus} if bus else {})


def _entry_of(event: Any) -> dict[str, Any]:
    return {
        "Time": datetime.fromisoformat(event["time"]),
        "Source": event["source"],
        "Resources": event["resources"],
        "DetailType": event["detail-type"],
        "Detail": dump_json(event["detail"]),
    }


def _request(entries: Sequence[dict[str, Any] | None]) -> list[dict[str, Any] | None]:
    """Return the first of `entries` that fit into one request; None entries take no room."""
    return next(
        batches(
            entries, lambda entry: 0 if entry is None else size(entry), REQUEST_BYTES - 1, ENTRIES
        )
    )
