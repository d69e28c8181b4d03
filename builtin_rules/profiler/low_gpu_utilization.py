"""LowGPUUtilization: a GPU is underused, or alternates between busy and idle."""

from typing import Any, Final

from builtin_rules.profiler.statistics.growth import DeviceHistories
from builtin_rules.profiler.statistics.parameters import (
    SCAN_INTERVAL,
    patience_of,
    percentage,
    window_of,
)
from builtin_rules.profiler.statistics.samples import GPU, NO_GPU, Device, by_device
from builtin_rules.profiler.statistics.window_rule import WindowRule
from builtin_rules.statistics.parameters import Declared
from builtin_rules.statistics.tensor_selection import LITERAL
from smdebug.rules.extensions import Quantity, SystemMetric

HIGH: Final = "p95"
LOW: Final = "p5"
_HIGH: Final = 95
_LOW: Final = 5
TOO_FEW: Final = "no GPU with more than patience data points yet"


class LowGPUUtilization(WindowRule):
    """Met when a GPU is underused or its utilisation fluctuates.

    Percentiles are taken of the last `window` data points of the utilisation. A GPU is underused if
    the 95th percentile is below `threshold_p95`. It fluctuates if the 95th percentile is above that
    and the 5th percentile is below `threshold_p5`. A GPU whose 95th percentile equals its threshold
    is neither.

    `literal`, or a `threshold_p5` or `window` other than the default, disables one refinement. One
    pause, such as a validation of half a minute, may fill 5 % of the last data points and is no
    fluctuation. So the 5th percentile of all data points of the GPU must be below `threshold_p5`
    too.

    A GPU is judged in each window with samples from it, once there are more than `patience`; if
    `window` is larger, all existing samples are used. Each GPU of each node is judged separately.
    """

    READS = "the system metric GPUUtilization."
    threshold_p95 = percentage(
        "A GPU is underused if the 95th percentile of its use is below this.", 70
    )
    threshold_p5 = percentage(
        "A GPU fluctuates if the 5th percentile of its use is below this.", 10
    )
    patience = patience_of(1000, "data points")
    window = window_of(500, "Number of latest data points from which percentiles are computed.")
    scan_interval_us = SCAN_INTERVAL
    literal = Declared[bool](LITERAL)
    QUANTITIES = (
        Quantity(HIGH, "95th percentile of GPU use (%)", worse="below"),
        Quantity(LOW, "5th percentile of GPU use (%)", worse="below"),
    )
    REPORTED = ("threshold_p95", "threshold_p5", "window", "patience")

    required_inputs = (SystemMetric(GPU),)

    def _prepare(self) -> None:
        self._gpus = DeviceHistories(self.window)

    def judge(self, step: int) -> bool:
        """Return whether some GPU of the window is underused or fluctuates."""
        gpus = by_device(self.samples(step), GPU)
        self._gpus.extend(gpus)
        self.record_points(self._gpus.points)
        if not gpus:
            return self.not_judged(NO_GPU)
        ready = [gpu for gpu in gpus if self._gpus[gpu].count > self.patience]
        percentiles = self._gpus.percentiles(ready, _HIGH, _LOW)
        met = [self._judge_gpu(step, gpu, *percentiles[gpu]) for gpu in ready]
        return self.any_met(met, TOO_FEW)

    def _judge_gpu(self, step: int, gpu: Device, high: float, low: float) -> bool:
        underused = high < self.threshold_p95
        self.measured_on(
            gpu, step, HIGH, high, self.threshold_p95, met=underused, note="Underused."
        )
        fluctuates = high > self.threshold_p95 and low < self.threshold_p5
        if fluctuates and not self.binds("threshold_p5", "window"):
            fluctuates = self._gpus[gpu].has_percentile_below(_LOW, self.threshold_p5)
        note = f"Fluctuates: its 95th percentile is {high:.3g} percent."
        self.measured_on(gpu, step, LOW, low, self.threshold_p5, met=fluctuates, note=note)
        if underused or fluctuates:
            self.count_violations()
        return underused or fluctuates

    def details(self) -> dict[str, Any]:
        """Return percentiles of the latest and of all values, by node and GPU."""
        percentiles = self._gpus.percentiles(self._gpus, _HIGH, _LOW)
        details = {}
        for gpu, series in self._gpus.items():
            high, low = percentiles[gpu]
            latest = {"gpu_max": series.largest, "gpu_95": high, "gpu_5": low}
            details[gpu] = {**latest, **series.box()}
        return self.details_of(details)
