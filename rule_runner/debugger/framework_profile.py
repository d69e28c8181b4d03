"""Framework profiling: all kinds of metrics, or only configured ones."""

from typing import Final

from rule_runner.debugger.checks import require, require_integer, require_positive_number
from rule_runner.debugger.metrics_config import (
    NO_BOUNDS,
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
    """The metrics to profile in the framework, and the rotation of files.

    Without a range or a configuration, all kinds of metrics are profiled at their default steps;
    with a range, all of them in that range; with configurations only those, and the range is
    ignored.

    Parameters
    ----------
    local_path
        Folder of the files in the training container.
    file_max_size
        Size in bytes at which a file is closed.
    file_close_interval
        Time in seconds after which a file is closed.
    file_open_fail_threshold
        Number of files that could not be opened after which profiling ends.
    detailed_profiling_config, dataloader_profiling_config, python_profiling_config, \
    horovod_profiling_config, smdataparallel_profiling_config
        Configurations of metrics, sent under the names of their classes.
    start_step, num_steps
        The first step, and the number of steps.
    start_unix_time, duration
        Alternatively the start and the duration in seconds.

    Attributes
    ----------
    profiling_parameters
        All values as strings, by the names of the service.

    Raises
    ------
    AssertionError
        If an argument is invalid.
    AttributeError
        If a configuration has the wrong type.
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
        chosen: dict[str, MetricsConfigBase]
        chosen = {name: config for name, config in configs.items() if config is not None}
        if not chosen:  # all kinds in one range; at their default steps if it has no bounds
            bounds = (start_step, num_steps, start_unix_time, duration)
            is_default = bounds == NO_BOUNDS
            chosen = {kind.__name__: kind(*bounds, is_default) for kind in KINDS}
        for argument, config in chosen.items():
            try:
                self.profiling_parameters[config.name] = config.to_json_string()
            except AttributeError as err:
                raise AttributeError(
                    f"Argument {argument} must be a configuration of metrics, got {config!r}."
                ) from err
