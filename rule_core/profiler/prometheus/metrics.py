"""The metrics of dcgm-exporter and node_exporter, as dimensions of system metrics."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from types import MappingProxyType
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rule_core.profiler.files.constants import GPU_EXTRA
from rule_core.profiler.prometheus.answer import LabelledSeries

Floats = NDArray[np.float64]
NAME: Final = "__name__"
GPU: Final = "gpu"
FB_USED, FB_FREE, FB_RESERVED = (f"DCGM_FI_DEV_FB_{word}" for word in ("USED", "FREE", "RESERVED"))
CPU_SECONDS: Final = "node_cpu_seconds_total"
MEM_TOTAL, MEM_AVAILABLE = "node_memory_MemTotal_bytes", "node_memory_MemAvailable_bytes"
_PERCENT: Final = 100.0


class Dimension(NamedTuple):
    """A dimension of the samples, and the factor from the metric's unit to its unit."""

    type: str
    name: str
    factor: float = 1.0


# Ratios of the profiling metrics become percent.
DIMENSIONS: Final = MappingProxyType(
    {
        "DCGM_FI_DEV_GPU_UTIL": Dimension(GPU, "GPUUtilization"),
        "DCGM_FI_DEV_POWER_USAGE": Dimension(GPU_EXTRA, "PowerWatts"),
        "DCGM_FI_DEV_SM_CLOCK": Dimension(GPU_EXTRA, "SMClockMHz"),
        "DCGM_FI_DEV_GPU_TEMP": Dimension(GPU_EXTRA, "TemperatureCelsius"),
        "DCGM_FI_DEV_MEM_COPY_UTIL": Dimension(GPU_EXTRA, "MemoryCopyUtilization"),
        "DCGM_FI_PROF_GR_ENGINE_ACTIVE": Dimension(GPU_EXTRA, "GraphicsEngineActive", _PERCENT),
        "DCGM_FI_PROF_SM_ACTIVE": Dimension(GPU_EXTRA, "SMActive", _PERCENT),
        "DCGM_FI_PROF_SM_OCCUPANCY": Dimension(GPU_EXTRA, "SMOccupancy", _PERCENT),
        "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE": Dimension(GPU_EXTRA, "TensorCoreActive", _PERCENT),
        "DCGM_FI_PROF_DRAM_ACTIVE": Dimension(GPU_EXTRA, "DRAMActive", _PERCENT),
    }
)


class Samples(NamedTuple):
    """Samples of one series of system metrics.

    Attributes
    ----------
    type, name, dimension
        As in files of system metrics.
    time_s, value
        Seconds since the epoch, and values in the unit of the dimension; each of shape ``(n,)``.
    """

    type: str
    name: str
    dimension: str
    time_s: Floats
    value: Floats


def is_read(series: LabelledSeries) -> bool:
    """Return whether the metric of a series is one that is read."""
    name = series.labels.get(NAME, "")
    others = (FB_USED, FB_FREE, FB_RESERVED, CPU_SECONDS, MEM_TOTAL, MEM_AVAILABLE)
    return name in DIMENSIONS or name in others


def samples_of(node: Iterable[LabelledSeries]) -> Iterator[Samples]:
    """Yield the samples of the series of one node."""
    by_metric = _merged(node)
    for name, dimension in DIMENSIONS.items():
        for gpu, series in by_metric.get(name, {}).items():
            values = series.value * dimension.factor
            yield Samples(dimension.type, gpu, dimension.name, series.time_s, values)
    for gpu, used in by_metric.get(FB_USED, {}).items():
        parts = [by_metric.get(name, {}).get(gpu) for name in (FB_FREE, FB_RESERVED)]
        if parts[0] is not None:
            yield _share(GPU, gpu, "GPUMemoryUtilization", used, [used, *filter(None, parts)])
    yield from _cpu_samples(by_metric.get(CPU_SECONDS, {}))
    total, available = (by_metric.get(name, {}).get("") for name in (MEM_TOTAL, MEM_AVAILABLE))
    if total is not None and available is not None:
        free = _share("memory", "MemoryUsedPercent", "Memory", available, [total])
        yield free._replace(value=_PERCENT - free.value)


def _merged(node: Iterable[LabelledSeries]) -> dict[str, dict[str, LabelledSeries]]:
    """Return one series of each metric and device.

    There are several in answers for ranges one after the other, and where labels change, as those
    of the pod that uses a GPU.
    """
    parts: defaultdict[tuple[str, str], list[LabelledSeries]] = defaultdict(list)
    for series in node:
        parts[series.labels[NAME], _device(series.labels)].append(series)
    merged: dict[str, dict[str, LabelledSeries]] = {}
    for (metric, device), several in parts.items():
        times = np.concatenate([series.time_s for series in several])
        values = np.concatenate([series.value for series in several])
        times, first = np.unique(times, return_index=True)
        series = LabelledSeries(several[0].labels, times, values[first])
        merged.setdefault(metric, {})[device] = series
    return merged


def _device(labels: dict[str, str]) -> str:
    """Return the GPU of a series, or the core and its mode, or "" for a whole node.

    >>> _device({"gpu": "3"}), _device({"gpu": "3", "GPU_I_ID": "1"})
    ('gpu3', 'gpu3-1')
    >>> _device({"cpu": "0", "mode": "idle"}), _device({})
    ('cpu0 idle', '')
    """
    if "cpu" in labels:
        return f"cpu{labels['cpu']} {labels.get('mode', '')}"
    instance = labels.get("GPU_I_ID", "")
    gpu = labels.get("gpu", "")
    return f"gpu{gpu}{instance and f'-{instance}'}" if gpu else ""


def _share(
    kind: str, name: str, dimension: str, part: LabelledSeries, whole: list[LabelledSeries]
) -> Samples:
    """Return a part of a whole in percent, at the times at which all of it was measured."""
    times = part.time_s
    for series in whole:
        times = np.intersect1d(times, series.time_s)
    total = sum((_at(times, series) for series in whole), np.zeros(len(times)))
    positive = total > 0
    value = _PERCENT * _at(times, part)[positive] / total[positive]
    return Samples(kind, name, dimension, times[positive], value)


def _at(times: Floats, series: LabelledSeries) -> Floats:
    """Return the values of a series at some of its times."""
    values: Floats = series.value[np.searchsorted(series.time_s, times)]
    return values


def _cpu_samples(series: dict[str, LabelledSeries]) -> Iterator[Samples]:
    """Yield the utilization and the I/O wait of each core, from its counters of seconds."""
    for device, counter in series.items():
        core, _, mode = device.partition(" ")
        elapsed, counted = np.diff(counter.time_s), np.diff(counter.value)
        valid = (elapsed > 0) & (counted >= 0)  # a counter begins anew when its host restarts
        share = np.clip(_PERCENT * counted[valid] / elapsed[valid], 0, _PERCENT)
        times = counter.time_s[1:][valid]
        if mode == "idle":
            yield Samples("cpu", core, "CPUUtilization", times, _PERCENT - share)
        elif mode == "iowait":
            yield Samples("cpu", core, "I/OWaitPercentage", times, share)
