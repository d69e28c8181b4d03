"""Configuration of profiling: of the system, and optionally of the framework."""

from dataclasses import dataclass
from typing import Any

from rule_runner.debugger.checks import require
from rule_runner.debugger.framework_profile import FrameworkProfile
from rule_runner.debugger.profiler import Profiler


@dataclass(eq=False, repr=False)
class ProfilerConfig:
    """How a training job is profiled.

    Parameters
    ----------
    s3_output_path
        Destination of the files.
    system_monitor_interval_millis
        Interval of the system metrics in milliseconds; the service accepts 100, 200, 500 (its
        default), 1000, 5000 and 60000. Not checked here.
    framework_profile_params
        The parts of the framework to profile; none by default.
    profile_params
        The configuration of SageMaker Profiler, instead of `framework_profile_params`.
    disable_profiler
        Whether to disable profiling.

    Raises
    ------
    AssertionError
        If a configuration has the wrong type.
    ValueError
        If both are given.
    """

    s3_output_path: str | None = None
    system_monitor_interval_millis: int | None = None
    framework_profile_params: FrameworkProfile | None = None
    profile_params: Profiler | None = None
    disable_profiler: bool | None = False

    def __post_init__(self) -> None:
        _require(FrameworkProfile, "framework_profile_params", self.framework_profile_params)
        _require(Profiler, "profile_params", self.profile_params)
        if self.framework_profile_params is not None and self.profile_params is not None:
            raise ValueError(
                "Profiler does not work when framework profiling is on, got both profile_params "
                "and framework_profile_params. Leave out one."
            )

    def _to_request_dict(self) -> dict[str, Any]:
        """Return the `ProfilerConfig` of a CreateTrainingJob request."""
        request: dict[str, Any] = {}
        if self.s3_output_path is not None and self.disable_profiler is False:
            request["S3OutputPath"] = self.s3_output_path
        request["DisableProfiler"] = self.disable_profiler
        if self.system_monitor_interval_millis is not None:
            request["ProfilingIntervalInMilliseconds"] = self.system_monitor_interval_millis
        for params in (self.framework_profile_params, self.profile_params):
            if params is not None:
                request["ProfilingParameters"] = params.profiling_parameters
        return request

    @classmethod
    def _to_profiler_disabled_request_dict(cls) -> dict[str, Any]:
        """Return the part of an UpdateTrainingJob request that ends the profiling."""
        return {"DisableProfiler": True}


def _require(kind: type, argument: str, value: object) -> None:
    holds = value is None or isinstance(value, kind)
    require(holds, argument, f"of type {kind.__name__} if given", value)
