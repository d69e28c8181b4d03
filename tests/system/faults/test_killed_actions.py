"""Evaluations that are killed in the middle of an action: messages once at most, stops at least."""

import json
import shlex
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import acting
import pytest
import training_jobs_server
from training_jobs_server import TrainingJobs

from rule_core.storage import aws
from rule_runner.notify.actions.command import CommandAction
from rule_runner.notify.actions.runner import LOST
from smdebug.rules.action.message_action import MessageAction
from smdebug.rules.action.stop_training_action import StopTrainingAction

KILLED = -signal.SIGKILL


@pytest.fixture
def held(aws_endpoint: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[TrainingJobs]:
    del aws_endpoint
    with training_jobs_server.serving(TrainingJobs(my_1="InProgress")) as found:
        monkeypatch.setenv("AWS_ENDPOINT_URL_SAGEMAKER", found.url)
        yield found


@pytest.mark.parametrize(("when", "stops"), [("before", 1), ("after", 2)])
def test_a_stop_is_done_at_least_once(
    tmp_path: Path, held: TrainingJobs, when: str, stops: int
) -> None:
    arguments = [*acting.prepared(tmp_path), "--action", "stop-training:my"]
    assert acting.run_killed(arguments, StopTrainingAction, when) == KILLED
    held.jobs["my-2"] = "InProgress"  # which the beginning of the name would mean now as well
    held.jobs["my-1"] = "InProgress"
    assert acting.run(arguments).returncode == 0
    assert held.stopped == ["my-1"] * stops
    assert acting.actions(tmp_path) == [("stoptraining", "my-1", "done")]


def test_a_stop_whose_answer_was_never_read_is_done_again(
    tmp_path: Path, held: TrainingJobs
) -> None:
    arguments = [*acting.prepared(tmp_path), "--action", "stop-training:my-1"]
    held.hangs = {"StopTrainingJob"}
    process = acting.start(arguments)
    while not held.stopped:
        assert held.called.wait(60)
        held.called.clear()
    process.kill()
    assert process.wait() == KILLED
    held.hangs = set()
    assert acting.run(arguments).returncode == 0
    assert held.stopped == ["my-1", "my-1"]
    assert acting.actions(tmp_path) == [("stoptraining", "my-1", "done")]


@pytest.mark.parametrize(("when", "messages"), [("before", 0), ("after", 1)])
def test_a_message_is_sent_at_most_once(
    tmp_path: Path, aws_endpoint: str, when: str, messages: int
) -> None:
    del aws_endpoint
    sqs, sns = aws.client("sqs"), aws.client("sns")
    url = sqs.create_queue(QueueName="seen")["QueueUrl"]
    topic = sns.create_topic(Name="SMDebugRules")["TopicArn"]
    arn = "arn:aws:sqs:us-east-1:123456789012:seen"
    sns.subscribe(TopicArn=topic, Protocol="sqs", Endpoint=arn)
    arguments = [*acting.prepared(tmp_path), "--action", "sms:+15551234"]
    assert acting.run_killed(arguments, MessageAction, when) == KILLED
    assert acting.run(arguments).returncode == 0
    found: list[Any] = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages", [])
    assert [json.loads(one["Body"])["Subject"] for one in found] == [
        "SMDebugRule:Above fired"
    ] * messages
    assert acting.actions(tmp_path) == [("sms", "+*****1234", "unknown")]
    (action,) = acting.result(tmp_path)["actions"]
    assert action["detail"] == LOST


@pytest.mark.parametrize(("when", "runs"), [("before", 0), ("after", 1)])
def test_a_command_is_run_at_most_once(tmp_path: Path, when: str, runs: int) -> None:
    count = tmp_path / "count"
    count.touch()
    command = shlex.join([sys.executable, "-c", f"open({str(count)!r}, 'a').write('x')"])
    arguments = [*acting.prepared(tmp_path), "--action", f"command:{command}"]
    assert acting.run_killed(arguments, CommandAction, when) == KILLED
    assert acting.run(arguments).returncode == 0
    assert count.read_text() == "x" * runs
    assert [state for _, _, state in acting.actions(tmp_path)] == ["unknown"]
