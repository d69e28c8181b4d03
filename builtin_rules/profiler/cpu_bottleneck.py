"""CPUBottleneck: processors are too slow for the GPUs, which wait."""

from typing import Any

from builtin_rules.profiler.bottleneck import MISSING, SAVE, SHARE, Bottleneck
from builtin_rules.profiler.parameters import MINUTE_US, SCAN_INTERVAL, patience, percentage
from builtin_rules.profiler.samples import CPU
from smdebug.rules import Page, Quantity


class CPUBottleneck(Bottleneck):
    """Met when in too many snapshots a GPU is little used while a core is busy.

    That is: on some node more than `threshold` percent of the snapshots since the beginning of the
    job have at least one GPU below `gpu_threshold` and at least one core above `cpu_threshold`; no
    limit itself meets the condition. The samples of a node within 20 ms make a snapshot. A node is
    judged in each window that has samples of it, once there are more than `patience` snapshots.
    """

    CORES = CPU
    READS = "the system metrics CPUUtilization and GPUUtilization; framework events for the report."
    PARAMS = (
        percentage("threshold", "The largest share of snapshots with a bottleneck.", 50),
        percentage("gpu_threshold", "A GPU whose use is below this waits.", 10),
        percentage("cpu_threshold", "A core whose use is above this is busy.", 90),
        patience(1000, "snapshots"),
        SCAN_INTERVAL,
    )
    QUANTITIES = (Quantity(SHARE, "snapshots in which a GPU waits for processors (%)"),)
    PAGE = Page(
        why="""
        Processors prepare what GPUs work on. Where they are the slower part, GPUs are paid for
        standing still, and a faster GPU changes nothing.
        """,
        save=SAVE,
        missing=MISSING,
        remedy="""
        - More loader processes, or fewer if they get in each other's way: see `Dataloader`.
        - Prepare data once, before the training, instead of at each epoch; decode on the GPU.
        - An instance with more cores for each GPU.
        - See whether one core alone is busy: then Python itself is the bottleneck.
        """,
        limits="""
        One busy core of many is enough: a process that has nothing to do with the training makes
        one. The share is of the whole job, so that a bottleneck that comes late shows late.
        """,
    )
    REPORTED = ("threshold", "cpu_threshold", "gpu_threshold", "patience")
    cpu_threshold: float

    def __init__(
        self,
        base_trial: Any,
        threshold: Any = 50,
        gpu_threshold: Any = 10,
        cpu_threshold: Any = 90,
        patience: Any = 1000,
        scan_interval_us: Any = MINUTE_US,
    ) -> None:
        super().__init__(
            base_trial,
            threshold=threshold,
            gpu_threshold=gpu_threshold,
            cpu_threshold=cpu_threshold,
            patience=patience,
            scan_interval_us=scan_interval_us,
        )

    @property
    def core_threshold(self) -> float:
        """The use above which a core is busy."""
        return self.cpu_threshold
