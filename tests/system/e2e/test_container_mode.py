"""Container mode: the contract's environment in, results, message file and exit code out."""

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import s3_objects
import saved
from click.testing import CliRunner, Result

from rule_runner.cli import main
from rule_runner.config import sagemaker_contract
from rule_runner.engine.evaluation_context import EvaluationContext
from rule_runner.steps.watcher import TrialWatcher
from smdebug.core.modes import ModeKeys
from smdebug.core.writer import TrialWriter

pytestmark = pytest.mark.usefixtures("sigterm_restored")
MET = (
    "RuleEvaluationConditionMet: Evaluation of the rule {} at step {} "
    "resulted in the condition being met\n"
)
RULE = """
from smdebug.rules import Rule
class Mine(Rule):
    def __init__(self, base_trial, threshold, start_step="0", other_trials=None):
        super().__init__(base_trial, other_trials=other_trials)
        self.threshold, self.start_step = threshold, start_step
    def invoke_at_step(self, step):
        assert isinstance(self.threshold, str) and isinstance(self.start_step, str)
        ours = self.base_trial.tensor("loss").value(step)
        others = [one.tensor("loss").value(step) for one in self.other_trials or ()]
        return bool(step >= int(self.start_step) and sum([ours, *others]) < float(self.threshold))
"""


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return what stands for /opt/ml, with an ended trial: losses 1, 0.9 ... at steps 0 to 9."""
    monkeypatch.setenv("RULE_RUNNER_ROOT", str(tmp_path))
    write_trial(tmp_path / "processing/input/tensors")
    return tmp_path


def write_trial(path: Path, *, end_job: bool = True) -> Path:
    collections = {"losses": "loss", "gradients": "^gradient"}
    with TrialWriter(path, collections=collections, end_job=end_job) as writer:
        for step in range(10):
            tensors = {
                "loss": np.array([(10 - step) / 10]),
                "gradient/w": np.full((2, 2), 10.0**-step),
            }
            writer.step(step, tensors, mode=ModeKeys.TRAIN)
    return path


def run(environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Result:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    return CliRunner().invoke(main, [])


def write_job(root: Path, environment: dict[str, str], **more: Any) -> None:
    path = root / "config" / "processingjobconfig.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"ProcessingJobName": "j", "Environment": environment, **more}))


def message(root: Path) -> str | None:
    path = root / "output" / "message"
    return path.read_bytes().decode() if path.exists() else None


def rule_result(root: Path, place: str = "processing/output/rule") -> dict[str, Any]:
    found: dict[str, Any] = saved.result(root / place)
    return found


@pytest.mark.smoke
def test_an_issue_is_exit_0_and_the_message_ends_with_a_newline(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = run({"rule_to_invoke": "VanishingGradient", "threshold": "1e-5"}, monkeypatch)
    assert result.exit_code == 0
    assert message(root) == MET.format("VanishingGradient", 6)
    found = rule_result(root)
    assert (found["status"], found["step"], found["parameters"]["threshold"]) == (
        "IssuesFound",
        6,
        1e-5,
    )


def test_the_message_waits_for_neither_actions_nor_sinks(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str | None] = []
    end_actions = EvaluationContext.end_actions

    def look(session: EvaluationContext, *, wait: bool) -> None:
        seen.append(message(root))
        end_actions(session, wait=wait)

    monkeypatch.setattr(EvaluationContext, "end_actions", look)
    run({"rule_to_invoke": "VanishingGradient", "threshold": "1e-5"}, monkeypatch)
    assert seen == [MET.format("VanishingGradient", 6)]


def test_a_rule_may_be_observed_only(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job = {"rule_to_invoke": "VanishingGradient", "threshold": "1e-5"}
    write_job(root, job | {"RULE_RUNNER_MODE": "observe", "mode": "TRAIN"})
    result = run({}, monkeypatch)
    assert (result.exit_code, result.stderr) == (
        1,
        (
            "Error: Unknown parameter 'mode' of rule 'VanishingGradient'. "
            "Its parameters: 'threshold', 'literal'.\n"
        ),
    )
    write_job(root, job | {"RULE_RUNNER_MODE": "observe"})
    result = run({"RULE_RUNNER_OVERWRITE": "1"}, monkeypatch)
    assert (result.exit_code, rule_result(root)["mode"]) == (0, "observe")
    assert "IssuesFound at step 6 (warning, observed)" in result.stdout
    assert message(root) == MET.format("VanishingGradient", 6)


@pytest.mark.parametrize("by", ["file", "environment"])
def test_sinks_are_named_by_the_environment(
    root: Path, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    sinks = f"file:{root / 'told'} webhook:http://127.0.0.1:1/secret"
    job = {"rule_to_invoke": "VanishingGradient", "threshold": "1e-5"}
    job |= {"RULE_RUNNER_SINKS": sinks, "RULE_RUNNER_SINK_DEADLINE": "0.5"}
    if by == "file":
        write_job(root, job)
    result = run({} if by == "file" else job, monkeypatch)
    assert result.exit_code == 0
    told = [json.loads(line)["detail"] for line in (root / "told").read_text().splitlines()]
    assert told[-1]["DebugRuleEvaluationStatuses"][0]["RuleEvaluationStatus"] == "IssuesFound"
    assert "events_not_delivered" in result.stderr
    assert "secret" not in result.stderr


def test_a_sink_that_is_none_is_one_sentence(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    environment = {"rule_to_invoke": "VanishingGradient", "RULE_RUNNER_SINKS": "evntbridge"}
    result = run(environment, monkeypatch)
    text = message(root) or ""
    assert result.exit_code == 1
    assert text.startswith(
        "ClientError: Environment variable RULE_RUNNER_SINKS cannot be used: Unknown sink "
        "'evntbridge'. Did you mean 'eventbridge'?"
    )


def test_a_mode_that_is_none_is_one_sentence(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    environment = {"rule_to_invoke": "VanishingGradient", "RULE_RUNNER_MODE": "watch"}
    result = run(environment, monkeypatch)
    assert (result.exit_code, message(root)) == (
        1,
        "ClientError: Parameter 'RULE_RUNNER_MODE' must be 'enforce' or 'observe', got 'watch'.",
    )


def test_no_issue_leaves_no_message(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = run({"rule_to_invoke": "ExplodingTensor"}, monkeypatch)
    assert (result.exit_code, message(root)) == (0, None)
    assert rule_result(root)["status"] == "NoIssuesFound"


def test_the_job_file_wins_over_the_environment_and_gives_names_and_places(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_job(
        root,
        {
            "rule_to_invoke": "VanishingGradient",
            "threshold": "1e-3",
            "SAGEMAKER_START_TIMESTAMP_OF_RULE": "1",
            "TRAINING_JOB_ARN": "arn:aws:sagemaker:eu-west-1:111122223333:training-job/mnist-42",
            "TRAINING_IMAGE": "x",
            "AWS_REGION": "eu-west-1",
            "end_step": "",
        },
        ProcessingInputs=[
            {
                "InputName": "Tensors",
                "S3Input": {"LocalPath": "/opt/ml/processing/input/tensors"},
            }
        ],
        ProcessingOutputConfig={
            "Outputs": [
                {
                    "OutputName": "RuleOutput",
                    "S3Output": {
                        "S3Uri": "s3://b/mnist-42/rule-output/GradientCheck",
                        "LocalPath": "/opt/ml/processing/output/elsewhere",
                    },
                }
            ]
        },
    )
    result = run({"rule_to_invoke": "AllZero", "threshold": "1e-9"}, monkeypatch)
    assert result.exit_code == 0
    found = rule_result(root, "processing/output/elsewhere")
    assert (found["configuration_name"], found["rule"], found["step"]) == (
        "GradientCheck",
        "VanishingGradient",
        4,
    )
    events = (root / "processing/output/elsewhere/events.jsonl").read_text().splitlines()
    assert {json.loads(line)["detail"]["TrainingJobName"] for line in events} == {"mnist-42"}


def test_a_misspelt_parameter_in_the_job_file_is_an_error(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_job(root, {"rule_to_invoke": "VanishingGradient", "treshold": "1"})
    result = run({}, monkeypatch)
    assert result.exit_code == 1
    text = message(root) or ""
    assert text.startswith("ClientError: Unknown parameter 'treshold' of rule 'VanishingGradient'.")
    found = rule_result(root)
    assert (found["status"], found["status_details"]) == ("Error", text)


def test_a_near_miss_in_the_environment_is_a_warning(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = run({"rule_to_invoke": "VanishingGradient", "treshold": "1"}, monkeypatch)
    assert result.exit_code == 0
    assert rule_result(root)["step"] == 8
    assert "'treshold' is no parameter. Did you mean 'threshold'?" in result.stderr


@pytest.mark.parametrize("source", ["{}", "file://{}"])
def test_a_rule_file_gets_its_strings_its_own_start_step_and_other_trials(
    root: Path, monkeypatch: pytest.MonkeyPatch, source: str
) -> None:
    (root / "mine.py").write_text(RULE)
    write_trial(root / "other")
    environment = {
        "rule_to_invoke": "Mine",
        "source_s3_uri": source.format(root / "mine.py"),
        "threshold": "0.9",
        "start_step": "7",
        "other_trial_0": str(root / "other"),
    }
    result = run(environment, monkeypatch)
    assert (result.exit_code, message(root)) == (0, MET.format("Mine", 7))
    found = rule_result(root)
    assert found["parameters"] == {"threshold": "0.9", "start_step": "7"}
    assert (found["coverage"]["known"], found["coverage"]["judged"]) == (10, 8)


@pytest.fixture
def s3(aws_endpoint: str, tmp_path: Path) -> Any:
    """Return a client of an S3 that has the rule file, and a trial at ``s3://bucket/other``."""
    client = s3_objects.make_bucket(aws_endpoint)
    client.put_object(Bucket="bucket", Key="rules/mine.py", Body=RULE.encode())
    other = write_trial(tmp_path / "for-s3")
    files = {one for one in other.rglob("*") if one.is_file()}
    content = {one.relative_to(other).as_posix(): one.read_bytes() for one in files}
    s3_objects.put(aws_endpoint, "other/", content)
    return client


@pytest.mark.parametrize("others", ["other_trial_0", "other_trials"])
def test_a_rule_file_and_other_trials_in_s3(
    root: Path, monkeypatch: pytest.MonkeyPatch, s3: Any, others: str
) -> None:
    environment = {
        "rule_to_invoke": "Mine",
        "source_s3_uri": "s3://bucket/rules/mine.py",
        "threshold": "0.9",
        others: "s3://bucket/other",
    }
    write_job(root, environment)
    result = run({}, monkeypatch)
    # Both trials have the same losses: their sum is below 0.9 from 2 x 0.4 on.
    assert (result.exit_code, message(root)) == (0, MET.format("Mine", 6))
    put = s3.head_object(Bucket="bucket", Key="rules/mine.py")
    assert rule_result(root)["source"] == {
        "location": "s3://bucket/rules/mine.py",
        "sha256": hashlib.sha256(RULE.encode()).hexdigest(),
        "version_id": None,
        "etag": put["ETag"].strip('"'),
    }


def test_a_built_in_rule_is_given_another_trial_in_s3(
    root: Path, monkeypatch: pytest.MonkeyPatch, s3: Any
) -> None:
    del s3
    environment = {"rule_to_invoke": "SimilarAcrossRuns", "other_trial_0": "s3://bucket/other"}
    result = run({**environment, "include_regex": "gradient"}, monkeypatch)
    assert (result.exit_code, message(root)) == (0, None)
    found = rule_result(root)
    assert (found["status"], found["coverage"]["judged"]) == ("NoIssuesFound", 10)
    assert found["source"] is None


@pytest.mark.parametrize(
    ("environment", "sentence"),
    [
        (
            {"source_s3_uri": "s3://bucket/rules/no.py"},
            "Rule file s3://bucket/rules/no.py does not exist.",
        ),
        (
            {"source_s3_uri": "s3://bucket/rules/"},
            "Rule file address s3://bucket/rules/ names no file. ",
        ),
        (
            {"source_s3_uri": "s3://nowhere/mine.py"},
            "Rule file s3://nowhere/mine.py cannot be fetched: bucket 'nowhere' does not exist. ",
        ),
        (
            {"rule_to_invoke": "Yours", "source_s3_uri": "s3://bucket/rules/mine.py"},
            "No class 'Yours' in s3://bucket/rules/mine.py. Rule classes there: 'Mine'.",
        ),
        (
            {"rule_to_invoke": "SimilarAcrossRuns", "other_trial_0": "s3://nowhere/t"},
            "Trial 's3://nowhere/t' cannot be read: bucket 'nowhere' does not exist. ",
        ),
    ],
)
def test_what_s3_does_not_give_is_one_sentence_in_the_message(
    root: Path,
    monkeypatch: pytest.MonkeyPatch,
    s3: Any,
    environment: dict[str, str],
    sentence: str,
) -> None:
    del s3
    result = run({"rule_to_invoke": "Mine", **environment}, monkeypatch)
    assert result.exit_code == 1
    assert (message(root) or "").startswith(f"ClientError: {sentence}")
    found = rule_result(root)
    assert (found["status"], found["source"]) == ("Error", None)


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        (
            {"rule_to_invoke": "VanishingGradient", "threshold": "1e-5"},
            MET.format("VanishingGradient", 6).strip(),
        ),
        ({"rule_to_invoke": "Nope"}, "ClientError: Unknown rule 'Nope'. "),
        (
            {"rule_to_invoke": "VanishingGradient", "start_step": "99"},
            "InsufficientInformationForRuleInvocation: ",
        ),
    ],
)
def test_a_verdict_that_cannot_be_told_is_exit_73(
    root: Path, monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], said: str
) -> None:
    (root / "output" / "message").mkdir(parents=True)
    result = run(environment, monkeypatch)
    assert result.exit_code == 73
    assert f"Cannot write '{root}/output/message': Is a directory. It would have said: {said}" in (
        result.stderr
    )
    assert rule_result(root)["status"] in {"IssuesFound", "Error"}


def test_a_verdict_that_needs_no_telling_is_exit_0(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "output" / "message").mkdir(parents=True)
    assert run({"rule_to_invoke": "ExplodingTensor"}, monkeypatch).exit_code == 0


def test_start_and_end_step_limit_the_walk_of_other_rules(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment = {"rule_to_invoke": "ExplodingTensor", "start_step": "2", "end_step": "5"}
    result = run(environment, monkeypatch)
    coverage = rule_result(root)["coverage"]
    assert (result.exit_code, coverage["known"], coverage["first"], coverage["last"]) == (
        0,
        3,
        2,
        4,
    )


@pytest.mark.parametrize(
    ("environment", "sentence"),
    [
        ({"start_step": "-1"}, "Parameter 'start_step' must be a whole number >= 0, got '-1'."),
        (
            {"rule_stop_grace_time_secs": "soon"},
            "Parameter 'rule_stop_grace_time_secs' must be a finite number >= 0, got 'soon'.",
        ),
        (
            {"source_s3_uri": "https://b/mine.py"},
            (
                "Rule files at https:// addresses cannot be fetched, got 'https://b/mine.py'. "
                "Give a path, or an address in S3: s3://bucket/rules/my_rule.py."
            ),
        ),
        (
            {"other_trials": "gs://b/t"},
            "Trials at gs:// addresses cannot be read yet, got 'gs://b/t'. ",
        ),
        ({"rule_to_invoke": "Nope"}, "Unknown rule 'Nope'. Built-in rules: "),
        ({"action_json": "{"}, "Actions must be JSON: "),
    ],
)
def test_what_cannot_be_done_is_one_sentence_in_the_message(
    root: Path, monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], sentence: str
) -> None:
    result = run({"rule_to_invoke": "ExplodingTensor", **environment}, monkeypatch)
    assert result.exit_code == 1
    assert (message(root) or "").startswith(f"ClientError: {sentence}")
    assert rule_result(root)["status"] == "Error"


def test_a_job_file_that_is_none_is_one_sentence(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "config").mkdir()
    (root / "config" / "processingjobconfig.json").write_text("{")
    result = run({}, monkeypatch)
    assert result.exit_code == 1
    assert (message(root) or "").startswith("ClientError: Job configuration '")


@pytest.mark.parametrize("name", ["MyCheck", "ExplodingTensor"])
def test_a_stop_file_named_like_job_or_rule_stops(
    root: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    trial = root / "processing/input/tensors"
    (trial / "training_job_end.ts").unlink()
    (trial / "signals").mkdir()
    (trial / "signals" / name).write_text("0")
    stop = "/opt/ml/processing/input/tensors/signals/MyCheck"
    environment = {"rule_to_invoke": "ExplodingTensor", "rule_stop_grace_time_secs": "1"}
    result = run({**environment, "SAGEMAKER_ENV_RULE_STOP_SIGNAL_FILE": stop}, monkeypatch)
    assert (result.exit_code, message(root)) == (124, None)
    found = rule_result(root)
    assert (found["configuration_name"], found["status"]) == ("MyCheck", "Stopped")
    assert "stop file" in found["status_details"]


def test_a_container_that_waits_says_nothing_of_it(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trial = root / "processing/input/tensors"
    (trial / "training_job_end.ts").unlink()
    (trial / "signals").mkdir()

    def stop(_watcher: TrialWatcher, _seconds: float) -> None:
        (trial / "signals" / "ExplodingTensor").write_text("0")

    monkeypatch.setattr(TrialWatcher, "wait", stop)
    environment = {"rule_to_invoke": "ExplodingTensor", "rule_stop_grace_time_secs": "0"}
    path = "/opt/ml/processing/input/tensors/signals/ExplodingTensor"
    result = run({**environment, "SAGEMAKER_ENV_RULE_STOP_SIGNAL_FILE": path}, monkeypatch)
    assert result.exit_code == 124
    assert rule_result(root)["coverage"]["judged"] == 10
    assert "grow" not in result.stderr


def test_a_verdict_is_written_once_unless_told_to_replace_it(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment = {"rule_to_invoke": "ExplodingTensor"}
    assert run(environment, monkeypatch).exit_code == 0
    before = rule_result(root)
    assert run(environment, monkeypatch).exit_code == 0
    assert rule_result(root) == before
    assert run({**environment, "start_step": "1"}, monkeypatch).exit_code == 73
    monkeypatch.delenv("start_step")
    assert run({**environment, "RULE_RUNNER_OVERWRITE": "1"}, monkeypatch).exit_code == 0
    assert rule_result(root)["status"] == "NoIssuesFound"


def test_sigterm_ends_the_wait_for_a_trial(tmp_path: Path) -> None:
    environment = {**os.environ, "RULE_RUNNER_ROOT": str(tmp_path), "rule_to_invoke": "AllZero"}
    environment["tensor_regex"] = "."
    process = subprocess.Popen(
        [sys.executable, "-m", "rule_runner"], env=environment, stderr=subprocess.DEVNULL
    )
    result = tmp_path / "processing/output/rule/results.json"
    deadline = time.monotonic() + 60
    while not result.exists() and time.monotonic() < deadline:
        assert process.poll() is None
        process_wait(process)
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=60) == 143
    assert rule_result(tmp_path)["status"] == "Stopped"


def process_wait(process: "subprocess.Popen[bytes]") -> None:
    """Let a little time pass, or the process end."""
    try:
        process.wait(timeout=0.05)
    except subprocess.TimeoutExpired:
        return


def test_a_container_that_is_started_again_leaves_its_message_again(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment = {"rule_to_invoke": "VanishingGradient", "threshold": "1e-5"}
    assert run(environment, monkeypatch).exit_code == 0
    (root / "output" / "message").unlink()
    assert run(environment, monkeypatch).exit_code == 0
    assert message(root) == MET.format("VanishingGradient", 6)


@pytest.mark.parametrize(
    ("arn", "name"), [("arn:aws:sagemaker:eu-west-1:1:training-job/real", "real"), ("", "mnist-42")]
)
@pytest.mark.parametrize("place", ["ProcessingInputs", "ProcessingOutputConfig"])
def test_events_name_the_training_job_that_the_jobs_addresses_name(
    root: Path, monkeypatch: pytest.MonkeyPatch, arn: str, name: str, place: str
) -> None:
    inputs = {"InputName": "tensors", "S3Input": {"S3Uri": "s3://b/jobs/mnist-42/debug-output"}}
    output = {"S3Output": {"S3Uri": "s3://b/jobs/mnist-42/rule-output/AllZero"}}
    places = {"ProcessingInputs": [inputs], "ProcessingOutputConfig": {"Outputs": [output]}}
    write_job(root, {"rule_to_invoke": "VanishingGradient"}, **{place: places[place]})
    assert run({"TRAINING_JOB_ARN": arn}, monkeypatch).exit_code == 0
    events = (root / "processing/output/rule/events.jsonl").read_text().splitlines()
    assert {json.loads(one)["detail"]["TrainingJobName"] for one in events} == {name}


TRAINING_ARN = "arn:aws-cn:sagemaker:cn-north-1:111122223333:training-job/mnist-42"
RULE_ARN = "arn:aws-cn:sagemaker:cn-north-1:111122223333:processing-job/mnist-42-gradients-0a1b2c3d"
SYNTHETIC = "arn:aws:sagemaker:{}:{}:training-job/mnist-42"


@pytest.mark.parametrize(
    ("training", "rule", "arn", "rule_arn"),
    [
        pytest.param(TRAINING_ARN, RULE_ARN, TRAINING_ARN, RULE_ARN, id="both"),
        pytest.param(
            "", RULE_ARN, SYNTHETIC.format("cn-north-1", "111122223333"), RULE_ARN, id="rule"
        ),
        pytest.param(TRAINING_ARN, "", TRAINING_ARN, None, id="training"),
        pytest.param("no/arn", "arn:aws:x", None, None, id="neither"),
    ],
)
def test_events_have_the_arns_of_the_platform_not_invented_ones(
    root: Path,
    monkeypatch: pytest.MonkeyPatch,
    training: str,
    rule: str,
    arn: str | None,
    rule_arn: str | None,
) -> None:
    output = {"S3Output": {"S3Uri": "s3://b/mnist-42/rule-output/Gradients"}}
    write_job(
        root,
        {"rule_to_invoke": "VanishingGradient", "TRAINING_JOB_ARN": training},
        ProcessingJobArn=rule,
        ProcessingOutputConfig={"Outputs": [output]},
    )
    assert run({}, monkeypatch).exit_code == 0
    for line in (root / "processing/output/rule/events.jsonl").read_text().splitlines():
        event = json.loads(line)
        (entry,) = event["detail"]["DebugRuleEvaluationStatuses"]
        region, account = ("cn-north-1", "111122223333") if arn else ("us-east-1", "0" * 12)
        assert (event["region"], event["account"]) == (region, account)
        invented = SYNTHETIC.format(region, account).replace("mnist-42", "arn")
        assert event["resources"] == [event["detail"]["TrainingJobArn"]] == [arn or invented]
        job = f"arn:aws:sagemaker:{region}:{account}:processing-job/"
        found = entry["RuleEvaluationJobArn"]
        assert found == rule_arn if rule_arn else found.startswith(job)


NO_RULE = (
    "No rule is named: 'rule_to_invoke' is neither in the environment nor in "
    "'{}/config/processingjobconfig.json'. Add it to the rule's parameters."
)


@pytest.mark.parametrize("job", [None, {}, {"threshold": "1"}], ids=["none", "empty", "no-rule"])
@pytest.mark.parametrize("listens", [True, False])
def test_a_platform_that_names_no_rule_gets_exit_2_and_a_message(
    root: Path, monkeypatch: pytest.MonkeyPatch, job: dict[str, str] | None, *, listens: bool
) -> None:
    if job is not None:
        write_job(root, job)
    if listens:
        (root / "output").mkdir()
    result = run({}, monkeypatch)
    said = NO_RULE.format(root)
    assert (result.exit_code, result.stdout, result.stderr) == (2, "", f"Error: {said}\n")
    assert message(root) == (f"ClientError: {said}" if listens else None)
    assert not (root / "processing/output").exists()


def test_a_rule_file_without_a_rule_is_no_healthy_rule(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = {"RULE_RUNNER_ROOT": str(tmp_path), "source_s3_uri": "s3://rules/mine.py"}
    result = run(named, monkeypatch)
    assert (result.exit_code, result.stderr) == (2, f"Error: {NO_RULE.format(tmp_path)}\n")


@pytest.mark.parametrize(
    ("mounted", "code"),
    [
        ("/ml", 2),
        ("/ml/processing/output/rule", 2),
        ("/ml/output", 2),
        ("/ml/metadata", 0),
        ("/mlx", 0),
    ],
)
def test_folders_of_the_image_count_if_something_is_mounted_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mounted: str, code: int
) -> None:
    (tmp_path / "ml/processing/output/rule").mkdir(parents=True)
    (tmp_path / "ml/output").mkdir()
    mounts = tmp_path / "mounts"
    monkeypatch.setattr(sagemaker_contract, "MOUNTS", mounts)
    root = {"RULE_RUNNER_ROOT": str(tmp_path / "ml")}
    assert run(root, monkeypatch).stdout.startswith("Usage: ")
    mounts.write_bytes(b"overlay / overlay rw 0 0\nx /\xff ext4 rw 0 0\n")
    assert run(root, monkeypatch).stdout.startswith("Usage: ")
    mounts.write_text(f"overlay / overlay rw 0 0\n/dev/x {tmp_path}{mounted} ext4 rw 0 0\n")
    assert run(root, monkeypatch).exit_code == code


def test_an_output_folder_that_cannot_be_used_is_reported_in_the_message(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "processing/output").mkdir()
    (root / "processing/output/rule").symlink_to("elsewhere")
    result = run({"rule_to_invoke": "LossNotDecreasing"}, monkeypatch)
    assert result.exit_code == 73
    assert "is a link or not a folder." in result.stderr
    assert message(root) == f"ClientError: {result.stderr.splitlines()[-1]}"


@pytest.mark.parametrize(
    ("share", "code", "text"),
    [
        ("0.9", 0, None),
        ("0.91", 1, "InsufficientInformationForRuleInvocation: Rule 'LossNotDecreasing' judged 9 "),
        ("9", 1, "ClientError: Parameter 'RULE_RUNNER_MIN_COVERAGE' must be a number from 0 to 1"),
    ],
)
def test_a_container_may_demand_coverage(
    root: Path, monkeypatch: pytest.MonkeyPatch, share: str, code: int, text: str | None
) -> None:
    job = {"rule_to_invoke": "LossNotDecreasing", "num_steps": "1"}
    write_job(root, job | {"RULE_RUNNER_MIN_COVERAGE": share})
    assert run({}, monkeypatch).exit_code == code
    assert (message(root) or "")[: len(text or "")] == (text or "")
