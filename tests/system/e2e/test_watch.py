"""rule-runner watch as a user meets it: local folders and S3, job files, exit codes, signals."""

import json
import logging
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import http_places
import pytest
import s3_objects
import vanishing
from click.testing import CliRunner, Result

from rule_core.clock import SystemClock
from rule_core.storage import aws
from rule_runner.cli import main
from rule_runner.index.leases import holder
from rule_runner.index.reader import IndexReader

ROOT = Path(__file__).parents[3]


def watch(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["watch", *arguments])


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.smoke
def test_once_judges_by_patterns_and_repeats_its_exit_code(here: Path) -> None:
    vanishing.write_trial(here / "runs" / "mine")
    vanishing.write_trial(here / "runs" / "toy")
    (here / "fleet.yaml").write_text(
        "roots: [runs]\nquiet_after: 1m\njudge:\n  - {trials: '*/toy', ignore: true}\n"
        "  - {job: job.json}\n"
    )
    rule = {"RuleConfigurationName": "mine"}
    rule["RuleParameters"] = {"rule_to_invoke": "VanishingGradient"}  # type: ignore[assignment]
    (here / "job.json").write_text(json.dumps({"DebugRuleConfigurations": [rule]}))
    for fail_on, code in (("warning", 10), ("error", 0)):
        done = watch("--config", "fleet.yaml", "--once", "--fail-on", fail_on)
        assert (done.exit_code, done.stdout) == (code, "2 trials: 1 IssuesFound, 1 ignored\n")
    with IndexReader(here / "rule-output" / "watch" / "watch.sqlite") as reader:
        (trial,) = reader.trials()[:1]
        assert [rule.name for rule in reader.rules_of(trial.id)] == ["mine"]
    assert (Path(trial.output) / "report.html").is_file()
    done = watch("--config", "fleet.yaml", "--once", "--rebuild")
    assert (done.exit_code, done.stdout) == (0, "2 trials: 1 IssuesFound, 1 ignored\n")


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        ([], 2, "No root was given: give a folder or s3:// address with trials, or --config"),
        (["runs", "--fail-on", "error"], 2, "--fail-on-issues require --once."),
        (["runs", "--config", "missing.yaml"], 1, "Configuration missing.yaml does not exist."),
        (["runs", "--database", "s3://bucket/db"], 2, "--database must be a folder of this mach"),
        (["runs", "--config", "stdout.yaml"], 2, "Sink 'stdout' cannot be used by watch"),
        (["runs", "--config", "rule.yaml"], 1, "Did you mean 'LossSpike'?"),
        (["runs", "--config", "retention.yaml"], 1, "Field 'retention' must be a number of eval"),
        (["runs", "--config", "s3.yaml"], 1, "In S3, use lifecycle rules."),
        (["runs", "--config", "job.yaml"], 1, "missing.json does not exist."),
        (["runs", "--once"], 1, "Trial '"),
        (["file", "--database", "file/db"], 73, "Cannot write '"),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(
    here: Path, arguments: list[str], code: int, sentence: str
) -> None:
    (here / "file").touch()
    (here / "stdout.yaml").write_text("sinks: [stdout]")
    (here / "rule.yaml").write_text("judge: [{rules: [LossSpikes]}]")
    (here / "retention.yaml").write_text("retention: always")
    (here / "s3.yaml").write_text("{retention: 5, output: 's3://bucket/{trial}'}")
    (here / "job.yaml").write_text("judge: [{job: missing.json}]")
    done = watch(*arguments)
    assert done.exit_code == code
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr


def test_trials_and_outputs_in_s3(
    here: Path, aws_endpoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.getLogger("werkzeug"), "disabled", True)
    monkeypatch.setenv("XDG_STATE_HOME", str(here / "state"))
    s3 = s3_objects.make_bucket(aws_endpoint)
    trial = vanishing.write_trial(here / "mine")
    for path in sorted(path for path in trial.rglob("*") if path.is_file()):
        key = f"runs/mine/{path.relative_to(trial).as_posix()}"
        s3.put_object(Bucket="bucket", Key=key, Body=path.read_bytes())
    (here / "fleet.yaml").write_text(
        "roots: ['s3://bucket/ru*']\noutput: s3://bucket/out/{trial}\n"
        "judge: [{rules: [VanishingGradient]}]\n"
    )
    for _ in range(2):
        done = watch("--config", "fleet.yaml", "--once")
        assert (done.exit_code, done.stdout) == (0, "1 trial: 1 IssuesFound\n"), done.stderr
    keys = [item["Key"] for item in s3.list_objects_v2(Bucket="bucket")["Contents"]]
    assert sum(key.endswith("results.json") for key in keys) == 1
    rebuilt = watch("--config", "fleet.yaml", "--once", "--rebuild")
    assert rebuilt.stdout == "1 trial: 1 IssuesFound\n"
    assert "trial_judged" in rebuilt.stderr


def test_a_queue_of_a_bucket_says_where_to_look(here: Path, aws_endpoint: str) -> None:
    s3 = s3_objects.make_bucket(aws_endpoint)
    queue = aws.client("sqs").create_queue(QueueName="runs")["QueueUrl"]
    events = {
        "QueueArn": "arn:aws:sqs:us-east-1:123456789012:runs",
        "Events": ["s3:ObjectCreated:*"],
    }
    s3.put_bucket_notification_configuration(
        Bucket="bucket", NotificationConfiguration={"QueueConfigurations": [events]}
    )
    (here / "fleet.yaml").write_text(
        f"roots: ['s3://bucket/runs']\nlook_every: 1h\nqueue: {queue}\n"
        "judge: [{trials: '*/never', rules: [VanishingGradient]}]\n"
    )
    command = [sys.executable, "-m", "rule_runner", "watch", "--config", "fleet.yaml"]
    environment: dict[str, Any] = os.environ | {"PYTHONPATH": str(ROOT)}
    clock = SystemClock()
    deadline = clock.monotonic() + 60.0
    with (here / "log").open("wb") as log:
        process = subprocess.Popen(command, env=environment, stderr=log)
    while "root_unavailable" not in (here / "log").read_text() and clock.monotonic() < deadline:
        clock.sleep(0.1)
    trial = vanishing.write_trial(here / "mine")
    for path in sorted(path for path in trial.rglob("*") if path.is_file()):
        key = f"runs/mine/{path.relative_to(trial).as_posix()}"
        s3.put_object(Bucket="bucket", Key=key, Body=path.read_bytes())
    while "trial_ignored" not in (here / "log").read_text() and clock.monotonic() < deadline:
        clock.sleep(0.1)
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 143
    assert "trial=s3://bucket/runs/mine" in (here / "log").read_text()


def test_sigterm_stops_evaluations_and_the_next_controller_continues(here: Path) -> None:
    trial = vanishing.write_trial(here / "runs" / "mine")
    (trial / "training_job_end.ts").unlink()
    command = [sys.executable, "-m", "rule_runner", "watch", "runs"]
    environment: dict[str, Any] = os.environ | {"PYTHONPATH": str(ROOT)}
    with (here / "log").open("wb") as log:
        process = subprocess.Popen(command, env=environment, stderr=log)
    state = here / "rule-output" / "watch"
    clock = SystemClock()
    deadline = clock.monotonic() + 60.0
    while "issues_found" not in (here / "log").read_text() and clock.monotonic() < deadline:
        clock.sleep(0.1)
    (lease,) = (state / "watch.sqlite-evaluations").glob("*.lock")
    assert holder(lease) is not None
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 143
    assert holder(lease) is None
    with IndexReader(state / "watch.sqlite") as reader:
        (record,) = reader.trials()
    assert (record.state, record.restarts) == ("queued", 0)
    (trial / "training_job_end.ts").touch()
    done = watch("runs", "--once")
    assert done.stdout == "1 trial: 1 IssuesFound\n"


# Apprise imports it in Python 3.11 and 3.12.
@pytest.mark.filterwarnings("ignore:'imghdr' is deprecated:DeprecationWarning")
def test_an_issue_is_told_once_whatever_is_judged_again(here: Path) -> None:
    vanishing.write_trial(here / "runs" / "mine")
    with http_places.serving() as place:
        sink = place.url.replace("http:", "apprise:json:")
        (here / "fleet.yaml").write_text(
            "roots: [runs]\njudge: [{rules: [VanishingGradient]}]\n"
            f"public_url: https://rules.example.org/\nalerts: {{sinks: ['{sink}']}}\n"
        )
        for arguments in ((), ("--rebuild",)):
            assert watch("--config", "fleet.yaml", "--once", *arguments).exit_code == 0
    (request,) = place.requests
    body = json.loads(request.body)
    assert body["title"] == "mine: VanishingGradient found issues (warning)"
    assert "https://rules.example.org/trials/1" in body["message"].splitlines()
