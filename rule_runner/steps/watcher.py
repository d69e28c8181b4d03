"""TrialWatcher: wakes the evaluation when files of a trial arrive, at least once a second.

Notifications may be missing: network file systems send none, and files that arrive in a new folder
before it is watched cause none. Therefore the trial is also polled, as often as that is cheap.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Final, Protocol

from rule_core.clock import Clock, SystemClock
from rule_runner.steps.folder_notifications import FolderNotifications

POLL_S: Final = 1.0
QUICK_POLL_S: Final = 0.1
IDLE_SHARE: Final = 50.0  # ratio of a pause to the work between two pauses


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
        self._notifications = FolderNotifications(self._clock)
        self._unwatchable: set[Path] = set()

    def wait(self, seconds: float) -> None:
        """Return when a file arrives, when a poll is due, or after `seconds`; see `Waiter`."""
        # Files may have arrived before a watch began.
        if not self._watch_new_folders():
            self._notifications.wait(min(seconds, self._poll()))
        self._woke = self._clock.monotonic()

    def _poll(self) -> float:
        """Return the seconds until the next look: fewer if the last one was short."""
        if not self._roots:
            return POLL_S
        busy = self._clock.monotonic() - self._woke
        return min(max(QUICK_POLL_S, IDLE_SHARE * busy), POLL_S)

    def close(self) -> None:
        """Stop watching."""
        self._notifications.close()

    def _watch_new_folders(self) -> bool:
        """Watch the folders that exist now; return whether any is new."""
        watched = self._notifications.folders | self._unwatchable
        is_new = False
        for root in self._roots:
            for folder, recursive in ((root, False), (root / "index", True)):
                if folder in watched or not folder.is_dir():
                    continue
                try:
                    self._notifications.watch(folder, recursive=recursive)
                    is_new = True
                except OSError:  # the folder is gone, or no watch is free: polling continues
                    self._unwatchable.add(folder)
        return is_new
