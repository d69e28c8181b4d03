"""IOBottleneck: slow reads keep the GPUs waiting."""

from builtin_rules.profiler.bottleneck import SHARE, Bottleneck, parameters
from builtin_rules.profiler.statistics.parameters import percentage
from builtin_rules.profiler.statistics.samples import IO_WAIT
from smdebug.rules.extensions import Quantity


class IOBottleneck(Bottleneck):
    """Met when a GPU is idle while a core waits for data in too many snapshots.

    A snapshot consists of the samples of a node within 20 ms. The condition is met if, on some
    node, more than `threshold` percent of the snapshots since the start of the job have at least
    one GPU below `gpu_threshold` and at least one core whose I/O wait is above `io_threshold`. A
    value equal to its limit does not count. A node is judged in each window with samples from it,
    once it has more than `patience` snapshots.
    """

    CORES = IO_WAIT
    CORE_THRESHOLD = "io_threshold"
    REPORTED = ("threshold", "io_threshold", "gpu_threshold", "patience")
    READS = (
        "the system metrics I/OWaitPercentage and GPUUtilization; framework events for the report."
    )
    PARAMS = parameters(
        percentage("A core with more I/O wait than this waits for data.", 50, "io_threshold")
    )
    QUANTITIES = (Quantity(SHARE, "snapshots in which a GPU waits for data (%)"),)
