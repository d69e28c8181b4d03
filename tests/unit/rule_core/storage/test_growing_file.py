"""GrowingFile: appended bytes are read once, a rewritten file from its start."""

from pathlib import Path

import pytest
from memory_store import MemoryStore

from rule_core.storage.base import ByteRange, ObjectNotFoundError
from rule_core.storage.growing_file import GrowingFile
from rule_core.storage.local import LocalStore


def test_appended_bytes_are_read_once() -> None:
    files = {"log": b"one\n"}
    file = GrowingFile(MemoryStore(files), "log")
    assert bytes(file.read().data) == b"one\n"
    assert bytes(file.read().data) == b""
    files["log"] += b"two\n"
    assert file.read() == (b"two\n", False)
    assert file.position == 8


@pytest.mark.parametrize(
    "content",
    [b"on", b"", b"other", b"other and longer than before", b"One\ntwo\n", b"one\nTwo\nthree\n"],
)
def test_a_file_that_was_restarted_is_read_from_its_start(content: bytes) -> None:
    files = {"log": b"one\ntwo\n"}
    file = GrowingFile(MemoryStore(files), "log")
    file.read()
    files["log"] = content
    if len(content) == 8:  # the same size at the same time
        files["log"] += b"\n"
    assert file.read() == (files["log"], True)
    assert file.read() == (b"", False)


def test_a_long_file_is_read_in_pieces() -> None:
    content = bytes(range(250)) * 9
    file = GrowingFile(MemoryStore({"log": content}), "log")
    pieces = [bytes(file.read(1000).data) for _ in range(4)]
    assert b"".join(pieces) == content
    assert [len(piece) for piece in pieces] == [1000, 1000, 250, 0]


def test_a_file_that_is_replaced_by_a_longer_one_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"step,loss\n1,0.5\n")
    file = GrowingFile(LocalStore(tmp_path), "log")
    file.read()
    (tmp_path / "new").write_bytes(b"step,loss\n1,0.5\n2,0.4\n")
    (tmp_path / "new").rename(path)
    assert file.read() == (b"2,0.4\n", False)
    assert file.modified == path.stat().st_mtime


def test_a_missing_file_raises() -> None:
    with pytest.raises(ObjectNotFoundError):
        GrowingFile(MemoryStore({}), "log").read()


def test_a_file_that_was_begun_anew_and_removed_is_still_known_to_be_another() -> None:
    files = {"log": b"one\ntwo\n"}

    class Vanishing(MemoryStore):
        def read(self, key: str, byte_range: ByteRange | None = None) -> memoryview:
            if self.files[key] == b"new" and not is_back:
                raise ObjectNotFoundError(key)
            return super().read(key, byte_range)

    is_back = False
    file = GrowingFile(Vanishing(files), "log")
    file.read()
    files["log"] = b"new"
    with pytest.raises(ObjectNotFoundError):
        file.read()
    is_back = True
    assert file.read() == (b"new", True)
