"""SmallKernels: a GPU computes in kernels too short to keep it busy."""

from typing import Final

import numpy as np

from builtin_rules.profiler.statistics.parameters import SCAN_INTERVAL, percentage, positive
from builtin_rules.profiler.statistics.samples import Device
from builtin_rules.profiler.traces.kernels import (
    COMPUTES,
    Judgement,
    KernelRule,
    Kernels,
    idle_percent,
)
from smdebug.rules.extensions import Quantity

SMALL: Final = "small"
IDLE: Final = "idle"
LEAST_KERNELS: Final = 100
TOO_FEW: Final = f"fewer than {LEAST_KERNELS} kernels on each GPU in this window"


class SmallKernels(KernelRule):
    """Met when most kernels of a GPU are short, and the GPU is idle between them.

    A kernel is short if it computes for less than `shortest` microseconds. The condition is met if
    more than `share` % of the kernels that compute are short, and the GPU is idle for more than
    `idle` % of the time from the first start to the last end of a kernel in each trace. Equal
    values do not meet it. Each GPU is judged in each window in which it has at least 100 kernels
    that compute; copies of memory and communication do not count.
    """

    READS = "the kernels in traces of torch.profiler."
    shortest = positive("A kernel that takes less time is short.", 10, "microseconds")
    share = percentage("Largest tolerated share of short kernels.", 50)
    idle = percentage("Largest tolerated share of time without a kernel.", 20)
    scan_interval_us = SCAN_INTERVAL
    QUANTITIES = (
        Quantity(SMALL, "kernels that are short (%)"),
        Quantity(IDLE, "time without a kernel (%)"),
    )

    LACKING = TOO_FEW

    def can_judge(self, traces: list[Kernels]) -> bool:
        """Return whether there are enough kernels that compute."""
        return sum(len(kernels.of_kind(COMPUTES)) for kernels in traces) >= LEAST_KERNELS

    def judge_gpu(self, step: int, gpu: Device, traces: list[Kernels]) -> Judgement:
        """Return whether a GPU is idle between short kernels, and the numbers about them."""
        lengths = np.concatenate([np.diff(kernels.of_kind(COMPUTES))[:, 0] for kernels in traces])
        small = 100 * float(np.count_nonzero(lengths < self.shortest)) / len(lengths)
        idle, median = idle_percent(traces), float(np.median(lengths))
        met = small > self.share and idle > self.idle
        self.measured_on(gpu, step, IDLE, idle, self.idle, met=False)
        note = (
            f"The median of {len(lengths):,} kernels takes {median:.3g} us; the GPU is idle for "
            f"{idle:.3g} percent of the time."
        )
        self.measured_on(gpu, step, SMALL, small, self.share, met=met, note=note)
        return met, {SMALL: small, IDLE: idle, "median_us": median}
