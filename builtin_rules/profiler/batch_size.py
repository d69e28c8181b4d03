"""BatchSize: processors, GPUs and their memory have room for a larger batch."""

from typing import Any, Final

from builtin_rules.profiler.statistics.growth import DeviceHistories
from builtin_rules.profiler.statistics.parameters import (
    PERCENT,
    SCAN_INTERVAL,
    patience_of,
    percentage,
    window_of,
)
from builtin_rules.profiler.statistics.samples import (
    CPU,
    GPU,
    GPU_MEMORY,
    NO_GPU,
    Device,
    by_device,
    means,
    of_dimension,
)
from builtin_rules.profiler.statistics.window_rule import WindowRule
from smdebug.rules.extensions import Quantity, SystemMetric

CPU_P95: Final = "cpu"
GPU_P95: Final = "gpu"
MEMORY_P95: Final = "gpu_memory"
_CPU: Final = "cpu"
_P95: Final = 95
TOO_FEW: Final = "no GPU whose node has more than patience and window data points yet"


class BatchSize(WindowRule):
    """Met when processors, a GPU and its memory all have spare capacity.

    Over the last `window` data points, the 95th percentile of the node's processors (the mean over
    the cores at each moment) must be below `cpu_threshold_p95`, that of the GPU below
    `gpu_threshold_p95`, and that of its memory below `gpu_memory_threshold_p95`. A percentile equal
    to its threshold does not meet the condition.

    A GPU is judged in each window with samples from it, once there are more than `patience` data
    points of the node's processors and more than `window` of all three. Each node and each of its
    GPUs is judged separately.
    """

    READS = "the system metrics CPUUtilization, GPUUtilization and GPUMemoryUtilization."
    cpu_threshold_p95 = percentage(
        "Processors have spare capacity if the 95th percentile of their use is below this.", 70
    )
    gpu_threshold_p95 = percentage(
        "A GPU has spare capacity if the 95th percentile of its use is below this.", 70
    )
    gpu_memory_threshold_p95 = percentage(
        "GPU memory has spare capacity if the 95th percentile of its use is below this.", 70
    )
    patience = patience_of(1000, "data points")
    window = window_of(500, "Number of latest data points from which percentiles are computed.")
    scan_interval_us = SCAN_INTERVAL
    QUANTITIES = (
        Quantity(GPU_P95, "95th percentile of GPU use (%)", worse="below"),
        Quantity(MEMORY_P95, "95th percentile of GPU memory use (%)", worse="below"),
        Quantity(CPU_P95, "95th percentile of processor use (%)", worse="below"),
    )

    required_inputs = (SystemMetric(GPU), SystemMetric(GPU_MEMORY), SystemMetric(CPU))

    def _prepare(self) -> None:
        # One history per node or GPU; see `ThinnedValues` for their size.
        self._cpus = DeviceHistories(self.window)
        self._gpus = DeviceHistories(self.window)
        self._memories = DeviceHistories(self.window)

    def judge(self, step: int) -> bool:
        """Return whether some GPU of the window and its node have spare capacity."""
        samples = self.samples(step)
        gpus = by_device(samples, GPU)
        cpus = means(of_dimension(samples, CPU))
        self._cpus.extend({Device(node, _CPU): values for node, values in cpus.items()})
        self._gpus.extend(gpus)
        self._memories.extend(by_device(samples, GPU_MEMORY))
        self.record_points(self._cpus.points)
        if not gpus:
            return self.not_judged(NO_GPU)
        ready = [gpu for gpu in gpus if self._is_ready(gpu)]
        used = {node: self._measure_cpu(step, node) for node in {gpu.node for gpu in ready}}
        busy = self._gpus.percentiles(ready, _P95)
        full = self._memories.percentiles(ready, _P95)
        met = [self._judge_gpu(step, gpu, used[gpu.node], *busy[gpu], *full[gpu]) for gpu in ready]
        return self.any_met(met, TOO_FEW)

    def _is_ready(self, gpu: Device) -> bool:
        cpu = self._cpus.get(Device(gpu.node, _CPU))
        memory = self._memories.get(gpu)
        if cpu is None or memory is None or cpu.count <= self.patience:
            return False
        return min(cpu.count, memory.count, self._gpus[gpu].count) > self.window

    def _measure_cpu(self, step: int, node: str) -> float:
        cpu = Device(node, _CPU)
        [used] = self._cpus.percentiles([cpu], _P95)[cpu]
        self.measured(step, CPU_P95, used, self.cpu_threshold_p95, met=False, worker=node)
        return used

    def _judge_gpu(self, step: int, gpu: Device, cpu: float, busy: float, full: float) -> bool:
        met = (
            cpu < self.cpu_threshold_p95
            and busy < self.gpu_threshold_p95
            and full < self.gpu_memory_threshold_p95
        )
        self.measured_on(gpu, step, MEMORY_P95, full, self.gpu_memory_threshold_p95, met=False)
        note = f"Memory {full:.3g} {PERCENT}, processors {cpu:.3g} {PERCENT}."
        if met:
            self.count_violations()
        return self.measured_on(
            gpu, step, GPU_P95, busy, self.gpu_threshold_p95, met=met, note=note
        )

    def details(self) -> dict[str, Any]:
        """Return quartiles and whiskers of each node's processors, GPUs and GPU memories."""
        kinds = (self._cpus, ""), (self._gpus, ""), (self._memories, "_memory")
        return self.details_of(
            {
                Device(node, f"{name}{suffix}"): history.box()
                for histories, suffix in kinds
                for (node, name), history in histories.items()
            }
        )
