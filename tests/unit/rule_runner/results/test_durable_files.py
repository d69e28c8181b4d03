"""Durable files: locks that leave nothing, lines that are written when there are some."""

import os
from pathlib import Path

import pytest

from rule_runner.errors import OutputError
from rule_runner.results import durable_files
from rule_runner.results.durable_files import SCRATCH, FolderLock, JsonLines, make_folder


def test_a_lock_leaves_nothing(tmp_path: Path) -> None:
    with FolderLock(tmp_path / "out"):
        assert (tmp_path / "out" / SCRATCH / "lock").read_text() == f"{os.getpid()}\n"
    assert [*(tmp_path / "out").iterdir()] == []


def test_what_others_keep_in_the_scratch_folder_stays(tmp_path: Path) -> None:
    with FolderLock(tmp_path):
        (tmp_path / SCRATCH / "cursor-queue").touch()
    assert [path.name for path in (tmp_path / SCRATCH).iterdir()] == ["cursor-queue"]


def test_a_lock_that_its_holder_has_just_removed_is_taken_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between opening the file and locking it, its holder ends, and a third process locks it."""
    first, opened, others = FolderLock(tmp_path), durable_files.open_regular, list[FolderLock]()

    def opening(path: Path, flags: int) -> int:
        fd = opened(path, flags)
        if not others:
            monkeypatch.setattr(durable_files, "open_regular", opened)
            first.close()
            others.append(FolderLock(tmp_path))
        return fd

    monkeypatch.setattr(durable_files, "open_regular", opening)
    with pytest.raises(OutputError, match="is in use by process"):
        FolderLock(tmp_path)
    others[0].close()
    FolderLock(tmp_path).close()


def test_a_file_of_lines_begins_with_the_first_one(tmp_path: Path) -> None:
    path = tmp_path / "lines.jsonl"
    with JsonLines(path) as lines:
        assert [*lines.read(dict)] == []
        assert not path.exists()
        lines.append("{}", durable=True)
    assert path.read_text() == "{}\n"


def test_git_ignores_the_default_folder_of_outputs_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    make_folder(Path("out"))
    make_folder(Path("rule-output", "mnist-1"))
    assert [*tmp_path.rglob(".gitignore")] == [tmp_path / "rule-output" / ".gitignore"]
    assert (tmp_path / "rule-output" / ".gitignore").read_text() == "*\n"
    (tmp_path / "rule-output" / ".gitignore").write_text("")
    make_folder(Path("rule-output", "mnist-2"))
    assert (tmp_path / "rule-output" / ".gitignore").read_text() == ""
