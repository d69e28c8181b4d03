"""The metrics of exporters as dimensions of samples."""

from typing import Any

import numpy as np
from prometheus_writer import gpu_series, series

from rule_core.profiler.prometheus.answer import LabelledSeries
from rule_core.profiler.prometheus.metrics import samples_of


def taken(*found: dict[str, Any]) -> dict[tuple[str, str, str], list[float]]:
    node = []
    for each in found:
        times, values = zip(*each["values"], strict=True)
        node.append(LabelledSeries(each["metric"], np.array(times), np.array(values, np.float64)))
    return {sample[:3]: sample.value.tolist() for sample in samples_of(node)}


def test_units_are_those_of_the_dimensions() -> None:
    samples = taken(
        gpu_series("DCGM_FI_DEV_GPU_UTIL", 0, [97, 98]),
        gpu_series("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", 0, [0.5]),
        gpu_series("DCGM_FI_DEV_POWER_USAGE", 1, [412.5]),
    )
    assert samples == {
        ("gpu", "gpu0", "GPUUtilization"): [97, 98],
        ("gpu_extra", "gpu0", "TensorCoreActive"): [50],
        ("gpu_extra", "gpu1", "PowerWatts"): [412.5],
    }


def test_memory_is_the_share_of_all_of_it_where_both_were_measured() -> None:
    used = gpu_series("DCGM_FI_DEV_FB_USED", 0, [10, 20, 30])
    free = gpu_series("DCGM_FI_DEV_FB_FREE", 0, [30, 0, 30])
    del free["values"][1]
    name = ("gpu", "gpu0", "GPUMemoryUtilization")
    assert taken(used, free) == {name: [25, 50]}
    assert taken(used, free, gpu_series("DCGM_FI_DEV_FB_RESERVED", 0, [0, 0, 40])) == {
        name: [25, 30]
    }
    assert taken(used) == {}
    assert taken(*(gpu_series(f"DCGM_FI_DEV_FB_{word}", 0, [0]) for word in ("USED", "FREE"))) == {
        name: []
    }


def test_counters_of_cores_become_shares_and_may_begin_anew() -> None:
    idle = series("node_cpu_seconds_total", [100, 103, 2, 8], step_s=10, cpu="0", mode="idle")
    wait = series("node_cpu_seconds_total", [5, 6, 7, 9], step_s=10, cpu="0", mode="iowait")
    user = series("node_cpu_seconds_total", [5, 6, 7, 9], step_s=10, cpu="0", mode="user")
    assert taken(idle, wait, user) == {
        ("cpu", "cpu0", "CPUUtilization"): [70, 40],
        ("cpu", "cpu0", "I/OWaitPercentage"): [10, 10, 20],
    }


def test_memory_of_the_host() -> None:
    total = series("node_memory_MemTotal_bytes", [1e11, 1e11])
    available = series("node_memory_MemAvailable_bytes", [7.5e10, 1e10])
    assert taken(total, available) == {("memory", "MemoryUsedPercent", "Memory"): [25, 90]}


def test_series_whose_labels_change_are_one() -> None:
    first = gpu_series("DCGM_FI_DEV_GPU_UTIL", 0, [1, 2], pod="a")
    second = gpu_series("DCGM_FI_DEV_GPU_UTIL", 0, [3, 4, 5], pod="b")
    second["values"] = [[time_s + 15, value] for time_s, value in second["values"]]
    assert taken(second, first)["gpu", "gpu0", "GPUUtilization"] == [1, 3, 4, 5]
