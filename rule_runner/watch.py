"""TrialWatcher: wakes the evaluation when files of a trial come, and every second at the latest.

Notifications may be missing: network file systems send none, and what comes into a new folder
before it is watched is not told. Therefore the trial is looked at without them too, as often as
that is cheap.
"""

from collections.abc import Iterable
from pathlib import Path
from threading import Event, Thread
from typing import Final, Protocol

from watchfiles import watch

from smdebug.core.clock import Clock, SystemClock

POLL_S: Final = 1.0
QUICK_POLL_S: Final = 0.1
IDLE_SHARE: Final = 50.0  # pauses are so many times longer than what is done between them
_DEBOUNCE_MS: Final = 5  # a file's rename is told at once: there is nothing to collect
_STEP_MS: Final = 5  # less costs more than one percent of a processor while nothing happens
_CHECK_MS: Final = 500


class Waiter(Protocol):
    """What an evaluation waits with."""

    def wait(self, seconds: float) -> None:
        """Return when something may have come, or after `seconds`."""
        ...


class TrialWatcher:
    """Watches the roots of trials and their ``index`` folders, never ``events``.

    A root that is not there yet, or cannot be watched, is polled.

    Parameters
    ----------
    roots
        Folders of this machine; there may be none.
    clock
        Tells how long a look takes.
    """

    def __init__(self, roots: Iterable[Path], clock: Clock | None = None) -> None:
        self._roots = list(roots)
        self._clock = clock or SystemClock()
        self._woke = self._clock.monotonic()
        self._came = Event()
        self._stop = Event()
        self._watched: set[Path] = set()

    def wait(self, seconds: float) -> None:
        """Return when a file came, or after `seconds`, or when it is time to look; see `Waiter`."""
        self._watch_what_is_there()
        if self._came.wait(min(seconds, self._poll())):
            self._came.clear()
        self._woke = self._clock.monotonic()

    def _poll(self) -> float:
        """Return the seconds to the next look: few if the last one took little time."""
        if not self._roots:
            return POLL_S
        busy = self._clock.monotonic() - self._woke
        return min(max(QUICK_POLL_S, IDLE_SHARE * busy), POLL_S)

    def close(self) -> None:
        """Watch no more."""
        self._stop.set()

    def _watch_what_is_there(self) -> None:
        for root in self._roots:
            for path, recursive in ((root, False), (root / "index", True)):
                if path not in self._watched and path.is_dir():
                    self._watched.add(path)
                    Thread(target=self._watch, args=(path, recursive), daemon=True).start()
                    self._came.set()  # what came before the watch began

    def _watch(self, path: Path, recursive: bool) -> None:
        try:
            for _ in watch(
                path,
                watch_filter=None,
                debounce=_DEBOUNCE_MS,
                step=_STEP_MS,
                rust_timeout=_CHECK_MS,
                stop_event=self._stop,
                recursive=recursive,
                raise_interrupt=False,
            ):
                self._came.set()
        except OSError:  # gone again, or no more watches to be had: polling goes on
            return
