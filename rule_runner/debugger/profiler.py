"""The configuration of SageMaker Profiler, the successor of framework profiling."""

from typing import Final

INSTANCE_TYPE: Final = "ml.m5.4xlarge"
VOLUME_SIZE_IN_GB: Final = 128


class Profiler:
    """The configuration of SageMaker Profiler for a training job.

    Parameters
    ----------
    cpu_profiling_duration
        Duration of CPU profiling in seconds.
    file_rotation_interval
        Interval in seconds after which a new file is started.

    Attributes
    ----------
    profiling_parameters
        Both values as strings, by the names of the service.
    instanceType, volumeSizeInGB
        Instance type and disk size of the job that processes the profile.
    """

    def __init__(
        self, cpu_profiling_duration: str = "3600", file_rotation_interval: str = "600"
    ) -> None:
        self.profiling_parameters = {
            "CPUProfilingDuration": str(cpu_profiling_duration),
            "SMPFileRotationSecs": str(file_rotation_interval),
        }
        self.instanceType = INSTANCE_TYPE
        self.volumeSizeInGB = VOLUME_SIZE_IN_GB
