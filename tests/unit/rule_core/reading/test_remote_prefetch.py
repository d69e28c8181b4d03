"""RemotePrefetch: about one request for each step and worker."""

import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from typing import Any

import numpy as np
import pytest
import rawtrial
from evaluating import END, WoundClock
from faulty_store import REMOTE, CountingStore, FaultyStore
from hypothesis import given
from hypothesis import strategies as st
from memory_store import MemoryStore

from rule_core.exceptions import SMDebugError, TensorDamaged
from rule_core.format import tfrecord
from rule_core.reading import remote_prefetch
from rule_core.reading.native_index import NativeIndex
from rule_core.storage.base import ByteRange, ReadCosts, TrialStore
from rule_core.trials.trial import Trial

MANY = [f"t{number:02}" for number in range(50)]
NAMES = MANY[:10]


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rawtrial, "masked", tfrecord.masked_crc)


def files(
    steps: Iterable[int], names: Sequence[str] = NAMES, workers: int = 1, size: int = 100
) -> dict[str, bytes]:
    result = {END: b""}
    for worker in [f"worker_{number}" for number in range(workers)]:
        result[rawtrial.collections_key(worker)] = rawtrial.collections({}, workers)
        for step in steps:
            values = {one: np.full(size, step + at, "f4") for at, one in enumerate(names)}
            mode = "EVAL" if step % 5 == 4 else "TRAIN"
            result |= rawtrial.step_files(step, values, mode, worker=worker)
    return result


def opened(store: TrialStore) -> Trial:
    index = NativeIndex(store)
    index.refresh()
    index.refresh(whole=True)
    index.finish()
    return Trial("t", "t", index)


def at_once(read: Callable[[], memoryview]) -> Future[memoryview]:
    """Stand in for a pool whose threads are always faster."""
    future: Future[memoryview] = Future()
    try:
        future.set_result(read())
    except Exception as err:  # noqa: BLE001 - as threads do
        future.set_exception(err)
    return future


class Asked:
    """A trial on a store with S3's costs, and the reads of event files that questions cost."""

    def __init__(self, found: dict[str, bytes], gap: int = 0) -> None:
        self.files = found
        self.store = CountingStore(MemoryStore(found), ReadCosts(4, gap))
        self.trial = opened(self.store)
        index: Any = self.trial.index
        index._pool.submit = at_once

    def step(self, step: int, names: Iterable[str], worker: str = "worker_0") -> int:
        """Ask for values of a step; return how many reads of its event file there were so far."""
        for name in names:
            at = int(name[1:])
            found = self.trial.tensor(name).value(step, worker=worker)
            assert found.tolist() == np.full(len(found), step + at).tolist()
        return len(self.reads(step, worker))

    def reads(self, step: int, worker: str = "worker_0") -> list[ByteRange | None]:
        key = rawtrial.event_key(step, worker)
        return [one for at, one in self.store.reads if at == key]


def test_first_step_is_read_whole_and_the_next_ones_as_far_as_is_wanted() -> None:
    one = Asked(files(range(6)))
    assert [one.step(step, NAMES[2:4]) for step in range(4)] == [1, 1, 1, 1]
    record = len(one.files[rawtrial.event_key(0)]) // len(NAMES)
    assert one.reads(0) == [ByteRange(0, 10 * record)]
    assert one.reads(3) == [ByteRange(2 * record, 4 * record)]


def test_far_ones_are_read_by_themselves_and_near_ones_together() -> None:
    found = files(range(3))
    record = len(found[rawtrial.event_key(0)]) // len(NAMES)
    apart, wanted = Asked(found, gap=record), [NAMES[0], NAMES[2], NAMES[8]]
    apart.step(0, wanted)
    apart.step(1, wanted)
    assert sorted(map(str, apart.reads(1))) == [
        str(ByteRange(0, 3 * record)),
        str(ByteRange(8 * record, 9 * record)),
    ]


def test_each_worker_and_each_mode_has_its_own_wants() -> None:
    one = Asked(files(range(10), workers=2))
    for step in range(10):
        wanted = NAMES[:2] if step % 5 == 4 else NAMES[5:7]
        assert one.step(step, wanted) == 1
        assert one.reads(step, "worker_1") == []
    record = len(one.files[rawtrial.event_key(0)]) // len(NAMES)
    assert one.reads(9) == [ByteRange(0, 2 * record)]


def test_what_nobody_asks_for_any_more_is_forgotten() -> None:
    one = Asked(files(range(40)))
    one.step(0, NAMES)
    for step in range(1, 40):
        one.step(step, NAMES[:1])
    record = len(one.files[rawtrial.event_key(0)]) // len(NAMES)
    assert one.reads(38) == [ByteRange(0, record)]  # step 39 is of a mode that asked nothing else


def test_what_is_asked_for_again_costs_one_read_more() -> None:
    one = Asked(files(range(30)))
    for step in range(3):
        one.step(step, NAMES[:2])
    for name in NAMES[2:]:
        one.step(3, [name])
    assert len(one.reads(3)) == 2
    assert [one.step(step, NAMES) for step in range(20, 30)] == [1] * 10


def test_look_back_reads_what_it_asks_for_and_no_more() -> None:
    one = Asked(files(range(30)))
    index: Any = one.trial.index
    index.tensors._reader.bound = 4 * len(one.files[rawtrial.event_key(0)])
    for step in range(30):
        one.step(step, NAMES)
    before = one.store.bytes
    one.step(3, NAMES[4:5])
    assert one.store.bytes - before == len(one.files[rawtrial.event_key(0)]) // len(NAMES)
    assert one.step(3, NAMES[:2]) == 3


def test_large_first_step_is_read_in_growing_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    found = files(range(3))
    size = len(found[rawtrial.event_key(0)])
    monkeypatch.setattr(remote_prefetch, "SMALL_FILE", size // 10)
    one = Asked(found)
    assert one.step(0, NAMES) == 4
    assert [one.step(step, NAMES) for step in (1, 2)] == [1, 1]
    record = size // len(NAMES)
    assert [part.stop - part.start for part in one.reads(0) if part] == [
        number * record for number in (1, 2, 4, 3)
    ]


def test_long_reads_are_several(monkeypatch: pytest.MonkeyPatch) -> None:
    found = files(range(2))
    monkeypatch.setattr(remote_prefetch, "LONGEST_READ", len(found[rawtrial.event_key(0)]) // 5)
    one = Asked(found)
    one.step(0, NAMES)
    assert one.step(1, NAMES) == 5


def test_no_more_is_read_ahead_than_there_is_room_for() -> None:
    one = Asked(files(range(30)))
    index: Any = one.trial.index
    index.tensors._reader.bound = 8 * len(one.files[rawtrial.event_key(0)])
    one.step(0, NAMES)
    one.step(1, NAMES)
    ahead = [step for step in range(2, 30) if index.tensors._reader.holds(rawtrial.event_key(step))]
    assert ahead == [2, 3]


def test_next_steps_are_read_ahead_and_none_beyond() -> None:
    one = Asked(files(range(30)))
    index: Any = one.trial.index
    one.step(0, NAMES[:1])
    assert not index.tensors._reader.holds(rawtrial.event_key(1))
    one.step(1, NAMES[:1])
    ahead = [step for step in range(2, 30) if index.tensors._reader.holds(rawtrial.event_key(step))]
    # Of steps 4 and 9, which are of another mode, nothing is known yet.
    assert ahead == [2, 3, 5, 6, 7, 8]


def test_times_are_learnt_too() -> None:
    one = Asked(files(range(5)))
    for step in range(5):
        assert one.trial.wall_times(step) == {"worker_0": 1.6e9}
        assert len(one.reads(step)) == 1
    assert one.reads(3) == [ByteRange(0, 21)]


def test_saved_reductions_are_wanted_by_themselves() -> None:
    found = files(range(4), ["smdebug/reductions/mean/a", "smdebug/reductions/max/a", "a"])
    one = Asked(found)
    for step in range(4):
        assert one.trial.tensor("a").reduction_value(step, "max").tolist() == [step + 1] * 100
    sizes = len(one.trial.index.files[0]["worker_0"].entries), len(one.reads(3))
    assert sizes == (1, 1)
    span = one.trial.index.files[3]["worker_0"].entries["a"].reductions["max", False]
    assert one.reads(3) == [ByteRange(span.start, span.start + span.length)]


@pytest.mark.parametrize("workers", [1, 2])
def test_a_large_trial_costs_one_read_for_each_step_and_worker(workers: int) -> None:
    one = Asked(files(range(200), MANY, workers, size=3), gap=1 << 18)
    for step in range(200):
        for worker in range(workers):
            assert one.step(step, MANY[::3], f"worker_{worker}") == 1
    assert one.store.counts["get events"] == 200 * workers
    assert one.store.counts["get index"] == 200 * workers
    assert (one.store.counts["list"], one.store.counts["head"]) == (4, 0)


def test_questions_outside_of_rules_cost_no_listing_each() -> None:
    found = files(range(3))
    del found[END]
    store, clock = CountingStore(MemoryStore(found), REMOTE), WoundClock()
    trial = Trial("t", "t", NativeIndex(store), clock)
    for name in NAMES:
        assert trial.tensor(name).steps(show_incomplete_steps=True) == [0, 1, 2]
    assert store.counts["list"] == 4
    found |= files(range(5))
    assert trial.tensor(NAMES[0]).steps(show_incomplete_steps=True) == [0, 1, 2]
    clock.now += 1
    assert trial.tensor(NAMES[0]).steps() == [0, 1, 2, 3, 4]


# -- files that change ---------------------------------------------------------------------------


def test_event_file_that_is_gone_costs_its_step_only() -> None:
    one = Asked(files(range(6)))
    del one.files[rawtrial.event_key(3)]
    for step in (0, 1, 2, 4, 5):
        assert one.step(step, NAMES) == 1
    with pytest.raises(TensorDamaged, match="does not exist"):
        one.trial.tensor("t00").value(3)
    assert list(one.trial.index.file_problems.notes()) == [
        f"Step 3 of worker 'worker_0' is unreadable. File {rawtrial.event_key(3)!r} does not exist."
    ]


def test_event_file_that_grows_is_read_again() -> None:
    one = Asked(files(range(4)))
    key = rawtrial.event_key(1)
    whole = one.files[key]
    one.files[key] = whole[: len(whole) // 2]
    one.step(0, NAMES)
    with pytest.raises(TensorDamaged, match="is cut off"):
        one.step(1, NAMES)
    one.files[key] = whole
    one.step(1, NAMES)


def test_index_file_that_is_replaced_later_changes_nothing() -> None:
    one = Asked(files(range(4)))
    one.files[rawtrial.index_key(2)] = one.files[rawtrial.index_key(1)]
    assert one.trial.index.refresh(whole=True) is False
    assert [one.step(step, NAMES) for step in range(4)] == [1, 1, 1, 1]


# -- the same as plain reading -------------------------------------------------------------------

QUESTIONS = st.lists(
    st.tuples(st.integers(0, 11), st.sampled_from(NAMES), st.booleans()), min_size=1, max_size=60
)


def answers(store: TrialStore, questions: Sequence[tuple[int, str, bool]]) -> list[Any]:
    trial, found = opened(store), []
    for step, name, time in questions:
        try:
            asked = trial.wall_times(step) if time else trial.tensor(name).value(step).tolist()
        except SMDebugError as err:
            asked = [type(err).__name__]
        found.append(asked)
    return found


@given(QUESTIONS, st.integers(0, 3), st.integers(0, 5000), st.integers(3, 40), st.booleans())
def test_planned_reads_give_what_plain_ones_give(
    questions: list[tuple[int, str, bool]], damaged: int, gap: int, room: int, ordered: bool
) -> None:
    content = files(range(12), size=20)
    for step in range(0, 12, 4)[:damaged]:
        key = rawtrial.event_key(step)
        content[key] = content[key][: 100 * (step + 1)]
    if ordered:
        questions = sorted(questions)
    plain = answers(MemoryStore(content), questions)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rule_core.reading.prefetching_reader.CACHE_BYTES", room * 100)
        planned = answers(CountingStore(MemoryStore(content), ReadCosts(3, gap)), questions)
    assert planned == plain


@given(QUESTIONS, st.integers(0, 99))
def test_reads_ahead_that_fail_are_read_again(
    questions: list[tuple[int, str, bool]], seed: int
) -> None:
    content = files(range(12), size=20)
    questions = sorted(questions)

    class FailsAhead(FaultyStore):
        """Fails in threads that read ahead only."""

        def read(self, key: str, byte_range: ByteRange | None = None) -> memoryview:
            if "events" not in key or threading.current_thread() is threading.main_thread():
                return self.store.read(key, byte_range)
            return super().read(key, byte_range)

    faulty = FailsAhead(MemoryStore(content), seed, failing=1, torn=1, costs=REMOTE)
    assert answers(faulty, questions) == answers(MemoryStore(content), questions)
