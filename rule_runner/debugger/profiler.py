"""The configuration of SageMaker Profiler, the successor of framework profiling."""

from typing import Final

INSTANCE_TYPE: Final = "ml.m5.4xlarge"
VOLUME_SIZE_IN_GB: Final = 128


class Profiler:
    """How SageMaker Profiler measures a training job.

    Parameters
    ----------
    cpu_profiling_duration
        How long the use of CPUs is measured, in seconds.
    file_rotation_interval
        How often a new file is begun, in seconds.

    Attributes
    ----------
    profiling_parameters
        Both as strings, under the names of the service.
    instanceType, volumeSizeInGB
        Of the job that processes the profile.
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
