"""Processes of evaluations: real ones, with a stand-in for the program."""

import os
import signal
import sys
import time
from pathlib import Path

import pytest
from msgspec.structs import replace

from rule_core.clock import SystemClock
from rule_runner.config.request import EvaluationRequest, read_request
from rule_runner.watch.evaluations import EndedEvaluation, process
from rule_runner.watch.evaluations.local import LocalEvaluations

REQUEST = EvaluationRequest(trial="/runs/a")
PROGRAM = "#!/bin/sh\ncat >{folder}/request\necho 'Error: It failed.' >&2\n{ending}\n"


def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str) -> None:
    path = tmp_path / "program"
    path.write_text(PROGRAM.format(folder=tmp_path, ending=ending))
    path.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(path))


def wait(evaluations: LocalEvaluations) -> list[EndedEvaluation]:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if ended := [*evaluations.ended()]:
            return ended
        SystemClock().sleep(0.01)
    return []


def test_a_process_gets_its_request_and_reports_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(tmp_path, monkeypatch, "exit 1")
    evaluations = LocalEvaluations(tmp_path / "state")
    evaluations.start("/out/a", REQUEST)
    assert (len(evaluations), "/out/a" in evaluations) == (1, True)
    assert wait(evaluations) == [EndedEvaluation("/out/a", 1, "It failed.")]
    request = read_request((tmp_path / "request").read_text())
    assert replace(request, pause_file=None) == REQUEST
    assert (len(evaluations), [*(tmp_path / "state").iterdir()]) == (0, [])


def test_another_controller_adopts_a_process_and_stops_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(tmp_path, monkeypatch, "exec sleep 60")
    first = LocalEvaluations(tmp_path / "state")
    first.start("/out/a", REQUEST)
    process = first._running["/out/a"]
    assert process is not None
    second = LocalEvaluations(tmp_path / "state")
    assert second.adopt("/out/a") is None
    assert second.adopt("/out/b") == EndedEvaluation("/out/b", None, "")
    second.start("/out/a", REQUEST)
    assert [*second.ended()] == []
    second.terminate()
    assert process.wait(60) == -signal.SIGTERM
    (ended,) = wait(second)
    assert (ended.output, ended.exit_code) == ("/out/a", None)
    (ended,) = first.ended()
    assert ended.exit_code == -signal.SIGTERM


@pytest.mark.parametrize("is_adopted", [False, True])
def test_an_evaluation_that_made_room_may_be_continued_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_adopted: bool
) -> None:
    pauses = 'file=$(sed "s/.*pause_file.:.//; s/\\".*//" {folder}/request)'
    waits = "while ! [ -e $file ]; do sleep 0.01; done; exit 75"
    program(tmp_path, monkeypatch, f"{pauses.format(folder=tmp_path)}\n{waits}")
    first = LocalEvaluations(tmp_path / "state")
    first.start("/out/a", REQUEST)
    evaluations = LocalEvaluations(tmp_path / "state") if is_adopted else first
    assert evaluations.adopt("/out/a") is None
    evaluations.pause_one("/out/a")
    (ended,) = wait(evaluations)
    assert (ended.exit_code, ended.pause) == (None if is_adopted else 75, 0.0)
    assert [*(tmp_path / "state").iterdir()] == []
    assert len(wait(first)) == is_adopted


def test_what_the_caller_could_not_record_is_told_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(tmp_path, monkeypatch, "exit 0")
    evaluations = LocalEvaluations(tmp_path / "state")
    evaluations.start("/out/a", REQUEST)
    process = evaluations._running["/out/a"]
    assert process is not None
    process.wait(60)
    for _ in evaluations.ended():
        break
    assert len([*evaluations.ended()]) == 1
    assert [*evaluations.ended()] == []


def test_a_log_that_a_rule_fills_is_emptied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "_LONGEST_LOG", 10)
    program(tmp_path, monkeypatch, "echo a long text >&2; read -r line <&3; exec sleep 60")
    evaluations = LocalEvaluations(tmp_path / "state")
    evaluations.start("/out/a", REQUEST)
    (log,) = (tmp_path / "state").glob("*.log")
    deadline = time.monotonic() + 60
    while log.stat().st_size < 20 and time.monotonic() < deadline:
        SystemClock().sleep(0.01)
    assert [*evaluations.ended()] == []
    assert log.stat().st_size == 0
    evaluations.terminate()
    assert os.path.lexists(log)
    assert len(wait(evaluations)) == 1
