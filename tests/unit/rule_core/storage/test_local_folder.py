"""LocalFolder: folders of a trial are listed and read like single files, only faster."""

import os
from pathlib import Path

import pytest
from processes import open_files

from rule_core.storage.base import ObjectNotFoundError, StorageUnavailableError
from rule_core.storage.local import LocalStore
from rule_core.storage.local_folder import SMALL

FILES = {
    "index/000000000/000000000000_worker_0.json": b"zero",
    "index/000000000/000000000001_worker_0.json": b"one",
    "index/000000000/deeper/2_worker_0.json": b"two",
    "index/000000001/000000001000_worker_0.json": b"thousand",
    "index/loose": b"loose",
    "index_old/x": b"old",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for key, content in FILES.items():
        path = tmp_path / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    (tmp_path / "index" / "empty").mkdir()
    return tmp_path


def found(root: Path, after: str = "") -> dict[str, bytes]:
    return {
        folder.key + name: bytes(folder.read(name))
        for folder in LocalStore(root).folders("index/", start_after=after)
        for name in folder.names
    }


AFTER = [
    "",
    "a",
    "index/",
    "index/0",
    "index/000000000/",
    "index/000000000/deeper/",
    "index/l",
    "z",
]


@pytest.mark.parametrize("after", [*FILES, *AFTER, "index/000000000/000000000000_worker_0.jso"])
def test_files_are_those_of_the_listing(root: Path, after: str) -> None:
    store = LocalStore(root)
    expected = sorted(store.list_keys("index/", start_after=after))
    assert sorted(found(root, after)) == expected
    assert found(root, after) == {key: FILES[key] for key in expected}


def test_folders_come_in_order_with_sorted_names(root: Path) -> None:
    assert [(folder.key, folder.names) for folder in LocalStore(root).folders("index/")] == [
        ("index/", ["loose"]),
        ("index/000000000/", ["000000000000_worker_0.json", "000000000001_worker_0.json"]),
        ("index/000000000/deeper/", ["2_worker_0.json"]),
        ("index/000000001/", ["000000001000_worker_0.json"]),
    ]


def test_a_prefix_that_does_not_exist_has_no_folders(root: Path) -> None:
    assert list(LocalStore(root).folders("no/")) == []


def test_a_missing_root_cannot_be_listed(tmp_path: Path) -> None:
    with pytest.raises(ObjectNotFoundError, match="/no' does not exist"):
        list(LocalStore(tmp_path / "no").folders("index/"))


@pytest.mark.parametrize("size", [0, SMALL - 1, SMALL, 3 * SMALL])
def test_files_of_any_size_are_read_whole(tmp_path: Path, size: int) -> None:
    (tmp_path / "index").mkdir()
    content = bytes(number % 251 for number in range(size))
    (tmp_path / "index" / "x").write_bytes(content)
    assert found(tmp_path) == {"index/x": content}


def test_what_is_no_regular_file_is_refused_by_its_name(root: Path) -> None:
    (root / "index" / "a-link").symlink_to("loose")
    os.mkfifo(root / "index" / "a-pipe")
    (folder, *_) = LocalStore(root).folders("index/")
    assert folder.names == ["a-link", "a-pipe", "loose"]


@pytest.mark.parametrize("name", ["a-link", "a-pipe"])
def test_links_are_not_followed_and_pipes_not_read(root: Path, name: str) -> None:
    (root / "index" / "a-link").symlink_to("loose")
    os.mkfifo(root / "index" / "a-pipe")
    folder = next(LocalStore(root).folders("index/"))
    with pytest.raises(StorageUnavailableError, match=rf"^Cannot read 'index/{name}': .*\.$"):
        folder.read(name)


def test_a_file_that_is_gone_is_missing(root: Path) -> None:
    folder = next(LocalStore(root).folders("index/"))
    (root / "index" / "loose").unlink()
    with pytest.raises(ObjectNotFoundError, match=r"^File 'index/loose' does not exist\.$"):
        folder.read("loose")


def test_a_folder_that_is_gone_meanwhile_has_no_files(root: Path) -> None:
    walk = LocalStore(root).folders("index/")
    next(walk)
    (root / "index" / "empty").rmdir()
    assert [one.key for one in walk][-1] == "index/000000001/"


def test_a_folder_that_is_a_link_meanwhile_is_not_entered(root: Path) -> None:
    walk = LocalStore(root).folders("index/")
    next(walk)
    (root / "index" / "empty").rmdir()
    (root / "index" / "empty").symlink_to("000000000")
    with pytest.raises(StorageUnavailableError, match=r"links inside a trial are not followed\.$"):
        list(walk)


def test_no_descriptor_is_left_open(root: Path) -> None:
    for folder in LocalStore(root).folders("index/"):
        for name in folder.names:
            folder.read(name)
    next(LocalStore(root).folders("index/"))
    assert not open_files(root)
