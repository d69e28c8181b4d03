"""TrialWatcher: wakes when files come, polls where nothing can be watched."""

from pathlib import Path

import pytest
from evaluating import WoundClock

from rule_runner.steps.watcher import POLL_S, QUICK_POLL_S, TrialWatcher


class Notifications:
    """Stands in for `FolderNotifications`: reports nothing, and remembers waits."""

    def __init__(self, *, refuses: bool = False) -> None:
        self.folders: set[Path] = set()
        self.watches: list[tuple[Path, bool]] = []
        self.waits: list[float] = []
        self.refuses = refuses

    def watch(self, folder: Path, *, recursive: bool = False) -> None:
        self.watches.append((folder, recursive))
        if self.refuses:
            raise OSError
        self.folders.add(folder)

    def wait(self, seconds: float) -> bool:
        self.waits.append(seconds)
        return False


def watcher(
    *roots: Path, clock: WoundClock | None = None, refuses: bool = False
) -> tuple[TrialWatcher, Notifications]:
    made = TrialWatcher(roots, clock or WoundClock())
    made.close()
    notifications = Notifications(refuses=refuses)
    made._notifications = notifications  # type: ignore[assignment]
    return made, notifications


def test_root_and_index_are_watched_and_events_never(tmp_path: Path) -> None:
    for name in ("index", "events"):
        (tmp_path / name).mkdir()
    made, notifications = watcher(tmp_path)
    made.wait(5)
    made.wait(5)
    assert notifications.watches == [(tmp_path, False), (tmp_path / "index", True)]


def test_folders_that_come_later_are_watched_then(tmp_path: Path) -> None:
    root = tmp_path / "trial"
    made, notifications = watcher(root)
    made.wait(5)
    assert notifications.watches == []
    root.mkdir()
    made.wait(5)
    assert notifications.watches == [(root, False)]
    (root / "index").mkdir()
    made.wait(5)
    assert notifications.watches == [(root, False), (root / "index", True)]


def test_first_wait_ends_at_once_for_files_may_have_come_before_it(tmp_path: Path) -> None:
    made, notifications = watcher(tmp_path)
    made.wait(5)
    assert notifications.waits == []
    made.wait(5)
    assert notifications.waits == [QUICK_POLL_S]


@pytest.mark.parametrize(("seconds", "expected"), [(0.05, 0.05), (60.0, QUICK_POLL_S)])
def test_no_wait_is_longer_than_the_poll(tmp_path: Path, seconds: float, expected: float) -> None:
    made, notifications = watcher(tmp_path / "no")
    made.wait(seconds)
    assert notifications.waits == [expected]


def test_looks_that_take_long_are_rare(tmp_path: Path) -> None:
    clock = WoundClock()
    made, notifications = watcher(tmp_path / "no", clock=clock)
    for busy in (0.0, 0.0009765625, 0.0078125, 0.5, 0.0):
        clock.now += busy
        made.wait(60)
    assert notifications.waits == pytest.approx([0.1, 0.1, 0.390625, 1.0, 0.1])


def test_trials_that_are_not_here_are_not_looked_at_more_often() -> None:
    made, notifications = watcher()
    made.wait(60)
    assert notifications.waits == [POLL_S]


def test_folder_that_cannot_be_watched_is_polled(tmp_path: Path) -> None:
    made, notifications = watcher(tmp_path, refuses=True)
    made.wait(5)
    made.wait(5)
    assert notifications.watches == [(tmp_path, False)]
    assert notifications.waits == [QUICK_POLL_S] * 2
