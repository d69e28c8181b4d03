"""The queue between training and disk: order, bound, blocking, dropping, errors, the end."""

import threading
from collections.abc import Callable
from typing import Any

import pytest

from rule_core.saving.write_queue import ITEM, WriteQueue

BIG = 1000
WAIT_S = 60


def raising(err: Exception) -> None:
    raise err


class Stopped:
    """A queue whose thread stands in a first call, until `go` is set."""

    def __init__(self, max_bytes: int) -> None:
        self.errors: list[Exception] = []
        self.ran: list[int] = []
        self.go, self.stands = threading.Event(), threading.Event()
        self.queue = WriteQueue(max_bytes, self.errors.append)
        self.queue.put(self.stand, 0)
        assert self.stands.wait(WAIT_S)

    def stand(self) -> None:
        self.stands.set()
        assert self.go.wait(WAIT_S)

    def note(self, number: int) -> Callable[[], None]:
        return lambda: self.ran.append(number)


def blocked(queue: WriteQueue, nbytes: int, call: Callable[[], object]) -> threading.Thread:
    """Start a thread that puts an item, and return once it waits for room."""
    waits = threading.Event()
    condition = queue._changed
    wait_for = condition.wait_for

    def spy(predicate: Callable[[], Any], timeout: float | None = None) -> Any:
        if threading.current_thread() is thread:
            waits.set()
        return wait_for(predicate, timeout)

    condition.wait_for = spy  # type: ignore[method-assign]  # to see it wait
    thread = threading.Thread(target=queue.put, args=(call, nbytes))
    thread.start()
    assert waits.wait(WAIT_S)
    return thread


def test_calls_run_in_their_order_on_one_thread() -> None:
    ran: list[tuple[int, str]] = []
    queue = WriteQueue(1 << 30, raising)
    for number in range(1000):
        queue.put(lambda n=number: ran.append((n, threading.current_thread().name)), number % 7)
    assert queue.close() is True
    assert ran == [(number, "smdebug-writer") for number in range(1000)]
    assert queue.blocked_s == 0


def test_no_thread_is_started_for_nothing() -> None:
    before = threading.active_count()
    queue = WriteQueue(1, raising)
    assert threading.active_count() == before
    assert queue.close() is True


def test_closing_does_the_work_when_no_thread_can_be_started(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def no_thread(_: threading.Thread) -> None:
        msg = "can't create new thread at interpreter shutdown"
        raise RuntimeError(msg)

    ran: list[int] = []
    queue = WriteQueue(1 << 20, raising)
    monkeypatch.setattr(threading.Thread, "start", no_thread)
    for number in range(3):
        queue.put(lambda n=number: ran.append(n), BIG << 10)
    queue.flush()
    assert ran == []
    assert queue.close() is True
    assert ran == [0, 1, 2]


def test_room_is_what_the_waiting_items_leave() -> None:
    stopped = Stopped(3 * (BIG + ITEM))
    queue = stopped.queue
    queue.put(stopped.note(0), BIG)
    assert queue.has_room(2 * BIG)
    assert not queue.has_room(2 * BIG + 1)
    queue.put(stopped.note(1), BIG)
    assert not queue.has_room(BIG)
    assert queue._held == 2 * BIG + 3 * ITEM
    stopped.go.set()
    assert queue.close()
    assert (queue._held, stopped.ran) == (0, [0, 1])


def test_a_full_queue_is_waited_for_and_the_time_counted() -> None:
    stopped = Stopped(BIG + 2 * ITEM)
    queue = stopped.queue
    queue.put(stopped.note(0), BIG)
    thread = blocked(queue, 1, stopped.note(1))
    # What holds nothing does not wait, and what waits is not counted yet.
    queue.put(stopped.note(2), 0)
    assert (queue._held, queue.blocked_s, thread.is_alive()) == (BIG + 3 * ITEM, 0, True)
    stopped.go.set()
    thread.join(WAIT_S)
    assert queue.close()
    assert stopped.ran == [0, 2, 1]
    assert queue.blocked_s > 0


def test_an_item_larger_than_the_bound_waits_until_it_is_alone() -> None:
    stopped = Stopped(BIG)
    queue = stopped.queue
    assert not queue.has_room(10 * BIG)
    held: list[int] = []
    thread = blocked(queue, 10 * BIG, lambda: held.append(queue._held))
    stopped.go.set()
    thread.join(WAIT_S)
    assert queue.close()
    assert held == [10 * BIG + ITEM]
    assert WriteQueue(BIG, raising).has_room(10 * BIG)


def test_after_an_error_nothing_runs_and_nothing_waits() -> None:
    stopped = Stopped(BIG)
    queue, err = stopped.queue, OSError(28, "No space left on device")
    queue.put(lambda: raising(err), 0)
    queue.put(stopped.note(0), 0)
    thread = blocked(queue, BIG, stopped.note(1))
    stopped.go.set()
    thread.join(WAIT_S)
    queue.put(stopped.note(2), BIG)
    assert queue.close()
    assert (stopped.errors, stopped.ran) == ([err], [])
    assert queue.has_room(100 * BIG)


def test_the_end_is_not_waited_for_longer_than_told() -> None:
    stopped = Stopped(BIG)
    stopped.queue.put(stopped.note(0), 0)
    assert stopped.queue.close(timeout=0) is False
    stopped.queue.put(stopped.note(1), 0)
    stopped.go.set()
    assert stopped.queue.close(timeout=WAIT_S) is True
    assert stopped.ran == [0]


def test_flushing_waits_for_what_was_put() -> None:
    stopped = Stopped(1 << 20)
    queue = stopped.queue
    queue.put(stopped.note(0), BIG)
    condition, wait_for = queue._changed, queue._changed.wait_for
    before: list[list[int]] = []

    def spy(predicate: Callable[[], Any], timeout: float | None = None) -> Any:
        if threading.current_thread() is threading.main_thread():
            before.append(list(stopped.ran))
            stopped.go.set()
        return wait_for(predicate, timeout)

    condition.wait_for = spy  # type: ignore[method-assign]  # to see it wait
    queue.flush()
    assert (before, stopped.ran) == ([[]], [0])
    queue.put(lambda: raising(OSError("full")), 0)
    queue.flush()
    assert queue.close()
    assert len(stopped.errors) == 1
