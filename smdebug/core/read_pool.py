"""ReadPool: a few threads that read from a store at once."""

import os
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from functools import partial
from queue import SimpleQueue
from threading import Thread
from typing import Any, Final, Generic, TypeVar

from smdebug.storage.protocol import TrialStore

IN_FLIGHT: Final = 4  # files on their way for each thread, when many are read in order

T = TypeVar("T")
Read = Callable[[], memoryview]


class ReadPool(Generic[T]):
    """Up to `size` daemon threads, begun when they are needed; they end with this object.

    Daemons, because an evaluation that is over waits for nobody's read. A process that is forked
    off begins threads of its own.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self._begin()

    def _begin(self) -> None:
        self._process = os.getpid()
        self._threads = 0
        self._jobs: SimpleQueue[tuple[Future[T], Callable[[], T]] | None] = SimpleQueue()
        weakref.finalize(self, _end, self._jobs, self.size)

    @property
    def forked(self) -> bool:
        """Whether this process has been forked off: what is in flight never lands in it."""
        return self._process != os.getpid()

    def submit(self, read: Callable[[], T]) -> Future[T]:
        """Return the future of a read that a thread will do."""
        if self.forked:
            self._begin()
        future: Future[T] = Future()
        self._jobs.put((future, read))
        if self._threads < self.size:
            self._threads += 1
            Thread(target=_work, args=(self._jobs,), name="read-ahead", daemon=True).start()
        return future


def _work(jobs: SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None]) -> None:
    while (job := jobs.get()) is not None:
        future, read = job
        if future.set_running_or_notify_cancel():
            try:
                future.set_result(read())
            except BaseException as err:  # noqa: BLE001 - whoever asks for the result gets it
                future.set_exception(err)
        del job, future, read  # nothing is kept alive while there is nothing to do


def _end(jobs: SimpleQueue[Any], threads: int) -> None:
    for _ in range(threads):
        jobs.put(None)


def read_each(
    store: TrialStore, pool: ReadPool[memoryview] | None, keys: Iterable[str]
) -> Iterator[tuple[str, Read]]:
    """Yield each key, in order, with what gives its content or raises what reading it raised.

    With a pool the next files are on their way meanwhile. Without one each is read when its
    content is asked for.
    """
    if pool is None:
        for key in keys:
            yield key, partial(store.read, key)
        return
    flying: deque[tuple[str, Future[memoryview]]] = deque()
    try:
        for key in keys:
            flying.append((key, pool.submit(partial(store.read, key))))
            if len(flying) > IN_FLIGHT * pool.size:
                first, future = flying.popleft()
                yield first, future.result
        while flying:
            first, future = flying.popleft()
            yield first, future.result
    finally:
        for _, future in flying:
            future.cancel()
