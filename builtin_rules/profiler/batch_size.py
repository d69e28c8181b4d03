"""BatchSize: processors, GPUs and their memory all have room for a larger batch."""

from typing import Any, Final

from builtin_rules.profiler.growing import Series, extend_all
from builtin_rules.profiler.parameters import (
    MINUTE_US,
    PERCENT,
    SCAN_INTERVAL,
    patience,
    percentage,
    window,
)
from builtin_rules.profiler.samples import (
    CPU,
    GPU,
    GPU_MEMORY,
    NO_GPU,
    Device,
    by_device,
    means,
    of_dimension,
)
from builtin_rules.profiler.window_rule import WindowRule
from smdebug.rules import Page, Quantity

CPU_P95: Final = "cpu"
GPU_P95: Final = "gpu"
MEMORY_P95: Final = "gpu_memory"
_CPU: Final = "cpu"
_P95: Final = 95
TOO_FEW: Final = "no GPU whose node has more than patience and window data points yet"


class BatchSize(WindowRule):
    """Met when processors, a GPU and its memory are all little used.

    That is: of the last `window` data points, the 95th percentile of the node's processors (the
    mean over the cores at each moment) is below `cpu_threshold_p95`, that of the GPU below
    `gpu_threshold_p95` and that of its memory below `gpu_memory_threshold_p95`. A percentile that
    equals its threshold does not meet the condition.

    A GPU is judged in each window that has samples of it, once there are more than `patience` data
    points of the node's processors and more than `window` of all three. Each node and each of its
    GPUs is judged for itself.
    """

    READS = "the system metrics CPUUtilization, GPUUtilization and GPUMemoryUtilization."
    PARAMS = (
        percentage(
            "cpu_threshold_p95",
            "Processors are little used if the 95th percentile of their use is below this.",
            70,
        ),
        percentage(
            "gpu_threshold_p95",
            "A GPU is little used if the 95th percentile of its use is below this.",
            70,
        ),
        percentage(
            "gpu_memory_threshold_p95",
            "A GPU's memory is little used if the 95th percentile of its use is below this.",
            70,
        ),
        patience(1000, "data points"),
        window(500, "How many of the newest data points the percentiles are taken of."),
        SCAN_INTERVAL,
    )
    QUANTITIES = (
        Quantity(GPU_P95, "95th percentile of GPU use (%)", worse="below"),
        Quantity(MEMORY_P95, "95th percentile of GPU memory use (%)", worse="below"),
        Quantity(CPU_P95, "95th percentile of processor use (%)", worse="below"),
    )
    PAGE = Page(
        why="""
        GPUs work on a whole batch at once. Where neither they nor their memory nor the processors
        that feed them are busy, a larger batch costs no more time, or a smaller machine no more
        training: as it is, part of the bill is for idle hardware.
        """,
        save="""
        Nothing of the training script: the platform's profiler samples the system metrics.
        """,
        missing="""
        A window without GPU utilisation is skipped, and so are the windows until there are data
        points enough. Nodes without GPUs are never judged. Samples that are no finite numbers are
        left out; percentages above 100 count as they are.
        """,
        remedy="""
        - Double the batch size until GPU memory is nearly full; scale the learning rate with it.
        - If the model does not allow that, take a smaller instance, or one with fewer GPUs.
        - If GPU use is low and the processors have one busy core, look at `CPUBottleneck` first.
        """,
        limits="""
        GPU utilisation is the share of time in which anything runs on the GPU, not how much of it
        is used: a GPU at 100 % may still have room.
        """,
    )
    REPORTED = (
        "cpu_threshold_p95",
        "gpu_threshold_p95",
        "gpu_memory_threshold_p95",
        "patience",
        "window",
    )
    cpu_threshold_p95: float
    gpu_threshold_p95: float
    gpu_memory_threshold_p95: float
    patience: int
    window: int

    def __init__(
        self,
        base_trial: Any,
        cpu_threshold_p95: Any = 70,
        gpu_threshold_p95: Any = 70,
        gpu_memory_threshold_p95: Any = 70,
        patience: Any = 1000,
        window: Any = 500,
        scan_interval_us: Any = MINUTE_US,
    ) -> None:
        super().__init__(
            base_trial,
            cpu_threshold_p95=cpu_threshold_p95,
            gpu_threshold_p95=gpu_threshold_p95,
            gpu_memory_threshold_p95=gpu_memory_threshold_p95,
            patience=patience,
            window=window,
            scan_interval_us=scan_interval_us,
        )
        # As many as nodes and GPUs; see `Series` for what each costs.
        self._cpus: dict[Device, Series] = {}
        self._gpus: dict[Device, Series] = {}
        self._memories: dict[Device, Series] = {}
        self._begun = 0

    def judge(self, step: int) -> bool:
        """Say whether some GPU of the window and all that belongs to it are little used."""
        samples = self.samples(step)
        self._begun = self.window_of(step)[0]
        gpus = by_device(samples, GPU)
        cpus = means(of_dimension(samples, CPU))
        extend_all(self._cpus, {Device(node, _CPU): one for node, one in cpus.items()}, self._new)
        extend_all(self._gpus, gpus, self._new)
        extend_all(self._memories, by_device(samples, GPU_MEMORY), self._new)
        self.has_seen(max((one.count for one in self._cpus.values()), default=0))
        if not gpus:
            return self.not_judged(NO_GPU)
        ready = [gpu for gpu in gpus if self._is_ready(gpu)]
        if not ready:
            return self.not_judged(TOO_FEW)
        used = {node: self._measure_cpu(step, node) for node in {gpu.node for gpu in ready}}
        met = [self._judge_gpu(step, gpu, used[gpu.node]) for gpu in ready]
        return any(met)

    def _new(self) -> Series:
        return Series(self.window)

    def _is_ready(self, gpu: Device) -> bool:
        cpu = self._cpus.get(Device(gpu.node, _CPU))
        memory = self._memories.get(gpu)
        if cpu is None or memory is None or cpu.count <= self.patience:
            return False
        return min(cpu.count, memory.count, self._gpus[gpu].count) > self.window

    def _measure_cpu(self, step: int, node: str) -> float:
        (used,) = self._cpus[Device(node, _CPU)].percentiles(_P95)
        self.measured(step, CPU_P95, used, self.cpu_threshold_p95, met=False, worker=node)
        return used

    def _judge_gpu(self, step: int, gpu: Device, cpu: float) -> bool:
        (busy,) = self._gpus[gpu].percentiles(_P95)
        (full,) = self._memories[gpu].percentiles(_P95)
        met = (
            cpu < self.cpu_threshold_p95
            and busy < self.gpu_threshold_p95
            and full < self.gpu_memory_threshold_p95
        )
        node, name = gpu
        limit = self.gpu_memory_threshold_p95
        self.measured(step, MEMORY_P95, full, limit, met=False, tensor=name, worker=node)
        note = f"Its memory {full:.3g} {PERCENT}, the processors {cpu:.3g} {PERCENT}."
        if met:
            self.violated()
        return self.measured(
            step,
            GPU_P95,
            busy,
            self.gpu_threshold_p95,
            met=met,
            tensor=name,
            worker=node,
            note=note,
        )

    def details(self) -> dict[str, Any]:
        """Return quartiles and whiskers of each node's processors, GPUs and GPU memories."""
        found: dict[str, Any] = {}
        for (node, name), series in self._cpus.items():
            found.setdefault(node, {})[name] = series.box()
        for (node, name), series in self._gpus.items():
            found.setdefault(node, {})[name] = series.box()
        for (node, name), series in self._memories.items():
            found.setdefault(node, {})[f"{name}_memory"] = series.box()
        return {**found, "last_timestamp": self._begun}
