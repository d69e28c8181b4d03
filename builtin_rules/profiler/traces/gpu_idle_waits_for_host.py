"""GPUIdleWaitsForHost: a GPU has nothing to do because the process launches kernels too late."""

from typing import Final

import numpy as np

from builtin_rules.profiler.statistics.parameters import SCAN_INTERVAL, percentage
from builtin_rules.profiler.statistics.samples import Device
from builtin_rules.profiler.traces.kernels import Judgement, KernelRule, Kernels, idle_percent
from smdebug.rules.extensions import Quantity

HOST_WAIT: Final = "host_wait"
NO_LAUNCHES: Final = "no launches of kernels in this window"


class GPUIdleWaitsForHost(KernelRule):
    """Met when a GPU waits for the process for more than `threshold` % of the time.

    The time is that from the first start to the last end of a kernel in each trace. The GPU waits
    for the process while no kernel runs on any of its streams, if the next kernel was launched
    after the one before had ended. A share equal to the threshold does not meet the condition. Each
    GPU is judged in each window with kernels whose launches are in the trace.
    """

    READS = "the kernels and the calls of CUDA in traces of torch.profiler."
    threshold = percentage("Largest tolerated share of time of waiting for the process.", 20)
    scan_interval_us = SCAN_INTERVAL
    QUANTITIES = (Quantity(HOST_WAIT, "time in which the GPU waits for the process (%)"),)

    LACKING = NO_LAUNCHES

    def can_judge(self, traces: list[Kernels]) -> bool:
        """Return whether launches of the kernels are in the traces."""
        return any(not np.isnan(kernels.launches).all() for kernels in traces)

    def judge_gpu(self, step: int, gpu: Device, traces: list[Kernels]) -> Judgement:
        """Return whether a GPU waits for the process for too long, and the shares of its time."""
        span = sum(kernels.span for kernels in traces)
        idle = idle_percent(traces)
        share = 100 * sum(kernels.waits_for_host for kernels in traces) / span if span else 0.0
        met = share > self.threshold
        note = f"It is idle for {idle:.3g} percent of the time in all."
        self.measured_on(gpu, step, HOST_WAIT, share, self.threshold, met=met, note=note)
        return met, {HOST_WAIT: share, "idle": idle}
