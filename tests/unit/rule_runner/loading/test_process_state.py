"""ProcessState: each rule finds the process-wide settings as it left them."""

import decimal
import os
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rule_runner.loading.process_state import ProcessState


@pytest.fixture(autouse=True)
def _as_before(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Whatever comes of a test, leave the process as it was."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setenv("CHANGED", "before")
    monkeypatch.setenv("REMOVED", "before")
    monkeypatch.delenv("ADDED", raising=False)
    monkeypatch.chdir(Path.cwd())
    with warnings.catch_warnings(), np.errstate(), decimal.localcontext():
        yield


def settings() -> dict[str, Any]:
    return {
        "filters": [*warnings.filters],
        "path": [*sys.path],
        "environment": {**os.environ},
        "folder": Path.cwd(),
        "numpy": np.geterr(),
        "print": np.get_printoptions()["precision"],
        "decimal": decimal.getcontext().prec,
    }


def change(folder: Path) -> None:
    warnings.simplefilter("ignore")
    sys.path.insert(0, "/nowhere")
    os.environ["ADDED"] = "\udcff"
    os.environ["CHANGED"] = "after"
    del os.environ["REMOVED"]
    os.chdir(folder)
    np.seterr(all="raise")
    np.set_printoptions(precision=3)
    decimal.getcontext().prec = 5


def test_rule_finds_again_what_nobody_else_sees(tmp_path: Path) -> None:
    before = settings()
    one, other = ProcessState(), ProcessState()
    one.call(change, tmp_path)
    assert settings() == before
    assert other.call(settings) == before
    assert one.call(settings) == {
        "filters": [("ignore", None, Warning, None, 0), *before["filters"]],
        "path": ["/nowhere", *before["path"]],
        "environment": {
            **{name: text for name, text in before["environment"].items() if name != "REMOVED"},
            "ADDED": "\udcff",
            "CHANGED": "after",
        },
        "folder": tmp_path,
        "numpy": dict.fromkeys(("divide", "over", "under", "invalid"), "raise"),
        "print": 3,
        "decimal": 5,
    }
    assert settings() == before


def test_what_is_undone_by_the_rule_stays_undone() -> None:
    one = ProcessState()
    one.call(os.environ.__setitem__, "ADDED", "x")
    one.call(os.environ.__delitem__, "ADDED")
    assert "ADDED" not in one.call(os.environ.copy)


def test_settings_are_put_back_when_the_rule_raises(tmp_path: Path) -> None:
    before = settings()

    def fail() -> None:
        change(tmp_path)
        raise KeyError

    with pytest.raises(KeyError):
        ProcessState().call(fail)
    assert settings() == before


def echoed() -> str:
    return subprocess.check_output(["/bin/sh", "-c", "echo $CHANGED-$REMOVED"], text=True)


def test_program_of_a_rule_sees_its_environment(tmp_path: Path) -> None:
    one = ProcessState()
    one.call(change, tmp_path)
    assert one.call(echoed) == "after-\n"
    assert echoed() == "before-before\n"


def test_folder_that_is_gone_is_gone_for_the_rule_only(tmp_path: Path) -> None:
    one, here = ProcessState(), Path.cwd()
    (tmp_path / "own").mkdir()

    def leave() -> None:
        os.chdir(tmp_path / "own")
        (tmp_path / "own").rmdir()

    one.call(leave)
    assert Path.cwd() == here
    one.call(settings)
    assert Path.cwd() == here


def test_warning_that_was_shown_is_shown_to_a_rule_with_other_filters() -> None:
    def warn() -> None:
        warnings.warn("odd", stacklevel=1)

    one, other = ProcessState(), ProcessState()
    one.call(warnings.simplefilter, "default")
    other.call(warnings.simplefilter, "error")
    with warnings.catch_warnings(record=True):
        one.call(warn)
    with pytest.raises(UserWarning, match="odd"):
        other.call(warn)


def test_arguments_and_answer_are_passed_on() -> None:
    assert ProcessState().call(sorted, [1, 3, 2], reverse=True) == [3, 2, 1]
