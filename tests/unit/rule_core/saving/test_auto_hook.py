"""Numbers and folders of the trainings of a script, whatever processes they run in."""

import io
import json
import sys
from pathlib import Path

import pytest

from rule_core.saving import auto_hook
from rule_core.saving.auto_hook import FOLDER, HOOK, LAUNCH, _claim, numbered_path, print_line


@pytest.fixture
def trial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return where the first training is saved to."""
    for name in LAUNCH:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(FOLDER, str(tmp_path))
    (tmp_path / HOOK).write_text(json.dumps({"LocalPath": str(tmp_path / "trial")}))
    return tmp_path / "trial"


@pytest.mark.usefixtures("trial")
def test_trainings_of_unrelated_processes_are_counted_on() -> None:
    assert [_claim(0, 1) for _ in range(3)] == [1, 2, 3]


@pytest.mark.usefixtures("trial")
def test_ranks_of_a_launch_have_the_same_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MASTER_PORT", "1234")
    assert [_claim(0, 2), _claim(0, 2), _claim(1, 2), _claim(0, 1), _claim(1, 2)] == [1, 2, 1, 3, 2]
    monkeypatch.setenv("MASTER_PORT", "1235")
    assert [_claim(1, 2), _claim(0, 2)] == [4, 4]


@pytest.mark.usefixtures("trial")
def test_launch_that_is_repeated_is_a_further_training(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MASTER_PORT", "1234")
    assert [_claim(rank, 2) for _ in range(2) for rank in (0, 1)] == [1, 1, 2, 2]


def test_folder_that_exists_is_passed_over(trial: Path) -> None:
    Path(numbered_path(trial, 2)).mkdir()
    trial.mkdir()
    assert [_claim(0, 1), _claim(0, 1)] == [1, 3]


@pytest.mark.parametrize("columns", [0, 7])
def test_line_begins_below_an_unfinished_one(monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    stream = io.StringIO()
    stream.fileno = lambda: 9  # type: ignore[method-assign]
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(
        auto_hook.os, "get_terminal_size", lambda _: auto_hook.os.terminal_size((columns, 1))
    )
    print_line("A sentence.")
    assert stream.getvalue() == " " * columns + "\rA sentence.\n"
