"""TrainingJob: what SageMaker answers, over HTTP, on a job's profiler; and waiting for its data."""

import re
from collections.abc import Iterator
from typing import Any

import aws_server
import profiler_writer as pw
import pytest
import s3_objects
import timeline_writer as tw
from training_jobs_server import TrainingJobs, serving

from rule_core.analysis.charts.training_job import TrainingJob
from rule_core.exceptions import SMDebugRuntimeError, SMDebugValueError

CONFIG = {"S3OutputPath": f"s3://{s3_objects.BUCKET}/runs/", "ProfilingIntervalInMilliseconds": 500}
PATH = f"s3://{s3_objects.BUCKET}/runs/job/profiler-output"
FOUND = "runs/job/profiler-output/"


class Described(TrainingJobs):
    """An endpoint that describes one job.

    Attributes
    ----------
    config
        The job's ProfilerConfig, if any.
    states
        What the job's status is at each question; the last one stays.
    arriving
        Files that come into S3 at the third question.
    """

    def __init__(self, endpoint: str) -> None:
        super().__init__()
        self.endpoint = endpoint
        self.config: dict[str, Any] | None = dict(CONFIG)
        self.states = [("InProgress", "Training")]
        self.arriving: dict[str, bytes] = {}

    def answer(self, verb: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        assert verb == "DescribeTrainingJob"
        if self.faults.get(verb):
            return super().answer(verb, body)
        self.asked.append((verb, body))
        if len(self.asked) == 3:
            s3_objects.put(self.endpoint, FOUND, self.arriving)
        status, secondary = self.states[0] if len(self.states) == 1 else self.states.pop(0)
        found = {"TrainingJobName": "job", "TrainingJobArn": "arn", "TrainingJobStatus": status}
        config = {} if self.config is None else {"ProfilerConfig": self.config}
        return 200, {**found, "SecondaryStatus": secondary, **config}


@pytest.fixture
def sagemaker(aws_endpoint: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Described]:
    s3_objects.make_bucket(aws_endpoint)
    with serving(Described(aws_endpoint)) as held:
        assert isinstance(held, Described)
        monkeypatch.setenv("AWS_ENDPOINT_URL_SAGEMAKER", held.url)
        yield held


def test_where_the_profiler_writes(
    sagemaker: Described, capsys: pytest.CaptureFixture[str]
) -> None:
    job = TrainingJob("job", "eu-west-1")
    assert job.get_config_and_profiler_s3_output_path() == (CONFIG, PATH)
    assert (job.name, job.profiler_config, job.profiler_s3_output_path) == ("job", CONFIG, PATH)
    assert sagemaker.asked == [("DescribeTrainingJob", {"TrainingJobName": "job"})]
    assert job.get_sm_client().meta.region_name == "eu-west-1"
    assert (job.get_systems_metrics_reader(), job.get_framework_metrics_reader()) == (None, None)
    assert f"S3 path: {PATH}\n" in capsys.readouterr().out


@pytest.mark.parametrize("config", [None, {}, {**CONFIG, "DisableProfiler": True}])
def test_a_job_without_a_profiler(sagemaker: Described, config: dict[str, Any] | None) -> None:
    sagemaker.config = config
    text = r"Training job 'job' has no profiler: its ProfilerConfig is \{.*\}\. Start the job with"
    with pytest.raises(SMDebugValueError, match=text):
        TrainingJob("job")
    assert len(sagemaker.asked) == 1


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("ValidationException", "ValidationException: No such job.$"),
        (
            "AccessDeniedException",
            "AccessDeniedException: No such job. The role needs sagemaker:DescribeTrainingJob.$",
        ),
    ],
)
def test_a_job_that_cannot_be_described(sagemaker: Described, code: str, text: str) -> None:
    sagemaker.faults["DescribeTrainingJob"] = [(400, code, "No such job.")]
    with pytest.raises(
        SMDebugRuntimeError, match=f"Training job 'job' cannot be described: {text}"
    ):
        TrainingJob("job")


def test_no_client(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in aws_server.ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_ENDPOINT_URL", "nowhere")
    text = "SageMaker cannot be called: AWS_ENDPOINT_URL is not a URL such as https://host:port."
    with pytest.raises(SMDebugRuntimeError, match=re.escape(text)):
        TrainingJob("job")


def test_a_fault_that_passes_is_tried_again(sagemaker: Described, clock: Any) -> None:
    sagemaker.faults["DescribeTrainingJob"] = [(400, "ThrottlingException", "Slow down.")]
    assert TrainingJob("job", clock=clock).profiler_s3_output_path == PATH
    assert len(clock.sleeps) == 1


def test_data_that_come_later(
    sagemaker: Described, clock: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    end_us = tw.START_US + 1_000_000
    timeline = tw.text(tw.records([tw.step(0, 0, 1_000_000)])).encode()
    sagemaker.arriving = {tw.key(end_us): timeline, **pw.files(pw.cpu([1, 2]))}
    job = TrainingJob("job", clock=clock)
    sagemaker.states = [("InProgress", "Starting"), ("InProgress", "Training")]
    capsys.readouterr()
    job.wait_for_sys_profiling_data_to_be_available()
    assert clock.sleeps == [10]
    assert capsys.readouterr().out.splitlines() == [
        "There are no system metrics yet; the job is InProgress, Starting.",
        "There are no system metrics yet; the job is InProgress, Training.",
        "The newest system metrics are of 2020-09-13T12:27:00:000000.",
    ]
    system = job.get_systems_metrics_reader()
    assert system is not None
    assert [one.value for one in system.get_events(0, pw.BEGIN_US + 1_000_000)] == [1, 2]
    job.wait_for_framework_profiling_data_to_be_available()
    framework = job.get_framework_metrics_reader()
    assert framework is not None
    assert framework.get_timestamp_of_latest_available_file() == end_us
    assert clock.sleeps == [10]


def test_a_job_that_ended_without_data(sagemaker: Described, clock: Any) -> None:
    job = TrainingJob("job", clock=clock)
    sagemaker.states = [("Failed", "Failed")]
    text = f"Training job 'job' is Failed, and there are no system metrics below '{PATH}'."
    with pytest.raises(SMDebugRuntimeError, match=text):
        job.wait_for_sys_profiling_data_to_be_available()
    assert clock.sleeps == []


def test_waiting_has_an_end(sagemaker: Described, clock: Any) -> None:
    job = TrainingJob("job", clock=clock)
    text = f"After 25 s there are no framework metrics below '{PATH}'. Wait longer with timeout=."
    with pytest.raises(SMDebugRuntimeError, match=text):
        job.wait_for_framework_profiling_data_to_be_available(timeout=25)
    assert clock.sleeps == [10, 10, 5]
    assert len(sagemaker.asked) == 5
