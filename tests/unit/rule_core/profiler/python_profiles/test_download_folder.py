"""DownloadFolder: nothing is touched that it did not make, and nothing outside."""

import json
import os
import re
from pathlib import Path

import pytest

from rule_core.profiler.python_profiles.download_folder import LIST_NAME, DownloadFolder
from rule_core.profiler.python_profiles.types import ProfileFolderError

NAME = "node/span/file"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "above" / "root"


def put(root: Path, files: dict[str, bytes]) -> None:
    """Download some files, and drop all that were downloaded before."""
    with DownloadFolder(root) as folder:
        folder.keep_only(files, {"file", "c", "top", "new", "x"})
        for name, content in files.items():
            folder.put(name, content)


def listing(root: Path) -> Path:
    """Return where the list of a folder's downloads is."""
    return root.parent / LIST_NAME.format(root.name)


def content(root: Path) -> dict[str, bytes]:
    """Return all files of the folder."""
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in root.rglob("*")
        if path.is_file()
    }


def test_files_are_written_and_replaced_and_removed(root: Path) -> None:
    put(root, {NAME: b"one", "node/other/file": b"two"})
    assert content(root) == {NAME: b"one", "node/other/file": b"two"}
    put(root, {NAME: b"longer", "top": b""})
    assert content(root) == {NAME: b"longer", "top": b""}
    put(root, {NAME: b"1"})
    assert content(root) == {NAME: b"1"}
    put(root, {})
    assert content(root) == {}


def test_the_folder_holds_nothing_but_downloads(root: Path) -> None:
    """The old library takes every entry for a node, and fails where one is no folder."""
    put(root, {NAME: b"one"})
    assert [path.name for path in root.iterdir()] == ["node"]
    assert [path.name for path in root.parent.iterdir() if path != root] == [listing(root).name]


def test_files_that_are_not_spoken_of_stay(root: Path) -> None:
    put(root, {NAME: b"one", "other": b"two"})
    put(root, {})
    assert content(root) == {"other": b"two"}


def test_files_of_others_stay(root: Path) -> None:
    put(root, {NAME: b"one", "a/b/c": b"edited"})
    (root / "mine").write_bytes(b"mine")
    (root / "node" / "span" / "mine").write_bytes(b"mine")
    (root / "a" / "b" / "c").write_bytes(b"by me")
    put(root, {"new": b""})
    assert content(root) == {
        "mine": b"mine",
        "node/span/mine": b"mine",
        "a/b/c": b"by me",
        "new": b"",
    }


def test_what_another_put_there_is_not_replaced(root: Path) -> None:
    path = root / NAME
    path.parent.mkdir(parents=True)
    path.write_bytes(b"mine")
    message = (
        f"Cannot download {NAME!r} into '{root}': it holds a file that was not downloaded. "
        "Give another local_profile_dir, or move that file."
    )
    with pytest.raises(ProfileFolderError, match=f"^{re.escape(message)}$"):
        put(root, {NAME: b"theirs"})
    assert content(root) == {NAME: b"mine"}


def test_what_is_there_already_is_not_taken_for_ours(root: Path) -> None:
    path = root / NAME
    path.parent.mkdir(parents=True)
    path.write_bytes(b"same")
    put(root, {NAME: b"same"})
    put(root, {})
    assert content(root) == {NAME: b"same"}


def test_what_was_written_before_an_error_is_known(root: Path) -> None:
    with pytest.raises(ProfileFolderError, match=r"Cannot download 'x/\.\./y'"):
        put(root, {NAME: b"one", "x/../y": b""})
    put(root, {})
    assert content(root) == {}


@pytest.mark.parametrize(
    "name", ["../x", "/x", "a/../../x", "a//x", "./x", "", "a/", "..", "a\\b", "a\0b"]
)
def test_no_name_leads_outside(name: str, root: Path) -> None:
    with pytest.raises(ProfileFolderError, match="not a path below the folder"):
        put(root, {name: b"x"})
    assert content(root.parent) == {listing(root).name: b"{}"}


def test_no_listed_name_leads_outside(root: Path) -> None:
    put(root, {})
    outside = root.parent / "x"
    outside.write_bytes(b"abc")
    listed = dict.fromkeys(("../x", str(outside), "a/../../x"), 891568578)
    listing(root).write_text(json.dumps(listed), encoding="utf-8")
    put(root, {})
    assert outside.read_bytes() == b"abc"
    assert json.loads(listing(root).read_bytes()) == {}


@pytest.mark.parametrize("place", ["", "node", "node/span", NAME, "../" + LIST_NAME.format("root")])
def test_no_link_in_the_way_is_followed(place: str, root: Path) -> None:
    outside = root.parent / "outside"
    for path in ("span/file", "file", "node/span/file"):
        (outside / path).parent.mkdir(parents=True, exist_ok=True)
        (outside / path).write_bytes(b"mine")
    link = root / place
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(outside / "file" if place == NAME or place.endswith(".json") else outside)
    with pytest.raises(ProfileFolderError, match="something in the way is a link or no folder"):
        put(root, {NAME: b"theirs"})
    assert {"span/file", "file", "node/span/file"} == set(content(outside))
    assert {b"mine"} == set(content(outside).values())


def test_a_link_that_came_later_is_not_followed(root: Path) -> None:
    put(root, {NAME: b"one"})
    (root / "node").rename(root.parent / "moved")
    (root / "node").symlink_to(root.parent / "moved")
    put(root, {})
    assert (root.parent / "moved" / "span" / "file").read_bytes() == b"one"


@pytest.mark.parametrize("text", ["", "{", "[1]", '{"node/span/file": "x"}', "\xff", '{"\xff": 1}'])
def test_a_damaged_list_makes_nothing_ours(text: str, root: Path) -> None:
    put(root, {NAME: b"one"})
    listing(root).write_text(text, encoding="latin-1")
    put(root, {})
    assert content(root) == {NAME: b"one"}


def test_a_folder_in_the_place_of_a_file_is_not_ours(root: Path) -> None:
    (root / NAME).mkdir(parents=True)
    os.mkfifo(root / "pipe")
    for name in (NAME, "pipe"):
        with pytest.raises(ProfileFolderError, match="something there is no file"):
            put(root, {name: b"theirs"})
    assert (root / NAME).is_dir()
    assert (root / "pipe").is_fifo()


def test_a_folder_that_cannot_be_made_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ProfileFolderError, match=r"^Cannot download Python profiles into"):
        DownloadFolder(tmp_path / "file" / "root")
    with pytest.raises(ProfileFolderError, match=r"null byte"):
        DownloadFolder(tmp_path / "a\0b")


def test_a_file_that_was_cut_while_it_was_written_is_not_seen(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_args: object, **_kwargs: object) -> None:
        raise OSError(28, "No space left on device")

    put(root, {})
    with DownloadFolder(root) as folder, monkeypatch.context() as patch:
        patch.setattr("os.replace", fail)
        with pytest.raises(ProfileFolderError, match="No space left on device"):
            folder.put(NAME, b"one")
    assert content(root) == {}
