"""A hook whose disk is slow: whole steps are dropped, or waited for, within a bounded memory."""

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

from rule_core.saving import base_hook

WAIT_S = 60
STEP = 1 << 20
Log = pytest.LogCaptureFixture


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> tuple[ToldOutput, Gate]:
    """Return an output that stands at its first event file, and its gate."""
    gate = Gate()
    output = ToldOutput(gate)
    monkeypatch.setattr("rule_core.saving.hook.open_output", lambda _: output)
    return output, gate


def save(hook: Any, step: int, size: int = STEP) -> None:
    hook.save_tensor("w", np.full(size, step, np.uint8))
    hook.step()


def test_a_slow_disk_drops_whole_steps_and_is_reported(
    slow: tuple[ToldOutput, Gate], tmp_path: Path, caplog: Log
) -> None:
    output, gate = slow
    hook = hooked.hook(tmp_path, when_full="drop", max_queue_bytes=int(3.5 * STEP))
    save(hook, 0)
    assert gate.reached.wait(WAIT_S)
    for step in range(1, 10):
        save(hook, step)
        assert hook._recorder is not None
        assert hook._recorder._queue._held <= 3.5 * STEP
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
    assert hook._recorder is not None
    drained = threading.Event()
    hook._recorder._queue.put(drained.set, 0)
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
    monkeypatch.setattr(base_hook, "LONG_WAIT_S", 0.0)
    hook = hooked.hook(tmp_path, max_queue_bytes=2 * STEP)
    most: list[int] = []
    before = output.before

    def note(key: str) -> None:
        if hook._recorder is not None:
            most.append(hook._recorder._queue._held)
        before(key)

    output.before = note
    save(hook, 0)
    assert gate.reached.wait(WAIT_S)
    assert hook._recorder is not None
    waits = threading.Event()
    wait_for = hook._recorder._queue._changed.wait_for
    main = threading.current_thread()

    def spy(predicate: Callable[[], Any], timeout: float | None = None) -> Any:
        if threading.current_thread() is main:
            waits.set()
            gate.opened.set()
        return wait_for(predicate, timeout)

    hook._recorder._queue._changed.wait_for = spy  # type: ignore[method-assign]  # to see it wait
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
    assert hook._recorder is not None
    queue = hook._recorder._queue
    hook.close()
    (warning,) = [one.getMessage() for one in caplog.records]
    assert warning.endswith(" The rest was not written within 0 s.")
    assert list(output.list_keys("training_job_end")) == []
    gate.opened.set()
    assert queue.close(WAIT_S)
