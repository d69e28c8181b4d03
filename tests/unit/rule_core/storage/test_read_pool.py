"""ReadPool: reads at once, in order where order counts, and without a trace when it is over."""

import gc
import threading
from collections.abc import Iterator
from functools import partial

import pytest
from memory_store import MemoryStore

from rule_core.storage import read_pool
from rule_core.storage.base import ObjectNotFoundError
from rule_core.storage.read_pool import ReadPool, read_each


def content(text: bytes) -> memoryview:
    return memoryview(text)


def test_reads_are_done_by_threads_and_their_errors_are_kept_for_who_asks() -> None:
    pool = ReadPool(2)
    there = pool.submit(partial(content, b"x"))
    missing = pool.submit(partial(MemoryStore({}).read, "no"))
    assert bytes(there.result(60)) == b"x"
    assert isinstance(missing.exception(60), ObjectNotFoundError)


def test_there_are_no_more_threads_than_asked_for_and_none_when_it_is_over() -> None:
    before = set(threading.enumerate())
    pool = ReadPool(2)
    assert set(threading.enumerate()) == before
    for future in [pool.submit(partial(content, b"x")) for _ in range(10)]:
        future.result(60)
    threads = set(threading.enumerate()) - before
    assert (len(threads), {thread.daemon for thread in threads}) == (2, {True})
    del pool
    gc.collect()
    for one in threads:
        one.join(60)
    assert [thread.is_alive() for thread in threads] == [False, False]


def test_what_was_cancelled_is_not_read() -> None:
    pool, gate, began = ReadPool(1), threading.Event(), threading.Event()

    def slow() -> memoryview:
        began.set()
        gate.wait(60)
        return memoryview(b"slow")

    first = pool.submit(slow)
    assert began.wait(60)
    read: list[str] = []

    def second_read() -> memoryview:
        read.append("second")
        return memoryview(b"")

    second = pool.submit(second_read)
    assert second.cancel()
    gate.set()
    assert bytes(first.result(60)) == b"slow"
    assert bytes(pool.submit(partial(content, b"z")).result(60)) == b"z"
    assert read == []


def test_forked_process_begins_threads_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    pool = ReadPool(1)
    pool.submit(partial(content, b"x")).result(60)
    monkeypatch.setattr("rule_core.storage.read_pool.os.getpid", lambda: -1)
    assert pool.forked
    assert bytes(pool.submit(partial(content, b"y")).result(60)) == b"y"
    assert not pool.forked


@pytest.mark.parametrize("parallel", [0, 1, 3])
def test_each_file_is_given_in_order(parallel: int) -> None:
    keys = [f"{number:03}" for number in range(50)]
    store = MemoryStore({key: key.encode() for key in keys if key != "007"})
    result = []
    for key, read in read_each(store, ReadPool(parallel) if parallel else None, keys):
        try:
            result.append((key, bytes(read())))
        except ObjectNotFoundError:
            result.append((key, b""))
    assert result == [(key, b"" if key == "007" else key.encode()) for key in keys]


def test_only_so_many_are_on_their_way() -> None:
    asked: list[int] = []

    def keys() -> Iterator[str]:
        for number in range(100):
            asked.append(number)
            yield "x"

    reads = read_each(MemoryStore({"x": b""}), ReadPool(2), keys())
    next(reads)
    assert len(asked) == 2 * read_pool.IN_FLIGHT + 1
    reads.close()  # type: ignore[attr-defined] # it is a generator


def test_without_a_pool_nothing_is_read_before_it_is_asked_for() -> None:
    store = MemoryStore({})
    (first, second) = read_each(store, None, ["a", "b"])
    store.files = {"a": b"1", "b": b"2"}
    assert (bytes(first[1]()), bytes(second[1]())) == (b"1", b"2")
