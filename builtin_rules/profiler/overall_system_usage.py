"""OverallSystemUsage: summarises the resource usage of each node."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from builtin_rules.profiler.statistics.growth import ThinnedValues
from builtin_rules.profiler.statistics.parameters import SCAN_INTERVAL
from builtin_rules.profiler.statistics.samples import (
    CPU,
    GPU,
    GPU_MEMORY,
    IO_WAIT,
    MEMORY_USED,
    NETWORK,
    Floats,
    means,
    of_dimension,
    of_series,
    sums,
)
from builtin_rules.profiler.statistics.window_rule import WindowRule
from smdebug.rules.extensions import Severity, SystemMetric, SystemSamples, summary

NO_SAMPLES: Final = "no system metrics in this window"
DIGITS: Final = 2


def _mean_of(dimension: str) -> Callable[[SystemSamples], dict[str, Floats]]:
    return lambda samples: means(of_dimension(samples, dimension))


# By name in the report: computes the values of a window by node.
_METRICS: Final[Mapping[str, Callable[[SystemSamples], dict[str, Floats]]]] = {
    "Network": lambda samples: sums(of_dimension(samples, NETWORK)),
    "GPU": _mean_of(GPU),
    "CPU": _mean_of(CPU),
    "CPU memory": lambda samples: means(of_series(samples, lambda key: key.name == MEMORY_USED)),
    "GPU memory": _mean_of(GPU_MEMORY),
    "I/O": _mean_of(IO_WAIT),
}


class OverallSystemUsage(WindowRule):
    """Never met: this rule summarises the system metrics in its report.

    For each node and metric, the report has the maximum, minimum and percentiles over all moments
    of the job: of the mean over the GPUs or cores with a sample at that moment, and of the sum for
    the network. Samples of a node within 20 ms belong to one moment.
    """

    READS = "every system metric of network, GPUs, processors, memory and I/O wait."
    scan_interval_us = SCAN_INTERVAL
    SEVERITY = Severity.NOTE

    required_inputs = (SystemMetric(),)

    def _prepare(self) -> None:
        # Six per node; see `ThinnedValues` for their size.
        self._values: dict[str, dict[str, ThinnedValues]] = {name: {} for name in _METRICS}

    def judge(self, step: int) -> bool:
        """Add the system metrics of the window; the condition is never met."""
        samples = self.samples(step)
        if not len(samples):
            return self.not_judged(NO_SAMPLES)
        for name, take in _METRICS.items():
            for node, values in take(samples).items():
                self._values[name].setdefault(node, ThinnedValues()).extend(values)
        self.record_points(self._report["Datapoints"] + len(samples))
        return False

    def details(self) -> dict[str, Any]:
        """Return ``max, p99, p95, p50, min`` by metric and node, to two decimals."""
        return {
            name: {node: summary(values.values, DIGITS) for node, values in nodes.items()}
            for name, nodes in self._values.items()
        }
