"""TrainingJob: a training job of SageMaker: where its profiler writes, and readers of that."""

import sys
from typing import Any, Final

from smdebug.core.clock import Clock, SystemClock
from smdebug.exceptions import SMDebugRuntimeError, SMDebugValueError
from smdebug.profiler.algorithm_metrics_reader import S3AlgorithmMetricsReader
from smdebug.profiler.metrics_reader_base import MetricsReaderBase
from smdebug.profiler.system_metrics_reader import S3SystemMetricsReader
from smdebug.profiler.utils import us_since_epoch_to_human_readable_time
from smdebug.storage import aws
from smdebug.storage.retry import retry

WAIT_S: Final = 3600.0
_PAUSE_S: Final = 10.0
_CALL_S: Final = 30.0  # for how long a call is tried again
_ENDED: Final = frozenset({"Completed", "Failed", "Stopped"})


class TrainingJob:
    """A training job of SageMaker that is, or was, profiled.

    Parameters
    ----------
    training_job_name
        Its name.
    region
        Where it runs; None is where the environment or the profile says.
    clock
        Tells the time and waits.

    Attributes
    ----------
    name
        Its name.
    profiler_config
        Its ProfilerConfig, as DescribeTrainingJob answers it.
    profiler_s3_output_path
        The address that holds ``system`` and ``framework``.
    system_metrics_reader, framework_metrics_reader
        None before data were waited for.

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
            msg = f"SageMaker cannot be called: {aws.fault(err).reason}."
            raise SMDebugRuntimeError(msg) from err
        self.profiler_config: dict[str, Any] | None = None
        self.profiler_s3_output_path = ""
        self.system_metrics_reader: S3SystemMetricsReader | None = None
        self.framework_metrics_reader: S3AlgorithmMetricsReader | None = None
        self.get_config_and_profiler_s3_output_path()

    def get_systems_metrics_reader(self) -> S3SystemMetricsReader | None:
        """Return the reader of system metrics; None before they were waited for."""
        return self.system_metrics_reader

    def get_framework_metrics_reader(self) -> S3AlgorithmMetricsReader | None:
        """Return the reader of framework events; None before they were waited for."""
        return self.framework_metrics_reader

    def get_sm_client(self) -> Any:
        """Return the client of SageMaker."""
        return self.sm_client

    def describe_training_job(self) -> dict[str, Any]:
        """Return what SageMaker answers to DescribeTrainingJob.

        Raises
        ------
        SMDebugRuntimeError
            If it does not.
        """
        kinds = aws.errors()
        try:
            answer: dict[str, Any] = retry(
                lambda: self.sm_client.describe_training_job(TrainingJobName=self.name),
                passes=lambda err: isinstance(err, kinds) and aws.fault(err).transient,
                deadline_s=_CALL_S,
                clock=self._clock,
            )
        except kinds as err:
            fault = aws.fault(err)
            remedy = (
                " The role needs sagemaker:DescribeTrainingJob."
                if "AccessDenied" in fault.code
                else ""
            )
            msg = f"Training job {self.name!r} cannot be described: {fault.reason}.{remedy}"
            raise SMDebugRuntimeError(msg) from err
        return answer

    def get_config_and_profiler_s3_output_path(self) -> tuple[dict[str, Any], str]:
        """Return the job's ProfilerConfig, and the address of what the profiler writes.

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
                msg = (
                    f"Training job {self.name!r} has no profiler: its ProfilerConfig is {config!r}."
                    " Start the job with a profiler_config that has an S3 output path."
                )
                raise SMDebugValueError(msg)
            self.profiler_config = config
            self.profiler_s3_output_path = f"{root.rstrip('/')}/{self.name}/profiler-output"
            _say(f"ProfilerConfig: {config}")
            _say(f"S3 path: {self.profiler_s3_output_path}")
        return self.profiler_config, self.profiler_s3_output_path

    def wait_for_sys_profiling_data_to_be_available(self, timeout: float = WAIT_S) -> None:
        """Return when there are system metrics.

        Parameters
        ----------
        timeout
            Seconds.

        Raises
        ------
        SMDebugRuntimeError
            If the job has ended without any, none came in time, or AWS cannot be asked.
        StorageUnavailableError
            If S3 cannot be asked.
        """
        self.system_metrics_reader = S3SystemMetricsReader(self.profiler_s3_output_path)
        self._wait(self.system_metrics_reader, "system", timeout)

    def wait_for_framework_profiling_data_to_be_available(self, timeout: float = WAIT_S) -> None:
        """Return when there are framework events.

        Parameters and errors are those of `wait_for_sys_profiling_data_to_be_available`.
        """
        self.framework_metrics_reader = S3AlgorithmMetricsReader(self.profiler_s3_output_path)
        self._wait(self.framework_metrics_reader, "framework", timeout)

    def _wait(self, reader: MetricsReaderBase, kind: str, timeout: float) -> None:
        end = self._clock.monotonic() + timeout
        told = ("", "")
        while not reader.get_timestamp_of_latest_available_file():
            described = self.describe_training_job()
            status = described.get("TrainingJobStatus", ""), described.get("SecondaryStatus", "")
            if status != told:
                told = status
                _say(f"There are no {kind} metrics yet; the job is {status[0]}, {status[1]}.")
            reader.refresh_event_file_list()  # what came before the job ended is there now
            if reader.get_timestamp_of_latest_available_file():
                break
            self._check(kind, status[0], timeout, end - self._clock.monotonic())
            self._clock.sleep(min(_PAUSE_S, max(end - self._clock.monotonic(), 0.0)))
        newest = reader.get_timestamp_of_latest_available_file()
        _say(f"The newest {kind} metrics are of {us_since_epoch_to_human_readable_time(newest)}.")

    def _check(self, kind: str, status: str, timeout: float, left: float) -> None:
        """Raise an error if waiting is of no use."""
        where = f"no {kind} metrics below {self.profiler_s3_output_path!r}"
        if status in _ENDED:
            msg = f"Training job {self.name!r} is {status}, and there are {where}."
            raise SMDebugRuntimeError(msg)
        if left <= 0:
            msg = f"After {timeout:g} s there are {where}. Wait longer with timeout=."
            raise SMDebugRuntimeError(msg)


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
