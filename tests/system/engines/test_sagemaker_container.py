"""The image on a real engine, started as SageMaker starts a rule container."""

import json
import os
import re
import signal
import subprocess
import time
import uuid
from pathlib import Path
from typing import Any

import profiler_writer
import pytest
import vanishing
from profiler_writer import cpu, gpu

pytestmark = [
    pytest.mark.docker,
    pytest.mark.skipif(os.geteuid() != 0, reason="Only root makes folders that root alone writes."),
]
PREFIX = "arn:aws:sagemaker:eu-west-1:111122223333"
TRAINING_ARN = f"{PREFIX}:training-job/mnist-42"
RULE_ARN = f"{PREFIX}:processing-job/mnist-42-check-0a1b2c3d"
ML = "/opt/ml"
# Where the platform writes the mark of a training's end.
END_MARKS = {
    "tensors": ["training_job_end.ts"],
    "profiler": [f"{folder}training_job_end.ts" for folder in ("system/", "framework/", "")],
}
ENDS = """
import os, subprocess, sys, threading, time
from smdebug.rules import Rule


class Ends(Rule):
    def invoke_at_step(self, step):
        self.base_trial.tensor("loss").value(step)
        {}
        return True
"""
LINGER = (
    "threading.Thread(target=time.sleep, args=(3600,)).start(); subprocess.Popen(['sleep', '3600'])"
)
MET = (
    "RuleEvaluationConditionMet: Evaluation of the rule {} at step {} "
    "resulted in the condition being met\n"
)
EXITED = "ClientError: Rule 'Ends' ended its process with exit code 0 before its evaluation ended."


@pytest.fixture(scope="module")
def image() -> str:
    name = os.environ.get("RULE_RUNNER_IMAGE")
    if not name:
        pytest.skip("RULE_RUNNER_IMAGE names no image: build one with scripts/build_image.")
    return name


def write_inputs(ml: Path, end_mark: str, channel: str) -> None:
    """Write a trial, or profiler data that a processor limits, with a mark of the end."""
    folder = ml / "processing/input" / channel
    if channel == "tensors":
        vanishing.write_trial(folder)
    else:
        profiler_writer.write(folder, profiler_writer.files(cpu([95.0] * 1300), gpu([3.0] * 1300)))
    for mark in folder.rglob("training_job_end.ts"):
        mark.unlink()
    (folder / end_mark).parent.mkdir(exist_ok=True)
    (folder / end_mark).write_text("end of training job")


def write_job(ml: Path, channel: str, parameters: dict[str, str]) -> dict[str, str]:
    """Write the files that describe the job; return the environment of its container."""
    environment = {
        **parameters,
        "SAGEMAKER_ENV_RULE_STOP_SIGNAL_FILE": f"{ML}/processing/input/{channel}/signals/Check",
        "SAGEMAKER_START_TIMESTAMP_OF_RULE": "1693835000",
        "TRAINING_JOB_ARN": TRAINING_ARN,
        "TRAINING_IMAGE": "111122223333.dkr.ecr.eu-west-1.amazonaws.com/my-training:1",
        "AWS_REGION": "eu-west-1",
    }
    data = {"tensors": "debug-output", "profiler": "profiler-output"}[channel]
    source = {
        "S3Uri": f"s3://b/mnist-42/{data}",
        "LocalPath": f"{ML}/processing/input/{channel}",
        "S3DataType": "S3Prefix",
        "S3InputMode": "File",
    }
    target = {
        "S3Uri": "s3://b/mnist-42/rule-output/Check",
        "LocalPath": f"{ML}/processing/output/rule",
        "S3UploadMode": "Continuous",
    }
    job = {
        "ProcessingJobArn": RULE_ARN,
        "ProcessingJobName": "mnist-42-Check-0a1b2c3d",
        "AppSpecification": {"ImageUri": "rule-runner", "ContainerEntrypoint": None},
        "Environment": environment,
        "ProcessingInputs": [{"InputName": channel.title(), "S3Input": source}],
        "ProcessingOutputConfig": {"Outputs": [{"OutputName": "RuleOutput", "S3Output": target}]},
        "ProcessingResources": {"ClusterConfig": {"InstanceCount": 1}},
        "RoleArn": "arn:aws:iam::111122223333:role/TrainingRole",
        "StoppingCondition": {"MaxRuntimeInSeconds": 3600},
    }
    (ml / "config").mkdir()
    (ml / "config/processingjobconfig.json").write_text(json.dumps(job))
    hosts = {"current_host": "algo-1", "hosts": ["algo-1"]}
    (ml / "config/resourceconfig.json").write_text(json.dumps(hosts))
    return environment


def options(ml: Path, environment: dict[str, str]) -> list[str]:
    """Return the options of ``docker run``; root alone may write to the output folders."""
    for output in ("output", "processing/output/rule"):
        (ml / output).mkdir(parents=True)
    mounts = ["config:ro", "processing/input:ro", "output:rw", "processing/output/rule:rw"]
    return [
        "--network=none",
        *(f"--volume={ml}/{mount.partition(':')[0]}:{ML}/{mount}" for mount in mounts),
        *(f"--env={name}={value}" for name, value in environment.items()),
    ]


def docker(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["docker", *arguments], capture_output=True, text=True, check=False, timeout=120
    )


def left(ml: Path) -> tuple[str | None, list[dict[str, Any]]]:
    """Return the message and the events that a container has left."""
    message, output = ml / "output/message", ml / "processing/output/rule"
    lines = (output / "events.jsonl").read_text().splitlines()
    return message.read_text() if message.exists() else None, [json.loads(line) for line in lines]


def check_events(events: list[dict[str, Any]], status: str, kind: str) -> None:
    """Check that events name the platform's jobs, and end with a status."""
    assert {event["account"] for event in events} == {"111122223333"}
    assert {event["region"] for event in events} == {"eu-west-1"}
    assert {event["detail"]["TrainingJobArn"] for event in events} == {TRAINING_ARN}
    entries = [entry for event in events for entry in event["detail"][f"{kind}EvaluationStatuses"]]
    assert {(one["RuleConfigurationName"], one["RuleEvaluationJobArn"]) for one in entries} == {
        ("Check", RULE_ARN)
    }
    assert entries[-1]["RuleEvaluationStatus"] == status


def run(image: str, ml: Path, channel: str, parameters: dict[str, str]) -> tuple[int, str]:
    """Run the container of a rule; return its exit code and standard error."""
    done = docker("run", "--rm", *options(ml, write_job(ml, channel, parameters)), image)
    return done.returncode, done.stderr


@pytest.mark.parametrize(
    ("channel", "end_mark"),
    [(channel, mark) for channel, marks in END_MARKS.items() for mark in marks],
)
def test_a_healthy_training_ends_with_the_end_mark_in_each_documented_place(
    image: str, tmp_path: Path, channel: str, end_mark: str
) -> None:
    write_inputs(tmp_path, end_mark, channel)
    parameters, kind = {
        "tensors": ({"rule_to_invoke": "ExplodingTensor"}, "DebugRule"),
        "profiler": ({"rule_to_invoke": "CPUBottleneck", "cpu_threshold": "99"}, "ProfilerRule"),
    }[channel]
    code, stderr = run(image, tmp_path, channel, parameters)
    message, events = left(tmp_path)
    assert (code, message) == (0, None), stderr
    check_events(events, "NoIssuesFound", kind)
    assert events[-1]["detail"]["TrainingJobStatus"] == "Completed"


@pytest.mark.parametrize(
    ("channel", "rule", "step", "kind"),
    [
        pytest.param("tensors", "VanishingGradient", 70, "DebugRule", id="tensors"),
        pytest.param("profiler", "CPUBottleneck", 8, "ProfilerRule", id="profiler"),
    ],
)
def test_a_finding_is_exit_0_with_a_message(
    image: str, tmp_path: Path, channel: str, rule: str, step: int, kind: str
) -> None:
    write_inputs(tmp_path, END_MARKS[channel][0], channel)
    code, stderr = run(image, tmp_path, channel, {"rule_to_invoke": rule})
    message, events = left(tmp_path)
    assert (code, message) == (0, MET.format(rule, step)), stderr
    check_events(events, "IssuesFound", kind)


@pytest.mark.parametrize(
    ("act", "code", "expected", "status"),
    [
        pytest.param("os._exit(0)", 1, EXITED, "Error", id="exit"),
        pytest.param(LINGER, 0, MET.format("Ends", 0), "IssuesFound", id="linger"),
    ],
)
def test_a_container_exits_as_its_result_says_whatever_a_rule_does(
    image: str, tmp_path: Path, act: str, code: int, expected: str, status: str
) -> None:
    write_inputs(tmp_path, END_MARKS["tensors"][0], "tensors")
    (tmp_path / "processing/input/ends.py").write_text(ENDS.format(act))
    source = f"{ML}/processing/input/ends.py"
    parameters = {"rule_to_invoke": "Ends", "source_s3_uri": source}
    ended, stderr = run(image, tmp_path, "tensors", parameters)
    message, events = left(tmp_path)
    assert (ended, message) == (code, expected), stderr
    check_events(events, status, "DebugRule")


def test_a_rule_that_ends_an_evaluation_by_arguments_is_no_healthy_rule(
    image: str, tmp_path: Path
) -> None:
    write_inputs(tmp_path, END_MARKS["tensors"][0], "tensors")
    inputs = tmp_path / "processing/input"
    (inputs / "ends.py").write_text(ENDS.format("os._exit(0)"))
    command = ("evaluate", "--trial=/inputs/tensors", "--source=/inputs/ends.py")
    mount = f"--volume={inputs}:/inputs:ro"
    done = docker("run", "--rm", "--network=none", mount, image, *command)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.endswith(
        "Error: A rule ended its process with exit code 0 before its evaluation ended.\n"
    )


def wait_for_the_first_statement(pid: int) -> None:
    """Wait until a process blocks or handles SIGTERM."""
    mask = 1 << (signal.SIGTERM - 1)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        status = Path(f"/proc/{pid}/status").read_text()
        if any(int(one, 16) & mask for one in re.findall(r"Sig(?:Blk|Cgt):\s*(\w+)", status)):
            return
    msg = "SIGTERM is neither blocked nor handled."
    raise AssertionError(msg)


def test_a_sigterm_while_the_container_starts_is_not_lost(image: str, tmp_path: Path) -> None:
    write_inputs(tmp_path, "elsewhere.ts", "tensors")  # the training has not ended
    environment = write_job(tmp_path, "tensors", {"rule_to_invoke": "ExplodingTensor"})
    name = f"rule-runner-test-{uuid.uuid4().hex}"
    try:
        docker("run", "--detach", "--name", name, *options(tmp_path, environment), image)
        pid = int(docker("inspect", "--format={{.State.Pid}}", name).stdout)
        wait_for_the_first_statement(pid)
        os.kill(pid, signal.SIGTERM)
        assert docker("wait", name).stdout == "143\n"
    finally:
        docker("rm", "--force", name)
