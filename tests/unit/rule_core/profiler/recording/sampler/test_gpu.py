"""GPUs, as a fake of NVIDIA's module shows them."""

import sys
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from rule_core.profiler.files.constants import GPU_EXTRA
from rule_core.profiler.recording.sampler.gpu import GpuMeter, open_gpus


class NVMLError(Exception):
    """The base class of the module's errors."""

    def __str__(self) -> str:
        return "Not Supported"


def raising(*_: Any) -> Any:
    raise NVMLError


def nvml(count: int = 2, **changes: Callable[..., Any]) -> Any:
    """Return a module with GPUs that are 40 % busy and use a quarter of their memory."""
    functions: dict[str, Callable[..., Any]] = {
        "nvmlInit": lambda: None,
        "nvmlDeviceGetCount": lambda: count,
        "nvmlDeviceGetHandleByIndex": lambda number: number,
        # `memory` is how busy the memory's controller is, not how full the memory is.
        "nvmlDeviceGetUtilizationRates": lambda _: SimpleNamespace(gpu=40, memory=99),
        "nvmlDeviceGetMemoryInfo": lambda _: SimpleNamespace(used=20, total=80),
        "nvmlDeviceGetPowerUsage": lambda _: 250_000,
        "nvmlDeviceGetClockInfo": lambda *_: 1400,
        "nvmlDeviceGetTemperature": lambda *_: 61,
        "nvmlDeviceGetCurrentClocksThrottleReasons": lambda _: 0x4,
    }
    module: Any = ModuleType("pynvml")
    vars(module).update(functions, NVMLError=NVMLError, NVML_CLOCK_SM=1, NVML_TEMPERATURE_GPU=0)
    vars(module).update(changes)
    return module


def values(meter: GpuMeter) -> dict[tuple[str, str, str], float]:
    return {(each.type, each.name, each.dimension): each.value for each in meter.readings()}


def test_utilization_and_more() -> None:
    meter = GpuMeter(nvml())
    for name in ("gpu0", "gpu1"):
        expected = {
            ("gpu", name, "GPUUtilization"): 40.0,
            ("gpu", name, "GPUMemoryUtilization"): 25.0,
            (GPU_EXTRA, name, "PowerWatts"): 250.0,
            (GPU_EXTRA, name, "SMClockMHz"): 1400.0,
            (GPU_EXTRA, name, "TemperatureCelsius"): 61.0,
            (GPU_EXTRA, name, "Throttled"): 100.0,
        }
        assert {key: value for key, value in values(meter).items() if key[1] == name} == expected
    assert not meter.problems


@pytest.mark.parametrize(("reasons", "throttled"), [(0x0, 0.0), (0x1, 0.0), (0x40, 100.0)])
def test_an_idle_gpu_is_not_throttled(reasons: int, throttled: float) -> None:
    meter = GpuMeter(nvml(1, nvmlDeviceGetCurrentClocksThrottleReasons=lambda _: reasons))
    assert values(meter)[GPU_EXTRA, "gpu0", "Throttled"] == throttled


def test_what_a_gpu_does_not_have_is_left_out_and_told_once() -> None:
    meter = GpuMeter(
        nvml(1, nvmlDeviceGetUtilizationRates=raising, nvmlDeviceGetPowerUsage=raising)
    )
    for _ in range(3):
        assert [key[2] for key in values(meter)] == [
            *("GPUMemoryUtilization", "SMClockMHz", "TemperatureCelsius", "Throttled")
        ]
    assert meter.problems == [
        "GPUUtilization of gpu0 cannot be read: Not Supported.",
        "PowerWatts of gpu0 cannot be read: Not Supported.",
    ]


def test_values_that_are_none_are_left_out() -> None:
    nothing = SimpleNamespace(gpu=None, used=None, total=None)
    changes = dict.fromkeys(
        ("nvmlDeviceGetUtilizationRates", "nvmlDeviceGetMemoryInfo"), lambda _: nothing
    )
    meter = GpuMeter(nvml(1, **changes))
    assert {key[0] for key in values(meter) if key[2] != "GPUMemoryUtilization"} == {GPU_EXTRA}


def test_a_gpu_that_was_lost_costs_only_itself() -> None:
    def handle(number: int) -> int:
        return raising() if number == 0 else number

    meter = GpuMeter(nvml(nvmlDeviceGetHandleByIndex=handle))
    assert {key[1] for key in values(meter)} == {"gpu1"}
    assert meter.problems == ["GPU 0 cannot be read: Not Supported."]


def test_without_the_module_or_the_driver_there_is_a_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert open_gpus() == "GPUs are not sampled: nvidia-ml-py is not installed (extra 'gpu')."
    monkeypatch.setitem(sys.modules, "pynvml", nvml(nvmlInit=raising))
    assert open_gpus() == "GPUs are not sampled: Not Supported."
    monkeypatch.setitem(sys.modules, "pynvml", nvml())
    assert isinstance(open_gpus(), GpuMeter)
