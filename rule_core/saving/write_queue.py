"""WriteQueue: runs a hook's writes on a thread, in order and with bounded memory."""

import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from rule_core.failures import Contained

ITEM: Final = 512  # bytes counted per item in addition to its tensors


class WriteQueue:
    """Runs calls one after the other on one thread.

    Parameters
    ----------
    max_bytes
        Memory limit for waiting items. A larger item waits until the queue is empty.
    on_error
        Called on the thread with the exception of a call; later calls are dropped.
    """

    def __init__(self, max_bytes: int, on_error: Callable[[Exception], None]) -> None:
        self.max_bytes = max_bytes
        self.blocked_s = 0.0
        self._on_error = on_error
        self._changed = threading.Condition()
        self._waiting: deque[tuple[Callable[[], object], int]] = deque()
        self._held = 0
        self._failed = False
        self._closed = False
        self._thread: threading.Thread | None = None

    def has_room(self, nbytes: int) -> bool:
        """Return whether an item of `nbytes` bytes can be added without waiting."""
        with self._changed:
            return self._has_room(nbytes + ITEM)

    def put(self, call: Callable[[], object], nbytes: int) -> None:
        """Queue `call`, waiting until it fits into memory.

        A call without data (`nbytes` is 0) never waits.
        """
        waits = nbytes > 0
        nbytes += ITEM
        with self._changed:
            if waits and not self._has_room(nbytes):
                start = time.monotonic()
                self._changed.wait_for(lambda: self._has_room(nbytes))
                self.blocked_s += time.monotonic() - start
            if self._failed or self._closed:
                return
            self._held += nbytes
            self._waiting.append((call, nbytes))
            self._changed.notify_all()
            if self._thread is None:
                self._start()

    def _start(self) -> None:
        thread = threading.Thread(target=self._run, name="smdebug-writer", daemon=True)
        with suppress(RuntimeError):  # Python is shutting down: `close` runs the calls
            thread.start()
            self._thread = thread

    def flush(self) -> None:
        """Wait until all queued calls have run."""
        with self._changed:
            self._changed.wait_for(lambda: not self._held or self._failed or self._thread is None)

    def close(self, timeout: float | None = None) -> bool:
        """Run all queued calls, then end the thread.

        Parameters
        ----------
        timeout
            Seconds to wait for the thread; unlimited by default.

        Returns
        -------
        bool
            Whether all calls have run.
        """
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        if self._thread is None:
            self._run()
            return True
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def _has_room(self, nbytes: int) -> bool:
        if self._failed or self._thread is None:  # no thread would free memory
            return True
        return not self._held or self._held + nbytes <= self.max_bytes

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._closed)
                if not self._waiting:
                    return
                call, nbytes = self._waiting.popleft()
            with Contained(self._fail):
                if not self._failed:
                    call()
            del call  # frees its tensors before their bytes are subtracted
            with self._changed:
                self._held -= nbytes
                self._changed.notify_all()

    def _fail(self, err: Exception) -> None:
        self._failed = True
        self._on_error(err)
