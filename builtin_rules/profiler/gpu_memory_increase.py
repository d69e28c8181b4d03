"""GPUMemoryIncrease: the memory in use on a GPU increases sharply."""

from typing import Any, Final

import numpy as np

from builtin_rules.profiler.statistics.growth import DeviceHistories
from builtin_rules.profiler.statistics.parameters import (
    SCAN_INTERVAL,
    patience_of,
    positive,
    window_of,
)
from builtin_rules.profiler.statistics.samples import GPU_MEMORY, Device, Floats, by_device
from builtin_rules.profiler.statistics.window_rule import WindowRule
from builtin_rules.statistics.parameters import flag
from smdebug.rules.extensions import Quantity, SystemMetric, percentiles

RISE: Final = "increase"
NO_MEMORY: Final = "no GPU memory utilisation in this window"
TOO_FEW: Final = "no GPU with more than patience and window data points yet"


class GPUMemoryIncrease(WindowRule):
    """Met when the moving average of a GPU's memory use rises by more than `increase` points.

    The moving average is the mean of the latest `window` data points. At each data point it is
    compared with that of the previous one, once there are more than ``window + 1`` and more than
    `patience` data points of the GPU. A rise of exactly `increase` does not meet the condition.
    With the defaults, the memory must rise by more than 50 percentage points within ten data
    points.

    With `slow`, it is also compared with the average `window` data points earlier, once there are
    two such windows; this finds leaks that are spread over them.
    """

    READS = "the system metric GPUMemoryUtilization."
    increase = positive("Largest tolerated rise of the moving average.", 5, "percentage points")
    patience = patience_of(1000, "data points")
    window = window_of(10, "Number of data points of the moving average.")
    scan_interval_us = SCAN_INTERVAL
    slow = flag("Also compare with the average `window` data points earlier; not documented.")
    QUANTITIES = (Quantity(RISE, "largest rise of average GPU memory use (points)"),)
    REPORTED = ("increase", "patience", "window")

    required_inputs = (SystemMetric(GPU_MEMORY),)

    def _prepare(self) -> None:
        # One history per GPU; see `ThinnedValues` for their size.
        self._gpus = DeviceHistories(2 * self.window)
        self._largest: dict[Device, float] = {}

    def judge(self, step: int) -> bool:
        """Return whether the memory use of some GPU has risen too much in the window."""
        gpus = by_device(self.samples(step), GPU_MEMORY)
        before = {gpu: self._gpus[gpu].newest for gpu in gpus if gpu in self._gpus}
        counts = {gpu: self._gpus[gpu].count for gpu in before}
        self._gpus.extend(gpus)
        self.record_points(self._gpus.points)
        if not gpus:
            return self.not_judged(NO_MEMORY)
        rises = {
            gpu: self._rises(before.get(gpu, np.empty(0)), values, counts.get(gpu, 0))
            for gpu, values in gpus.items()
        }
        ready = {gpu: rise for gpu, rise in rises.items() if len(rise)}
        met = [self._judge_gpu(step, gpu, rise) for gpu, rise in ready.items()]
        return self.any_met(met, TOO_FEW)

    def _rises(self, before: Floats, values: Floats, count: int) -> Floats:
        """Return the rise at each new value that is judged.

        Parameters
        ----------
        before
            The latest earlier values, at most ``2 * window``.
        count
            The number of earlier values.
        """
        first = max(self.patience, self.window + 1) - count  # of the new values
        joined = np.concatenate((before, values))
        indices = np.arange(len(before) + max(first, 0), len(joined))
        rises = (joined[indices] - joined[indices - self.window]) / self.window
        if self.slow:
            sums = np.concatenate(([0.0], np.cumsum(joined)))
            late = indices >= 2 * self.window - 1
            ends = indices[late] + 1
            gained = sums[ends] - 2 * sums[ends - self.window] + sums[ends - 2 * self.window]
            rises[late] = np.maximum(rises[late], gained / self.window)
        return rises

    def _judge_gpu(self, step: int, gpu: Device, rises: Floats) -> bool:
        largest = float(rises.max())
        self._largest[gpu] = max(largest, self._largest.get(gpu, largest))
        violations = int(np.count_nonzero(rises > self.increase))
        self.count_violations(violations, violations)
        used = self._gpus[gpu].newest[-1]
        note = f"At {violations} data points; memory use is at {used:.3g} percent."
        return self.measured_on(
            gpu, step, RISE, largest, self.increase, met=violations > 0, note=note
        )

    def details(self) -> dict[str, Any]:
        """Return the largest rise, and percentiles of all values, by node and GPU."""
        return self.details_of(
            {
                gpu: {
                    "increase": self._largest.get(gpu, 0.0),
                    "gpu_max": series.largest,
                    **{
                        name.replace("p5", "p05"): value
                        for name, value in percentiles(series.values, (5,)).items()
                    },
                    **series.box(),
                }
                for gpu, series in self._gpus.items()
            }
        )
