"""Evaluations in S3 as a user meets them: trials, rules and outputs, kills, and what is denied."""

import json
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import evaluating
import faulty_s3
import numpy as np
import pytest
import s3_objects
from click.testing import CliRunner, Result

from rule_runner.cli import main
from rule_runner.results.schema import EVALUATION_SCHEMA

jsonschema = pytest.importorskip("jsonschema")
ROOT = Path(__file__).parents[3]
TRIAL, OUT, RULE = "s3://bucket/runs/mnist", "s3://bucket/out", "s3://bucket/rules/mine.py"
OURS = ("events.jsonl", "findings.jsonl", "report.html", "results.json")
# Finds all losses above 1; at the step in file `at` it waits until S3 has its findings, and dies.
SOURCE = """
import os, signal
from pathlib import Path
from smdebug.rules import Rule
from rule_core.storage.uri import open_store

class Mine(Rule):
    def __init__(self, base_trial, at="", other_trials=None):
        super().__init__(base_trial, other_trials=other_trials)
        self.at = Path(at or "none")

    def invoke_at_step(self, step):
        value = float(self.base_trial.tensor("loss").value(step)[0])
        for other in self.other_trials or ():
            value = max(value, float(other.tensor("loss").value(step)[0]))
        if self.at.exists() and step == int(self.at.read_text()):
            store = open_store("s3://bucket/out")
            keys = set()
            while "findings.jsonl" not in keys or b"3" not in bytes(store.read("findings.jsonl")):
                keys = {*store.list_keys("findings")}
            os.kill(os.getpid(), signal.SIGKILL)
        return self.found(step, tensor="loss", measured=value, limit=1.0) if value > 1 else False
"""


@pytest.fixture
def s3(aws_endpoint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return an S3 that has an ended trial, of losses 0 to 5, and a rule."""
    monkeypatch.setattr(logging.getLogger("werkzeug"), "disabled", True)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "state" / "tmp").mkdir(parents=True)
    monkeypatch.setenv("TMPDIR", str(tmp_path / "state" / "tmp"))  # of processes
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", aws_endpoint)  # to be put back, whatever it becomes
    monkeypatch.chdir(tmp_path)
    s3_objects.make_bucket(aws_endpoint)
    losses = {step: {"loss": np.float32([step])} for step in range(6)}
    files = evaluating.trial(losses, {"losses": ["loss"]})
    s3_objects.put(aws_endpoint, "runs/mnist/", files)
    s3_objects.put(aws_endpoint, "rules/", {"mine.py": SOURCE.encode()})
    return aws_endpoint


@pytest.fixture
def faulty(s3: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[faulty_s3.FaultyS3]:
    with faulty_s3.serving(s3) as server:
        monkeypatch.setenv("AWS_ENDPOINT_URL_S3", server.endpoint)
        yield server


def call(*arguments: object) -> Result:
    return CliRunner().invoke(main, [*map(str, arguments)])


def evaluate(*arguments: object, output: str = OUT) -> Result:
    return call("evaluate", "--trial", TRIAL, "--output", output, "--end-grace", "0", *arguments)


def process(
    *arguments: object, environment: dict[str, str] | None = None
) -> "subprocess.CompletedProcess[str]":
    """Run the command itself."""
    return subprocess.run(
        [sys.executable, "-m", "rule_runner", *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": str(ROOT), **(environment or {})},
        capture_output=True,
        text=True,
        check=False,
    )


def lines(s3: str, key: str) -> list[dict[str, Any]]:
    text = s3_objects.content(s3, f"out/{key}")[""]
    return [json.loads(line) for line in text.splitlines()]


def result_of(s3: str, name: str | None = None) -> dict[str, Any]:
    """Return the result of a rule, by default the first."""
    found: dict[str, Any] = json.loads(s3_objects.content(s3, "out/results.json")[""])
    jsonschema.validate(found, json.loads(EVALUATION_SCHEMA.read_text()))
    by_name: dict[str, dict[str, Any]] = {one["configuration_name"]: one for one in found["rules"]}
    return by_name[name or next(iter(by_name))]


def test_trial_other_trial_rule_and_output_are_in_s3(
    s3: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AWS_ENDPOINT_URL")
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://127.0.0.1:9")
    command = ["evaluate", "--trial", f"{TRIAL}/", "--other-trial", TRIAL, "--source", RULE]
    command += ["--output", OUT, "--endpoint-url", s3, "--rule-timeout", "60"]
    done = process(*command)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "Mine: IssuesFound at step 2",
        "  judged 3 of 6 steps (0 to 2)",
        "  The condition is met for loss at step 2. (measured 2, limit 1)",
        f"Results: {OUT}",
        f"Report: {OUT}/report.html",
    ]
    before = s3_objects.content(s3, "out/")
    assert set(before) == set(OURS)
    found = result_of(s3)
    assert (found["trial"], found["source"]["location"]) == (TRIAL, RULE)
    assert [one.name for one in tmp_path.iterdir()] == ["state"]
    assert list((tmp_path / "state" / "tmp").iterdir()) == []
    again = process(*command)
    assert (again.returncode, again.stdout) == (0, done.stdout)
    assert again.stderr == (
        f"Output folder '{OUT}' holds this evaluation, which ended at {found['ended_at']}: "
        "nothing was judged again. Use --overwrite to evaluate it again.\n"
    )
    after = s3_objects.content(s3, "out/")
    assert set(after) == set(before)
    assert all(after[key] == before[key] for key in OURS if key != "report.html")


@pytest.mark.parametrize("machine", ["state", "another machine's state"])
def test_kill_9_and_restart(s3: str, tmp_path: Path, machine: str) -> None:
    at = tmp_path / "at"
    at.write_text("4")
    command = ["evaluate", "--trial", TRIAL, "--source", RULE, "-p", f"at={at}", "--keep-going"]
    command += ["--output", OUT, "--end-grace", "0"]
    killed = process(*command)
    assert killed.returncode == -signal.SIGKILL
    assert [one["step"] for one in lines(s3, "findings.jsonl")] == [2, 3]
    assert (begun := result_of(s3))["ended_at"] is None
    told = lines(s3, "events.jsonl")
    at.unlink()
    other = process(*[word for word in command if word != "--keep-going"])
    assert (other.returncode, "holds another evaluation" in other.stderr) == (73, True)
    done = process(*command, environment={"XDG_STATE_HOME": str(tmp_path / machine)})
    assert (done.returncode, done.stderr) == (0, "")
    assert [one["step"] for one in lines(s3, "findings.jsonl")] == [2, 3, 4, 5]
    events = lines(s3, "events.jsonl")
    assert events[: len(told)] == told
    sequence = [one["detail"]["EventSequence"] for one in events]
    assert sequence == list(range(1, len(events) + 1))
    found = result_of(s3)
    assert (found["outcome"], found["coverage"]["judged"]) == ("IssuesFound", 6)
    assert {one["detail"]["RunId"] for one in events} == {begun["run_id"]} == {found["run_id"]}


def test_several_rules_have_one_folder_in_s3(s3: str) -> None:
    done = evaluate("--rule", "a=ExplodingTensor", "--source", f"b={RULE}", "--format", "json")
    assert (done.exit_code, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    jsonschema.validate(found, json.loads(EVALUATION_SCHEMA.read_text()))
    assert found["trial"]["path"] == TRIAL
    assert [rule["outcome"] for rule in found["rules"]] == ["NoIssuesFound", "IssuesFound"]
    assert result_of(s3, "b")["evidence"] == found["rules"][1]["evidence"]
    assert set(s3_objects.content(s3, "out/")) == {*OURS, "measurements.json"}


def test_what_was_there_is_replaced_if_asked(s3: str) -> None:
    assert evaluate("--source", RULE).exit_code == 0
    assert evaluate("--rule", "ExplodingTensor").exit_code == 73
    done = evaluate("--rule", "ExplodingTensor", "--overwrite")
    assert (done.exit_code, done.stderr) == (0, "")
    assert result_of(s3)["rule"] == "ExplodingTensor"
    assert "findings.jsonl" not in s3_objects.content(s3, "out/")


def test_a_local_output_is_named_like_the_trial(s3: str) -> None:
    del s3
    done = call("evaluate", "--trial", TRIAL, "--rule", "ExplodingTensor")
    assert done.exit_code == 0
    (folder,) = Path("rule-output").glob("[!.]*")
    assert folder.name.startswith("mnist-2")
    assert f"Results: {Path('rule-output') / folder.name}\n" in done.stdout


def denies(verb: str) -> faulty_s3.Fault:
    """Return what denies the requests of one kind."""
    denied = faulty_s3.says(403, "AccessDenied")

    def fault(handler: faulty_s3.Handler) -> None:
        (denied if handler.command == verb else faulty_s3.passes)(handler)

    return fault


def test_a_verdict_that_cannot_be_uploaded_lies_here(
    s3: str, faulty: faulty_s3.FaultyS3, tmp_path: Path
) -> None:
    faulty.due = [denies("PUT")] * 100
    done = evaluate("--source", RULE)
    (folder,) = tmp_path.glob("state/rule-runner/outputs/*/output")
    assert done.exit_code == 73
    assert done.stdout.splitlines()[0] == "Mine: IssuesFound at step 2"
    assert f"Results: {folder}\n" in done.stdout
    assert done.stderr.splitlines()[-1] == (
        "Cannot write 's3://bucket/out/events.jsonl': AccessDenied. The role needs "
        f"s3:PutObject on bucket/out/*. The results are in '{folder}': start the same command "
        "again to have them uploaded."
    )
    assert s3_objects.content(s3, "out/") == {}
    faulty.due = []
    again = evaluate("--source", RULE)
    assert (again.exit_code, "nothing was judged again" in again.stderr) == (0, True)
    assert again.stdout.startswith(done.stdout.splitlines()[0])
    assert set(s3_objects.content(s3, "out/")) == set(OURS)


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (
            ["--output", "s3://nowhere/x"],
            73,
            "Output folder 's3://nowhere/x' cannot be used: bucket 'nowhere' does not exist. ",
        ),
        (["--output", "s3://x/y"], 2, "Error: A bucket's name must be 3 to 255 letters, "),
        (["--trial", "s3://nowhere/x"], 1, "Error: Trial 's3://nowhere/x' cannot be read: "),
        (
            ["--other-trial", "s3://nowhere/x"],
            1,
            "Error: Trial 's3://nowhere/x' cannot be read: ",
        ),
        (["--source", "s3://bucket/x.py"], 1, "Error: Rule file s3://bucket/x.py does not "),
        (
            ["--endpoint-url", "localhost:9000"],
            2,
            (
                "Error: Invalid value for '--endpoint-url': an endpoint must be http://host or "
                "https://host, got 'localhost:9000'."
            ),
        ),
    ],
)
def test_what_cannot_be_used_is_one_sentence(
    s3: str, arguments: list[str], code: int, sentence: str
) -> None:
    given = {"--trial": TRIAL, "--output": OUT, "--source": RULE} | dict([arguments])
    done = call("evaluate", *(word for pair in given.items() for word in pair))
    assert (done.exit_code, done.stdout) == (code, "")
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr
    assert all(len(content) == 0 for key, content in s3_objects.content(s3, "x").items())


@pytest.mark.parametrize(
    "url", ["", "ftp://host", "http://", "http://a b", "http://host:x", "https://me:secret@host"]
)
def test_an_endpoint_that_is_none(s3: str, url: str) -> None:
    del s3
    for command in (["trial", "show", TRIAL], ["doctor", TRIAL], ["report", TRIAL]):
        done = call(*command, "--endpoint-url", url)
        assert (done.exit_code, "Invalid value for '--endpoint-url'" in done.stderr) == (2, True)


def test_credentials_that_are_unknown(faulty: faulty_s3.FaultyS3) -> None:
    faulty.due = [faulty_s3.says(403, "InvalidAccessKeyId")] * 9
    done = evaluate("--rule", "ExplodingTensor")
    assert (done.exit_code, done.stdout) == (73, "")
    assert "InvalidAccessKeyId: the AWS access key is unknown." in done.stderr
    done = evaluate("--rule", "ExplodingTensor", output="local")
    assert (done.exit_code, done.stderr.count("\n")) == (1, 1)
    assert "InvalidAccessKeyId: the AWS access key is unknown." in done.stderr


def test_a_trial_in_s3_is_shown(s3: str) -> None:
    del s3
    done = process("trial", "show", f"{TRIAL}/", "--format", "json")
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    assert (found["name"], found["path"], found["ended"]) == ("mnist", TRIAL, True)
    assert [tensor["name"] for tensor in found["tensors"]] == ["loss"]


def test_doctor_and_report_of_addresses(s3: str, tmp_path: Path) -> None:
    done = process("doctor", TRIAL)
    assert done.returncode == 0
    assert "Credentials were found, and bucket 'bucket' can be listed." in done.stdout
    assert evaluate("--source", RULE).exit_code == 0
    made = process("report", OUT, "--output", f"{OUT}/pages/", "--endpoint-url", s3)
    assert (made.returncode, made.stdout, made.stderr) == (
        0,
        f"Report: {OUT}/pages/report.html\n",
        "",
    )
    assert b"<title>mnist</title>" in s3_objects.content(s3, "out/pages/")["report.html"]
    assert not (tmp_path / "report.html").exists()


def test_a_stop_file_is_on_this_machine(
    s3: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    del s3
    monkeypatch.setenv("SAGEMAKER_ENV_RULE_STOP_SIGNAL_FILE", "signals/stop")
    done = evaluate("--rule", "ExplodingTensor", output="local")
    assert (done.exit_code, done.stderr) == (
        2,
        (
            "Error: Environment variable SAGEMAKER_ENV_RULE_STOP_SIGNAL_FILE must be an absolute "
            f"path on this machine, since trial '{TRIAL}' is in S3, got 'signals/stop'.\n"
        ),
    )
    (tmp_path / "stop").write_text("0")
    monkeypatch.setenv("SAGEMAKER_ENV_RULE_STOP_SIGNAL_FILE", str(tmp_path / "stop"))
    done = evaluate("--rule", "ExplodingTensor", output="local")
    assert (done.exit_code, "Stopped by stop file" in done.stdout) == (124, True)


def test_sigterm_uploads_what_it_came_to(s3: str) -> None:
    s3_objects.client(s3).delete_object(Bucket="bucket", Key=f"runs/mnist/{evaluating.END}")
    command = [sys.executable, "-m", "rule_runner", "evaluate", "--trial", TRIAL, "--output", OUT]
    running = subprocess.Popen(
        [*command, "--rule", "ExplodingTensor"],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    while not s3_objects.content(s3, "out/results.json"):
        assert running.poll() is None
    running.send_signal(signal.SIGTERM)
    stdout, _ = running.communicate(timeout=30)
    assert (running.returncode, stdout.splitlines()[0]) == (143, "ExplodingTensor: Stopped")
    assert result_of(s3)["status_details"].startswith("Stopped by signal SIGTERM.")
    assert {*OURS} - {"findings.jsonl"} <= set(s3_objects.content(s3, "out/"))


def test_what_stays_on_this_machine_refuses_addresses(s3: str) -> None:
    assert sorted(s3_objects.content(s3, "rules/")) == ["mine.py"]
    done = call("demo", "--output", OUT)
    sentence = "Error: --output of demo must be a folder of this machine, got 's3:/bucket/out'.\n"
    assert (done.exit_code, done.stdout, done.stderr) == (2, "", sentence)
