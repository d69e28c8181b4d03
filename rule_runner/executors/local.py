"""LocalExecutor: worker processes on this machine, each replaced when it is lost."""

import os
import signal
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection
from queue import SimpleQueue
from threading import Lock, Thread, Timer
from typing import Final, ParamSpec, TypeVar

from rule_core.kernels.cores import THREADS, measuring_threads
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
        self, worker: "LocalWorker", fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs
    ) -> Future[T]:
        """Start a call, unless the executor was stopped."""
        with self._lock:
            if self._stopped:
                raise WorkerLostError("The worker process was stopped.")
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


class LocalWorker:
    """A process that runs one call at a time; it starts with the first one.

    A pipe leads to the process: a message in it is a request to stop, and its end means that the
    process that made this object is gone.

    Parameters
    ----------
    threads
        On how many threads the process measures tensors, unless the environment says so.
    """

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._pool: ProcessPoolExecutor | None = None
        self._line: Connection | None = None
        self._timer: Timer | None = None

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Start a call; a process that was lost is replaced first.

        The future raises `BrokenProcessPool` if the process is lost during the call.
        """
        if self._pool is not None:
            with suppress(BrokenProcessPool):
                return self._pool.submit(fn, *args, **kwargs)
            self.close()
        self._pool = self._new_pool()
        return self._pool.submit(fn, *args, **kwargs)

    def _new_pool(self) -> ProcessPoolExecutor:
        context = get_context("spawn")  # this process has threads, which a fork does not survive
        end, self._line = context.Pipe(duplex=False)
        return ProcessPoolExecutor(1, context, initializer=_begin, initargs=(end, self._threads))

    def stop(self, grace: float) -> None:
        """Send SIGTERM to the process, and end it `grace` seconds later."""
        if self._line is None:
            return
        with suppress(OSError):  # it has ended
            self._line.send_bytes(b"stop")
        self._timer = Timer(grace, self._line.close)
        self._timer.daemon = True
        self._timer.start()

    def close(self) -> None:
        """Wait for the end of the call, and end the process."""
        if self._pool is not None:
            self._pool.shutdown()
        if self._timer is not None:
            self._timer.cancel()
        if self._line is not None:
            self._line.close()


def _begin(line: Connection, threads: int) -> None:
    """Follow the process at the other end of a pipe from now on; runs in the worker.

    Ctrl-C reaches all processes of a session: only the first one determines its meaning.
    """
    os.environ.setdefault(THREADS, str(threads))
    os.setsid()
    Thread(target=_obey, args=(line,), name="executor-line", daemon=True).start()


def _obey(line: Connection) -> None:
    try:
        line.recv_bytes()
        os.kill(os.getpid(), signal.SIGTERM)
        line.recv_bytes()
    except (EOFError, OSError):
        os._exit(1)
