"""CloudWatchLogsSink: each rule's changes of status as a log stream of its own."""

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple

from rule_runner.events import Event, statuses
from rule_runner.results import dump_json
from rule_runner.sinks.aws_calls import AwsSink, RefusedError
from rule_runner.sinks.protocol import Refused, Sent

GROUP: Final = "/rule-runner/RuleJobs"
NAME_LIMIT: Final = 240  # characters of each name in the name of a stream, which has 512
BATCH_EVENTS: Final = 10_000
BATCH_BYTES: Final = 1_048_576
EVENT_BYTES: Final = 26  # that each event counts besides its message
SPAN_MS: Final = 24 * 60 * 60 * 1000
MISSING: Final = "ResourceNotFoundException"
THERE: Final = "ResourceAlreadyExistsException"
INVALID: Final = "InvalidParameterException"
SHARED: Final = ("TrainingJobName", "TrainingJobStatus", "EventSequence", "EventKey")

_NOT_IN_STREAMS: Final = re.compile(r"[:*/\x00-\x1f\x7f\ud800-\udfff]")


class MissingError(Exception):
    """The group or the stream is not there yet."""


class Line(NamedTuple):
    """One log event, and the event that it tells of."""

    at_ms: int
    message: str
    event_id: str

    @property
    def size(self) -> int:
        """Bytes that CloudWatch counts."""
        return EVENT_BYTES + len(self.message.encode())


class CloudWatchLogsSink(AwsSink):
    """Writes a line into the stream of every rule whose status an event changes.

    Group and stream are made if they are not there. The stream is named
    ``<training job>/<rule job>/<epoch>``: seconds at which the evaluation began.
    """

    def __init__(
        self,
        group: str = GROUP,
        region: str | None = None,
        name: str = "cloudwatch-logs",
        label: str = "",
    ) -> None:
        super().__init__("logs", region, name, label)
        self._group = group
        self._written: set[tuple[str, Line]] = set()  # of events that have to go again

    def send(self, events: Sequence[Event]) -> Sent:
        """Write the lines of all `events`; see `EventSink`."""
        refused: dict[str, str] = {}
        for stream, lines in streams(events).items():
            waiting = [line for line in lines if (stream, line) not in self._written]
            for batch in batches(waiting):
                refused |= self._put(stream, batch)
                self._written |= {(stream, line) for line in batch}
        self._written.clear()
        return Sent(len(events), tuple(Refused(*one) for one in refused.items()))

    def _put(self, stream: str, batch: Sequence[Line]) -> dict[str, str]:
        """Write a batch; return why events were refused, by id."""
        try:
            try:
                answer = self._put_once(stream, batch)
            except MissingError:
                self._make(stream)
                answer = self._put_once(stream, batch)
        except RefusedError as err:
            return {line.event_id: str(err) for line in batch}
        found = answer.get("rejectedLogEventsInfo") or {}
        refused = {
            "too old": batch[: found.get("tooOldLogEventEndIndex", 0)],
            "expired": batch[: found.get("expiredLogEventEndIndex", 0)],
            "too new": batch[found.get("tooNewLogEventStartIndex", len(batch)) :],
        }
        return {line.event_id: reason for reason, lines in refused.items() for line in lines}

    def _put_once(self, stream: str, batch: Sequence[Line]) -> dict[str, Any]:
        events = [{"timestamp": line.at_ms, "message": line.message} for line in batch]
        names = {"logGroupName": self._group, "logStreamName": stream}
        with self.calls({INVALID}, {MISSING: MissingError}):
            answer: dict[str, Any] = self.client.put_log_events(**names, logEvents=events)
        return answer

    def _make(self, stream: str) -> None:
        """Make the group and the stream, whichever is missing."""
        group = {"logGroupName": self._group}
        with suppress(RefusedError), self.calls({THERE}):
            self.client.create_log_group(**group)
        with suppress(RefusedError), self.calls({THERE}):
            self.client.create_log_stream(**group, logStreamName=stream)


def streams(events: Sequence[Event]) -> dict[str, list[Line]]:
    """Return the lines for each stream, in chronological order."""
    found: dict[str, list[Line]] = {}
    for event in events:
        detail: Any = event["detail"]
        run, changed = detail["TrainingJobName"], detail.get("ChangedRules")
        shared = {name: detail[name] for name in SHARED}
        for rule in statuses(detail):
            name = rule["RuleConfigurationName"]
            if changed is None or name in changed:
                stream = stream_name(run, name, detail["CreationTime"] // 1000)
                line = Line(rule["LastModifiedTime"], dump_json(shared | rule), str(event["id"]))
                found.setdefault(stream, []).append(line)
    return {stream: sorted(lines, key=lambda line: line.at_ms) for stream, lines in found.items()}


def stream_name(run: str, rule: str, epoch: int) -> str:
    """Return the name of a stream, as CloudWatch takes it.

    >>> stream_name("a:b", "c*/d", 1772366400)
    'a-b/c--d/1772366400'
    """
    end = f"/{epoch}"
    parts = (_NOT_IN_STREAMS.sub("-", one)[:NAME_LIMIT] for one in (run, rule))
    return "/".join(parts) + end


def batches(lines: Sequence[Line]) -> Iterator[list[Line]]:
    """Yield chronological `lines` in parts that are each one request."""
    batch: list[Line] = []
    room = BATCH_BYTES
    for line in lines:
        over = batch and (
            line.size > room or len(batch) == BATCH_EVENTS or line.at_ms - batch[0].at_ms > SPAN_MS
        )
        if over:
            yield batch
            batch, room = [], BATCH_BYTES
        batch.append(line)
        room -= line.size
    if batch:
        yield batch
