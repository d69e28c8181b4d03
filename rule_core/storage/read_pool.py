"""ReadPool: threads that read from a store in parallel."""

import os
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from functools import partial
from queue import SimpleQueue
from threading import Thread
from typing import Any, Final, Generic, TypeVar

from rule_core.storage.base import ByteRange, TrialStore

IN_FLIGHT: Final = 4  # files per thread to read ahead, when many are read in order

T = TypeVar("T")
Read = Callable[[], memoryview]


class ReadPool(Generic[T]):
    """Up to `size` daemon threads, started on demand; they end with this object.

    They are daemons so that an evaluation can end without waiting for reads. A forked process
    starts its own threads.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self._reset()

    def _reset(self) -> None:
        self._process = os.getpid()
        self._threads = 0
        self._jobs: SimpleQueue[tuple[Future[T], Callable[[], T]] | None] = SimpleQueue()
        weakref.finalize(self, _end, self._jobs, self.size)

    @property
    def forked(self) -> bool:
        """Whether this process was forked after the last submit, so that pending reads are lost."""
        return self._process != os.getpid()

    def submit(self, read: Callable[[], T]) -> Future[T]:
        """Queue a read for the threads, and return its future."""
        if self.forked:
            self._reset()
        future: Future[T] = Future()
        self._jobs.put((future, read))
        if self._threads < self.size:
            self._threads += 1
            Thread(target=_work, args=(self._jobs,), name="read-ahead", daemon=True).start()
        return future


def read_pool(store: TrialStore) -> ReadPool[memoryview] | None:
    """Return threads that read from a store; None for a store that is as fast without them."""
    parallel = store.costs.parallel
    return ReadPool(parallel) if parallel > 1 else None


def _work(jobs: SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None]) -> None:
    while (job := jobs.get()) is not None:
        future, read = job
        if future.set_running_or_notify_cancel():
            try:
                future.set_result(read())
            except BaseException as err:  # noqa: BLE001 - the future raises it
                future.set_exception(err)
        del job, future, read  # keep no references while idle


def _end(jobs: SimpleQueue[Any], threads: int) -> None:
    for _ in range(threads):
        jobs.put(None)


def read_each(
    store: TrialStore,
    pool: ReadPool[memoryview] | None,
    keys: Iterable[str],
    byte_range: ByteRange | None = None,
) -> Iterator[tuple[str, Read]]:
    """Yield each key, in order, with a function that returns its bytes or raises its error.

    With a pool, the next files are read ahead. Without one, the function reads the file.
    """
    reads = ((key, partial(store.read, key, byte_range)) for key in keys)
    if pool is None:
        yield from reads
        return
    pending: deque[tuple[str, Future[memoryview]]] = deque()
    try:
        for key, read in reads:
            pending.append((key, pool.submit(read)))
            if len(pending) > IN_FLIGHT * pool.size:
                first, future = pending.popleft()
                yield first, future.result
        while pending:
            first, future = pending.popleft()
            yield first, future.result
    finally:
        for _, future in pending:
            future.cancel()
