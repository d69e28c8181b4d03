"""TrialWatcher: wakes when files come, polls where nothing can be watched."""

from collections.abc import Iterator
from pathlib import Path
from threading import Event
from typing import Any

import pytest
import watchfiles
from evaluating import WoundClock

from rule_runner.steps.watcher import POLL_S, QUICK_POLL_S, TrialWatcher


class Watched:
    """Stands in for watchfiles: reports changes on request."""

    def __init__(self) -> None:
        self.calls: list[tuple[Path, dict[str, Any]]] = []
        self.change = Event()
        self.told = Event()
        self.refuse = False

    def __call__(self, path: Path, **options: Any) -> Iterator[set[Any]]:
        self.calls.append((path, options))
        if self.refuse:
            raise OSError
        self.change.wait(60)
        yield set()
        self.told.set()


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Iterator[Watched]:
    found = Watched()
    monkeypatch.setattr(watchfiles, "watch", found)
    yield found
    found.change.set()


class Waits(Event):
    """An event that waits for nothing and remembers for how long it should have."""

    def __init__(self) -> None:
        super().__init__()
        self.waits: list[float | None] = []

    def wait(self, timeout: float | None = None) -> bool:
        self.waits.append(timeout)
        return self.is_set()


def watcher(*roots: Path, clock: WoundClock | None = None) -> tuple[TrialWatcher, Waits]:
    made = TrialWatcher(roots, clock or WoundClock())
    made._changed = waits = Waits()
    return made, waits


def test_root_and_index_are_watched_and_events_never(tmp_path: Path, watched: Watched) -> None:
    for name in ("index", "events"):
        (tmp_path / name).mkdir()
    made, _ = watcher(tmp_path)
    made.wait(5)
    made.wait(5)
    watched.change.set()
    assert sorted((path, one["recursive"]) for path, one in watched.calls) == [
        (tmp_path, False),
        (tmp_path / "index", True),
    ]
    made.close()
    assert all(one["stop_event"].is_set() for _, one in watched.calls)


def test_folders_that_come_later_are_watched_then(tmp_path: Path, watched: Watched) -> None:
    root = tmp_path / "trial"
    made, _ = watcher(root)
    made.wait(5)
    assert watched.calls == []
    root.mkdir()
    made.wait(5)
    assert [path for path, _ in watched.calls] == [root]
    (root / "index").mkdir()
    made.wait(5)
    assert [path for path, _ in watched.calls] == [root, root / "index"]


def test_first_wait_ends_at_once_for_files_may_have_come_before_it(
    tmp_path: Path, watched: Watched
) -> None:
    made, came = watcher(tmp_path)
    made.wait(5)
    assert not came.is_set()
    assert came.waits == [QUICK_POLL_S]
    assert len(watched.calls) == 1


def test_change_wakes(tmp_path: Path, watched: Watched) -> None:
    made, came = watcher(tmp_path)
    made.wait(5)
    watched.change.set()
    assert watched.told.wait(60)
    assert came.is_set()
    made.wait(5)
    assert not came.is_set()


@pytest.mark.parametrize(("seconds", "expected"), [(0.05, 0.05), (60.0, QUICK_POLL_S)])
def test_no_wait_is_longer_than_the_poll(tmp_path: Path, seconds: float, expected: float) -> None:
    made, came = watcher(tmp_path / "no")
    made.wait(seconds)
    assert came.waits == [expected]


def test_looks_that_take_long_are_rare(tmp_path: Path) -> None:
    clock = WoundClock()
    made, came = watcher(tmp_path / "no", clock=clock)
    for busy in (0.0, 0.0009765625, 0.0078125, 0.5, 0.0):
        clock.now += busy
        made.wait(60)
    assert came.waits == pytest.approx([0.1, 0.1, 0.390625, 1.0, 0.1])


def test_trials_that_are_not_here_are_not_looked_at_more_often() -> None:
    made, came = watcher()
    made.wait(60)
    assert came.waits == [POLL_S]


def test_folder_that_cannot_be_watched_is_polled(tmp_path: Path, watched: Watched) -> None:
    watched.refuse = True
    made = TrialWatcher([tmp_path])
    made._watch(tmp_path, recursive=False)
    assert len(watched.calls) == 1


def test_real_notification_comes(tmp_path: Path) -> None:
    made = TrialWatcher([tmp_path])
    made.wait(1)
    try:
        for number in range(200):
            (tmp_path / str(number)).write_text("")
            if made._changed.wait(0.05):
                return
        pytest.fail("no notification of 200 files")
    finally:
        made.close()
