"""OpenFile: what will be read is brought near where the system can, and read as it is then."""

import os
from pathlib import Path
from typing import Any

import pytest
from memory_store import MemoryStore

from rule_core.storage.base import ByteRange
from rule_core.storage.local import LocalStore


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "file").write_bytes(bytes(range(100)))
    return tmp_path


@pytest.mark.parametrize("waiting", [0, 1, 2])
def test_the_system_is_advised_of_later_reads(
    root: Path, monkeypatch: pytest.MonkeyPatch, waiting: int
) -> None:
    told: list[tuple[int, int, int]] = []
    positions: list[int] = []

    def read_now(_: int, buffers: Any, position: int, flags: int) -> int:
        assert (len(buffers[0]), flags) == (1, os.RWF_NOWAIT)
        positions.append(position)
        if len(positions) > waiting:
            raise BlockingIOError
        return 1

    monkeypatch.setattr(os, "preadv", read_now)
    monkeypatch.setattr(os, "posix_fadvise", lambda _, *what: told.append(what), raising=False)
    with LocalStore(root).opened("file") as opened:
        opened.read_ahead(ByteRange(10, 30))
    assert told == [(10, 20, os.POSIX_FADV_WILLNEED)]
    assert positions == [10, 20, 29][: waiting + 1]


def test_what_is_in_the_page_cache_needs_no_advice(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[Any] = []
    monkeypatch.setattr(os, "posix_fadvise", lambda *what: told.append(what), raising=False)
    monkeypatch.setattr(os, "preadv", lambda *_: 1)
    with LocalStore(root).opened("file") as opened:
        opened.read_ahead(ByteRange(10, 30))
    assert told == []


def test_a_system_that_refuses_or_cannot_costs_nothing(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> None:
        raise OSError

    content = bytearray(5)
    monkeypatch.delattr(os, "RWF_NOWAIT")
    with LocalStore(root).opened("file") as opened:
        monkeypatch.setattr(os, "posix_fadvise", refuse, raising=False)
        opened.read_ahead(ByteRange(0, 100))
        monkeypatch.delattr(os, "posix_fadvise")
        opened.read_ahead(ByteRange(0, 100))
        assert opened.read_into(7, [memoryview(content)]) == 5
    assert content == bytes(range(7, 12))


def test_what_is_in_memory_is_near(root: Path) -> None:
    del root
    content = bytearray(3)
    with MemoryStore({"file": b"abcdef"}).opened("file") as opened:
        opened.read_ahead(ByteRange(0, 6))
        assert opened.read_into(2, [memoryview(content)]) == 3
    assert content == b"cde"
