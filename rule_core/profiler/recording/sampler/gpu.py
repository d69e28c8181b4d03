"""GpuMeter: NVIDIA's GPUs, by nvidia-ml-py (extra ``gpu``)."""

from collections.abc import Callable, Iterator
from typing import Any, Final

from rule_core.profiler.files.constants import GPU_EXTRA
from rule_core.profiler.recording.sampler.readings import MetricValue

_MILLI: Final = 1e-3
# Reasons for which a GPU runs below its clock although it has work: power, heat, brakes.
_THROTTLES: Final = 0x4 | 0x8 | 0x20 | 0x40 | 0x80


class GpuMeter:
    """Reads the GPUs of a node.

    A value that a GPU does not have, as some under MIG, is left out, and so is a GPU that was lost.

    Parameters
    ----------
    nvml
        The module pynvml, initialised.

    Attributes
    ----------
    problems
        Sentences on GPUs that cannot be read, each once.
    """

    def __init__(self, nvml: Any) -> None:
        self.problems: list[str] = []
        self._nvml = nvml
        self._lost: set[int] = set()
        self._handles = dict(self._open())

    def readings(self, elapsed_s: float) -> list[MetricValue]:
        """Return the values now; see `Meter`."""
        del elapsed_s
        return [
            reading
            for number, handle in self._handles.items()
            for reading in self._of_gpu(f"gpu{number}", handle)
        ]

    def _open(self) -> Iterator[tuple[int, Any]]:
        for number in range(self._nvml.nvmlDeviceGetCount()):
            try:
                yield number, self._nvml.nvmlDeviceGetHandleByIndex(number)
            except self._nvml.NVMLError as err:
                self.problems.append(f"GPU {number} cannot be read: {err}.")

    def _of_gpu(self, name: str, handle: Any) -> Iterator[MetricValue]:
        nvml = self._nvml
        values: tuple[tuple[str, str, Callable[[], float]], ...] = (
            (
                "gpu",
                "GPUUtilization",
                lambda: float(nvml.nvmlDeviceGetUtilizationRates(handle).gpu),
            ),
            ("gpu", "GPUMemoryUtilization", lambda: self._memory(handle)),
            (GPU_EXTRA, "PowerWatts", lambda: _MILLI * nvml.nvmlDeviceGetPowerUsage(handle)),
            (
                GPU_EXTRA,
                "SMClockMHz",
                lambda: float(nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM)),
            ),
            (
                GPU_EXTRA,
                "TemperatureCelsius",
                lambda: float(nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU)),
            ),
            (GPU_EXTRA, "Throttled", lambda: self._throttled(handle)),
        )
        for kind, dimension, read in values:
            try:
                yield MetricValue(kind, name, dimension, read())
            except (nvml.NVMLError, TypeError, ValueError, AttributeError) as err:
                problem = f"{dimension} of {name} cannot be read: {err}."
                if problem not in self.problems:
                    self.problems.append(problem)

    def _memory(self, handle: Any) -> float:
        """Return the used share of the memory, which is not what NVML calls its utilization."""
        memory = self._nvml.nvmlDeviceGetMemoryInfo(handle)
        return 100 * memory.used / memory.total if memory.total else 0.0

    def _throttled(self, handle: Any) -> float:
        reasons = self._nvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle)
        return 100.0 * bool(reasons & _THROTTLES)


def open_gpus() -> GpuMeter | str:
    """Return a meter of the GPUs, or the reason why there is none."""
    try:
        import pynvml
    except ImportError:
        return "GPUs are not sampled: nvidia-ml-py is not installed (extra 'gpu')."
    try:
        pynvml.nvmlInit()
        return GpuMeter(pynvml)
    except (pynvml.NVMLError, OSError) as err:
        return f"GPUs are not sampled: {err}."
