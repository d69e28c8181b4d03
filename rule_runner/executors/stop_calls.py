"""Stopping a call in a thread of a worker, which receives no signals."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

_PAUSE_S: Final = 0.5
_Stops = list[Callable[[], object]]

_stops: ContextVar[_Stops | None] = ContextVar("stops", default=None)


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
