"""Bottleneck: the base class of rules that count snapshots in which GPUs wait for cores."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from builtin_rules.profiler.statistics.parameters import (
    SCAN_INTERVAL,
    SECOND_US,
    patience_of,
    percentage,
)
from builtin_rules.profiler.statistics.samples import (
    GPU,
    MOMENT_US,
    NO_GPU,
    Ints,
    by_node,
    moments,
    of_series,
)
from builtin_rules.profiler.statistics.window_rule import WindowRule
from builtin_rules.statistics.parameters import Declared
from smdebug.rules.extensions import FrameworkTimes, Param, SystemMetric, SystemSamples

SHARE: Final = "share"
TOO_FEW: Final = "no node with more than patience snapshots yet"
NEVER_BOTH: Final = "no snapshot yet with samples of GPUs and cores"
ENTRIES: Final = 1000  # bottlenecks in the report; of more, every second, every fourth, ...
Mask = NDArray[np.bool_]


@dataclass(slots=True)
class _NodeCounts:
    """The snapshots of one node: counts, and flags of the latest one, which may continue.

    Flags say whether a GPU waits, a core is blocked, and there are samples of GPUs and of cores.
    """

    snapshots: int = 0
    low: int = 0  # snapshots with a waiting GPU
    bottlenecks: int = 0
    bottlenecks_of_gpu: Counter[str] = field(default_factory=Counter)
    has_both: bool = False  # whether some snapshot had samples of GPUs and cores
    start_us: int = -MOMENT_US - 1
    flags: Mask = field(default_factory=lambda: np.zeros(4, bool))


@dataclass(slots=True)
class _ReportedBottlenecks:
    """The bottlenecks in the report: every `stride`-th."""

    stride: int = 1
    count: int = 0
    entries: list[tuple[float, str, dict[str, float], dict[str, float]]] = field(
        default_factory=list
    )

    def is_next(self) -> bool:
        """Count the next bottleneck and return whether to keep it."""
        self.count += 1
        return (self.count - 1) % self.stride == 0

    def add(self, entry: tuple[float, str, dict[str, float], dict[str, float]]) -> None:
        """Keep a bottleneck."""
        self.entries.append(entry)
        if len(self.entries) > ENTRIES:
            del self.entries[1::2]
            self.stride *= 2


def parameters(core_threshold: Declared[float]) -> tuple[Param, ...]:
    """Return the parameters of a bottleneck rule; one of them defines a blocked core."""
    declared = (
        percentage("The largest tolerated share of snapshots with a bottleneck.", 50, "threshold"),
        percentage("A GPU used less than this waits.", 10, "gpu_threshold"),
        core_threshold,
        patience_of(1000, "snapshots"),
        SCAN_INTERVAL,
    )
    return tuple(each.param for each in declared)


class Bottleneck(WindowRule):
    """A rule about snapshots in which a GPU waits while a core is blocked.

    A subclass names the dimension and the parameter that define a blocked core. A snapshot holds
    the samples of a node within 20 ms of its first one, also across windows.

    Attributes
    ----------
    CORES
        The dimension of the cores.
    CORE_THRESHOLD
        The parameter whose value a blocked core exceeds.
    """

    CORES: ClassVar[str]
    CORE_THRESHOLD: ClassVar[str]
    threshold: float
    gpu_threshold: float
    patience: int

    def _prepare(self) -> None:
        self.required_inputs = (SystemMetric(GPU), SystemMetric(self.CORES))
        self._nodes: dict[str, _NodeCounts] = {}
        self._reported = _ReportedBottlenecks()
        self._times = FrameworkTimes()
        self._core_threshold: float = getattr(self, self.CORE_THRESHOLD)

    def judge(self, step: int) -> bool:
        """Return whether the share of bottlenecks is too large on some node of the window."""
        dimensions = GPU, self.CORES
        samples = of_series(self.samples(step), lambda key: key.dimension in dimensions)
        if not len(samples.of(dimension=GPU)):
            return self.not_judged(NO_GPU)
        self._add_framework_times(step, [*chain.from_iterable(self._add(samples))])
        self.record_points(sum(node.snapshots for node in self._nodes.values()))
        bottlenecks = sum(node.bottlenecks for node in self._nodes.values())
        self.count_violations(bottlenecks - self._report["Violations"], 0)
        return self._judge_nodes(step, set(by_node(samples)))

    def _judge_nodes(self, step: int, names: set[str]) -> bool:
        nodes = {name: self._nodes[name] for name in sorted(names) if self._nodes[name].has_both}
        if not nodes:
            return self.not_judged(NEVER_BOTH)
        ready = {name: node for name, node in nodes.items() if node.snapshots > self.patience}
        if not ready:
            return self.not_judged(TOO_FEW)
        met = [self._judge_node(step, name, node) for name, node in ready.items()]
        self.count_violations(0, int(any(met)))
        return any(met)

    def _judge_node(self, step: int, name: str, node: _NodeCounts) -> bool:
        share = 100 * node.bottlenecks / node.snapshots
        gpu, count = min(
            node.bottlenecks_of_gpu.items(),
            key=lambda item: (-item[1], item[0]),
            default=("a GPU", 0),
        )
        note = f"{node.bottlenecks} of {node.snapshots} snapshots; {gpu} waits in {count} of them."
        met = share > self.threshold
        return self.measured_on((name, gpu), step, SHARE, share, self.threshold, met=met, note=note)

    def _add(self, samples: SystemSamples) -> Iterator[list[int]]:
        """Add a window and yield, by node, the times of its new bottlenecks in microseconds."""
        for name, is_of_node in by_node(samples).items():
            node = self._nodes.setdefault(name, _NodeCounts())
            yield self._add_to_node(name, node, samples.where(is_of_node))

    def _add_to_node(self, name: str, node: _NodeCounts, samples: SystemSamples) -> list[int]:
        is_gpu = np.array([key.dimension == GPU for key in samples.keys], bool)[samples.series]
        starts, number = _numbered(samples.time_us, node.start_us)
        waiting = is_gpu & (samples.value < self.gpu_threshold)
        blocked = ~is_gpu & (samples.value > self._core_threshold)
        sample_flags = np.column_stack((waiting, blocked, is_gpu, ~is_gpu))
        flags = np.zeros((len(starts), 4), bool)  # by snapshot
        first = np.flatnonzero(np.diff(number, prepend=-1))
        flags[number[first]] = np.logical_or.reduceat(sample_flags, first, axis=0)
        flags[0] |= node.flags
        has_waiting, has_blocked, has_gpu, has_core = flags.T
        node.snapshots += len(starts) - 1
        node.low += int(has_waiting.sum()) - int(node.flags[0])
        new = np.flatnonzero(has_waiting & has_blocked)[int(node.flags[:2].all()) :]
        node.bottlenecks += len(new)
        series = samples.series[waiting & np.isin(number, new)]
        for index, count in zip(*np.unique(series, return_counts=True), strict=True):
            node.bottlenecks_of_gpu[samples.keys[index].name or GPU] += int(count)
        node.has_both |= bool((has_gpu & has_core).any())
        node.start_us = int(starts[-1])
        node.flags = flags[-1].copy()
        for snapshot in new.tolist():
            if self._reported.is_next():
                gpus = _values(samples, waiting & (number == snapshot))
                cores = _values(samples, blocked & (number == snapshot))
                self._reported.add((starts[snapshot] / SECOND_US, name, gpus, cores))
        times: list[int] = starts[new].tolist()
        return times

    def _add_framework_times(self, step: int, times_us: list[int]) -> None:
        """Add what the framework did during the new bottlenecks."""
        if self.base_trial.has_framework_data and (times_us or self._times.is_open):
            moments_us = np.array(times_us, np.float64)
            self._times.add_during(self.events(step), np.column_stack((moments_us, moments_us)))

    def details(self) -> dict[str, Any]:
        """Return the bottlenecks, and what the framework did during them.

        ``low_gpu_utilization`` is the number of snapshots with a waiting GPU. ``bottlenecks`` maps
        times, in seconds, to the values of waiting GPUs and blocked cores by node.
        """
        bottlenecks: dict[str, Any] = {}
        for time, node, gpus, cores in self._reported.entries:
            entry = bottlenecks.setdefault(str(time), {"GPUs": {}, "CPUs": {}})
            entry["GPUs"][node], entry["CPUs"][node] = gpus, cores
        return {
            "low_gpu_utilization": sum(node.low for node in self._nodes.values()),
            "bottlenecks": bottlenecks,
            **self._times.details(),
        }


def _numbered(time_us: Ints, open_us: int) -> tuple[Ints, Ints]:
    """Return the start of each snapshot, the open one first, and each sample's snapshot number."""
    late = int(np.searchsorted(time_us, open_us + MOMENT_US, "right"))
    number = np.zeros(len(time_us), np.int64)
    starts = np.array([open_us], np.int64)
    if late < len(time_us):
        new = moments(time_us[late:]) + late
        number[new] = 1
        starts = np.concatenate((starts, time_us[new]))
    return starts, np.cumsum(number)


def _values(samples: SystemSamples, mask: Mask) -> dict[str, float]:
    selected = samples.where(mask)
    names = (selected.keys[number].name or "" for number in selected.series)
    return dict(zip(names, selected.value.tolist(), strict=True))
