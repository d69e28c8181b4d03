"""What is profiled of the framework: all kinds of metrics, or those that are configured."""

from typing import Final

from rule_runner.debugger.checks import require, require_integer, require_positive_number
from rule_runner.debugger.metrics_config import (
    DataloaderProfilingConfig,
    DefaultStepsConfig,
    DetailedProfilingConfig,
    HorovodProfilingConfig,
    MetricsConfigBase,
    PythonProfilingConfig,
    SMDataParallelProfilingConfig,
)

KINDS: Final[tuple[type[DefaultStepsConfig], ...]] = (
    DetailedProfilingConfig,
    DataloaderProfilingConfig,
    PythonProfilingConfig,
    HorovodProfilingConfig,
    SMDataParallelProfilingConfig,
)


class FrameworkProfile:
    """What is profiled of the framework, and how the files are cut.

    Without a range or a configuration all kinds of metrics are taken at their default steps; with
    a range all in it; with configurations only those, and the range is not looked at.

    Parameters
    ----------
    local_path
        Where the training container has the files.
    file_max_size
        A file is closed at this size, in bytes.
    file_close_interval
        And after this time, in seconds.
    file_open_fail_threshold
        Profiling ends when this many files could not be opened.
    detailed_profiling_config, dataloader_profiling_config, python_profiling_config, \
    horovod_profiling_config, smdataparallel_profiling_config
        Each is sent under the name of its own class.
    start_step, num_steps
        The first step and how many.
    start_unix_time, duration
        Or the begin and the length of time, in seconds.

    Attributes
    ----------
    profiling_parameters
        All of it as strings, under the names of the service.

    Raises
    ------
    AssertionError
        If an argument is not what it must be.
    AttributeError
        If a configuration is of no kind of metrics.
    """

    def __init__(
        self,
        local_path: str = "/opt/ml/output/profiler",
        file_max_size: int = 10485760,
        file_close_interval: float = 60,
        file_open_fail_threshold: int = 50,
        detailed_profiling_config: DetailedProfilingConfig | None = None,
        dataloader_profiling_config: DataloaderProfilingConfig | None = None,
        python_profiling_config: PythonProfilingConfig | None = None,
        horovod_profiling_config: HorovodProfilingConfig | None = None,
        smdataparallel_profiling_config: SMDataParallelProfilingConfig | None = None,
        start_step: int | None = None,
        num_steps: int | None = None,
        start_unix_time: int | None = None,
        duration: float | None = None,
    ) -> None:
        require(isinstance(local_path, str), "local_path", "a string", local_path)
        require_integer("file_max_size", file_max_size, 1)
        require_positive_number("file_close_interval", file_close_interval)
        require_integer("file_open_fail_threshold", file_open_fail_threshold, 1)
        self.profiling_parameters = {
            "LocalPath": local_path,
            "RotateMaxFileSizeInBytes": str(file_max_size),
            "RotateFileCloseIntervalInSeconds": str(file_close_interval),
            "FileOpenFailThreshold": str(file_open_fail_threshold),
        }
        configs = {
            "detailed_profiling_config": detailed_profiling_config,
            "dataloader_profiling_config": dataloader_profiling_config,
            "python_profiling_config": python_profiling_config,
            "horovod_profiling_config": horovod_profiling_config,
            "smdataparallel_profiling_config": smdataparallel_profiling_config,
        }
        given: dict[str, MetricsConfigBase]
        given = {name: config for name, config in configs.items() if config is not None}
        metrics = given or _all_kinds(start_step, num_steps, start_unix_time, duration)
        for argument, config in metrics.items():
            self._add(argument, config)

    def _add(self, argument: str, config: MetricsConfigBase) -> None:
        try:
            self.profiling_parameters[config.name] = config.to_json_string()
        except AttributeError as err:
            msg = f"Argument {argument} must be a configuration of metrics, got {config!r}."
            raise AttributeError(msg) from err


def _all_kinds(
    start_step: int | None,
    num_steps: int | None,
    start_unix_time: int | None,
    duration: float | None,
) -> dict[str, MetricsConfigBase]:
    """Return all kinds of metrics in one range; at their default steps if it has no bounds."""
    given = (start_step, num_steps, start_unix_time, duration)
    default = given == (None, None, None, None)
    return {kind.__name__: kind(*given, profile_default_steps=default) for kind in KINDS}
