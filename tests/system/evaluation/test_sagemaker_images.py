"""docs/sagemaker.md: requests that the service takes, permissions that exist, rules that run."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from image_places import Places

from rule_core.storage import aws
from rule_runner.images.uri import parse_uri, require_fit
from rule_runner.notify.event import DETAIL_TYPE
from rule_runner.results.status import RuleStatus
from smdebug.core.modes import ModeKeys
from smdebug.core.writer import TrialWriter

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "sagemaker.md").read_text(encoding="utf-8")
REGION = "eu-west-1"
# Permissions that are called otherwise than the operation that needs them.
OPERATIONS = {"s3:ListBucket": "s3:ListObjectsV2"}
LOSS_CHECK = """\
from smdebug.rules import Rule


class LossCheck(Rule):
    def __init__(self, base_trial, limit):
        super().__init__(base_trial)
        self.limit = float(limit)

    def invoke_at_step(self, step):
        return self.base_trial.tensor("loss").value(step) > self.limit
"""


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


REQUEST, PATTERN, POLICY = map(json.loads, blocks("json"))
CREATE, SDK, DESCRIBE = blocks("python")


def actions() -> set[str]:
    found: set[str] = set()
    for statement in POLICY["Statement"]:
        one = statement["Action"]
        found |= {one} if isinstance(one, str) else set(one)
    return found


def client(service: str) -> Any:
    return aws.client(service, region=REGION)


# -- the request -------------------------------------------------------------------------------


def test_the_request_is_taken_and_read_back(aws_endpoint: str, tmp_path: Path) -> None:
    (tmp_path / "request.json").write_text(json.dumps(REQUEST))
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", CREATE],
        check=False,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "AWS_ENDPOINT_URL": aws_endpoint},
    )
    arn = f"arn:aws:sagemaker:{REGION}:123456789012:training-job/mnist-42\n"
    assert (done.stdout, done.stderr) == (arn, "")
    job = client("sagemaker").describe_training_job(TrainingJobName="mnist-42")
    assert job["DebugRuleConfigurations"] == REQUEST["DebugRuleConfigurations"]


@pytest.mark.usefixtures("aws_endpoint")
def test_the_request_is_what_the_service_describes() -> None:
    model = client("sagemaker").meta.service_model
    given = model.operation_model("CreateTrainingJob").input_shape.members
    rule = given["DebugRuleConfigurations"].member.members
    for one in REQUEST["DebugRuleConfigurations"]:
        assert set(one) <= set(rule)
        assert one["InstanceType"] in rule["InstanceType"].enum
        assert len(one["RuleEvaluatorImage"]) <= rule["RuleEvaluatorImage"].metadata["max"]
        values = one["RuleParameters"].values()
        assert max(map(len, values)) <= rule["RuleParameters"].value.metadata["max"]
        require_fit(parse_uri(one["RuleEvaluatorImage"]), REGION)
    answer = model.operation_model("DescribeTrainingJob").output_shape.members
    status = answer["DebugRuleEvaluationStatuses"].member.members
    assert set(re.findall(r'rule(?:\[|\.get\()"(\w+)"', DESCRIBE)) <= set(status)
    assert {one.value for one in RuleStatus} == set(status["RuleEvaluationStatus"].enum)


@pytest.mark.parametrize("text", [CREATE, SDK, DESCRIBE], ids=["create", "sdk", "describe"])
def test_the_examples_are_python(text: str) -> None:
    compile(text, "docs/sagemaker.md", "exec")


def test_the_sdks_rules_are_those_of_the_request() -> None:
    asked = [one["RuleParameters"]["rule_to_invoke"] for one in REQUEST["DebugRuleConfigurations"]]
    assert re.findall(r'rule_to_invoke"?[=:] ?"(\w+)"', SDK) == asked


# -- what the request asks the container for ---------------------------------------------------


@pytest.mark.parametrize("number", [0, 1], ids=["built-in", "custom"])
def test_the_rules_of_the_request_run(number: int, aws_endpoint: str, tmp_path: Path) -> None:
    s3 = client("s3")
    location = {"LocationConstraint": REGION}
    s3.create_bucket(Bucket="my-training", CreateBucketConfiguration=location)
    s3.put_object(Bucket="my-training", Key="rules/loss_check.py", Body=LOSS_CHECK.encode())
    trial = tmp_path / "processing" / "input" / "tensors"
    with TrialWriter(trial, collections={"gradients": "^gradient/"}, end_job=True) as writer:
        for step, loss in enumerate([0.1, 0.2, 0.9]):
            tensors = {"gradient/w": np.full(3, 1e-3 * 1e-3**step), "loss": np.array([loss])}
            writer.step(step, tensors, mode=ModeKeys.TRAIN)
    rule = REQUEST["DebugRuleConfigurations"][number]["RuleParameters"]
    own = {"RULE_RUNNER_ROOT": str(tmp_path), "RULE_RUNNER_MODE": "observe"}
    done = subprocess.run(
        [sys.executable, "-m", "rule_runner"],
        check=False,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, **rule, **own, "PYTHONPATH": str(ROOT)},
    )
    assert (done.returncode, aws_endpoint in done.stderr) == (0, False), done.stderr
    assert (tmp_path / "output" / "message").read_text() == (
        f"RuleEvaluationConditionMet: Evaluation of the rule {rule['rule_to_invoke']} at step 2 "
        "resulted in the condition being met\n"
    )


# -- events ------------------------------------------------------------------------------------


@pytest.mark.usefixtures("aws_endpoint")
def test_the_widened_pattern_takes_our_events_and_no_others() -> None:
    queues, events = client("sqs"), client("events")
    address = queues.create_queue(QueueName="consumer")["QueueUrl"]
    name = ["QueueArn"]
    arn = queues.get_queue_attributes(QueueUrl=address, AttributeNames=name)["Attributes"]
    events.put_rule(Name="rules", EventPattern=json.dumps(PATTERN))
    events.put_targets(Rule="rules", Targets=[{"Id": "1", "Arn": arn["QueueArn"]}])
    golden = ROOT / "tests" / "golden" / "events" / "IssuesFound.json"
    event = json.loads(golden.read_text("utf-8"))
    ours = {"Source": event["source"], "DetailType": event["detail-type"]}
    other = {"Source": "another", "DetailType": DETAIL_TYPE}
    detail = json.dumps(event["detail"])
    events.put_events(Entries=[{**one, "Detail": detail} for one in (other, ours)])
    received = queues.receive_message(QueueUrl=address, MaxNumberOfMessages=10)["Messages"]
    bodies = [json.loads(one["Body"]) for one in received]
    assert [(one["source"], one["detail"]) for one in bodies] == [("rule-runner", event["detail"])]


# -- the policy --------------------------------------------------------------------------------


@pytest.mark.usefixtures("aws_endpoint")
def test_the_policy_is_one_and_not_too_long() -> None:
    text = json.dumps(POLICY, separators=(",", ":"))
    assert len(text) <= 6144
    made = aws.client("iam").create_policy(PolicyName="least", PolicyDocument=text)["Policy"]
    assert made["Arn"] == "arn:aws:iam::123456789012:policy/least"


@pytest.mark.usefixtures("aws_endpoint")
@pytest.mark.parametrize("service", sorted({one.partition(":")[0] for one in actions()}))
def test_every_action_of_the_policy_is_an_operation(service: str) -> None:
    known = client(service).meta.service_model.operation_names
    asked = [OPERATIONS.get(one, one).split(":") for one in actions()]
    assert {name for owner, name in asked if owner == service} - {*known} == set()


def test_every_action_of_the_policy_is_justified_once() -> None:
    table = PAGE.partition("| action | who needs it | what for |")[2].partition("\n\n")[0]
    rows = [row.split("|")[1] for row in table.splitlines() if row.startswith("| `")]
    named = [name for row in rows for name in re.findall("`([^`]+)`", row)]
    assert sorted(named) == sorted(actions())


def test_only_what_has_no_resource_is_allowed_on_all() -> None:
    wide = [one["Sid"] for one in POLICY["Statement"] if one["Resource"] == "*"]
    assert wide == ["LogInToPull", "MeasureInstances", "OptionalFindTraining", "OptionalNetwork"]


# -- the other page ----------------------------------------------------------------------------


def test_the_file_of_the_other_page_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    places = Places(tmp_path, monkeypatch)
    text = (ROOT / "docs" / "image.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```toml\n(.*?)```", text, re.DOTALL)
    places.user_file.parent.mkdir(parents=True)
    places.user_file.write_text(example)
    command = [sys.executable, "-m", "rule_runner", "images", "uri", "--region", REGION]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    expected = f"111122223333.dkr.ecr.{REGION}.amazonaws.com/rule-runner:0.1.0\n"
    assert done.stdout == expected
    assert expected.strip() in {
        one["RuleEvaluatorImage"] for one in REQUEST["DebugRuleConfigurations"]
    }
