"""Steps on their way through the queue: in parts, whole, or not at all."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import hooked
import numpy as np
import pytest
import rawtrial
from hooked import ToldOutput

from rule_core.model.collection import Collection
from rule_core.saving import trial_recorder
from rule_core.saving.tensor_adapter import NumpyAccess
from rule_core.saving.trial_recorder import TrialRecorder
from rule_core.saving.trial_writer import TrialWriter
from rule_core.saving.write_queue import WriteQueue
from smdebug import modes


class Later:
    """A queue that is processed on request."""

    def __init__(self) -> None:
        self.calls: list[tuple[Callable[[], object], int]] = []
        self.room = 1 << 40

    def has_room(self, nbytes: int) -> bool:
        return nbytes <= self.room

    def put(self, call: Callable[[], object], nbytes: int) -> None:
        self.calls.append((call, nbytes))

    def work(self) -> None:
        while self.calls:
            self.calls.pop(0)[0]()

    def close(self, _: float) -> bool:
        self.work()
        return True


class Saving:
    """A saver over a scripted output and queue."""

    def __init__(self, *, drop: bool = False) -> None:
        self.output, self.queue = ToldOutput(), Later()
        writer, queue = TrialWriter(self.output, end_job=False), self.queue
        as_queue: Any = queue
        self.saver = TrialRecorder(writer, as_queue, NumpyAccess(), drop=drop)

    def begin(self, step: int) -> TrialRecorder:
        self.saver.begin(step, modes.GLOBAL, step, 1.5)
        return self.saver

    def records(self, folder: Path) -> dict[int, list[str]]:
        self.queue.work()
        return hooked.records(rawtrial.write(folder, self.output.content))


def test_nothing_is_written_before_the_queue_does_it(tmp_path: Path) -> None:
    saving = Saving()
    saver = saving.begin(0)
    saver.add_shape("s", (2,))
    saver.add_value("w", np.ones(3))
    saver.add_reductions("w", np.ones(3), (("mean", False), ("max", True)))
    saver.add_array("scalar/x", np.ones(1), 7.5)
    saver.end()
    assert (list(saving.output.list_keys("index/")), saver.saved) == ([], 0)
    reductions = ["smdebug/reductions/mean/w", "smdebug/reductions/abs_max/w"]
    assert saving.records(tmp_path) == {0: [*reductions, "w", "scalar/x"]}
    assert saver.saved == 1
    assert hooked.opened(tmp_path).tensor("s").shape(0) == (2,)


def test_large_steps_are_put_in_parts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(trial_recorder, "BATCH", 100)
    saving = Saving()
    saver = saving.begin(0)
    for number, size in enumerate((60, 30, 60, 300, 1)):
        saver.add_value(str(number), np.zeros(size, np.uint8))
    saver.end()
    assert [nbytes for _, nbytes in saving.queue.calls] == [90, 60, 300, 1, 0]
    assert saving.records(tmp_path) == {0: ["0", "1", "2", "3", "4"]}


@pytest.mark.parametrize("room", [0, 60, 100])
def test_a_step_without_room_is_dropped_whole(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, room: int
) -> None:
    monkeypatch.setattr(trial_recorder, "BATCH", 100)
    saving = Saving(drop=True)
    saver = saving.begin(0)
    saver.add_value("a", np.zeros(60, np.uint8))
    saver.add_collection(Collection("late"))
    saver.add_member("late", "a")
    saving.queue.room = room
    saver.add_value("b", np.zeros(101, np.uint8))
    saver.add_value("c", np.zeros(1, np.uint8))
    saver.end()
    saving.queue.room = 1 << 40
    saving.begin(1).add_value("d", np.zeros(1, np.uint8))
    saver.end()
    assert saving.records(tmp_path) == {1: ["d"]}
    assert (saver.dropped, saver.saved) == (1, 1)
    assert hooked.members(tmp_path) == {"late": ["a"]}
    assert saving.output.discarded == ([rawtrial.event_key(0)] if room else [])


def test_a_step_of_nothing_is_not_saved(tmp_path: Path) -> None:
    saving = Saving()
    saving.begin(0).end()
    saving.saver.end()
    assert (saving.records(tmp_path), saving.saver.saved) == ({}, 0)


def test_a_step_that_is_open_at_the_end_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(trial_recorder, "BATCH", 10)
    saving = Saving()
    saver = saving.begin(0)
    for name in ("a", "b"):
        saver.add_value(name, np.zeros(60, np.uint8))
    assert saver.close(end_job=False, timeout=60)
    assert saving.records(tmp_path) == {}
    assert saving.output.discarded == [rawtrial.event_key(0)]


def test_a_part_that_cannot_be_written_is_discarded() -> None:
    output = ToldOutput(hooked.Full(0))
    errors: list[Exception] = []
    queue = WriteQueue(1 << 20, errors.append)
    saver = TrialRecorder(TrialWriter(output, end_job=False), queue, NumpyAccess(), drop=False)
    saver.begin(0, modes.GLOBAL, 0, 1.5)
    saver.add_value("w", np.ones(3))
    saver.end()
    assert queue.close()
    assert [type(err) for err in errors] == [OSError]
    assert output.discarded == [rawtrial.event_key(0)]
    assert output.published == [rawtrial.collections_key()]
