"""The writing thread: it never makes the training wait, and ends at the first error."""

import threading
from collections.abc import Callable
from typing import cast

import pytest

from rule_core.profiler.recording import trace_thread
from rule_core.profiler.recording.timelines import Timelines, TraceRecord
from rule_core.profiler.recording.trace_thread import TraceThread

RECORD = TraceRecord("pythontimeline.json", "Forward", "Forward", 1, 2, {})


class FakeTimelines:
    """Counts what is written; waits or fails on request."""

    def __init__(self) -> None:
        self.records: list[TraceRecord] = []
        self.is_closed = False
        self.may_write = threading.Event()
        self.may_write.set()
        self.error: OSError | None = None

    def add(self, record: TraceRecord) -> None:
        self.may_write.wait(60)
        if self.error is not None:
            raise self.error
        self.records.append(record)

    def leave(self) -> None:
        pass

    def tick(self) -> None:
        pass

    def close(self) -> None:
        self.is_closed = True


def started(timelines: FakeTimelines, errors: list[Exception] | None = None) -> TraceThread:
    report = [].append if errors is None else errors.append
    return TraceThread(cast("Timelines", timelines), report)


def test_all_is_written_in_order_before_it_is_closed() -> None:
    timelines = FakeTimelines()
    thread = started(timelines)
    for number in range(100):
        thread.add(RECORD._replace(start_us=number))
    assert thread.close()
    assert [record.start_us for record in timelines.records] == [*range(100)]
    assert (timelines.is_closed, thread.dropped) == (True, 0)


def test_a_full_queue_drops_and_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace_thread, "MOST_WAITING", 10)
    monkeypatch.setattr(trace_thread, "FLUSH_S", 60.0)
    timelines = FakeTimelines()
    thread = started(timelines)
    for _ in range(25):
        thread.add(RECORD)
    assert thread.dropped == 15
    assert thread.close()
    assert len(timelines.records) == 10


def test_a_function_writes_many_events_at_once() -> None:
    timelines = FakeTimelines()
    thread = started(timelines)

    def write(add: Callable[[TraceRecord], None]) -> None:
        for _ in range(5):
            add(RECORD)

    thread.call(write)
    assert thread.close()
    assert len(timelines.records) == 5


def test_the_first_error_ends_the_writing() -> None:
    timelines, errors = FakeTimelines(), list[Exception]()
    timelines.error = OSError("No space left on device")
    thread = started(timelines, errors)
    thread.add(RECORD)
    thread.add(RECORD)
    assert thread.close()
    thread.add(RECORD)
    assert (errors, thread.dropped) == ([timelines.error], 1)


def test_closing_does_not_wait_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace_thread, "CLOSE_TIMEOUT_S", 0.05)
    timelines = FakeTimelines()
    timelines.may_write.clear()
    thread = started(timelines)
    thread.add(RECORD)
    assert not thread.close()
    timelines.may_write.set()


def test_without_events_no_thread_is_started() -> None:
    timelines = FakeTimelines()
    before = threading.active_count()
    thread = started(timelines)
    assert thread.close()
    assert (threading.active_count(), timelines.is_closed) == (before, False)
