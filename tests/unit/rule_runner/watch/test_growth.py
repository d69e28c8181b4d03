"""Marks change when data arrive, and otherwise stay."""

import os
from pathlib import Path
from typing import Any

import pytest
from watched import log

from rule_core.storage.base import FileStatus, StorageUnavailableError
from rule_runner.watch import growth
from rule_runner.watch.growth import mark_of


def test_a_local_mark(tmp_path: Path) -> None:
    trial = log(tmp_path)
    mark = mark_of(str(trial))
    assert mark_of(str(trial), mark) == mark
    (trial / "log.csv").write_text("step,loss\n1,0.5\n2,0.4\n")
    grown = mark_of(str(trial), mark)
    assert grown != mark
    (trial / "inner").mkdir()
    assert mark_of(f"csv:{trial}", grown) != grown


def test_a_file_that_grows_within_the_resolution_of_times(tmp_path: Path) -> None:
    trial = log(tmp_path)
    status = (trial / "log.csv").stat()
    mark = mark_of(str(trial))
    (trial / "log.csv").write_text("step,loss\n1,0.5\n2,0.4\n")
    os.utime(trial / "log.csv", ns=(status.st_atime_ns, status.st_mtime_ns))
    assert mark_of(str(trial), mark) != mark


def test_a_file_written_by_a_machine_with_another_clock(tmp_path: Path) -> None:
    trial = log(tmp_path)
    os.utime(trial / "log.csv", (4e9, 4e9))
    mark = mark_of(str(trial))
    (trial / "other.csv").write_text("step,loss\n")
    os.utime(trial / "other.csv", (1e6, 1e6))
    assert mark_of(str(trial), mark) != mark


def test_a_trial_that_vanishes_keeps_its_mark(tmp_path: Path) -> None:
    assert mark_of(str(tmp_path / "missing"), "earlier") == "earlier"


class Objects:
    """A store of objects that counts requests."""

    def __init__(self, *keys: str) -> None:
        self.keys = sorted(keys)
        self.sizes = dict.fromkeys(keys, 1)
        self.after: list[str] = []

    def list_keys(self, prefix: str, *, start_after: str = "") -> Any:
        del prefix
        self.after.append(start_after)
        return iter([key for key in self.keys if key > start_after])

    def status(self, key: str) -> Any:
        return FileStatus(self.sizes[key], 0.0)


@pytest.fixture
def objects(monkeypatch: pytest.MonkeyPatch) -> Objects:
    store = Objects("index/1", "index/2")
    monkeypatch.setattr(growth, "open_store", lambda _: store)
    return store


def test_a_mark_in_s3_lists_only_what_is_new(objects: Objects) -> None:
    objects.keys = [f"index/{step:05}" for step in range(100)]
    mark = mark_of("s3://bucket/a")
    objects.after.clear()
    assert mark_of("s3://bucket/a", mark) == mark
    assert objects.after == ["index/00099"]
    objects.keys.append("index/00100")
    assert mark_of("s3://bucket/a", mark) == "index/00100"


def test_few_objects_are_compared_by_their_sizes(objects: Objects) -> None:
    mark = mark_of("s3://bucket/a")
    assert mark_of("s3://bucket/a", mark) == mark
    objects.sizes["index/1"] = 2
    assert mark_of("s3://bucket/a", mark) != mark


def test_storage_that_does_not_answer_keeps_the_mark(
    objects: Objects, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        msg = "index/"
        raise StorageUnavailableError(msg, "no answer")

    monkeypatch.setattr(objects, "list_keys", fail)
    assert mark_of("s3://bucket/a", "earlier") == "earlier"
