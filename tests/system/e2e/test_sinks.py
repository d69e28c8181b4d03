"""Sinks from the command line: verdicts do not wait for them, and what they lack is said."""

import json
import re
import threading
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import aws_server
import evaluating
import http_places
import numpy as np
import pytest
import rawtrial
from click.testing import CliRunner, Result
from http_places import Answer, EventBus

from rule_runner.cli import main
from rule_runner.notify.delivery import DEADLINE_S

STEPS = {step: {"g": np.float32([1.0 if step < 3 else 1e-9])} for step in range(6)}
TOLD = [("InProgress", "InProgress"), ("Completed", "InProgress"), ("Completed", "IssuesFound")]


@pytest.fixture(autouse=True)
def _of_aws(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in aws_server.ENVIRONMENT.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def trial(tmp_path: Path) -> Path:
    return rawtrial.write(tmp_path / "trial", evaluating.trial(STEPS, {"gradients": ["g"]}))


def evaluate(trial: Path, *arguments: str) -> Result:
    options = ["--trial", str(trial), "--rule", "VanishingGradient"]
    output = ["--output", str(trial.parent / "out")]
    return CliRunner().invoke(main, ["evaluate", *options, *output, *arguments])


def statuses(details: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [
        (one["TrainingJobStatus"], one["DebugRuleEvaluationStatuses"][0]["RuleEvaluationStatus"])
        for one in details
    ]


def sentences(result: Result) -> list[str]:
    return [line for line in result.stderr.splitlines() if not re.match("[0-9]{4}-", line)]  # a log


def test_eventbridge_gets_what_the_outbox_holds(
    trial: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bus = EventBus()
    with http_places.serving(bus.answer) as place:
        monkeypatch.setenv("AWS_ENDPOINT_URL", place.url)
        result = evaluate(trial, "--sink", "eventbridge:b", "--event-source", "io.example")
    assert (result.exit_code, sentences(result)) == (0, [])
    details = [json.loads(entry["Detail"]) for entry in bus.taken]
    assert statuses(details) == TOLD
    assert {(one["Source"], one["EventBusName"]) for one in bus.taken} == {("io.example", "b")}
    assert [one["ChangedRules"] for one in details] == [
        ["VanishingGradient"],
        [],
        ["VanishingGradient"],
    ]
    rule = details[-1]["DebugRuleEvaluationStatuses"][0]
    assert (rule["StepsEvaluated"], rule["LastStep"]) == (4, 3)
    lines = evaluating.json_lines(trial.parent / "out" / "events.jsonl")
    assert details == [event["detail"] for event in lines]


def test_sinks_that_fail_cost_no_verdict_and_are_made_up_for(
    trial: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    with http_places.serving(lambda _: Answer(401)) as place:
        hook = f"webhook:{place.url}/secret"
        result = evaluate(trial, "--sink", "eventbridge", "--sink", hook, "--sink-deadline", "0.3")
    assert result.exit_code == 0
    assert result.stdout.startswith("VanishingGradient: IssuesFound at step 3")
    out = trial.parent / "out"
    bridge, web = sentences(result)
    assert bridge.startswith("Sink 'eventbridge' did not take 3 events: ")
    assert bridge.endswith(f"rule-runner events replay '{out}' --sink 'eventbridge'.")
    assert web.startswith(f"Sink 'webhook:{place.url}/...' did not take 3 events: Webhook ")
    assert "secret" not in result.stderr
    bus = EventBus()
    with http_places.serving(bus.answer) as place:
        monkeypatch.setenv("AWS_ENDPOINT_URL", place.url)
        again = ["events", "replay", str(out), "--sink", "eventbridge"]
        for _ in range(2):
            assert CliRunner().invoke(main, again).exit_code == 0
    assert statuses([json.loads(entry["Detail"]) for entry in bus.taken]) == TOLD


def test_metrics_may_go_to_stdout(trial: Path) -> None:
    result = evaluate(trial, "--sink", "emf:My/Space")
    lines = [json.loads(line) for line in result.stdout.splitlines() if line.startswith("{")]
    assert [one["IssuesFound"] for one in lines] == [0, 0, 1]
    assert lines[-1]["StepsEvaluated"] == 4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--sink", "evntbridge"], "Error: Unknown sink 'evntbridge'. Did you mean 'eventbridge'?"),
        (
            ["--event-source", "aws.sagemaker"],
            "Error: Event source must not be empty or begin with 'aws.', got 'aws.sagemaker'.",
        ),
        (["--event-source", "x" * 257], "Error: Event source must have at most 256 characters"),
        (["--sink", "webhook:ftp://x/"], "Error: Webhook address must begin with https://"),
        (
            ["--sink", "emf", "--format", "json"],
            "Error: --sink emf and --format json both write to stdout. Choose one.",
        ),
    ],
)
def test_what_is_wrong_is_reported_before_anything_runs(
    trial: Path, arguments: list[str], message: str
) -> None:
    result = evaluate(trial, *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(message)
    assert not (trial.parent / "out").exists()


def test_a_file_may_take_events_beside_json(trial: Path, tmp_path: Path) -> None:
    result = evaluate(trial, "--sink", f"file:{tmp_path / 'told'}", "--format", "json")
    assert json.loads(result.stdout)["rules"][0]["status"] == "IssuesFound"
    details = [event["detail"] for event in evaluating.json_lines(tmp_path / "told")]
    assert statuses(details) == TOLD


def test_a_webhook_that_hangs_delays_nothing(trial: Path) -> None:
    let_go = threading.Event()

    def hang(_: BaseHTTPRequestHandler) -> None:
        let_go.wait()

    with http_places.serving(lambda _: Answer(act=hang)) as place:
        result = evaluate(trial, "--sink", f"webhook:{place.url}", "--sink-deadline", "0.2")
        (sentence,) = sentences(result)
        let_go.set()
    assert (result.exit_code, result.stdout.splitlines()[0]) == (
        0,
        "VanishingGradient: IssuesFound at step 3 (warning)",
    )
    assert "did not take 3 events: it did not answer in time. Send them with" in sentence


def test_there_is_one_deadline() -> None:
    (evaluating_,) = (
        one for one in main.commands["evaluate"].params if one.name == "sink_deadline"
    )
    replays: Any = main.commands["events"]
    (replaying,) = (one for one in replays.commands["replay"].params if one.name == "sink_deadline")
    assert (evaluating_.default, replaying.default) == (DEADLINE_S, DEADLINE_S)
