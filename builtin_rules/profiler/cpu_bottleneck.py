"""CPUBottleneck: slow processors keep the GPUs waiting."""

from builtin_rules.profiler.bottleneck import SHARE, Bottleneck, parameters
from builtin_rules.profiler.statistics.parameters import percentage
from builtin_rules.profiler.statistics.samples import CPU
from smdebug.rules.extensions import Quantity


class CPUBottleneck(Bottleneck):
    """Met when a GPU is idle while a core is busy in too many snapshots.

    A snapshot consists of the samples of a node within 20 ms. The condition is met if, on some
    node, more than `threshold` percent of the snapshots since the start of the job have at least
    one GPU below `gpu_threshold` and at least one core above `cpu_threshold`. A value equal to its
    limit does not count. A node is judged in each window with samples from it, once it has more
    than `patience` snapshots.
    """

    CORES = CPU
    CORE_THRESHOLD = "cpu_threshold"
    REPORTED = ("threshold", "cpu_threshold", "gpu_threshold", "patience")
    READS = "the system metrics CPUUtilization and GPUUtilization; framework events for the report."
    PARAMS = parameters(percentage("A core used more than this is busy.", 90, "cpu_threshold"))
    QUANTITIES = (Quantity(SHARE, "snapshots in which a GPU waits for processors (%)"),)
