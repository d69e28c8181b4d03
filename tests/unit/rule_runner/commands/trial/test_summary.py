"""trial show: all that is in a trial, also in a damaged, hostile or unfinished one."""

import json
import os
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from rich.filesize import decimal

from rule_core.storage.base import StorageUnavailableError
from rule_core.storage.local import LocalStore
from rule_runner.commands.trial import show as trial_show
from rule_runner.commands.trial.show import show_trial
from rule_runner.commands.trial.summary import TrialReport, report_trial
from rule_runner.errors import TrialError
from rule_runner.report import tables
from smdebug.core.modes import ModeKeys
from smdebug.core.writer import TrialWriter

DENIED = ("index/", "Permission denied")


def write(root: Path, **options: Any) -> None:
    """Write a trial of two workers; the second lacks step 3."""
    collections = {"losses": "loss", "none": ["x$", "y$"], "bad": "("}
    for worker in ("worker_0", "worker_1"):
        given = {"worker": worker, "num_workers": 2, "end_job": False} | options
        with TrialWriter(root, collections=collections, **given) as writer:
            writer.step(0, {"loss": 0.5}, mode=ModeKeys.TRAIN, mode_step=0)
            writer.step(
                2,
                {"loss": 0.25},
                mode=ModeKeys.EVAL,
                mode_step=0,
                reductions={"fc": {("mean", True): 1.0, ("max", False): 2.0}},
                shapes={"fc": (4, 5)},
            )
            if worker == "worker_0":
                writer.step(3, {"words": ["a", "bc"]}, mode=ModeKeys.TRAIN, mode_step=1)


def as_json(report: TrialReport) -> Any:
    return json.loads(msgspec.json.encode(report))


def test_everything_that_is_in_a_trial(tmp_path: Path) -> None:
    write(tmp_path / "trial")
    report = as_json(report_trial(str(tmp_path / "trial")))
    sizes = {one["name"]: one.pop("nbytes") for one in report["tensors"]}
    events = sum(path.stat().st_size for path in tmp_path.rglob("*.tfevents"))
    assert sum(sizes.values()) == report.pop("nbytes") == events
    problems = report.pop("problems")
    assert list(problems) == ["collection bad"]
    assert report == {
        "schema_version": 1,
        "name": "trial",
        "path": str(tmp_path / "trial"),
        "ended": False,
        "workers": ["worker_0", "worker_1"],
        "num_workers": 2,
        "steps": [
            {"mode": "GLOBAL", "count": 3, "first": 0, "last": 3},
            {"mode": "TRAIN", "count": 2, "first": 0, "last": 1},
            {"mode": "EVAL", "count": 1, "first": 0, "last": 0},
        ],
        "incomplete": [{"step": 3, "missing": ["worker_1"]}],
        "collections": [
            {"name": "bad", "patterns": ["("], "tensors": None},
            {"name": "losses", "patterns": ["loss"], "tensors": 1},
            {"name": "none", "patterns": ["x$", "y$"], "tensors": 0},
        ],
        "tensors": [
            {
                "name": "fc",
                "steps": 1,
                "first": 2,
                "last": 2,
                "modes": ["EVAL"],
                "shape": [4, 5],
                "dtype": None,
                "saved": ["shape", "reductions"],
                "reductions": ["abs_mean", "max"],
            },
            {
                "name": "loss",
                "steps": 2,
                "first": 0,
                "last": 2,
                "modes": ["EVAL", "TRAIN"],
                "shape": [1],
                "dtype": "float64",
                "saved": ["value"],
                "reductions": [],
            },
            {
                "name": "words",
                "steps": 1,
                "first": 3,
                "last": 3,
                "modes": ["TRAIN"],
                "shape": [2],
                "dtype": "string",
                "saved": ["value"],
                "reductions": [],
            },
        ],
        "why_ended": "",
        "sources": [],
        "set_aside": [],
        "caveats": [],
        "segments": [],
    }


def test_shape_and_type_come_from_the_first_step_that_has_them(tmp_path: Path) -> None:
    with TrialWriter(tmp_path) as writer:
        writer.step(0, reductions={"w": {("min", False): 0.0}})
        writer.step(1, {"w": np.zeros((2, 3), np.float16)})
        writer.step(2, {"w": np.zeros(7)})
        writer.step(3, reductions={"m": {("min", False): 0.0}})
    only, tensor = report_trial(str(tmp_path)).tensors
    assert (tensor.shape, tensor.dtype) == ([2, 3], "float16")
    assert tensor.saved == ["value", "reductions"]
    assert (only.shape, only.dtype, only.saved) == (None, None, ["reductions"])


def test_a_damaged_event_file_costs_shape_and_type_only(tmp_path: Path) -> None:
    with TrialWriter(tmp_path) as writer:
        writer.step(0, {"w": np.zeros(4)})
    key = "events/000000000000/000000000000_worker_0.tfevents"
    os.truncate(tmp_path / key, 30)
    report = report_trial(str(tmp_path))
    assert [(one.name, one.shape, one.dtype, one.steps) for one in report.tensors] == [
        ("w", None, None, 1)
    ]
    assert list(report.problems) == [key]
    assert report.problems[key].startswith(f"File {key!r} is cut off: expected ")


def test_shape_and_type_come_from_a_later_step_when_the_first_is_damaged(tmp_path: Path) -> None:
    with TrialWriter(tmp_path) as writer:
        writer.step(0, {"w": np.zeros(4)})
        writer.step(1, {"w": np.zeros(5, np.int8)})
    (tmp_path / "events/000000000000/000000000000_worker_0.tfevents").unlink()
    (tensor,) = report_trial(str(tmp_path)).tensors
    assert (tensor.shape, tensor.dtype) == ([5], "int8")


def test_a_damaged_index_file_is_a_problem(tmp_path: Path) -> None:
    with TrialWriter(tmp_path) as writer:
        writer.step(0, {"w": 1})
    bad = tmp_path / "index" / "000000000" / "000000000001_worker_0.json"
    bad.write_text("{")
    report = report_trial(str(tmp_path))
    assert list(report.problems) == ["index/000000000/000000000001_worker_0.json"]
    assert report.steps[0].count == 1


def test_a_trial_that_ended_without_a_step(tmp_path: Path) -> None:
    TrialWriter(tmp_path).close()
    report = report_trial(str(tmp_path))
    assert (report.ended, report.tensors, report.nbytes) == (True, [], 0)
    assert as_json(report)["steps"] == [{"mode": "GLOBAL", "count": 0, "first": None, "last": None}]


def test_a_trial_without_collections(tmp_path: Path) -> None:
    with TrialWriter(tmp_path, end_job=False) as writer:
        writer.step(0, {"w": 1})
    for path in (tmp_path / "collections" / "000000000").iterdir():
        path.unlink()
    report = report_trial(str(tmp_path))
    assert (report.workers, report.num_workers, report.incomplete) == ([], 0, [])
    assert "workers: 0 of an unknown number" in list(trial_show._head(report))


def test_no_trial_there(tmp_path: Path) -> None:
    missing = tmp_path / "missing"
    with pytest.raises(TrialError, match=r"^Trial '.*/missing' does not exist\.$"):
        report_trial(str(missing))


def test_a_file_is_no_trial(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x" * 5000)
    with pytest.raises(TrialError, match=r"file' is in no format that is read as a trial: no "):
        report_trial(str(tmp_path / "file"))


def test_a_folder_with_other_things_in_it_is_no_trial(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(TrialError, match=r"holds no trial: neither 'collections/' nor 'index/'"):
        report_trial(str(tmp_path))


def test_a_folder_that_cannot_be_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def refuse(*_: object, **__: object) -> Any:
        raise StorageUnavailableError(*DENIED)

    monkeypatch.setattr(LocalStore, "list_keys", refuse)
    with pytest.raises(TrialError, match=r"^Cannot read 'index/': Permission denied\.$"):
        report_trial(str(tmp_path))


PLAIN = """\
trial: trial
path: {root}/trial
ended: no, the end mark is missing
workers: 2 of 2 (worker_0, worker_1)
tensors: 3, {total} of records in event files
steps:
  all, by global number: 3 steps, 0 to 3
  TRAIN: 2 steps, 0 to 1
  EVAL: 1 step, 0 to 0
incomplete steps:
  3: without worker_1
collections:
  bad: unusable pattern, '('
  losses: 1 tensor, 'loss'
  none: 0 tensors, 'x$' 'y$'
tensors:
  fc: 1 step (2 to 2), EVAL, (4, 5), shape and reductions abs_mean max, {fc} bytes
  loss: 2 steps (0 to 2), EVAL TRAIN, (1) float64, value, {loss} bytes
  words: 1 step (3 to 3), TRAIN, (2) string, value, {words} bytes
problems:
  collection bad: {problem}
"""


def test_plain_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path / "trial")
    report = report_trial(str(tmp_path / "trial"))
    capsys.readouterr()
    show_trial(str(tmp_path / "trial"), "table", everything=False)
    expected = PLAIN.format(
        root=tmp_path,
        problem=report.problems["collection bad"],
        total=decimal(report.nbytes),
        **{one.name: one.nbytes for one in report.tensors},
    )
    assert capsys.readouterr().out == expected


def test_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path)
    show_trial(str(tmp_path), "json", everything=False)
    assert json.loads(capsys.readouterr().out) == as_json(report_trial(str(tmp_path)))


@pytest.mark.parametrize(
    ("everything", "expected"),
    [
        pytest.param(False, [*range(20), "and 5 more (--all)"], id="cut"),
        pytest.param(True, list(range(25)), id="whole"),
    ],
)
def test_long_tables_are_cut(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], everything: bool, expected: list[object]
) -> None:
    with TrialWriter(tmp_path, collections={"all": ".*"}) as writer:
        writer.step(0, {f"t{number:02}": number for number in range(25)})
    show_trial(str(tmp_path), "table", everything=everything)
    shown = capsys.readouterr().out.partition("\ntensors:\n")[2].splitlines()
    names = [f"t{one:02}" if isinstance(one, int) else one for one in expected]
    assert [line.strip().partition(":")[0] for line in shown] == names


def test_tables_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path / "trial")
    monkeypatch.setattr(tables.sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("TERM", "dumb")
    show_trial(str(tmp_path / "trial"), "table", everything=False)
    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == "trial: trial"
    assert [line.split()[1:4] for line in shown if "losses" in line] == [["losses", "│", "1"]]
    assert sum(line.startswith("┏") for line in shown) == 5


def test_empty_tables_are_left_out_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    TrialWriter(tmp_path).close()
    monkeypatch.setattr(tables.sys.stdout, "isatty", lambda: True)
    show_trial(str(tmp_path), "table", everything=False)
    assert capsys.readouterr().out.count("┏") == 1


def test_names_are_harmless(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = "w\x1b[31m[red]\u202e"
    with TrialWriter(tmp_path, collections={name: name.replace("[", "\\[")}) as writer:
        writer.step(0, {name: 1}, reductions={name: {("min", False): 0}})
    show_trial(str(tmp_path), "table", everything=False)
    shown = capsys.readouterr().out
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert "  w\\x1b[31m[red]\\u202e: 1 step (0 to 0), " in shown
