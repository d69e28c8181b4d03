"""StoppableExecutor: an executor whose running calls can be stopped, and what they do then."""

import threading
from abc import abstractmethod
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

ATTEMPTS: Final = 3  # to run a call whose worker is lost
_PAUSE_S: Final = 0.5
_Stops = list[Callable[[], object]]

_stops: ContextVar[_Stops | None] = ContextVar("stops", default=None)


class StoppableExecutor(Executor):
    """An executor of `concurrent.futures` that can stop what runs.

    Functions, arguments and results are pickled. A call whose worker process is lost is attempted
    again, `ATTEMPTS` times in all; other calls are not affected.
    """

    @property
    def is_connected(self) -> bool:
        """Whether the workers can be reached, as far as that is known."""
        return True

    @abstractmethod
    def stop(self) -> None:
        """Cancel calls that have not started, and have running ones end early.

        A running call receives SIGTERM or SIGINT, or its process is ended. New calls are refused.
        """


class WorkerLostError(Exception):
    """Every worker process that ran a call ended before the call did."""


@contextmanager
def watched(is_cancelled: Callable[[], bool]) -> Iterator[None]:
    """Stop the call inside the block once a function returns True; see `on_stop`."""
    stops: _Stops = []
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(_PAUSE_S):
            if is_cancelled():
                for stop in stops:
                    stop()
                return

    token = _stops.set(stops)
    thread = threading.Thread(target=watch, name="cancellation", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        _stops.reset(token)


def on_stop(stop: Callable[[], object]) -> None:
    """Have a function called if the call of this thread is cancelled while it runs."""
    stops = _stops.get()
    if stops is not None:
        stops.append(stop)
