"""TraceThread: writes the events of a training job on a thread, without making it wait."""

import threading
from collections import deque
from collections.abc import Callable
from typing import Final

from rule_core.failures import Contained
from rule_core.profiler.recording.timelines import FLUSH_S, Timelines, TraceRecord

MOST_BYTES: Final = 8 << 20  # of waiting events
RECORD_BYTES: Final = 400  # of an event in memory, about
MOST_WAITING: Final = MOST_BYTES // RECORD_BYTES
CLOSE_TIMEOUT_S: Final = 2.0


class TraceThread:
    """Passes events to timelines on a thread, in batches.

    An event that finds the queue full is dropped and counted. The first error ends the writing.

    Parameters
    ----------
    timelines
        The timelines, used by the thread only.
    on_error
        Called on the thread with the error that ends the writing.

    Attributes
    ----------
    dropped
        The number of events that were dropped.
    """

    def __init__(self, timelines: Timelines, on_error: Callable[[Exception], None]) -> None:
        self.dropped = 0
        self._timelines = timelines
        self._on_error = on_error
        self._waiting: deque[TraceRecord] = deque()
        self._calls: deque[Callable[[Callable[[TraceRecord], None]], None]] = deque()
        self._ends = False
        self._wakes = threading.Event()
        self._has_failed = False
        self._thread: threading.Thread | None = None

    def add(self, record: TraceRecord) -> None:
        """Queue an event; never waits."""
        if len(self._waiting) >= MOST_WAITING or self._has_failed:
            self.dropped += 1
            return
        self._waiting.append(record)
        if self._thread is None:
            self._start()

    def call(self, call: Callable[[Callable[[TraceRecord], None]], None]) -> None:
        """Queue a function that is called on the thread with one that writes an event at once."""
        self._calls.append(call)
        if self._thread is None:
            self._start()
        self._wakes.set()

    def close(self) -> bool:
        """Write all waiting events, and close the timelines; return whether that was in time."""
        if self._thread is None:
            return True
        self._ends = True
        self._wakes.set()
        self._thread.join(CLOSE_TIMEOUT_S)
        return not self._thread.is_alive()

    def _start(self) -> None:
        thread = threading.Thread(target=self._run, name="smdebug-profiler", daemon=True)
        thread.start()
        self._thread = thread

    def _run(self) -> None:
        with Contained(self._fail):
            while not self._ends:
                self._wakes.wait(FLUSH_S)
                self._wakes.clear()
                self._write()
                self._timelines.tick()
            self._write()
            self._timelines.close()

    def _write(self) -> None:
        while self._waiting:
            self._timelines.add(self._waiting.popleft())
        while self._calls:
            self._calls.popleft()(self._timelines.add)

    def _fail(self, err: Exception) -> None:
        self._has_failed = True
        self._waiting.clear()
        self._calls.clear()
        self._timelines.leave()
        self._on_error(err)
