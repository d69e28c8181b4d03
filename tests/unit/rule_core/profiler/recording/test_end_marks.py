"""The end mark of timelines: written by the last rank, and not on SageMaker."""

from pathlib import Path

import pytest

from rule_core.environment import ON_SAGEMAKER
from rule_core.profiler.recording.end_marks import FRAMEWORK_END, SUPERVISED, mark_begin, mark_end


def has_ended(folder: Path) -> bool:
    return (folder / FRAMEWORK_END).exists()


def test_the_last_rank_marks_the_end(tmp_path: Path) -> None:
    for rank in (2, 0, 1):
        assert not has_ended(tmp_path)
        mark_begin(str(tmp_path), rank)
        mark_end(str(tmp_path), rank, 3)
    assert has_ended(tmp_path)


def test_ranks_of_an_earlier_job_do_not_count(tmp_path: Path) -> None:
    mark_end(str(tmp_path), 1, 2)
    for rank in (0, 1):
        mark_begin(str(tmp_path), rank)
    mark_end(str(tmp_path), 0, 2)
    assert not has_ended(tmp_path)


def test_a_new_job_removes_the_mark_of_an_earlier_one(tmp_path: Path) -> None:
    mark_end(str(tmp_path), 0, 1)
    assert has_ended(tmp_path)
    mark_begin(str(tmp_path), 0)
    assert not has_ended(tmp_path)


def test_the_platform_marks_the_end_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ON_SAGEMAKER, "job")
    mark_end(str(tmp_path), 0, 1)
    assert not has_ended(tmp_path)


def test_a_supervising_command_marks_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark_end(str(tmp_path), 0, 1)
    monkeypatch.setenv(SUPERVISED, str(tmp_path))
    mark_begin(str(tmp_path), 0)
    assert has_ended(tmp_path)
    mark_end(str(tmp_path / "other"), 0, 1)
    assert has_ended(tmp_path / "other")
    (tmp_path / FRAMEWORK_END).unlink()
    mark_end(str(tmp_path), 0, 1)
    assert not has_ended(tmp_path)
