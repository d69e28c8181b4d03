"""LowOverlap: communication between GPUs is not hidden by computation."""

from typing import Final

from builtin_rules.profiler.statistics.parameters import SCAN_INTERVAL, percentage
from builtin_rules.profiler.statistics.samples import Device
from builtin_rules.profiler.traces.kernels import (
    COMMUNICATES,
    COMPUTES,
    Judgement,
    KernelRule,
    Kernels,
    common,
    total,
)
from smdebug.rules.extensions import Quantity

OVERLAP: Final = "overlap"
EXPOSED: Final = "exposed"
NO_COMMUNICATION: Final = "no communication between GPUs in this window"


class LowOverlap(KernelRule):
    """Met when little of a GPU's communication is hidden by computation, and that costs time.

    The overlap is the share of the time of communication in which the GPU also computes. Exposed
    is communication without computation, as a share of the time from the first start to the last
    end of a kernel in each trace. The condition is met if the overlap is below `threshold` % and
    more than `tolerated` % of the time is exposed; equal values do not meet it. Each GPU is judged
    in each window with kernels of NCCL or RCCL.
    """

    READS = "the kernels in traces of torch.profiler."
    threshold = percentage("Smallest share of communication that computation hides.", 50)
    tolerated = percentage("Largest tolerated share of time of exposed communication.", 10)
    scan_interval_us = SCAN_INTERVAL
    QUANTITIES = (
        Quantity(OVERLAP, "communication hidden by computation (%)", worse="below"),
        Quantity(EXPOSED, "time of communication without computation (%)"),
    )

    LACKING = NO_COMMUNICATION

    def can_judge(self, traces: list[Kernels]) -> bool:
        """Return whether the GPU communicates."""
        return any(total(kernels.of_kind(COMMUNICATES)) for kernels in traces)

    def judge_gpu(self, step: int, gpu: Device, traces: list[Kernels]) -> Judgement:
        """Return whether a GPU communicates without computing, and the shares of its time."""
        communication = sum(total(kernels.of_kind(COMMUNICATES)) for kernels in traces)
        hidden = sum(
            common(kernels.of_kind(COMMUNICATES), kernels.of_kind(COMPUTES)) for kernels in traces
        )
        overlap = 100 * hidden / communication
        exposed = 100 * (communication - hidden) / sum(kernels.span for kernels in traces)
        met = overlap < self.threshold and exposed > self.tolerated
        self.measured_on(gpu, step, EXPOSED, exposed, self.tolerated, met=False)
        note = f"Exposed communication takes {exposed:.3g} percent of the time."
        self.measured_on(gpu, step, OVERLAP, overlap, self.threshold, met=met, note=note)
        return met, {OVERLAP: overlap, EXPOSED: exposed}
