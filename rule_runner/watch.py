"""TrialWatcher: wakes the evaluation when files of a trial come, and every second at the latest."""

from collections.abc import Iterable
from pathlib import Path
from threading import Event, Thread
from typing import Final, Protocol

from watchfiles import watch

POLL_S: Final = 1.0  # network file systems notify of nothing
_DEBOUNCE_MS: Final = 20
_STEP_MS: Final = 10
_CHECK_MS: Final = 500


class Waiter(Protocol):
    """What an evaluation waits with."""

    def wait(self, seconds: float) -> None:
        """Return when something may have come, or after `seconds`."""
        ...


class TrialWatcher:
    """Watches the roots of trials and their ``index`` folders, never ``events``.

    A root that is not there yet, or cannot be watched, is polled.
    """

    def __init__(self, roots: Iterable[Path]) -> None:
        self._roots = list(roots)
        self._came = Event()
        self._stop = Event()
        self._watched: set[Path] = set()

    def wait(self, seconds: float) -> None:
        """Return when a file came, or after `seconds`, or after `POLL_S`; see `Waiter`."""
        self._watch_what_is_there()
        if self._came.wait(min(seconds, POLL_S)):
            self._came.clear()

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
