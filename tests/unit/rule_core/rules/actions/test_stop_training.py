"""StopTrainingAction: one running job is stopped, or none and it is said why."""

import re
from collections.abc import Iterator
from pathlib import Path

import evaluating
import numpy as np
import pytest
import rawtrial
import training_jobs_server
from training_jobs_server import TrainingJobs

from rule_core.exceptions import RuleEvaluationConditionMet
from rule_core.rules.actions.base import ActionOutcome, ActionState, ActionTrigger, Deadline
from rule_core.rules.actions.stop_training import StopTrainingAction
from rule_core.rules.invoke_rule import invoke_rule
from rule_core.rules.rule import Rule
from rule_core.storage import aws
from rule_core.trials.create_trial import create_trial

FIRED = ActionTrigger("Plain")


@pytest.fixture
def held(aws_endpoint: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[TrainingJobs]:
    del aws_endpoint
    monkeypatch.delenv("TRAINING_JOB_ARN", raising=False)
    with training_jobs_server.serving(TrainingJobs()) as result:
        monkeypatch.setenv("AWS_ENDPOINT_URL_SAGEMAKER", result.url)
        yield result


def stop(name: str, *, exact: bool = False, deadline: Deadline | None = None) -> ActionOutcome:
    deadline = deadline or Deadline(20)
    found = StopTrainingAction("Plain", name, exact=exact).resolve(deadline)
    return found if isinstance(found, ActionOutcome) else found.carry_out(FIRED, deadline)


def test_what_is_asked_field_by_field(held: TrainingJobs) -> None:
    held.jobs = {"mnist-1": "InProgress"}
    assert stop("mnist-1") == ActionOutcome(
        ActionState.DONE, "Training job 'mnist-1' was told to stop."
    )
    assert held.asked == [
        (
            "ListTrainingJobs",
            {
                "SortBy": "CreationTime",
                "SortOrder": "Descending",
                "MaxResults": 100,
                "NameContains": "mnist-1",
                "StatusEquals": "InProgress",
            },
        ),
        ("StopTrainingJob", {"TrainingJobName": "mnist-1"}),
    ]


@pytest.mark.parametrize(
    ("jobs", "wanted", "stopped"),
    [
        pytest.param(["a-1", "a-10", "a-2"], "a-1", ["a-1"], id="exact-before-prefix"),
        pytest.param(["b", "b", "xa-1", "a-1-7"], "a-1", ["a-1-7"], id="only-one-begins-so"),
        pytest.param(["x1", "x2", "x3", "x4", "x5", "x"], "x", ["x"], id="exact-on-the-last-page"),
        pytest.param(["y1", "yy", "zyx", "Mnist-1"], "Mnist-1", ["Mnist-1"], id="capitals"),
    ],
)
def test_which_job_is_stopped(
    held: TrainingJobs, jobs: list[str], wanted: str, stopped: list[str]
) -> None:
    held.jobs = dict.fromkeys(jobs, "InProgress")
    assert (stop(wanted).state, held.stopped) == (ActionState.DONE, stopped)


@pytest.mark.parametrize(
    ("jobs", "detail"),
    [
        pytest.param(
            ["b", "xa-"],
            "No running training job is called 'a-', and none whose name begins so. "
            "Nothing was stopped.",
            id="none",
        ),
        pytest.param(
            ["A-1"],
            "No running training job is called 'a-', and none whose name begins so. "
            "Nothing was stopped.",
            id="capitals-differ",
        ),
        pytest.param(
            ["a-2", "a-1"],
            "2 running training jobs have names that begin with 'a-': 'a-1', 'a-2'. "
            "Nothing was stopped. Give the whole name.",
            id="two",
        ),
        pytest.param(
            [f"a-{n}" for n in range(7)],
            "7 running training jobs have names that begin with 'a-': 'a-0', 'a-1', 'a-2', 'a-3', "
            "'a-4', .... Nothing was stopped. Give the whole name.",
            id="seven",
        ),
    ],
)
def test_nothing_is_stopped(held: TrainingJobs, jobs: list[str], detail: str) -> None:
    held.jobs = dict.fromkeys(jobs, "InProgress")
    assert stop("a-") == ActionOutcome(ActionState.REFUSED, detail)
    assert held.stopped == []


@pytest.mark.parametrize("status", ["Stopping", "Stopped", "Completed", "Failed"])
def test_job_that_does_not_run_any_more(held: TrainingJobs, status: str) -> None:
    held.jobs = {"a": status}
    assert stop("a") == ActionOutcome(ActionState.DONE, f"Training job 'a' is {status} already.")
    assert held.stopped == []


def test_job_that_ends_between_looking_and_stopping(held: TrainingJobs) -> None:
    held.jobs = {"a": "InProgress"}
    found = StopTrainingAction("Plain", "a").resolve(Deadline(20))
    assert isinstance(found, StopTrainingAction)
    held.jobs["a"] = "Completed"
    assert found.carry_out(FIRED, Deadline(20)) == ActionOutcome(
        ActionState.DONE, "Training job 'a' was no longer running."
    )


def test_exact_name_takes_no_other_that_begins_so(held: TrainingJobs) -> None:
    held.jobs = {"a-1": "InProgress"}
    assert stop("a", exact=True) == ActionOutcome(
        ActionState.REFUSED, "No running training job is called 'a'. Nothing was stopped."
    )


def test_without_a_name_it_is_the_containers_job_and_never_everything(
    held: TrainingJobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    held.jobs = {"mine-2": "InProgress"}
    assert stop("") == ActionOutcome(
        ActionState.REFUSED, "The training job is unknown. Set training_job_prefix to its name."
    )
    assert held.asked == []
    monkeypatch.setenv("TRAINING_JOB_ARN", "arn:aws:sagemaker:eu-west-1:1:training-job/mine")
    assert stop("").state is ActionState.REFUSED
    held.jobs["mine"] = "InProgress"
    assert (stop("").state, held.stopped) == (ActionState.DONE, ["mine"])


def test_what_passes_is_tried_again(held: TrainingJobs) -> None:
    held.jobs = dict.fromkeys(["a1", "a2", "a3", "a"], "InProgress")
    held.faults = {
        "ListTrainingJobs": [(400, "ThrottlingException", "Rate exceeded"), (503, "", "")],
        "StopTrainingJob": [(500, "InternalFailure", "")],
    }
    assert stop("a").state is ActionState.DONE
    assert [verb for verb, _ in held.asked] == ["ListTrainingJobs"] * 4 + ["StopTrainingJob"] * 2


@pytest.mark.parametrize("verb", ["ListTrainingJobs", "StopTrainingJob"])
def test_permission_that_is_missing_is_named(held: TrainingJobs, verb: str) -> None:
    held.jobs = {"a": "InProgress"}
    held.faults = {verb: [(400, "AccessDeniedException", "User is not authorized.")]}
    assert stop("a") == ActionOutcome(
        ActionState.FAILED,
        f"sagemaker:{verb} failed: AccessDeniedException: User is not authorized. "
        f"The role needs sagemaker:{verb}.",
    )


@pytest.mark.parametrize("verb", ["ListTrainingJobs", "StopTrainingJob"])
def test_endpoint_that_hangs_costs_no_more_than_its_time(held: TrainingJobs, verb: str) -> None:
    held.jobs = {"a": "InProgress"}
    held.hangs = {verb}
    outcome = stop("a", deadline=Deadline(0.6))
    assert outcome.state is ActionState.FAILED
    assert re.fullmatch(
        rf"sagemaker:{verb} failed: endpoint '127.0.0.1:\d+' did not respond in time\.",
        outcome.detail,
    )


def test_what_moto_answers(aws_endpoint: str) -> None:
    del aws_endpoint
    aws.client("sagemaker").create_training_job(
        TrainingJobName="mnist-1",
        AlgorithmSpecification={"TrainingInputMode": "File"},
        RoleArn="arn:aws:iam::123456789012:role/x" + "x" * 10,
        OutputDataConfig={"S3OutputPath": "s3://bucket/x"},
        ResourceConfig={"InstanceType": "ml.m5.large", "InstanceCount": 1, "VolumeSizeInGB": 1},
        StoppingCondition={"MaxRuntimeInSeconds": 60},
    )
    assert stop("mnist-1") == ActionOutcome(
        ActionState.DONE, "Training job 'mnist-1' is Completed already."
    )
    assert stop("mnist").state is ActionState.REFUSED


def test_without_credentials(held: TrainingJobs, monkeypatch: pytest.MonkeyPatch) -> None:
    del held
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    outcome = stop("a")
    assert outcome.state is ActionState.FAILED
    assert "no AWS credentials were found. Set AWS_PROFILE" in outcome.detail


def test_plan_names_the_job(held: TrainingJobs) -> None:
    held.jobs = {"a-7": "InProgress"}
    found = StopTrainingAction("Plain", "a").resolve(Deadline(20))
    assert not isinstance(found, ActionOutcome)
    assert found.plan(FIRED) == "Training job 'a-7' would be stopped."
    assert held.stopped == []


class Met(Rule):
    def invoke_at_step(self, step: int) -> bool:
        return step >= 0


def test_from_plain_python(tmp_path: Path, held: TrainingJobs) -> None:
    held.jobs = {"Mnist-1": "InProgress"}
    rawtrial.write(tmp_path, evaluating.trial({0: {"loss": np.zeros(1)}}))
    text = '{"name": "stoptraining", "training_job_prefix": "Mnist"}'
    with pytest.raises(RuleEvaluationConditionMet):
        invoke_rule(Met(create_trial(str(tmp_path)), text), raise_eval_cond=True)
    assert held.stopped == ["Mnist-1"]
