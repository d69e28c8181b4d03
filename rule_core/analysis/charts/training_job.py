"""TrainingJob: a training job of SageMaker, with readers of its profiler data."""

import sys
from typing import Any, Final

from rule_core.clock import Clock, SystemClock
from rule_core.exceptions import SMDebugRuntimeError, SMDebugValueError
from rule_core.profiler.files.time_units import us_since_epoch_to_human_readable_time
from rule_core.profiler.readers.framework_reader import S3AlgorithmMetricsReader
from rule_core.profiler.readers.metrics_reader import MetricsReaderBase
from rule_core.profiler.readers.system_reader import S3SystemMetricsReader
from rule_core.storage import aws

WAIT_S: Final = 3600.0
_PAUSE_S: Final = 10.0
_CALL_S: Final = 30.0  # how long calls are retried
_ENDED: Final = frozenset({"Completed", "Failed", "Stopped"})


class TrainingJob:
    """A training job of SageMaker with a profiler.

    Parameters
    ----------
    training_job_name
        Name of the job.
    region
        Region of the job; None takes it from the environment or the AWS profile.
    clock
        Clock for waiting.

    Attributes
    ----------
    name
        Name of the job.
    profiler_config
        Its ProfilerConfig, as returned by DescribeTrainingJob.
    profiler_s3_output_path
        The address with ``system`` and ``framework``.
    system_metrics_reader, framework_metrics_reader
        Readers of the data; None until a ``wait_for_...`` method was called.

    Raises
    ------
    SMDebugValueError
        If the job has no profiler.
    SMDebugRuntimeError
        If the job cannot be described.
    """

    def __init__(
        self, training_job_name: str, region: str | None = None, *, clock: Clock | None = None
    ) -> None:
        self.name = training_job_name
        self._clock = clock or SystemClock()
        try:
            self.sm_client = aws.client("sagemaker", region=region)
        except aws.errors() as err:
            raise SMDebugRuntimeError(
                f"SageMaker cannot be called: {aws.fault(err).reason}."
            ) from err
        self.profiler_config: dict[str, Any] | None = None
        self.profiler_s3_output_path = ""
        self.system_metrics_reader: S3SystemMetricsReader | None = None
        self.framework_metrics_reader: S3AlgorithmMetricsReader | None = None
        self.get_config_and_profiler_s3_output_path()

    def get_systems_metrics_reader(self) -> S3SystemMetricsReader | None:
        """Return the reader of system metrics; None before waiting for them."""
        return self.system_metrics_reader

    def get_framework_metrics_reader(self) -> S3AlgorithmMetricsReader | None:
        """Return the reader of framework events; None before waiting for them."""
        return self.framework_metrics_reader

    def get_sm_client(self) -> Any:
        """Return the SageMaker client."""
        return self.sm_client

    def describe_training_job(self) -> dict[str, Any]:
        """Call DescribeTrainingJob.

        Raises
        ------
        SMDebugRuntimeError
            If the call fails.
        """
        try:
            response: dict[str, Any] = aws.call(
                lambda: self.sm_client.describe_training_job(TrainingJobName=self.name),
                deadline_s=_CALL_S,
                clock=self._clock,
            )
        except aws.AwsCallError as err:
            msg = f"Training job {self.name!r} cannot be described: {err.fault.reason}."
            if "AccessDenied" in err.fault.code:
                msg += " The role needs sagemaker:DescribeTrainingJob."
            raise SMDebugRuntimeError(msg) from err
        return response

    def get_config_and_profiler_s3_output_path(self) -> tuple[dict[str, Any], str]:
        """Return the job's ProfilerConfig and the address of the profiler output.

        Raises
        ------
        SMDebugValueError
            If the job has no profiler.
        SMDebugRuntimeError
            If the job cannot be described.
        """
        if self.profiler_config is None:
            config = self.describe_training_job().get("ProfilerConfig") or {}
            root = config.get("S3OutputPath", "")
            if not root or config.get("DisableProfiler"):
                raise SMDebugValueError(
                    f"Training job {self.name!r} has no profiler: its ProfilerConfig is {config!r}."
                    " Start the job with a profiler_config that has an S3 output path."
                )
            self.profiler_config = config
            self.profiler_s3_output_path = f"{root.rstrip('/')}/{self.name}/profiler-output"
            _print(f"ProfilerConfig: {config}")
            _print(f"S3 path: {self.profiler_s3_output_path}")
        return self.profiler_config, self.profiler_s3_output_path

    def wait_for_sys_profiling_data_to_be_available(self, timeout: float = WAIT_S) -> None:
        """Wait until system metrics exist.

        Parameters
        ----------
        timeout
            Seconds to wait.

        Raises
        ------
        SMDebugRuntimeError
            If the job ended without any, the time is over, or AWS cannot be called.
        StorageUnavailableError
            If S3 is unavailable.
        """
        self.system_metrics_reader = S3SystemMetricsReader(self.profiler_s3_output_path)
        self._wait(self.system_metrics_reader, "system", timeout)

    def wait_for_framework_profiling_data_to_be_available(self, timeout: float = WAIT_S) -> None:
        """Wait until framework events exist.

        Parameters and errors are those of `wait_for_sys_profiling_data_to_be_available`.
        """
        self.framework_metrics_reader = S3AlgorithmMetricsReader(self.profiler_s3_output_path)
        self._wait(self.framework_metrics_reader, "framework", timeout)

    def _wait(self, reader: MetricsReaderBase, kind: str, timeout: float) -> None:
        end = self._clock.monotonic() + timeout
        printed = ("", "")
        while not (newest := reader.get_timestamp_of_latest_available_file()):
            job = self.describe_training_job()
            status = job.get("TrainingJobStatus", ""), job.get("SecondaryStatus", "")
            if status != printed:
                printed = status
                _print(f"There are no {kind} metrics yet; the job is {status[0]}, {status[1]}.")
            reader.refresh_event_file_list()  # finds data written before the job ended
            if not reader.get_timestamp_of_latest_available_file():
                self._check(kind, status[0], timeout, end - self._clock.monotonic())
                self._clock.sleep(min(_PAUSE_S, max(end - self._clock.monotonic(), 0.0)))
        _print(f"The newest {kind} metrics are of {us_since_epoch_to_human_readable_time(newest)}.")

    def _check(self, kind: str, status: str, timeout: float, remaining: float) -> None:
        """Raise an error if waiting is useless."""
        missing = f"no {kind} metrics below {self.profiler_s3_output_path!r}"
        if status in _ENDED:
            raise SMDebugRuntimeError(
                f"Training job {self.name!r} is {status}, and there are {missing}."
            )
        if remaining <= 0:
            raise SMDebugRuntimeError(
                f"After {timeout:g} s there are {missing}. Wait longer with timeout=."
            )


def _print(text: str) -> None:
    sys.stdout.write(f"{text}\n")
