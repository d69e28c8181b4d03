"""RotatedFile: each byte of a log once, in order, however it is rotated."""

import gzip
import sys
from collections.abc import Callable

import pytest
from memory_store import MemoryStore

from rule_core.sources.text.rotated_file import RotatedFile, older_parts
from rule_core.storage.base import ObjectNotFoundError

Files = dict[str, bytes]


def content_of(file: RotatedFile) -> bytes:
    pieces = []
    while data := bytes(file.read(7).data):
        pieces.append(data)
    return b"".join(pieces)


def rename(files: Files) -> None:
    """Rotate as a logging handler does, by renaming."""
    for number in range(8, 0, -1):
        if content := files.pop(f"log.{number}", None):
            files[f"log.{number + 1}"] = content
    files["log.1"] = files.pop("log")


def copy(files: Files) -> None:
    """Rotate as ``copytruncate`` does."""
    files["log"], content = b"", files["log"]
    rename(files | {})
    files["log.1"] = content


def compress(files: Files) -> None:
    files["log-20260101.gz"] = gzip.compress(files.pop("log"))


def test_parts_are_ordered_by_age() -> None:
    names = ["log.1", "log.10.gz", "log.2", "log.2.gz", "log.old", "log.x.1", "logs.1"]
    assert older_parts(MemoryStore(dict.fromkeys(names, b"")), "log") == [
        "log.10.gz",
        "log.2",
        "log.1",
    ]
    dated = ["log-20260102.gz", "log-20251231", "log.20260103-1200"]
    assert older_parts(MemoryStore(dict.fromkeys(dated, b"")), "log") == [
        "log-20251231",
        "log-20260102.gz",
        "log.20260103-1200",
    ]


def test_older_parts_are_read_first() -> None:
    files = {"log": b"three\n", "log.1": b"two\n", "log.2.gz": gzip.compress(b"one\n")}
    file = RotatedFile(MemoryStore(files), "log")
    assert content_of(file) == b"one\ntwo\nthree\n"
    files["log"] += b"four\n"
    assert tuple(file.read()) == (b"four\n", False)


@pytest.mark.parametrize("rotate", [rename, copy, compress])
@pytest.mark.parametrize("late", [b"", b"unread\n"])
def test_a_rotation_loses_nothing_and_repeats_nothing(
    rotate: Callable[[Files], None], late: bytes
) -> None:
    files = {"log": b"one\ntwo\n"}
    file = RotatedFile(MemoryStore(files), "log")
    assert content_of(file) == b"one\ntwo\n"
    files["log"] += late
    rotate(files)
    files.setdefault("log", b"")
    assert content_of(file) == late
    files["log"] += b"new\n"
    assert content_of(file) == b"new\n"
    files["log"] += b"newer\n"
    assert tuple(file.read()) == (b"newer\n", False)


def test_several_rotations_between_two_looks() -> None:
    files = {"log": b"one\ntwo\n"}
    file = RotatedFile(MemoryStore(files), "log")
    assert bytes(file.read(4).data) == b"one\n"
    for content in (b"three\n", b"four\n", b"five\n"):
        rename(files)
        files["log"] = content
    assert content_of(file) == b"two\nthree\nfour\nfive\n"


def test_a_log_that_is_away_for_a_moment() -> None:
    files = {"log": b"one\n"}
    file = RotatedFile(MemoryStore(files), "log")
    content_of(file)
    rename(files)
    files["log.1"] += b"two\n"
    assert content_of(file) == b"two\n"
    files["log.1"] += b"three\n"
    files["log"] = b""
    assert content_of(file) == b"three\n"
    files["log.1"] += b"late, by a writer that has not opened the new file yet\n"
    assert content_of(file) == b"late, by a writer that has not opened the new file yet\n"
    del files["log.1"], files["log"]
    with pytest.raises(ObjectNotFoundError):
        file.read()


def test_a_log_that_was_begun_anew_is_no_rotation() -> None:
    files = {"log.1": b"zero\n", "log": b"one\ntwo\n"}
    file = RotatedFile(MemoryStore(files), "log")
    content_of(file)
    files["log"] = b"new\n"
    assert tuple(file.read()) == (b"new\n", True)
    assert content_of(file) == b""


def test_a_part_that_cannot_be_decompressed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for package in ("compression", "backports"):
        monkeypatch.setitem(sys.modules, package, None)
    file = RotatedFile(MemoryStore({"log.1.zst": b"", "log": b"one\n"}), "log")
    assert content_of(file) == b"one\n"
    assert file.problem.startswith("File 'log.1.zst' is compressed.")


def test_damage_of_a_part_is_remembered() -> None:
    file = RotatedFile(MemoryStore({"log.1.gz": b"garbage", "log": b"one\n"}), "log")
    assert content_of(file) == b"one\n"
    assert file.problem.startswith("It is damaged: ")
