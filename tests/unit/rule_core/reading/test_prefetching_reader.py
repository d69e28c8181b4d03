"""PrefetchingReader: prefetched bytes are used, and failed prefetches raise on use."""

from collections.abc import Callable
from concurrent.futures import Future

import numpy as np
import pytest
import rawtrial
from faulty_store import REMOTE, CountingStore
from memory_store import MemoryStore

from rule_core.exceptions import TruncatedFileError
from rule_core.format.index_file import Span
from rule_core.reading.prefetching_reader import PrefetchingReader
from rule_core.storage.base import ByteRange, ObjectNotFoundError
from rule_core.storage.read_pool import ReadPool

ARRAY = np.arange(4, dtype=np.float32)
RECORD = rawtrial.record(rawtrial.event(rawtrial.array_message(ARRAY)))
SIZE = len(RECORD)
FIRST, SECOND = Span(0, SIZE), Span(SIZE, SIZE)
BOTH = ByteRange(0, 2 * SIZE)


class Idle(ReadPool):
    """A pool whose threads follow the script of a test, in order."""

    def __init__(self) -> None:
        super().__init__(1)
        self.jobs: list[tuple[Future[memoryview], Callable[[], memoryview]]] = []

    def submit(self, read: Callable[[], memoryview]) -> Future[memoryview]:
        future: Future[memoryview] = Future()
        self.jobs.append((future, read))
        return future

    def work(self) -> None:
        while self.jobs:
            future, read = self.jobs.pop(0)
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(read())
                except Exception as err:  # noqa: BLE001 - as threads do
                    future.set_exception(err)


class Read:
    """A reader over a dictionary, what was asked of the store, and the pool."""

    def __init__(self, max_bytes: int = 1 << 20) -> None:
        self.files = {"a": RECORD * 2, "b": RECORD * 2}
        self.store = CountingStore(MemoryStore(self.files), REMOTE)
        self.pool = Idle()
        self.reader = PrefetchingReader(self.store, self.pool, max_bytes)

    def value(self, key: str, span: Span) -> list[float]:
        return self.reader.tensor(key, span).tolist()  # type: ignore[no-any-return] # numpy's


def test_tensors_that_were_read_together_cost_one_request() -> None:
    one = Read()
    one.reader.load("a", BOTH)
    assert [one.value("a", span) for span in (FIRST, SECOND)] == [ARRAY.tolist()] * 2
    assert one.store.reads == [("a", BOTH)]
    assert np.shares_memory(one.reader.tensor("a", FIRST), one.reader.tensor("a", FIRST))


def test_what_was_read_ahead_is_not_read_again() -> None:
    one = Read()
    one.reader.read_ahead("a", BOTH)
    one.reader.read_ahead("a", ByteRange(3, 9))
    one.pool.work()
    assert one.value("a", SECOND) == ARRAY.tolist()
    assert one.reader.wall_time("a", FIRST) == 1.6e9
    assert one.store.reads == [("a", BOTH)]
    assert (one.reader.holds("a"), one.reader.holds("b")) == (True, False)


def test_what_no_thread_has_taken_up_is_read_at_once() -> None:
    one = Read()
    one.reader.read_ahead("a", BOTH)
    assert one.value("a", FIRST) == ARRAY.tolist()
    one.pool.work()
    assert one.store.reads == [("a", BOTH)]


@pytest.mark.parametrize("early", [b"", RECORD[:-1], b"\1" * 2 * SIZE], ids=["no", "cut", "bad"])
def test_what_was_read_too_early_is_read_again(early: bytes) -> None:
    one = Read()
    one.files["a"] = early
    if not early:
        del one.files["a"]
    one.reader.read_ahead("a", BOTH)
    one.pool.work()
    one.files["a"] = RECORD * 2
    assert [one.value("a", span) for span in (FIRST, SECOND)] == [ARRAY.tolist()] * 2


def test_time_that_was_read_too_early_is_read_again() -> None:
    one = Read()
    one.files["a"] = RECORD[:5]
    one.reader.read_ahead("a", BOTH)
    one.pool.work()
    one.files["a"] = RECORD * 2
    assert [one.reader.wall_time("a", span) for span in (FIRST, SECOND)] == [1.6e9] * 2


def test_failure_is_that_of_the_last_read() -> None:
    one = Read()
    del one.files["a"]
    one.reader.read_ahead("a", BOTH)
    one.pool.work()
    with pytest.raises(ObjectNotFoundError, match=r"^File 'a' does not exist\.$"):
        one.value("a", FIRST)
    one.files["a"] = RECORD
    with pytest.raises(TruncatedFileError, match=r"^File 'a' is cut off: expected \d+ bytes at"):
        one.value("a", SECOND)
    one.files["a"] = RECORD * 2
    assert one.value("a", SECOND) == ARRAY.tolist()


def test_what_is_on_its_way_counts_as_kept() -> None:
    one = Read(max_bytes=4 * SIZE)
    one.files["c"] = RECORD * 2
    for key in "abc":
        one.reader.read_ahead(key, BOTH)
    assert [one.reader.holds(key) for key in "abc"] == [False, True, True]
    one.pool.work()
    assert [key for key, _ in one.store.reads] == ["b", "c"]
    one.reader.load("c", BOTH)
    assert one.reader._bytes == 4 * SIZE
    one.reader.read_ahead("a", ByteRange(0, 5 * SIZE))
    assert one.pool.jobs == []


def test_shorter_files_than_thought_count_for_what_they_are() -> None:
    one = Read()
    one.reader.read_ahead("a", ByteRange(0, 9 * SIZE))
    one.pool.work()
    assert one.value("a", FIRST) == ARRAY.tolist()
    assert one.reader._bytes == 2 * SIZE


def test_process_that_was_forked_off_waits_for_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    one = Read()
    one.reader.read_ahead("a", BOTH)
    one.pool.jobs[0][0].set_running_or_notify_cancel()
    monkeypatch.setattr("rule_core.storage.read_pool.os.getpid", lambda: -1)
    assert one.value("a", FIRST) == ARRAY.tolist()
