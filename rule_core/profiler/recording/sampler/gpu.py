"""GpuMeter: NVIDIA's GPUs, by nvidia-ml-py (extra ``gpu``)."""

from collections.abc import Callable, Iterator
from typing import Any, Final

from rule_core.profiler.files.constants import GPU_EXTRA
from rule_core.profiler.recording.sampler.readings import MetricValue

_MILLI: Final = 1e-3
# Reasons for which a GPU runs below its clock although it has work: power, heat, brakes.
_THROTTLES: Final = 0x4 | 0x8 | 0x20 | 0x40 | 0x80


def _memory(nvml: Any, gpu: Any) -> float:
    """Return the used share of the memory, which is not what NVML calls its utilization."""
    memory = nvml.nvmlDeviceGetMemoryInfo(gpu)
    return 100 * memory.used / memory.total if memory.total else 0.0


def _throttled(nvml: Any, gpu: Any) -> float:
    reasons = nvml.nvmlDeviceGetCurrentClocksThrottleReasons(gpu)
    return 100.0 * bool(reasons & _THROTTLES)


# Type and dimension of each value, and how it is read.
_DIMENSIONS: Final[tuple[tuple[str, str, Callable[[Any, Any], float]], ...]] = (
    ("gpu", "GPUUtilization", lambda nvml, gpu: nvml.nvmlDeviceGetUtilizationRates(gpu).gpu),
    ("gpu", "GPUMemoryUtilization", _memory),
    (GPU_EXTRA, "PowerWatts", lambda nvml, gpu: _MILLI * nvml.nvmlDeviceGetPowerUsage(gpu)),
    (
        GPU_EXTRA,
        "SMClockMHz",
        lambda nvml, gpu: nvml.nvmlDeviceGetClockInfo(gpu, nvml.NVML_CLOCK_SM),
    ),
    (
        GPU_EXTRA,
        "TemperatureCelsius",
        lambda nvml, gpu: nvml.nvmlDeviceGetTemperature(gpu, nvml.NVML_TEMPERATURE_GPU),
    ),
    (GPU_EXTRA, "Throttled", _throttled),
)


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

        self._handles = dict(self._open())

    def readings(self) -> list[MetricValue]:
        """Return the values now."""
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
        for kind, dimension, read in _DIMENSIONS:
            try:
                yield MetricValue(kind, name, dimension, float(read(nvml, handle)))
            except (nvml.NVMLError, TypeError, ValueError, AttributeError) as err:
                problem = f"{dimension} of {name} cannot be read: {err}."
                if problem not in self.problems:
                    self.problems.append(problem)


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
