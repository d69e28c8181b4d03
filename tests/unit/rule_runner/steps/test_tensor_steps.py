"""TensorSteps: which steps are ready, what is awaited, when a trial is over."""

from pathlib import Path

import numpy as np
import pytest
import rawtrial
from evaluating import END, WoundClock
from memory_store import MemoryStore

from rule_core.reading.native_index import NativeIndex
from rule_core.storage.base import ByteRange, StorageUnavailableError
from rule_core.storage.local import LocalStore
from rule_runner.steps.tensor_steps import TensorSteps


def collections(worker: int, count: int) -> dict[str, bytes]:
    key = rawtrial.collections_key(f"worker_{worker}")
    return {key: rawtrial.collections({"losses": ["loss"]}, count)}


def step(number: int, worker: int = 0) -> dict[str, bytes]:
    values = {"loss": np.float32([1])}
    return rawtrial.step_files(number, values, worker=f"worker_{worker}")


class Followed:
    """A base trial and other trials in memory, and a source over them."""

    def __init__(self, *others: dict[str, bytes], **more: float) -> None:
        self.files: dict[str, bytes] = {}
        self.others = others
        self.clock = WoundClock()
        indexes = [
            NativeIndex(MemoryStore(one, f"t{at}")) for at, one in enumerate((self.files, *others))
        ]
        limits = {"end_grace": 1.0, "event_file_wait": 10.0} | more
        self.source = TensorSteps(indexes[0], indexes[1:], self.clock, **limits)

    def add(self, *files: dict[str, bytes]) -> bool:
        for one in files:
            self.files |= one
        return self.source.look()

    def ready(self, after: int = -1) -> list[int]:
        return list(self.source.ready(after))


def test_nothing_is_ready_before_the_collections_of_all_workers() -> None:
    one = Followed()
    assert one.add(step(0), step(0, 1), step(1), step(1, 1)) is True
    assert one.ready() == []
    assert one.source.describe_wait(-1) == (
        "the collections files of trial 't0' (found 0 of 1"
        "; 'collections/000000000/worker_0_collections.json'"
        "; 'collections/000000000/worker_1_collections.json')"
    )
    one.add(collections(0, 2))
    assert one.ready() == []
    assert one.source.describe_wait(-1) == (
        "the collections files of trial 't0' (found 1 of 2"
        "; 'collections/000000000/worker_1_collections.json')"
    )
    one.add(collections(1, 2))
    assert one.ready() == [0, 1]
    assert one.ready(after=0) == [1]


def test_step_is_ready_when_all_workers_have_it() -> None:
    one = Followed()
    one.add(collections(0, 2), collections(1, 2), step(0), step(5))
    assert one.ready() == []
    assert one.source.describe_wait(-1) == "step 0 of workers 'worker_1'"
    one.add(step(0, 1))
    assert one.ready() == [0]
    assert one.source.describe_wait(0) == "step 5 of workers 'worker_1'"
    assert one.source.missing_workers(5) == ["worker_1"]


def test_step_of_some_workers_is_ready_when_all_have_a_later_one() -> None:
    one = Followed()
    one.add(collections(0, 2), collections(1, 2), step(0), step(0, 1), step(3), step(7))
    assert one.ready() == [0]
    one.add(step(7, 1))
    assert one.ready() == [0, 3, 7]


def test_news_is_reported_once() -> None:
    one = Followed()
    assert one.add() is False
    assert one.add(collections(0, 1), step(0)) is True
    assert one.source.look() is False


def test_single_worker_has_written_all_before_its_end_mark() -> None:
    one = Followed()
    one.add(collections(0, 1), step(0))
    assert (one.source.ended, one.source.ending) == (False, False)
    assert one.add({END: b""}) is True
    assert (one.source.ended, one.source.ending) == (True, False)
    assert one.source.look() is False


def test_several_workers_have_the_grace_after_the_last_new_file() -> None:
    one = Followed()
    one.add(collections(0, 2), collections(1, 2), step(0), step(0, 1), step(1), {END: b""})
    assert (one.source.ended, one.source.ending, one.ready()) == (False, True, [0])
    one.clock.now += 0.9
    assert one.add(step(1, 1)) is True
    assert one.ready() == [0, 1]
    one.clock.now += 0.9
    assert one.source.look() is False
    one.clock.now += 0.2
    assert one.source.look() is True
    assert (one.source.ended, one.source.ending) == (True, False)
    one.add(step(2))
    assert one.ready() == [0, 1]


@pytest.mark.parametrize(("ago", "ended"), [(60.5, False), (61.5, True)])
def test_several_workers_of_a_trial_that_ended_long_ago_have_no_grace(
    ago: float, ended: bool
) -> None:
    one = Followed()
    one.clock.now += ago
    one.add(collections(0, 2), collections(1, 2), step(0), step(0, 1), step(1), {END: b""})
    assert (one.source.ended, one.source.ending) == (ended, not ended)
    assert one.ready() == ([0, 1] if ended else [0])


def test_ended_trial_without_all_collections_has_the_grace_and_then_is_judged() -> None:
    one = Followed()
    one.add(step(0), {END: b""})
    assert (one.source.ended, one.ready()) == (False, [])
    one.clock.now += 1
    one.source.look()
    assert (one.source.ended, one.ready()) == (True, [0])


def test_step_waits_for_its_event_file_and_then_does_without() -> None:
    one = Followed(event_file_wait=5)
    files = step(0) | step(1)
    del files[rawtrial.event_key(0)]
    one.add(collections(0, 1), files)
    assert one.ready() == []
    assert one.source.describe_wait(-1) == f"the event file '{rawtrial.event_key(0)}'"
    one.clock.now += 4.9
    assert one.ready() == []
    one.clock.now += 0.2
    assert one.ready() == [0, 1]


def test_event_file_is_not_waited_for_after_the_end() -> None:
    one = Followed()
    files = step(0)
    del files[rawtrial.event_key(0)]
    one.add(collections(0, 1), files, {END: b""})
    assert one.ready() == [0]


def test_time_of_one_missing_event_file_is_not_charged_to_the_next() -> None:
    one = Followed(event_file_wait=5)
    files = step(0) | step(1)
    del files[rawtrial.event_key(1)]
    event = files.pop(rawtrial.event_key(0))
    one.add(collections(0, 1), files)
    assert one.ready() == []
    one.clock.now += 4
    one.files[rawtrial.event_key(0)] = event
    assert one.ready() == [0]
    one.clock.now += 4
    assert one.ready(0) == []
    one.clock.now += 1
    assert one.ready(0) == [1]


def test_shapes_alone_need_no_event_file() -> None:
    one = Followed()
    shape = b'{"tensorname": "x", "shape": [1]}'
    index = b'{"meta": {"mode": "TRAIN", "mode_step": 0}, "shape_payload": [%b]}' % shape
    one.add(collections(0, 1), {rawtrial.index_key(0): index})
    assert one.ready() == [0]


def test_unreadable_event_file_is_not_waited_for() -> None:
    class Unreadable(MemoryStore):
        def read(self, key: str, byte_range: ByteRange | None = None) -> memoryview:
            if key.startswith("events/"):
                raise StorageUnavailableError(key, "Permission denied")
            return super().read(key, byte_range)

    index = NativeIndex(Unreadable(collections(0, 1) | step(0)))
    source = TensorSteps(index, [], WoundClock(), 1.0, 10.0)
    source.look()
    assert list(source.ready(-1)) == [0]


@pytest.mark.parametrize("worker_count", [1, 2])
def test_other_trial_is_waited_for(worker_count: int) -> None:
    other: dict[str, bytes] = {}
    for worker in range(worker_count):
        other |= collections(worker, worker_count)
    one = Followed(other)
    one.add(collections(0, 1), step(0), step(4))
    assert one.ready() == []
    assert one.source.describe_wait(-1) == "step 0 of the other trial 't1'"

    def wrote(number: int) -> None:
        for worker in range(worker_count):
            other.update(step(number, worker))
        one.source.look()

    wrote(0)
    assert one.ready() == [0]
    wrote(3)
    assert one.ready() == [0]
    wrote(9)
    assert one.ready() == [0, 4]


def test_other_trial_that_has_ended_is_not_waited_for() -> None:
    other = collections(0, 1) | step(0) | {END: b""}
    one = Followed(other)
    one.add(collections(0, 1), step(0), step(4))
    assert one.ready() == [0, 4]


def test_missing_root_is_no_news(tmp_path: Path) -> None:
    index = NativeIndex(LocalStore(f"{tmp_path}/no"))
    source = TensorSteps(index, [], WoundClock(), 1.0, 10.0)
    assert source.look() is False
    assert source.describe_wait(-1).startswith("the collections files of trial")


def test_what_is_awaited_after_the_last_step() -> None:
    one = Followed()
    one.add(collections(0, 1))
    assert one.source.describe_wait(-1) == "a step after its start, or the end, of trial 't0'"
    one.add(step(8))
    assert one.source.describe_wait(8) == "a step after step 8, or the end, of trial 't0'"
    assert one.source.describe_wait(7) == "step 8"


def test_step_of_fewer_workers_than_are_known_by_name() -> None:
    one = Followed()
    one.add(collections(0, 2), collections(1, 2), step(0, 2))
    assert one.source.describe_wait(-1) == "step 0 of workers 'worker_0', 'worker_1'"
    one.files |= step(0) | step(1)
    one.source.look()
    one.source.look()
    assert one.ready() == [0]
    assert one.source.describe_wait(0) == "step 1 of workers 'worker_1'"


def test_step_that_is_complete_but_not_yet_certain_is_awaited_as_such() -> None:
    """A listing may miss an older file: only a second one says that there is none."""
    one = Followed()
    one.files |= collections(0, 1) | step(0)
    one.source.base.refresh()
    assert one.ready() == []
    assert one.source.describe_wait(-1) == "step 0"
    one.source.look()
    assert one.ready() == [0]


def test_other_trial_in_its_grace_is_waited_for() -> None:
    other = collections(0, 2) | collections(1, 2) | step(0) | {END: b""}
    one = Followed(other)
    one.add(collections(0, 1), step(0))
    assert one.ready() == []
    one.clock.now += 1.1
    one.source.look()
    assert one.ready() == [0]


def part(number: int, mode: str) -> dict[str, bytes]:
    worker = "worker_0" if mode == "TRAIN" else f"worker_0@{mode}"
    return rawtrial.step_files(number, {"loss": np.float32([1])}, mode, number, worker)


def test_a_step_of_several_modes_is_ready_once_the_next_begins() -> None:
    one = Followed()
    one.add(collections(0, 1), part(0, "TRAIN"), part(0, "EVAL"), part(5, "TRAIN"))
    one.source.look()
    assert one.ready() == [0]
    assert one.source.kind(0) == "EVAL+TRAIN"
    one.add(part(5, "EVAL"))
    one.source.look()
    assert one.ready() == [0]
    assert one.source.describe_wait(0) == "step 5"
    one.add({END: b""})
    one.source.look()
    assert one.ready(after=0) == [5]
    assert one.source.missing_workers(5) == []
    assert [*one.source.notes()] == []


def test_a_mode_that_comes_after_its_step_was_ready_is_noted() -> None:
    one = Followed()
    one.add(collections(0, 1), part(0, "TRAIN"))
    one.source.look()
    assert one.ready() == [0]
    one.add(part(0, "EVAL"), part(5, "TRAIN"))
    one.source.look()
    assert [*one.source.notes()] == [
        "A further mode of step 0 was written after it was judged. Rules did not see it."
    ]
    assert one.source.late_steps() == []


def test_a_step_is_named_with_its_number_in_its_mode_where_that_differs() -> None:
    one = Followed()
    values = {"loss": np.float32([1])}
    files = [
        rawtrial.step_files(number, values, mode, mode_step)
        for number, mode, mode_step in (
            (4, "TRAIN", 4),
            (115, "TRAIN", 99),
            (116, "EVAL", 0),
            (117, "GLOBAL", 3),
        )
    ]
    one.add(collections(0, 1), *files, {END: b""})
    assert [*map(one.source.step_name, (4, 115, 116, 117))] == [
        "step 4",
        "step 115 (training step 99)",
        "step 116 (evaluation step 0)",
        "step 117",
    ]
