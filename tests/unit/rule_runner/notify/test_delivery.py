"""Delivery: each sink gets every event at least once, in order, and delays nobody."""

import json
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import evaluating
import pytest
import structlog
from told import DENIED, DOWN, WAY, ListSink, news

from rule_runner.notify.delivery import Delivery, Undelivered, drain
from rule_runner.notify.event import Event
from rule_runner.notify.outbox import Outbox
from rule_runner.notify.sinks import EventSink, Refused, Sent, SinkError
from rule_runner.results.cursors import Cursor


@pytest.fixture(autouse=True)
def _quiet() -> None:
    evaluating.log_nothing()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "out"


def ids(folder: Path) -> list[str]:
    return [json.loads(line)["id"] for line in (folder / "events.jsonl").read_text().splitlines()]


def deliver(
    folder: Path,
    sinks: Sequence[EventSink],
    statuses: Sequence[Any] = (),
    *,
    again: bool = False,
) -> list[Undelivered]:
    """Publish events beside deliveries, and let these end."""
    with Outbox(folder) as outbox:
        deliveries = [Delivery(outbox, sink, again=again) for sink in sinks]
        for status in statuses:
            outbox.publish(news(status, outbox))
            for one in deliveries:
                one.notify(outbox.size)
        return drain(deliveries, 60)


def test_an_event_is_on_disk_before_it_is_sent(folder: Path) -> None:
    seen = []

    class LookingSink(ListSink):
        def send(self, events: Sequence[Event]) -> Sent:
            seen.append({event["id"] for event in events} <= set(ids(folder)))
            return super().send(events)

    assert deliver(folder, [LookingSink()], WAY) == []
    assert set(seen) == {True}


@pytest.mark.parametrize("together", [1, 2, 1000])
def test_each_sink_gets_every_event_once_and_in_order(folder: Path, together: int) -> None:
    sinks = [ListSink("a", together=together), ListSink("b")]
    assert deliver(folder, sinks, WAY) == []
    assert [sink.taken for sink in sinks] == [ids(folder)] * 2
    assert deliver(folder, sinks) == []
    assert [sink.taken for sink in sinks] == [ids(folder)] * 2


def test_what_was_left_is_sent_by_the_next_one(folder: Path) -> None:
    deliver(folder, [], WAY[:2])
    sink = ListSink()
    deliver(folder, [sink], WAY[2:])
    assert sink.taken == ids(folder)
    assert len(sink.taken) == 3


def test_all_are_sent_again_when_asked(folder: Path) -> None:
    sink = ListSink()
    deliver(folder, [sink], WAY)
    deliver(folder, [sink], again=True)
    assert sink.taken == ids(folder) * 2
    assert Cursor(folder, "list").read() == (folder / "events.jsonl").stat().st_size


def test_a_sink_that_denies_holds_up_no_other_and_is_reported(folder: Path) -> None:
    good, bad = ListSink("good"), ListSink("bad")
    bad.failure = DENIED
    with structlog.testing.capture_logs() as logs:
        undelivered = deliver(folder, [bad, good], WAY)
    assert undelivered == [Undelivered("bad", 3, 0, "AccessDenied: no")]
    assert (good.taken, bad.taken) == (ids(folder), [])
    expected = {
        "event": "sink_failed",
        "log_level": "warning",
        "sink": "bad",
        "reason": "AccessDenied: no",
    }
    assert logs == [expected]  # however often it was tried
    bad.failure = None
    assert deliver(folder, [bad, good]) == []
    assert (good.taken, bad.taken) == (ids(folder), ids(folder))


def test_a_sink_that_stays_down_is_given_up_at_the_deadline(folder: Path) -> None:
    assert deliver(folder, [], WAY) == []
    sink = ListSink()
    sink.failure = DOWN
    with Outbox(folder) as outbox:
        delivery = Delivery(outbox, sink)
        sink.tried_twice.wait()
        assert drain([delivery], 0) == [Undelivered("list", 3, 0, "it is down")]


def test_a_sink_that_recovers_is_caught_up(folder: Path) -> None:
    class Recovering(ListSink):
        fails = 3

        def send(self, events: Sequence[Event]) -> Sent:
            self.fails -= 1
            if self.fails >= 0:
                raise DOWN
            return super().send(events)

    sink = Recovering()
    assert deliver(folder, [sink], WAY) == []
    assert sink.taken == ids(folder)


def test_a_sink_that_hangs_is_left_alone_and_moves_nothing_later(folder: Path) -> None:
    inside, let_go = threading.Event(), threading.Event()

    class Hanging(ListSink):
        def send(self, events: Sequence[Event]) -> Sent:
            inside.set()
            let_go.wait()
            return super().send(events)

    with Outbox(folder) as outbox:
        delivery = Delivery(outbox, Hanging())
        outbox.publish(news(WAY[0], outbox))
        delivery.notify(outbox.size)
        inside.wait()
        assert drain([delivery], 0) == [Undelivered("list", 1, 0, "it did not answer in time")]
        let_go.set()
        assert delivery.join(60)
    assert Cursor(folder, "list").read() == 0


def test_waiting_ends_on_request(folder: Path) -> None:
    assert deliver(folder, [], WAY) == []
    sink = ListSink()
    sink.failure = DOWN
    with Outbox(folder) as outbox:
        delivery = Delivery(outbox, sink)
        (found,) = drain([delivery], 1e6, stopped=sink.tried_twice.is_set)
    assert found == Undelivered("list", 3, 0, "it is down")


def test_what_is_refused_for_good_holds_up_nothing(folder: Path) -> None:
    class Refusing(ListSink):
        def send(self, events: Sequence[Event]) -> Sent:
            first = str(events[0]["id"])
            if first == ids(folder)[1]:
                return Sent(1, (Refused(first, "MalformedDetail: no"),))
            return super().send(events[:1])

    deliver(folder, [], WAY)
    sink = Refusing()
    with structlog.testing.capture_logs() as logs:
        undelivered = deliver(folder, [sink])
    assert undelivered == [Undelivered("list", 0, 1, "MalformedDetail: no")]
    first, second, third = ids(folder)
    assert sink.taken == [first, third]
    assert [(log["event"], log["event_id"]) for log in logs] == [("event_refused", second)]
    assert deliver(folder, [sink]) == []


def test_a_part_that_was_taken_is_not_sent_again(folder: Path) -> None:
    class Partial(ListSink):
        first = True

        def send(self, events: Sequence[Event]) -> Sent:
            if not self.first:
                return super().send(events)
            self.first = False
            super().send(events[:2])
            return Sent(2, failure="ThrottlingException: slow")

    deliver(folder, [], WAY)
    sink = Partial()
    assert deliver(folder, [sink]) == []
    assert sink.taken == ids(folder)


@pytest.mark.parametrize("error", [BrokenPipeError(32, "Broken pipe"), KeyError("x")], ids=repr)
def test_any_exception_of_a_sink_is_a_failure_and_no_more(folder: Path, error: Exception) -> None:
    sink = ListSink()
    sink.failure = error
    assert deliver(folder, [sink], WAY[:1]) == [Undelivered("list", 1, 0, repr(error))]


def test_a_cursor_that_cannot_be_written_costs_repetitions_only(folder: Path) -> None:
    sink = ListSink()
    with structlog.testing.capture_logs() as logs, Outbox(folder) as outbox:
        delivery = Delivery(outbox, sink)
        (folder / ".sagemaker-ignore" / "cursor-list.tmp").mkdir()
        outbox.publish(news(WAY[0], outbox))
        delivery.notify(outbox.size)
        assert drain([delivery], 60) == []
    assert [log["event"] for log in logs] == ["cursor_not_written"]
    assert sink.taken == ids(folder)


def test_pauses_are_drawn_below_what_they_grow_to(folder: Path) -> None:
    sink = ListSink()
    sink.failure = SinkError("down", transient=True)
    drawn = []

    def nothing() -> float:
        drawn.append(0)
        if len(drawn) == 3:
            sink.failure = None
        return -1.0  # no pause at all

    with Outbox(folder) as outbox:
        outbox.publish(news(WAY[0], outbox))
        delivery = Delivery(outbox, sink, random_part=nothing)
        assert drain([delivery], 60) == []
    assert sink.taken == ids(folder)


@pytest.mark.parametrize(
    ("found", "sentence"),
    [
        (
            Undelivered("sns:x", 1, 0, "Denied."),
            (
                "Sink 'sns:x' did not take 1 event: Denied. Send them with: rule-runner events "
                "replay 'out' --sink 'sns:x'."
            ),
        ),
        (
            Undelivered("sns:x", 3, 2, "Slow"),
            (
                "Sink 'sns:x' did not take 3 events and refused 2 events for good: Slow. Send them "
                "with: rule-runner events replay 'out' --sink 'sns:x'."
            ),
        ),
        (
            Undelivered("sns:x", 0, 2, "Malformed"),
            (
                "Sink 'sns:x' refused 2 events for good, stored in 'dead-letters.jsonl': "
                "Malformed. Send them again with: rule-runner events replay 'out' --sink 'sns:x' "
                "--refused."
            ),
        ),
    ],
)
def test_what_is_left_is_one_sentence(found: Undelivered, sentence: str) -> None:
    assert found.sentence("out") == sentence
