"""TrialWatcher: wakes the evaluation when files of a trial arrive, at least once a second.

Notifications may be missing: network file systems send none, and files that arrive in a new folder
before it is watched cause none. Therefore the trial is also polled, as often as that is cheap.
"""

from collections.abc import Iterable
from pathlib import Path
from threading import Event, Thread
from typing import Final, Protocol

from rule_core.clock import Clock, SystemClock

POLL_S: Final = 1.0
QUICK_POLL_S: Final = 0.1
IDLE_SHARE: Final = 50.0  # ratio of a pause to the work between two pauses
_DEBOUNCE_MS: Final = 5  # a file arrives by one rename: there is nothing to collect
_STEP_MS: Final = 5  # a shorter one costs more than one percent of a processor when idle
_CHECK_MS: Final = 500


class Waiter(Protocol):
    """Waits for new files."""

    def wait(self, seconds: float) -> None:
        """Return when files may have arrived, or after `seconds`."""
        ...


class TrialWatcher:
    """Watches the roots of trials and their ``index`` folders, never ``events``.

    A root that does not exist yet, or cannot be watched, is polled.

    Parameters
    ----------
    roots
        Local folders; may be empty.
    clock
        Measures how long a look takes.
    """

    def __init__(self, roots: Iterable[Path], clock: Clock | None = None) -> None:
        self._roots = list(roots)
        self._clock = clock or SystemClock()
        self._woke = self._clock.monotonic()
        self._changed = Event()
        self._stop = Event()
        self._watched: set[Path] = set()

    def wait(self, seconds: float) -> None:
        """Return when a file arrives, when a poll is due, or after `seconds`; see `Waiter`."""
        self._watch_new_folders()
        if self._changed.wait(min(seconds, self._poll())):
            self._changed.clear()
        self._woke = self._clock.monotonic()

    def _poll(self) -> float:
        """Return the seconds until the next look: fewer if the last one was short."""
        if not self._roots:
            return POLL_S
        busy = self._clock.monotonic() - self._woke
        return min(max(QUICK_POLL_S, IDLE_SHARE * busy), POLL_S)

    def close(self) -> None:
        """Stop watching."""
        self._stop.set()

    def _watch_new_folders(self) -> None:
        for root in self._roots:
            for path, recursive in ((root, False), (root / "index", True)):
                if path not in self._watched and path.is_dir():
                    self._watched.add(path)
                    Thread(target=self._watch, args=(path, recursive), daemon=True).start()
                    self._changed.set()  # files may have arrived before the watch began

    def _watch(self, path: Path, recursive: bool) -> None:
        from watchfiles import watch

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
                self._changed.set()
        except OSError:  # the folder is gone, or no watch is free: polling continues
            return
