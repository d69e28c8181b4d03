"""TensorSteps over remote trials: pauses between looks, stores that go away, late files."""

from collections.abc import Iterator

import numpy as np
import pytest
import rawtrial
from evaluating import END, WoundClock
from faulty_store import REMOTE, CountingStore
from memory_store import MemoryStore

from rule_core.reading.native_index import NativeIndex
from rule_core.storage.base import ByteRange, StorageUnavailableError
from rule_runner.steps.tensor_steps import TensorSteps
from smdebug.trials import Trial

URI = "s3://bucket/trial"


class Breaking(CountingStore):
    """Raises what a test sets, and counts what it is asked."""

    error: StorageUnavailableError | None = None
    unreadable: tuple[str, ...] = ()

    def list_keys(self, prefix: str, *, start_after: str = "") -> Iterator[str]:
        if self.error is not None:
            raise self.error
        return super().list_keys(prefix, start_after=start_after)

    def read(self, key: str, byte_range: ByteRange | None = None) -> memoryview:
        data = super().read(key, byte_range)
        if key in self.unreadable:
            raise StorageUnavailableError(key, "SlowDown", transient=True)
        return data


def step(number: int, worker: int = 0) -> dict[str, bytes]:
    values = {"loss": np.full(1, number, "f4"), "other": np.full(1, 7, "f4")}
    return rawtrial.step_files(number, values, worker=f"worker_{worker}")


class Followed:
    """A remote trial, and a source over it."""

    def __init__(self, workers: int = 1, **more: float) -> None:
        self.files: dict[str, bytes] = {}
        for number in range(workers):
            key = rawtrial.collections_key(f"worker_{number}")
            self.files[key] = rawtrial.collections({}, workers)
        self.store = Breaking(MemoryStore(self.files, URI), REMOTE)
        self.clock = WoundClock(0.0)
        self.index = NativeIndex(self.store)
        limits = {"end_grace": 1.0, "event_file_wait": 10.0} | more
        self.source = TensorSteps(self.index, [], self.clock, **limits)

    def add(self, *files: dict[str, bytes]) -> None:
        for one in files:
            self.files |= one

    def looks(self, seconds: int) -> list[float]:
        """Return when the store was listed, if the source is asked to look every second."""
        found = []
        for _ in range(seconds):
            before = self.store.counts["list"]
            self.source.look()
            if self.store.counts["list"] > before:
                found.append(self.clock.now)
            self.clock.now += 1
        return found

    def ready(self, after: int = -1) -> list[int]:
        return list(self.source.ready(after))


@pytest.mark.parametrize(
    ("longest", "expected"),
    [(10.0, [0, 2, 6, 14, 24, 34]), (3.0, [0, *range(2, 40, 3)]), (1.0, list(range(40)))],
)
def test_pauses_double_up_to_a_bound(longest: float, expected: list[float]) -> None:
    one = Followed(poll_max=longest)
    one.source.look()
    one.clock.now = 1.0  # the first look has brought the collections
    one.store.counts.clear()
    assert [now - 1 for now in one.looks(40)] == expected


def test_pauses_are_short_again_when_something_came() -> None:
    one = Followed()
    one.looks(30)
    one.add(step(0))
    assert one.looks(20)[:5] == [35, 36, 38, 42]
    assert one.ready() == [0]


def test_look_costs_two_listings_and_reads_what_is_new() -> None:
    one = Followed(poll_max=1.0)
    one.add(step(0))
    one.looks(2)
    one.store.counts.clear()
    one.looks(10)
    assert one.store.counts == {"list": 20}
    one.add(step(1))
    one.looks(2)
    assert one.store.counts == {"list": 24, "get index": 1}


def test_step_is_settled_by_the_look_after_it() -> None:
    one = Followed()
    one.add(step(0))
    one.source.look()
    assert (one.ready(), one.source.describe_wait(-1)) == ([], "step 0")
    one.clock.now += 1
    one.source.look()
    assert one.ready() == [0]


def test_step_is_settled_at_once_if_nobody_looks_again() -> None:
    one = Followed(once=True)
    one.add(step(0), step(1))
    one.source.look()
    assert one.ready() == [0, 1]


def test_end_of_a_trial_that_was_followed_has_the_grace() -> None:
    one = Followed()
    one.add(step(0))
    one.looks(2)
    one.add({END: b""})
    one.looks(2)
    assert (one.source.ending, one.source.ended) == (True, False)
    one.add(step(1))
    one.looks(1)
    assert (one.source.ending, one.source.ended) == (True, False)
    one.looks(1)
    assert (one.source.ended, one.ready()) == (True, [0, 1])


def test_trial_that_had_ended_before_is_looked_at_once_more() -> None:
    one = Followed()
    one.add(*map(step, range(49)), {END: b""})
    one.looks(1)
    assert one.source.ending
    one.add(step(49))  # which the first listing did not show yet
    one.looks(2)
    assert (one.source.ended, one.ready()) == (True, list(range(50)))
    assert one.store.counts == {"list": 7, "get collections": 1, "get index": 50}


def test_trial_that_had_ended_before_needs_no_second_look_without_grace() -> None:
    one = Followed(end_grace=0.0)
    one.add(*map(step, range(50)), {END: b""})
    assert one.source.look() is True
    assert (one.source.ended, one.ready()) == (True, list(range(50)))
    assert one.store.counts == {"list": 3, "get collections": 1, "get index": 50}


# -- stores that go away -------------------------------------------------------------------------


def test_store_that_goes_away_for_a_while_is_waited_for_with_the_reason() -> None:
    one = Followed(poll_max=1.0)
    one.add(step(0))
    one.looks(2)
    one.store.error = StorageUnavailableError("index/", "503 (tried for 30 s)", transient=True)
    assert one.source.look() is False
    text = "Cannot read 'index/': 503 (tried for 30 s)."
    assert one.source.describe_wait(0) == f"the storage of trial {URI!r}: {text}"
    assert list(one.source.notes()) == [text]
    one.store.error = None
    one.add(step(1))
    one.looks(3)
    assert (one.ready(), list(one.source.notes())) == ([0, 1], [])


@pytest.mark.parametrize("transient", [True, False])
@pytest.mark.parametrize("seen", [True, False])
def test_store_that_never_answered_or_refuses_is_the_end(transient: bool, seen: bool) -> None:
    one = Followed(poll_max=1.0)
    if seen:
        one.looks(2)
    one.store.error = StorageUnavailableError("index/", "no", transient=transient)
    if transient and seen:
        assert one.source.look() is False
        return
    with pytest.raises(StorageUnavailableError, match=r"^Cannot read 'index/': no\.$"):
        one.source.look()


# -- files that cannot be read -------------------------------------------------------------------


def test_index_file_that_cannot_be_read_is_waited_for_and_then_its_step_is_passed() -> None:
    one = Followed(poll_max=1.0)
    one.store.unreadable = (rawtrial.index_key(1),)
    one.add(step(0), step(1), step(2))
    one.looks(3)
    assert one.ready() == [0]
    assert one.source.describe_wait(0) == (
        f"the index file {rawtrial.index_key(1)!r} "
        f"(Cannot read {rawtrial.index_key(1)!r}: SlowDown.)"
    )
    one.clock.now += 10
    assert one.ready() == [0, 1, 2]
    assert 1 not in one.index.files


def test_index_file_that_can_be_read_again_is_judged_in_its_turn() -> None:
    one = Followed(poll_max=1.0)
    one.store.unreadable = (rawtrial.index_key(1),)
    one.add(step(0), step(1), step(2))
    one.looks(3)
    assert one.ready() == [0]
    one.store.unreadable = ()
    assert one.ready() == [0, 1, 2]
    assert (sorted(one.index.files), list(one.source.notes())) == ([0, 1, 2], [])


def test_steps_that_came_when_later_ones_were_judged_are_reported() -> None:
    one = Followed(poll_max=1.0)
    one.add(step(0), step(3))
    one.looks(2)
    assert one.ready() == [0, 3]
    one.add(step(1), {END: b""})
    one.looks(3)
    assert (one.ready(3), one.source.late_steps()) == ([], [1])


# -- event files ---------------------------------------------------------------------------------


def test_event_file_is_asked_for_once_by_reading_what_is_wanted_of_it() -> None:
    one = Followed(2, poll_max=1.0)
    trial = Trial("t", URI, one.index)
    for number in range(5):
        one.add(step(number), step(number, 1))
        one.looks(2)
        assert one.ready(number - 1) == [number]
        for worker in ("worker_0", "worker_1"):
            assert trial.tensor("loss").value(number, worker=worker) == [number]
    # At the first step nobody knew what is wanted.
    assert (one.store.counts["head"], one.store.counts["get events"]) == (2, 10)


def test_event_file_that_is_late_is_waited_for_by_reading_it() -> None:
    one = Followed(poll_max=1.0)
    trial = Trial("t", URI, one.index)
    one.add(step(0))
    one.looks(2)
    assert one.ready() == [0]
    trial.tensor("loss").value(0)
    late = step(1)
    event = late.pop(rawtrial.event_key(1))
    one.add(late)
    one.looks(2)
    assert one.ready(0) == []
    assert one.source.describe_wait(0) == f"the event file {rawtrial.event_key(1)!r}"
    one.files[rawtrial.event_key(1)] = event
    assert one.ready(0) == [1]
    before = one.store.counts["get events"]
    assert trial.tensor("loss").value(1) == [1]
    assert one.store.counts["get events"] == before


def test_unreadable_event_file_is_there() -> None:
    one = Followed(poll_max=1.0)
    one.store.unreadable = (rawtrial.event_key(0),)
    one.add(step(0))
    one.looks(2)
    assert one.ready() == [0]
