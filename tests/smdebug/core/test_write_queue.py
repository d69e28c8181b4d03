"""The queue between training and disk: order, bound, blocking, dropping, errors, the end."""

import logging
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hooked
import numpy as np
import pytest
import rawtrial
from hooked import Gate, ToldOutput

from smdebug.core import base_hook
from smdebug.core.write_queue import ITEM, WriteQueue

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
        queue.put(lambda n=number: ran.append(n), BIG)
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


# -- the same, behind a hook ------------------------------------------------------------------

STEP = 1 << 20
Log = pytest.LogCaptureFixture


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> tuple[ToldOutput, Gate]:
    """Return an output that stands at its first event file, and its gate."""
    gate = Gate()
    output = ToldOutput(gate)
    monkeypatch.setattr("smdebug.core.hook.open_output", lambda _: output)
    return output, gate


def save(hook: Any, step: int, size: int = STEP) -> None:
    hook.save_tensor("w", np.full(size, step, np.uint8))
    hook.step()


def test_a_slow_disk_drops_whole_steps_and_says_so(
    slow: tuple[ToldOutput, Gate], tmp_path: Path, caplog: Log
) -> None:
    output, gate = slow
    hook = hooked.hook(tmp_path, when_full="drop", max_queue_bytes=int(3.5 * STEP))
    save(hook, 0)
    assert gate.reached.wait(WAIT_S)
    for step in range(1, 10):
        save(hook, step)
        assert hook._recording is not None
        assert hook._recording._queue._held <= 3.5 * STEP
    gate.opened.set()
    hook.close()
    root = rawtrial.write(tmp_path / "copy", output.content)
    trial = hooked.opened(root)
    assert trial.steps() == [0, 1, 2]
    assert [trial.tensor("w").value(step)[0] for step in range(3)] == [0, 1, 2]
    assert [one.getMessage() for one in caplog.records if one.levelno == logging.WARNING] == [
        "Saved 3 steps to 'memory', dropped 7; the training waited 0.0 s for the disk."
    ]


def test_a_step_that_is_dropped_in_its_middle_leaves_nothing(
    slow: tuple[ToldOutput, Gate], tmp_path: Path
) -> None:
    output, gate = slow
    size = 5 << 20  # more than is put into the queue together
    hook = hooked.hook(tmp_path, when_full="drop", max_queue_bytes=int(2.5 * size))
    save(hook, 0, size)
    assert gate.reached.wait(WAIT_S)
    for name in ("a", "b", "c", "d"):
        hook.save_tensor(name, np.zeros(size, np.uint8), "new")
    hook.step()
    gate.opened.set()
    assert hook._recording is not None
    drained = threading.Event()
    hook._recording._queue.put(drained.set, 0)
    assert drained.wait(WAIT_S)
    hook.save_tensor("e", np.ones(1))
    hook.save_scalar("s", 1.0)
    hook.close()
    root = rawtrial.write(tmp_path / "copy", output.content)
    assert hooked.records(root) == {0: ["w"], 2: ["e", "scalar/s"]}
    assert output.discarded == [rawtrial.event_key(1)]
    # The collection that the dropped step made is known with the next one.
    assert "new" in hooked.collections(root)


def test_a_slow_disk_is_waited_for_within_the_memory(
    slow: tuple[ToldOutput, Gate], tmp_path: Path, caplog: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    output, gate = slow
    monkeypatch.setattr(base_hook, "SAID_S", 0.0)
    hook = hooked.hook(tmp_path, max_queue_bytes=2 * STEP)
    most: list[int] = []
    before = output.before

    def note(key: str) -> None:
        if hook._recording is not None:
            most.append(hook._recording._queue._held)
        before(key)

    output.before = note
    save(hook, 0)
    assert gate.reached.wait(WAIT_S)
    assert hook._recording is not None
    waits = threading.Event()
    wait_for = hook._recording._queue._changed.wait_for
    main = threading.current_thread()

    def spy(predicate: Callable[[], Any], timeout: float | None = None) -> Any:
        if threading.current_thread() is main:
            waits.set()
            gate.opened.set()
        return wait_for(predicate, timeout)

    hook._recording._queue._changed.wait_for = spy  # type: ignore[method-assign]  # to see it wait
    for step in range(1, 20):
        save(hook, step)
    hook.close()
    assert waits.is_set()
    assert max(most) <= 2 * STEP
    root = rawtrial.write(tmp_path / "copy", output.content)
    assert sorted(hooked.records(root)) == list(range(20))
    (warning,) = [one.getMessage() for one in caplog.records if one.levelno == logging.WARNING]
    assert warning.startswith("Saved 20 steps to 'memory', dropped 0; the training waited ")


def test_a_tensor_larger_than_the_memory_is_saved(tmp_path: Path) -> None:
    with hooked.hook(tmp_path, max_queue_bytes=1) as hook:
        for step in range(3):
            save(hook, step)
    trial = hooked.opened(tmp_path)
    assert [trial.tensor("w").value(step)[0] for step in trial.steps()] == [0, 1, 2]


def test_the_training_does_not_wait_for_ever_at_its_end(
    slow: tuple[ToldOutput, Gate], tmp_path: Path, caplog: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    output, gate = slow
    monkeypatch.setattr(base_hook, "CLOSE_TIMEOUT_S", 0.0)
    hook = hooked.hook(tmp_path)
    save(hook, 0)
    assert gate.reached.wait(WAIT_S)
    assert hook._recording is not None
    queue = hook._recording._queue
    hook.close()
    (warning,) = [one.getMessage() for one in caplog.records]
    assert warning.endswith(" The rest was not written within 0 s.")
    assert list(output.list_keys("training_job_end")) == []
    gate.opened.set()
    assert queue.close(WAIT_S)
