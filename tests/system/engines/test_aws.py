"""The template for AWS Batch and EventBridge, on a server in the place of AWS."""

import ast
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import aws_server as aws_server_
import pytest
from batch_stack import RESULTS, TEMPLATE, TRIALS, BatchStack, transformed
from click.testing import CliRunner, Result
from fleets import fleet, plan, verdicts, write_runs
from vanishing import write_trial

from rule_core.storage import aws
from rule_runner import errors
from rule_runner.cli import main

JOB = "mnist-42"
RULE_RUNNER = Path(sys.executable).with_name("rule-runner")
BEGINS: dict[str, Any] = {
    "source": "aws.sagemaker",
    "detail-type": "SageMaker Training Job State Change",
    "detail": {
        "TrainingJobName": JOB,
        "TrainingJobStatus": "InProgress",
        "SecondaryStatus": "Starting",
        "OutputDataConfig": {"S3OutputPath": "s3://trials/jobs"},
    },
}


def upload(folder: Path, prefix: str) -> None:
    """Upload the files of a folder to the bucket of trials."""
    client = aws.client("s3")
    for path in sorted(each for each in folder.rglob("*") if each.is_file()):
        key = f"{prefix}/{path.relative_to(folder).as_posix()}"
        client.put_object(Bucket=TRIALS, Key=key, Body=path.read_bytes())


def download(prefix: str, folder: Path) -> Path:
    """Download the results below a prefix to a folder, and return it."""
    client = aws.client("s3")
    for each in client.list_objects_v2(Bucket=RESULTS, Prefix=f"{prefix}/")["Contents"]:
        path = folder / each["Key"].removeprefix(f"{prefix}/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(client.get_object(Bucket=RESULTS, Key=each["Key"])["Body"].read())
    return folder


def submit(stack: BatchStack, definition: str, **more: Any) -> str:
    """Submit a job of a definition to the stack's queue, and return its ID."""
    client = aws.client("batch")
    place = {"jobQueue": stack.outputs["JobQueue"], "jobDefinition": definition}
    return str(client.submit_job(jobName="job", **place, **more)["jobId"])


def run(command: list[str], folder: Path, **environment: str) -> Result:
    """Run a container's command in this process."""
    return CliRunner().invoke(main, command, env={"HOME": str(folder), **environment})


def test_the_template_is_valid() -> None:
    done = subprocess.run(
        ["cfn-lint", "--include-checks", "I", "--", TEMPLATE],
        env={**os.environ, "PATH": f"{RULE_RUNNER.parent}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "")


@pytest.fixture(scope="module")
def endpoint(aws_server: str) -> Iterator[str]:
    """Let boto3 of this process, and of those it starts, talk to AWS on this machine."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in aws_server_.ENVIRONMENT.items():
            patch.setenv(name, value)
        patch.setenv("AWS_ENDPOINT_URL", aws_server)
        aws_server_.reset(aws_server)
        yield aws_server
        aws_server_.reset(aws_server)


@pytest.fixture(scope="module")
def stack(endpoint: str) -> BatchStack:
    return BatchStack(
        endpoint,
        Rule="VanishingGradient",
        TrainingJobPrefix="mnist-",
        WaitForTrialSeconds="30",
    )


def test_an_array_judges_what_one_process_does(stack: BatchStack, tmp_path: Path) -> None:
    for path in write_runs(tmp_path / "runs", 3).iterdir():
        upload(path, f"jobs/{path.name}")
    address = f"s3://{RESULTS}/rule-runner"
    path = plan(f"s3://{TRIALS}/jobs", f"{address}/array", tmp_path / "plan.jsonl")
    key = "rule-runner/plans/monday.jsonl"
    aws.client("s3").put_object(Bucket=RESULTS, Key=key, Body=path.read_bytes())
    job = submit(
        stack,
        stack.outputs["FleetJobDefinition"],
        arrayProperties={"size": 2},
        parameters={"plan": f"s3://{RESULTS}/{key}"},
    )
    for index in range(2):
        done = run(
            stack.command(f"{job}:{index}"),
            tmp_path / f"container-{index}",
            AWS_BATCH_JOB_ARRAY_INDEX=str(index),
            AWS_BATCH_JOB_ARRAY_SIZE="2",
        )
        assert done.exit_code == 0, done.output
        assert f"Shard {index}/2: {2 - index} trial" in done.stderr
    assert (
        fleet(
            "run",
            "--plan",
            plan(f"s3://{TRIALS}/jobs", f"{address}/alone", tmp_path / "alone.jsonl"),
        ).exit_code
        == 0
    )
    found = verdicts(download("rule-runner/array", tmp_path / "array"))
    assert len(found) == 3
    assert found == verdicts(download("rule-runner/alone", tmp_path / "alone"))


def test_a_training_job_that_begins_is_evaluated(
    endpoint: str, stack: BatchStack, tmp_path: Path
) -> None:
    (request,) = transformed(stack, BEGINS)
    assert request.keys() == {"Parameters"}
    job = submit(stack, stack.id("EvaluationJobDefinition"), parameters=request["Parameters"])
    upload(write_trial(tmp_path / "trial"), f"jobs/{JOB}/debug-output")
    command = [RULE_RUNNER, *stack.command(job)]
    roles = {name: credentials(stack, name) for name in ("SubmitRole", "JobRole")}
    done = {}
    with permissions_enforced(endpoint):
        for name, role in roles.items():
            environment = {**os.environ, **role, "HOME": str(tmp_path / name)}
            done[name] = subprocess.run(
                command, env=environment, cwd="/", capture_output=True, text=True, check=False
            )
    # The role that submits jobs has none of their permissions, which shows that they are checked.
    assert done["SubmitRole"].returncode == errors.EXIT_OUTPUT
    assert "needs s3:GetObject on results/rule-runner/mnist-42/*" in done["SubmitRole"].stderr
    assert done["JobRole"].returncode == 0, done["JobRole"].stderr
    found = verdicts(download(f"rule-runner/{JOB}", tmp_path / "results"))
    assert [rule["outcome"] for rule in found.values()] == ["IssuesFound"]
    (events,) = (tmp_path / "results").rglob("events.jsonl")
    assert f'"TrainingJobName":"{JOB}"' in events.read_text().replace(" ", "")


@pytest.mark.parametrize(
    ("change", "submitted"),
    [
        pytest.param({}, 1, id="begins"),
        pytest.param({"TrainingJobName": "cifar-1"}, 0, id="has another prefix"),
        pytest.param({"SecondaryStatus": "Training"}, 0, id="has begun already"),
        pytest.param({"TrainingJobStatus": "Completed"}, 0, id="has ended"),
    ],
)
def test_an_event_submits_an_evaluation_or_none(
    stack: BatchStack, change: dict[str, str], submitted: int
) -> None:
    event = {**BEGINS, "detail": BEGINS["detail"] | change}
    assert len(transformed(stack, event)) == submitted


def test_the_rule_targets_the_queue_with_the_evaluation(stack: BatchStack) -> None:
    client = aws.client("events")
    (target,) = client.list_targets_by_rule(Rule=stack.id("TrainingJobBegins"))["Targets"]
    assert target["Arn"] == stack.outputs["JobQueue"]
    assert target["BatchParameters"]["JobDefinition"] == stack.id("EvaluationJobDefinition")
    assert target["RoleArn"].endswith(f"/{stack.id('SubmitRole')}")


@pytest.mark.parametrize("definition", ["FleetJobDefinition", "EvaluationJobDefinition"])
def test_an_exit_code_is_retried_if_that_may_help(stack: BatchStack, definition: str) -> None:
    (described,) = aws.client("batch").describe_job_definitions(
        jobDefinitions=[stack.id(definition)]
    )["jobDefinitions"]
    *by_code, last = described["retryStrategy"]["evaluateOnExit"]
    assert last == {"onStatusReason": "Essential container in task exited*", "action": "exit"}
    assert {each["action"] for each in by_code} == {"retry"}
    starts = tuple(each["onExitCode"].removesuffix("*") for each in by_code)
    codes = {value for name, value in vars(errors).items() if name.startswith("EXIT_")}
    codes |= {errors.EXIT_SIGNAL + number for number in (2, 9, 15)}  # INT, KILL, TERM
    retried = {code for code in codes if str(code).startswith(starts)}
    assert retried == {errors.EXIT_TEMPORARY, 130, 137, 143}


def credentials(stack: BatchStack, role: str) -> dict[str, str]:
    """Return the environment of a container that has a role of the stack."""
    iam, name = aws.client("iam"), stack.id(role)
    for policy in iam.list_role_policies(RoleName=name)["PolicyNames"]:
        stored = iam.get_role_policy(RoleName=name, PolicyName=policy)
        # The server checks policies in JSON only, and keeps those of a stack as dictionaries.
        text = json.dumps(ast.literal_eval(stored["PolicyDocument"]))
        iam.put_role_policy(RoleName=name, PolicyName=policy, PolicyDocument=text)
    arn = iam.get_role(RoleName=name)["Role"]["Arn"]
    given = aws.client("sts").assume_role(RoleArn=arn, RoleSessionName="container")["Credentials"]
    return {
        "AWS_ACCESS_KEY_ID": given["AccessKeyId"],
        "AWS_SECRET_ACCESS_KEY": given["SecretAccessKey"],
        "AWS_SESSION_TOKEN": given["SessionToken"],
    }


@contextmanager
def permissions_enforced(endpoint: str) -> Iterator[None]:
    """Let the server check, inside the block, what the caller of each action may do."""
    _allow(endpoint, "0")
    try:
        yield
    finally:
        _allow(endpoint, "inf")


def _allow(endpoint: str, actions: str) -> None:
    """Let the server take this number of actions without a check."""
    address, headers = f"{endpoint}/moto-api/reset-auth", {"Content-Type": "text/plain"}
    with urlopen(Request(address, actions.encode(), headers, method="POST")):
        pass
