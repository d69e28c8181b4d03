"""events replay and show: what sinks lack, after whatever happened to the evaluation."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from told import WAY, news, told

from rule_runner.cli import main
from rule_runner.commands.events import outbox_of
from rule_runner.notify.event import RuleState
from rule_runner.notify.outbox import Outbox
from rule_runner.results.cursors import Cursor
from rule_runner.results.durable_files import FolderLock
from rule_runner.results.status import RuleStatus


@pytest.fixture(autouse=True)
def _quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RULE_RUNNER_SINKS", raising=False)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return the output folder of an evaluation of one rule."""
    path = tmp_path / "out"
    with Outbox(path) as outbox:
        for status in WAY:
            outbox.publish(news(status, outbox))
    return path


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["events", *map(str, arguments)])


def sequences(path: Path) -> list[int]:
    found: list[Any] = [json.loads(line) for line in path.read_text().splitlines()]
    return [event["detail"]["EventSequence"] for event in found]


def test_a_sink_gets_what_it_lacks(folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "events"
    result = run("replay", folder, "--sink", f"file:{file}")
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == f"Sink 'file:{file}' took 3 events.\n"
    assert sequences(file) == [1, 2, 3]
    assert run("replay", folder, "--sink", f"file:{file}").exit_code == 0
    assert sequences(file) == [1, 2, 3]
    assert run("replay", folder, "--sink", f"file:{file}", "--all").exit_code == 0
    assert sequences(file) == [1, 2, 3] * 2


def test_events_may_go_to_stdout(folder: Path) -> None:
    result = run("replay", folder, "--sink", "stdout")
    assert result.stdout == (folder / "events.jsonl").read_text()


def test_the_environment_may_name_the_sinks(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RULE_RUNNER_SINKS", f"file:{tmp_path / 'a'}")
    assert run("replay", folder).exit_code == 0
    assert sequences(tmp_path / "a") == [1, 2, 3]


def test_what_cannot_be_sent_is_reported_and_is_exit_1(folder: Path, tmp_path: Path) -> None:
    missing = tmp_path / "missing" / "file"
    result = run("replay", folder, "--sink", f"file:{missing}")
    summary, undelivered = filter(re.compile("Sink ").match, result.stderr.splitlines())
    assert (result.exit_code, summary) == (1, f"Sink 'file:{missing}' took 0 events.")
    assert undelivered.startswith(f"Sink 'file:{missing}' did not take 3 events: Cannot write ")
    assert undelivered.endswith(f"rule-runner events replay '{folder}' --sink 'file:{missing}'.")


def test_an_evaluation_that_runs_is_not_disturbed(folder: Path, tmp_path: Path) -> None:
    with FolderLock(folder):
        result = run("replay", folder, "--sink", f"file:{tmp_path / 'a'}")
    assert result.exit_code == 73
    assert "is in use by process" in result.stderr
    assert not (tmp_path / "a").exists()


def test_without_a_sink_the_remedy_is_reported(folder: Path) -> None:
    result = run("replay", folder)
    assert result.exit_code == 2
    expected = (
        "Error: No sink was given: give --sink as for the evaluation, or set RULE_RUNNER_SINKS in "
        "the environment.\n"
    )
    assert result.stderr == expected


@pytest.mark.parametrize("command", ["replay", "show"])
def test_a_folder_without_events_is_named_and_left_alone(tmp_path: Path, command: str) -> None:
    more = ["--sink", "stdout"] if command == "replay" else []
    result = run(command, tmp_path / "missing", *more)
    expected = (
        f"Folder '{tmp_path / 'missing'}' has no events. Give the output folder of an evaluation.\n"
    )
    assert (result.exit_code, result.stderr) == (73, expected)
    assert list(tmp_path.iterdir()) == []


def test_of_several_rules_the_folder_with_the_cursors_is_taken(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        with Outbox(tmp_path / name) as outbox:
            outbox.publish(told(sequence=1))
    with Outbox(tmp_path / "c") as outbox:
        outbox.publish(news(WAY[0], outbox))
    assert outbox_of(tmp_path) == tmp_path / "c"  # which has the most
    Cursor(tmp_path / "b", "stdout").write(0)
    assert outbox_of(tmp_path) == tmp_path / "b"
    assert outbox_of(tmp_path / "a") == tmp_path / "a"


def test_events_are_shown_a_line_each(tmp_path: Path) -> None:
    rules = [RuleState(f"r{at}", RuleStatus.IN_PROGRESS) for at in range(7)]
    with Outbox(tmp_path) as outbox:
        outbox.publish(told(*rules, sequence=1, changed=[f"r{at}" for at in range(7)]))
        outbox.publish(told(*rules, sequence=2, changed=[], ended=True))
        outbox.publish(told(sequence=3))
    result = run("show", tmp_path)
    assert result.stdout.splitlines() == [
        (
            "   1  2026-03-01T12:01:30Z  r0 InProgress, r1 InProgress, r2 InProgress, "
            "r3 InProgress, r4 InProgress and 2 more"
        ),
        "   2  2026-03-01T12:01:30Z  training Completed",
        "   3  2026-03-01T12:01:30Z  LossCheck IssuesFound",
    ]


def test_events_are_shown_as_json(folder: Path) -> None:
    result = run("show", folder, "--format", "json")
    assert result.stdout == (folder / "events.jsonl").read_text()
