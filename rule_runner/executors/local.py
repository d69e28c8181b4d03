"""LocalExecutor: worker processes on this machine, each replaced when it is lost."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from queue import SimpleQueue
from threading import Lock
from typing import Final, ParamSpec, TypeVar

from rule_core.kernels.cores import measuring_threads
from rule_runner.executors.local_worker import LocalWorker
from rule_runner.executors.protocol import ATTEMPTS, StoppableExecutor, WorkerLostError

P = ParamSpec("P")
T = TypeVar("T")

STOP_GRACE_S: Final = 10.0  # more than an evaluation takes to stop


class LocalExecutor(StoppableExecutor):
    """Runs calls in a fixed number of worker processes on this machine.

    A worker starts when it is first needed. Each is a separate process pool, so that losing one
    costs only the call that it was running. Workers end with the process that made them, even if
    that is killed. They share the cores on which tensors are measured.

    Parameters
    ----------
    workers
        The number of processes.
    """

    def __init__(self, workers: int) -> None:
        self._threads = ThreadPoolExecutor(workers, "local-executor")
        threads = max(1, measuring_threads() // workers)
        self._workers = [LocalWorker(threads) for _ in range(workers)]
        self._idle: SimpleQueue[LocalWorker] = SimpleQueue()
        for worker in self._workers:
            self._idle.put(worker)
        self._lock = Lock()
        self._stopped = False

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Schedule a call; see `concurrent.futures.Executor.submit`."""
        return self._threads.submit(self._attempt, fn, *args, **kwargs)

    def _attempt(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        worker = self._idle.get()
        try:
            for _ in range(ATTEMPTS):
                try:
                    return self._start(worker, fn, *args, **kwargs).result()
                except BrokenProcessPool:
                    if self._stopped:
                        break
            msg = "was stopped" if self._stopped else f"was lost {ATTEMPTS} times"
            text = f"The worker process {msg}."
            raise WorkerLostError(text)
        finally:
            self._idle.put(worker)

    def _start(
        self, worker: LocalWorker, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs
    ) -> Future[T]:
        """Start a call, unless the executor was stopped."""
        with self._lock:
            if self._stopped:
                msg = "The worker process was stopped."
                raise WorkerLostError(msg)
            return worker.submit(fn, *args, **kwargs)

    def stop(self) -> None:
        """Cancel calls that have not started; running ones receive SIGTERM.

        A call that still runs `STOP_GRACE_S` later is ended with its process.
        """
        # Cancel first: a call that stops makes room for one that waits.
        self._threads.shutdown(wait=False, cancel_futures=True)
        with self._lock:
            self._stopped = True
            for worker in self._workers:
                worker.stop(STOP_GRACE_S)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the workers; see `concurrent.futures.Executor.shutdown`.

        Without `wait`, they end with this process at the latest.
        """
        self._threads.shutdown(wait, cancel_futures=cancel_futures)
        if wait:
            for worker in self._workers:
                worker.close()
