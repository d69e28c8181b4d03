"""LocalWorker: one worker process of a local executor."""

import os
import signal
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection
from threading import Thread, Timer
from typing import ParamSpec, TypeVar

from rule_core.kernels.cores import THREADS

P = ParamSpec("P")
T = TypeVar("T")


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
