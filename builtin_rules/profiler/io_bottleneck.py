"""IOBottleneck: data are read too slowly for the GPUs, which wait."""

from typing import Any

from builtin_rules.profiler.bottleneck import MISSING, SAVE, SHARE, Bottleneck
from builtin_rules.profiler.parameters import MINUTE_US, SCAN_INTERVAL, patience, percentage
from builtin_rules.profiler.samples import IO_WAIT
from smdebug.rules import Page, Quantity


class IOBottleneck(Bottleneck):
    """Met when in too many snapshots a GPU is little used while a core waits for data.

    That is: on some node more than `threshold` percent of the snapshots since the beginning of the
    job have at least one GPU below `gpu_threshold` and at least one core whose I/O wait is above
    `io_threshold`; no limit itself meets the condition. The samples of a node within 20 ms make a
    snapshot. A node is judged in each window that has samples of it, once there are more than
    `patience` snapshots.
    """

    CORES = IO_WAIT
    READS = (
        "the system metrics I/OWaitPercentage and GPUUtilization; framework events for the report."
    )
    PARAMS = (
        percentage("threshold", "The largest share of snapshots with a bottleneck.", 50),
        percentage("gpu_threshold", "A GPU whose use is below this waits.", 10),
        percentage("io_threshold", "A core whose I/O wait is above this waits for data.", 50),
        patience(1000, "snapshots"),
        SCAN_INTERVAL,
    )
    QUANTITIES = (Quantity(SHARE, "snapshots in which a GPU waits for data (%)"),)
    PAGE = Page(
        why="""
        A core that waits for a disk or the network prepares nothing, and the GPU behind it stands
        still. More cores do not help, faster or fewer reads do.
        """,
        save=SAVE,
        missing=MISSING,
        remedy="""
        - Copy the data to a local disk before the training, or stream it in large files.
        - Many small files: pack them (TFRecord, WebDataset, Parquet).
        - Read ahead: more prefetched batches, more loader processes.
        - See what else writes: checkpoints, logs, saved tensors.
        """,
        limits="""
        Processes that read through a network file system in user space wait without I/O wait. The
        share is of the whole job, so that a bottleneck that comes late shows late.
        """,
    )
    REPORTED = ("threshold", "io_threshold", "gpu_threshold", "patience")
    io_threshold: float

    def __init__(
        self,
        base_trial: Any,
        threshold: Any = 50,
        gpu_threshold: Any = 10,
        io_threshold: Any = 50,
        patience: Any = 1000,
        scan_interval_us: Any = MINUTE_US,
    ) -> None:
        super().__init__(
            base_trial,
            threshold=threshold,
            gpu_threshold=gpu_threshold,
            io_threshold=io_threshold,
            patience=patience,
            scan_interval_us=scan_interval_us,
        )

    @property
    def core_threshold(self) -> float:
        """The I/O wait above which a core waits for data."""
        return self.io_threshold
