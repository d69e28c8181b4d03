"""CloudWatchLogsSink: the status changes of each rule in a separate log stream."""

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple

from rule_runner.notify.event import Event, statuses
from rule_runner.notify.sinks.aws import AwsSink
from rule_runner.notify.sinks.base import Refused, RefusedError, Sent, batches
from rule_runner.results.json_text import dump_json

GROUP: Final = "/rule-runner/RuleJobs"
NAME_LIMIT: Final = 240  # characters of each name in the name of a stream, which may have 512
BATCH_EVENTS: Final = 10_000
BATCH_BYTES: Final = 1_048_576
EVENT_BYTES: Final = 26  # that CloudWatch adds to each message
SPAN_MS: Final = 24 * 60 * 60 * 1000
MISSING: Final = "ResourceNotFoundException"
EXISTS: Final = "ResourceAlreadyExistsException"
INVALID: Final = "InvalidParameterException"
SHARED: Final = ("TrainingJobName", "TrainingJobStatus", "RunId", "EventSequence", "EventKey")

_NOT_IN_STREAMS: Final = re.compile(r"[:*/\x00-\x1f\x7f\ud800-\udfff]")


class MissingError(Exception):
    """The group or the stream does not exist yet."""


class LogLine(NamedTuple):
    """One log event, and the id of the rule event that it reports."""

    at_ms: int
    message: str
    event_id: str


class CloudWatchLogsSink(AwsSink):
    """Writes a line into the stream of every rule whose status an event changes.

    Group and stream are created if they do not exist. The stream is named
    ``<training job>/<rule job>/<epoch>``: start of the evaluation in epoch seconds.
    """

    def __init__(self, group: str = GROUP, region: str | None = None) -> None:
        super().__init__("logs", region)
        self._group = group
        self._written: set[tuple[str, LogLine]] = set()  # of events that are sent again

    def send(self, events: Sequence[Event]) -> Sent:
        """Write the lines of all `events`; see `EventSink`."""
        refused: dict[str, str] = {}
        for stream, lines in streams(events).items():
            waiting = [line for line in lines if (stream, line) not in self._written]
            for batch in log_batches(waiting):
                refused |= self._put(stream, batch)
                self._written |= {(stream, line) for line in batch}
        self._written.clear()
        return Sent(len(events), tuple(Refused(*item) for item in refused.items()))

    def _put(self, stream: str, batch: Sequence[LogLine]) -> dict[str, str]:
        """Write a batch; return the reasons of refused events by id."""
        try:
            try:
                answer = self._put_once(stream, batch)
            except MissingError:
                self._make(stream)
                answer = self._put_once(stream, batch)
        except RefusedError as err:
            if len(batch) > 1:  # a single line is at fault: send each alone
                return {
                    event_id: reason
                    for line in batch
                    for event_id, reason in self._put(stream, [line]).items()
                }
            return {line.event_id: str(err) for line in batch}
        rejected = answer.get("rejectedLogEventsInfo") or {}
        refused = {
            "too old": batch[: rejected.get("tooOldLogEventEndIndex", 0)],
            "expired": batch[: rejected.get("expiredLogEventEndIndex", 0)],
            "too new": batch[rejected.get("tooNewLogEventStartIndex", len(batch)) :],
        }
        return {line.event_id: reason for reason, lines in refused.items() for line in lines}

    def _put_once(self, stream: str, batch: Sequence[LogLine]) -> dict[str, Any]:
        events = [{"timestamp": line.at_ms, "message": line.message} for line in batch]
        names = {"logGroupName": self._group, "logStreamName": stream}
        with self.calls({INVALID}, {MISSING: MissingError}):
            answer: dict[str, Any] = self.client.put_log_events(**names, logEvents=events)
        return answer

    def _make(self, stream: str) -> None:
        """Create the group and the stream if they are missing."""
        group = {"logGroupName": self._group}
        with suppress(RefusedError), self.calls({EXISTS}):
            self.client.create_log_group(**group)
        with suppress(RefusedError), self.calls({EXISTS}):
            self.client.create_log_stream(**group, logStreamName=stream)


def streams(events: Sequence[Event]) -> dict[str, list[LogLine]]:
    """Return the lines for each stream, in chronological order."""
    lines: dict[str, list[LogLine]] = {}
    for event in events:
        detail: Any = event["detail"]
        run, changed = detail["TrainingJobName"], detail.get("ChangedRules")
        shared = {name: detail[name] for name in SHARED if name in detail}
        for rule in statuses(detail):
            name = rule["RuleConfigurationName"]
            if changed is None or name in changed:
                stream = stream_name(run, name, detail["CreationTime"] // 1000)
                line = LogLine(rule["LastModifiedTime"], dump_json(shared | rule), str(event["id"]))
                lines.setdefault(stream, []).append(line)
    return {
        stream: sorted(stream_lines, key=lambda line: line.at_ms)
        for stream, stream_lines in lines.items()
    }


def stream_name(run: str, rule: str, epoch: int) -> str:
    """Return the name of a stream in the form that CloudWatch accepts.

    >>> stream_name("a:b", "c*/d", 1772366400)
    'a-b/c--d/1772366400'
    """
    end = f"/{epoch}"
    parts = (_NOT_IN_STREAMS.sub("-", name)[:NAME_LIMIT] for name in (run, rule))
    return "/".join(parts) + end


def log_batches(lines: Sequence[LogLine]) -> Iterator[list[LogLine]]:
    """Split chronological `lines` into one list per request."""
    return batches(
        lines,
        lambda line: EVENT_BYTES + len(line.message.encode()),
        BATCH_BYTES,
        BATCH_EVENTS,
        lambda first, line: line.at_ms - first.at_ms > SPAN_MS,
    )
