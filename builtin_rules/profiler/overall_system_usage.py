"""OverallSystemUsage: sums up how much of each node was used."""

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from builtin_rules.profiler.growing import Thinned
from builtin_rules.profiler.parameters import MINUTE_US, SCAN_INTERVAL
from builtin_rules.profiler.samples import (
    CPU,
    GPU,
    GPU_MEMORY,
    IO_WAIT,
    MEMORY_USED,
    NETWORK,
    Floats,
    means,
    of_dimension,
    sensible,
    sums,
)
from builtin_rules.profiler.window_rule import WindowRule
from smdebug.profiler.analysis.rules.utils import summary
from smdebug.profiler.system_samples import SystemSamples
from smdebug.rules import Page

NO_SAMPLES: Final = "no system metrics in this window"
DIGITS: Final = 2


def _memory_used(samples: SystemSamples) -> dict[str, Floats]:
    named = np.array([key.name == MEMORY_USED for key in samples.keys], bool)
    return means(sensible(samples.where(named[samples.series])))


def _mean_of(dimension: str) -> Callable[[SystemSamples], dict[str, Floats]]:
    return lambda samples: means(of_dimension(samples, dimension))


# By name in the report: what is taken of a window, by node.
_METRICS: Final[Mapping[str, Callable[[SystemSamples], dict[str, Floats]]]] = {
    "Network": lambda samples: sums(of_dimension(samples, NETWORK)),
    "GPU": _mean_of(GPU),
    "CPU": _mean_of(CPU),
    "CPU memory": _memory_used,
    "GPU memory": _mean_of(GPU_MEMORY),
    "I/O": _mean_of(IO_WAIT),
}


class OverallSystemUsage(WindowRule):
    """Met when never: it only sums up what the system metrics show, for its report.

    For each node and metric the report has maximum, minimum and percentiles over the moments of the
    job: of the mean over the GPUs or cores that have a sample at the moment, of the sum for the
    network. Samples of a node within 20 ms are of one moment.
    """

    READS = "every system metric of network, GPUs, processors, memory and I/O wait."
    PARAMS = (SCAN_INTERVAL,)
    PAGE = Page(
        why="""
        How much of the machines a job used, in one table: what is nearly always idle can be
        smaller, what is nearly always full is what the job waits for.
        """,
        save="""
        Nothing of the training script: the platform's profiler samples the system metrics.
        """,
        missing="""
        A window without system metrics is skipped. Metrics that a node does not have are empty in
        the report, such as those of GPUs where there are none. Samples that are no finite numbers
        are left out.
        """,
        remedy="""
        It never fires. Its table is `Details` of
        `profiler-output/profiler-reports/OverallSystemUsage.json`.
        """,
    )

    def __init__(self, base_trial: Any, scan_interval_us: Any = MINUTE_US) -> None:
        super().__init__(base_trial, scan_interval_us=scan_interval_us)
        # Six for each node; see `Thinned` for what each costs.
        self._values: dict[str, dict[str, Thinned]] = {name: {} for name in _METRICS}

    def judge(self, step: int) -> bool:
        """Take in the system metrics of the window; the condition is never met."""
        samples = self.samples(step)
        if not len(samples):
            return self.not_judged(NO_SAMPLES)
        for name, take in _METRICS.items():
            for node, values in take(samples).items():
                self._values[name].setdefault(node, Thinned()).extend(values)
        self.has_seen(self._report["Datapoints"] + len(samples))
        return False

    def details(self) -> dict[str, Any]:
        """Return ``max, p99, p95, p50, min`` by metric and node, to two decimals."""
        return {
            name: {node: summary(one.values, DIGITS) for node, one in nodes.items()}
            for name, nodes in self._values.items()
        }
