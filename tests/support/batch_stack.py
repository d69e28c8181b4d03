"""The CloudFormation template, created on this machine's AWS, and the commands of its jobs."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final
from urllib.request import Request, urlopen

from rule_core.storage import aws

TEMPLATE: Final = Path(__file__).parents[2] / "examples" / "aws" / "batch.yaml"
NAME: Final = "rule-runner"
TRIALS: Final = "trials"
RESULTS: Final = "results"


class BatchStack:
    """A stack of the template, with buckets for trials and results.

    Attributes
    ----------
    outputs
        The outputs of the stack.
    """

    def __init__(self, endpoint: str, **parameters: str) -> None:
        _without_containers(endpoint)
        for bucket in (TRIALS, RESULTS):
            aws.client("s3").create_bucket(Bucket=bucket)
        # The server imports all of its services for the first stack.
        client = aws.client("cloudformation", read_timeout=300)
        ec2 = aws.client("ec2")
        values = {
            "Subnets": ec2.describe_subnets()["Subnets"][0]["SubnetId"],
            "SecurityGroups": ec2.describe_security_groups()["SecurityGroups"][0]["GroupId"],
            "TrialsBucket": TRIALS,
            "ResultsBucket": RESULTS,
        } | parameters
        client.create_stack(
            StackName=NAME,
            TemplateBody=_template(),
            Parameters=[
                {"ParameterKey": key, "ParameterValue": value} for key, value in values.items()
            ],
        )
        (stack,) = client.describe_stacks(StackName=NAME)["Stacks"]
        self.outputs = {each["OutputKey"]: each["OutputValue"] for each in stack["Outputs"]}
        listed = client.describe_stack_resources(StackName=NAME)["StackResources"]
        self._ids = {each["LogicalResourceId"]: each["PhysicalResourceId"] for each in listed}

    def id(self, resource: str) -> str:
        """Return what CloudFormation calls the physical ID of a resource: a name or an ARN."""
        return self._ids[resource]

    def command(self, job: str) -> list[str]:
        """Return the command of a submitted job, as Batch substitutes its parameters."""
        (described,) = aws.client("batch").describe_jobs(jobs=[job])["jobs"]
        (definition,) = aws.client("batch").describe_job_definitions(
            jobDefinitions=[described["jobDefinition"]]
        )["jobDefinitions"]
        values = definition["parameters"] | described.get("parameters", {})
        command = definition["containerProperties"]["command"]
        return [_substituted(argument, values) for argument in command]


def _substituted(argument: str, values: Mapping[str, str]) -> str:
    """Return an argument; only a whole one is documented to be substituted."""
    reference, found, name = argument.partition("Ref::")
    if not found:
        return argument
    assert reference == ""
    return values[name]


def _template() -> str:
    """Return the template; the server wants a role that AWS has of its own."""
    text = TEMPLATE.read_text(encoding="utf-8")
    role = "arn:aws:iam::123456789012:role/service"
    aws.client("iam").create_role(RoleName="service", AssumeRolePolicyDocument="{}")
    managed = "      Type: MANAGED\n"
    assert text.count(managed) == 1
    return text.replace(managed, f"{managed}      ServiceRole: {role}\n")


def _without_containers(endpoint: str) -> None:
    """Let the server's Batch keep jobs without starting containers."""
    body = json.dumps({"batch": {"use_docker": False}}).encode()
    headers = {"Content-Type": "application/json"}
    with urlopen(Request(f"{endpoint}/moto-api/config", body, headers, method="POST")):
        pass


def transformed(stack: BatchStack, event: dict[str, Any]) -> list[dict[str, Any]]:
    """Return what the rule's target receives for an event, of any source.

    A queue takes the place of AWS Batch as the target, with the same pattern and transformation.
    """
    client, sqs = aws.client("events"), aws.client("sqs")
    rule = stack.id("TrainingJobBegins")
    (target,) = client.list_targets_by_rule(Rule=rule)["Targets"]
    queue = sqs.create_queue(QueueName="targets")["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=["QueueArn"])
    client.remove_targets(Rule=rule, Ids=[target["Id"]])
    stand_in = {"Id": target["Id"], "InputTransformer": target["InputTransformer"]}
    client.put_targets(Rule=rule, Targets=[stand_in | {"Arn": arn["Attributes"]["QueueArn"]}])
    detail = json.dumps(event["detail"])
    entry = {"Source": event["source"], "DetailType": event["detail-type"], "Detail": detail}
    assert client.put_events(Entries=[entry])["FailedEntryCount"] == 0
    client.put_targets(Rule=rule, Targets=[target])
    received = sqs.receive_message(QueueUrl=queue, MaxNumberOfMessages=10).get("Messages", [])
    for message in received:
        sqs.delete_message(QueueUrl=queue, ReceiptHandle=message["ReceiptHandle"])
    return [json.loads(message["Body"]) for message in received]
