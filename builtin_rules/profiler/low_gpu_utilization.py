"""LowGPUUtilization: some GPU is little used, or its use swings between busy and idle."""

from typing import Any, Final

from builtin_rules.profiler.growing import Series, extend_all
from builtin_rules.profiler.parameters import (
    MINUTE_US,
    SCAN_INTERVAL,
    patience,
    percentage,
    window,
)
from builtin_rules.profiler.samples import GPU, NO_GPU, Device, by_device
from builtin_rules.profiler.window_rule import WindowRule
from smdebug.rules import Page, Quantity

HIGH: Final = "p95"
LOW: Final = "p5"
_HIGH: Final = 95
_LOW: Final = 5
TOO_FEW: Final = "no GPU with more than patience data points yet"


class LowGPUUtilization(WindowRule):
    """Met when some GPU is little used, or fluctuates.

    Of the last `window` data points of its utilisation: little used is a GPU whose 95th percentile
    is below `threshold_p95`; one whose 95th percentile is above it fluctuates if its 5th percentile
    is below `threshold_p5`. A 95th percentile that equals its threshold is neither.

    A GPU is judged in each window that has samples of it, once there are more than `patience`; if
    `window` is longer than that, of what there is. Each GPU of each node is judged for itself.
    """

    READS = "the system metric GPUUtilization."
    PARAMS = (
        percentage(
            "threshold_p95",
            "A GPU is little used if the 95th percentile of its use is below this.",
            70,
        ),
        percentage(
            "threshold_p5",
            "The use of a GPU fluctuates if its 5th percentile is below this.",
            10,
        ),
        patience(1000, "data points"),
        window(500, "How many of the newest data points the percentiles are taken of."),
        SCAN_INTERVAL,
    )
    QUANTITIES = (
        Quantity(HIGH, "95th percentile of GPU use (%)", worse="below"),
        Quantity(LOW, "5th percentile of GPU use (%)", worse="below"),
    )
    PAGE = Page(
        why="""
        A GPU that waits costs as much as one that works. Mostly it waits for data, for the
        processors, for other GPUs, or for a step that is too small to be worth its overhead.
        """,
        save="""
        Nothing of the training script: the platform's profiler samples the system metrics.
        """,
        missing="""
        A window without GPU utilisation is skipped, and so are the windows until there are data
        points enough. Samples that are no finite numbers are left out; percentages above 100 count
        as they are.
        """,
        remedy="""
        - Little used: a larger batch, or a smaller instance.
        - Fluctuating: look at `CPUBottleneck`, `IOBottleneck` and `Dataloader`; more loader
          processes, prefetching, data on a faster disk.
        - Fewer synchronising calls in the training loop: `.item()`, prints, checkpoints each step.
        """,
        limits="""
        Phases of evaluation, checkpoints and initialisation count like training: raise `window`, or
        `patience`, if they are long.
        """,
    )
    REPORTED = ("threshold_p95", "threshold_p5", "window", "patience")
    threshold_p95: float
    threshold_p5: float
    patience: int
    window: int

    def __init__(
        self,
        base_trial: Any,
        threshold_p95: Any = 70,
        threshold_p5: Any = 10,
        patience: Any = 1000,
        window: Any = 500,
        scan_interval_us: Any = MINUTE_US,
    ) -> None:
        super().__init__(
            base_trial,
            threshold_p95=threshold_p95,
            threshold_p5=threshold_p5,
            patience=patience,
            window=window,
            scan_interval_us=scan_interval_us,
        )
        self._gpus: dict[Device, Series] = {}  # as many as GPUs
        self._begun = 0

    def judge(self, step: int) -> bool:
        """Say whether some GPU of the window is little used or fluctuates."""
        gpus = by_device(self.samples(step), GPU)
        self._begun = self.window_of(step)[0]
        extend_all(self._gpus, gpus, lambda: Series(self.window))
        self.has_seen(max((one.count for one in self._gpus.values()), default=0))
        if not gpus:
            return self.not_judged(NO_GPU)
        ready = [gpu for gpu in gpus if self._gpus[gpu].count > self.patience]
        if not ready:
            return self.not_judged(TOO_FEW)
        met = [self._judge_gpu(step, gpu) for gpu in ready]
        return any(met)

    def _judge_gpu(self, step: int, gpu: Device) -> bool:
        node, name = gpu
        high, low = self._gpus[gpu].percentiles(_HIGH, _LOW)
        underused = self.measured(
            step,
            HIGH,
            high,
            self.threshold_p95,
            met=high < self.threshold_p95,
            tensor=name,
            worker=node,
            note="Little used.",
        )
        fluctuates = self.measured(
            step,
            LOW,
            low,
            self.threshold_p5,
            met=high > self.threshold_p95 and low < self.threshold_p5,
            tensor=name,
            worker=node,
            note=f"Fluctuates: its 95th percentile is {high:.3g} percent.",
        )
        if underused or fluctuates:
            self.violated()
        return underused or fluctuates

    def details(self) -> dict[str, Any]:
        """Return percentiles of the newest and of all values, by node and GPU."""
        found: dict[str, Any] = {}
        for (node, name), series in self._gpus.items():
            high, low = series.percentiles(_HIGH, _LOW)
            found.setdefault(node, {})[name] = {
                "gpu_max": series.largest,
                "gpu_95": high,
                "gpu_5": low,
                **series.box(),
            }
        return {**found, "last_timestamp": self._begun}
