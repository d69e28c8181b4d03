"""FolderNotifications: real notifications of the kernel."""

import ctypes
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest

from rule_core.clock import SystemClock
from rule_runner.steps.folder_notifications import FolderNotifications

PATIENCE_S = 60.0


@pytest.fixture
def notifications() -> Iterator[FolderNotifications]:
    made = FolderNotifications(SystemClock())
    yield made
    made.close()


def test_a_new_file_wakes_a_wait(tmp_path: Path, notifications: FolderNotifications) -> None:
    notifications.watch(tmp_path)
    writer = Thread(target=(tmp_path / "new").write_bytes, args=(b"",))
    assert not notifications.wait(0.0)
    writer.start()
    assert notifications.wait(PATIENCE_S)
    writer.join()


def test_only_the_rename_of_a_draft_counts(
    tmp_path: Path, notifications: FolderNotifications
) -> None:
    notifications.watch(tmp_path)
    draft = tmp_path / "000000000003_worker_0.json.tmp"
    draft.write_bytes(b"{}")
    assert not notifications.wait(0.0)
    draft.replace(draft.with_suffix(""))
    assert notifications.wait(0.0)
    assert not notifications.wait(0.0)


def test_a_file_that_grows_wakes(tmp_path: Path, notifications: FolderNotifications) -> None:
    log = tmp_path / "events.log"
    log.write_bytes(b"")
    notifications.watch(tmp_path)
    with log.open("ab") as file:
        file.write(b"row")
        file.flush()
        assert notifications.wait(0.0)


def test_folders_below_are_watched_with_those_that_come_later(
    tmp_path: Path, notifications: FolderNotifications
) -> None:
    first = tmp_path / "000000000"
    first.mkdir()
    notifications.watch(tmp_path, recursive=True)
    later = tmp_path / "000000001" / "deep"
    later.mkdir(parents=True)
    assert notifications.wait(0.0)
    assert notifications.folders == {tmp_path, first, later.parent, later}
    (later / "file").write_bytes(b"")
    assert notifications.wait(0.0)


def test_folders_below_are_not_watched_unless_asked(
    tmp_path: Path, notifications: FolderNotifications
) -> None:
    (tmp_path / "events").mkdir()
    notifications.watch(tmp_path)
    (tmp_path / "events" / "file").write_bytes(b"")
    assert not notifications.wait(0.0)


def test_links_below_are_not_followed(tmp_path: Path, notifications: FolderNotifications) -> None:
    elsewhere, root = tmp_path / "elsewhere", tmp_path / "index"
    elsewhere.mkdir()
    root.mkdir()
    (root / "link").symlink_to(elsewhere)
    notifications.watch(root, recursive=True)
    assert notifications.folders == {root}


def test_a_folder_that_is_gone_can_be_watched_again(
    tmp_path: Path, notifications: FolderNotifications
) -> None:
    folder = tmp_path / "trial"
    folder.mkdir()
    notifications.watch(folder)
    folder.rmdir()
    assert notifications.wait(0.0)
    assert notifications.folders == set()
    with pytest.raises(FileNotFoundError, match="trial"):
        notifications.watch(folder)


def test_a_file_is_no_folder(tmp_path: Path, notifications: FolderNotifications) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(NotADirectoryError):
        notifications.watch(tmp_path / "file")


class WithoutInotify:
    """The functions of another operating system."""

    def __init__(self, *_: object, **__: object) -> None:
        pass


def test_a_system_without_notifications_only_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ctypes, "CDLL", WithoutInotify)
    notifications = FolderNotifications(SystemClock())
    with pytest.raises(OSError, match="not implemented"):
        notifications.watch(tmp_path)
    assert not notifications.wait(0.001)
    notifications.close()
