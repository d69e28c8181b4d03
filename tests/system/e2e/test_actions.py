"""Actions from the command line and in container mode, against endpoints on this machine."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import acting
import pytest
import rawtrial
import saved
import timed
import training_jobs_server
from training_jobs_server import TrainingJobs

from builtin_rules.tensors.losses.stalled_training_rule import ASKED
from rule_runner.notify.webhook import SECRET

ADDRESS, NUMBER = "First.Last@mail.example.com", "+15551234"
MESSAGES = json.dumps([{"name": "email", "endpoint": ADDRESS}, {"name": "sms", "endpoint": NUMBER}])


@pytest.fixture
def held(aws_endpoint: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[TrainingJobs]:
    del aws_endpoint
    with training_jobs_server.serving(TrainingJobs(my_1="InProgress")) as found:
        monkeypatch.setenv("AWS_ENDPOINT_URL_SAGEMAKER", found.url)
        yield found


@pytest.mark.parametrize("further", [[], ["--rule-timeout", "60"]], ids=["here", "child-process"])
def test_all_ways_to_ask_for_actions(
    tmp_path: Path, held: TrainingJobs, further: list[str]
) -> None:
    text = json.dumps([{"name": "stoptraining", "training_job_prefix": "my"}])
    arguments = [*acting.prepared(tmp_path), "-p", f"action_json={text}"]
    found = acting.run([*arguments, "--action", f"Above=email:{ADDRESS}", *further])
    assert (found.returncode, held.stopped) == (0, ["my-1"])
    assert acting.actions(tmp_path) == [
        ("stoptraining", "my-1", "done"),
        ("email", "F***@mail.example.com", "done"),
    ]


def test_mode_observe_and_dry_run_stop_nothing(tmp_path: Path, held: TrainingJobs) -> None:
    arguments = [*acting.prepared(tmp_path), "--action", "stop-training:my", "--overwrite"]
    assert acting.run([*arguments, "--mode", "observe"]).returncode == 0
    assert (acting.actions(tmp_path), held.asked) == ([], [])
    found = acting.run([*arguments, "--dry-run"])
    plan = "Training job 'my-1' would be stopped."
    assert (found.returncode, held.stopped, acting.result(tmp_path)["actions"][0]["detail"]) == (
        0,
        [],
        plan,
    )
    assert plan in found.stdout


def test_failure_changes_neither_verdict_nor_exit_code(tmp_path: Path, held: TrainingJobs) -> None:
    denied = (400, "AccessDeniedException", "User is not authorized.")
    held.faults = {"StopTrainingJob": [denied]}
    arguments = [*acting.prepared(tmp_path), "--action", "stop-training:my-1", "--fail-on-issues"]
    found = acting.run(arguments)
    sentence = (
        "sagemaker:StopTrainingJob failed: AccessDeniedException: User is not authorized. "
        "The role needs sagemaker:StopTrainingJob."
    )
    assert (found.returncode, acting.result(tmp_path)["status"]) == (10, "IssuesFound")
    (line,) = [line for line in found.stderr.splitlines() if "action_ended" in line]
    assert "[warning  ] action_ended" in line
    assert f"reason='{sentence}'" in line
    assert "state=failed" in line
    assert f"\n  action stoptraining (my-1): failed. {sentence}\n" in found.stdout


@pytest.mark.parametrize(
    ("option", "code", "said"),
    [
        (["-p", "action_json={stop"], 1, "Error: Actions must be JSON: Expecting property"),
        (["-p", 'action_json={"name": "command"}'], 1, "Error: Action 'command' is not accepted"),
        (["--action", "stop-training:"], 1, "Error: Rule 'Above' is to stop a training job"),
        (["--action", "sms:0155"], 2, "Error: Action 'sms' needs '+' and 1 to 15 digits"),
    ],
)
def test_what_is_no_action_is_reported_before_anything_runs(
    tmp_path: Path, option: list[str], code: int, said: str
) -> None:
    found = acting.run([*acting.prepared(tmp_path), *option])
    assert found.returncode == code
    assert found.stderr.startswith(said)
    assert not (tmp_path / "out").exists()


def test_a_webhook_gets_no_data_of_the_trial(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    received: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            received.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    monkeypatch.setenv(SECRET, "key")
    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    url = f"http://127.0.0.1:{server.server_port}/h1dden"
    found = acting.run([*acting.prepared(tmp_path), "--action", f"webhook:{url}", "-vv"])
    server.shutdown()
    thread.join()
    server.server_close()
    (body,) = received
    assert set(body) == {
        *("schema_version", "id", "rule", "configuration_name", "status", "step", "details"),
        "finding",
    }
    fields = {"step", "tensor", "worker", "measured", "limit", "note", "severity", "summary"}
    assert set(body["finding"]) == fields
    assert "h1dden" not in found.stderr + everything(tmp_path / "out")


def everything(folder: Path) -> str:
    """Return all that an evaluation wrote."""
    return "".join(path.read_text() for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("verbose", ["-v", "-vv"])
def test_no_endpoint_and_no_secret_is_written_anywhere(
    tmp_path: Path, aws_endpoint: str, monkeypatch: pytest.MonkeyPatch, verbose: str
) -> None:
    del aws_endpoint
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "h1dden-key")
    monkeypatch.setenv("AWS_SESSION_TOKEN", "h1dden-token")
    arguments = [*acting.prepared(tmp_path), verbose, "-p", f"action_json={MESSAGES}"]
    arguments += ["--action", "command:true h1dden-argument"]
    found = acting.run(arguments)
    assert [state for *_, state in acting.actions(tmp_path)] == ["done"] * 3
    written = found.stdout + found.stderr + everything(tmp_path / "out")
    for secret in (ADDRESS, ADDRESS.lower(), NUMBER, "5551234", "h1dden"):
        assert secret not in written
    assert "F***@mail.example.com" in written


def test_a_rule_container_stops_its_own_training_job(
    tmp_path: Path, held: TrainingJobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    held.jobs = {"my-1-2": "InProgress", "my-1": "InProgress"}
    acting.prepared(tmp_path)
    environment = {
        "RULE_RUNNER_ROOT": str(tmp_path / "ml"),
        "rule_to_invoke": "Above",
        "source_s3_uri": str(tmp_path / "above.py"),
        "action_json": '{\\"name\\": \\"stoptraining\\"}',
        "TRAINING_JOB_ARN": "arn:aws:sagemaker:us-east-1:123456789012:training-job/my-1",
    }
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    (tmp_path / "ml/processing/input").mkdir(parents=True)
    (tmp_path / "trial").rename(tmp_path / "ml/processing/input/tensors")
    found = acting.run([])
    assert (found.returncode, held.stopped) == (0, ["my-1"])
    written = saved.result(tmp_path / "ml/processing/output/rule")
    assert [(one["target"], one["state"]) for one in written["actions"]] == [("my-1", "done")]


def test_a_stalled_training_is_stopped(tmp_path: Path, held: TrainingJobs) -> None:
    trial = rawtrial.write(tmp_path / "trial", timed.files([{0: 0, 1: 1, 2: 9999}]))
    arguments = ["evaluate", "--trial", str(trial), "--rule", "StalledTrainingRule"]
    arguments += ["--output", str(tmp_path / "out"), "-p", "stop_training_on_fire=True"]
    unnamed = acting.run(arguments)
    assert (unnamed.returncode, held.asked) == (1, [])
    assert unnamed.stderr.startswith(
        "Error: Rule 'StalledTrainingRule' is to stop a training job, and its name is not"
    )
    assert acting.run([*arguments, "--training-job-name", "my-1"]).returncode == 0
    assert (held.stopped, acting.actions(tmp_path)) == (
        ["my-1"],
        [("stoptraining", "my-1", "done")],
    )
    (finding,) = acting.result(tmp_path)["evidence"]
    assert finding["note"] == ASKED
