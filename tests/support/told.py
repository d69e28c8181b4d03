"""Events as an evaluation sends them, and a sink that keeps them."""

import threading
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from rule_runner.notify.event import Event, EventSubject, RuleState, build_event
from rule_runner.notify.outbox import Outbox
from rule_runner.notify.sinks import EventSink, Sent, SinkError
from rule_runner.results.status import RuleStatus, condition_text

START = datetime(2026, 3, 1, 12, tzinfo=UTC)
JOB = EventSubject("mnist-42", START)
WAY = [RuleStatus.IN_PROGRESS, RuleStatus.STOPPING, RuleStatus.STOPPED]
MET = RuleState(
    "LossCheck",
    RuleStatus.ISSUES_FOUND,
    condition_text("LossNotDecreasing", 500),
    steps_evaluated=51,
    last_step=500,
    lag_s=1.25,
)
GOING = RuleState("Overfit", RuleStatus.IN_PROGRESS)


def told(
    *rules: RuleState,
    sequence: int = 3,
    changed: Sequence[str] = ("LossCheck",),
    job: EventSubject = JOB,
    ended: bool = False,
    after_s: float = 90,
) -> dict[str, Any]:
    """Return an event of `rules`; by default one rule has found issues and one goes on."""
    return build_event(
        job,
        rules or (MET, GOING),
        training_ended=ended,
        now=job.started_at + timedelta(seconds=after_s),
        sequence=sequence,
        changed=changed,
    )


def many(count: int, **more: Any) -> list[dict[str, Any]]:
    """Return events that all differ."""
    return [
        told(RuleState(f"rule-{at}", RuleStatus.IN_PROGRESS), sequence=at, changed=(), **more)
        for at in range(1, count + 1)
    ]


def news(status: RuleStatus, outbox: Outbox) -> Event:
    """Return the event that one rule has a status."""
    return told(RuleState("zeros", status), sequence=outbox.next_sequence, changed=["zeros"])


class ListSink(EventSink):
    """Takes events until it has to fail, one at a time on request."""

    def __init__(self, name: str = "list", *, together: int = 1000) -> None:
        self.name = self.label = name
        self.together = together
        self.taken: list[object] = []
        self.failure: Exception | None = None
        self.tried, self.tried_twice = threading.Event(), threading.Event()

    def send(self, events: Sequence[Event]) -> Sent:
        (self.tried_twice if self.tried.is_set() else self.tried).set()
        if self.failure:
            raise self.failure
        count = min(self.together, len(events))
        self.taken += [event["id"] for event in events[:count]]
        return Sent(count)


DOWN = SinkError("it is down", transient=True)
DENIED = SinkError("AccessDenied: no", transient=False)
