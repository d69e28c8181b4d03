"""LoadBalancing: the GPUs of a node are unevenly loaded."""

import itertools
from types import MappingProxyType
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from builtin_rules.profiler.statistics.parameters import SCAN_INTERVAL, patience_of
from builtin_rules.profiler.statistics.samples import GPU, NO_GPU, Device, Floats, by_device
from builtin_rules.profiler.statistics.window_rule import WindowRule
from builtin_rules.statistics.parameters import Declared
from builtin_rules.statistics.tensor_selection import LITERAL
from smdebug.rules.extensions import FloatParam, Quantity, SystemMetric

DISTANCE: Final = "distance"
NO_PAIR: Final = "no node with two GPUs yet"
TOO_FEW: Final = "no two GPUs of a node with more than patience data points yet"
# The documented histogram has bins of width 2 up to 98; the fine one has bins of width 0.1.
BINS: Final = 49
FINE_BINS: Final = 20  # fine bins per documented bin
BIN_WIDTH: Final = 0.1
# Reasons: docs/decisions/0022-load-balancing.md.
LEAST_GAP: Final = 5.0
Counts = NDArray[np.int64]


class LoadBalancing(WindowRule):
    """Met when the utilisation histograms of two GPUs of a node differ by more than `threshold`.

    Histograms cover all data points since the start of the job, in bins of 2 percentage points from
    0 to 98; higher values are in the last bin. The distance is the Jensen-Shannon distance
    ``sqrt((KL(p, m) + KL(q, m)) / 2)`` of the normalised histograms `p` and `q` with ``m = (p + q)
    / 2`` and natural logarithms; it is 0 for equal and 0.83 for disjoint histograms. A distance of
    exactly `threshold` does not meet the condition.

    `literal`, or a `threshold` that is no default, disables one refinement. The distance cannot
    distinguish a difference of one point from one of fifty: constant loads of 94 % and 93 % are in
    different bins. So the loads must also differ by at least 5 points on average (the earth mover's
    distance of the distributions).

    All pairs of a node are compared in each window with samples of the node, once both GPUs have
    more than `patience` data points. GPUs of different nodes are not compared.
    """

    READS = "the system metric GPUUtilization."
    threshold = Declared[float](
        FloatParam(
            "threshold",
            "Largest tolerated distance between the histograms of two GPUs.",
            default=0.2,
            unit="Jensen-Shannon distance",
            minimum=0.0,
            maximum=100.0,
        )
    )
    patience = patience_of(1000, "data points")
    scan_interval_us = SCAN_INTERVAL
    literal = Declared[bool](LITERAL)
    DOCUMENTED = MappingProxyType({"threshold": 0.5})
    QUANTITIES = (Quantity(DISTANCE, "distance between two GPUs of a node"),)

    required_inputs = (SystemMetric(GPU),)

    def _prepare(self) -> None:
        # 8 kB for each GPU.
        self._counts: dict[Device, Counts] = {}

    def judge(self, step: int) -> bool:
        """Return whether two GPUs of a node of the window are unevenly loaded."""
        gpus = by_device(self.samples(step), GPU)
        if not gpus:
            return self.not_judged(NO_GPU)
        for gpu, values in gpus.items():
            self._counts[gpu] = self._counts.get(gpu, 0) + fine_histogram(values)
        self.record_points(max(int(counts.sum()) for counts in self._counts.values()))
        nodes = sorted({gpu.node for gpu in gpus})
        if not any(len(self._names(node)) > 1 for node in nodes):
            return self.not_judged(NO_PAIR)
        ready = {
            node: names for node in nodes if len(names := self._names(node, self.patience)) > 1
        }
        met = [self._judge_node(step, node, names) for node, names in ready.items()]
        return self.any_met(met, TOO_FEW)

    def _names(self, node: str, patience: int = 0) -> list[str]:
        """Return the GPUs of a node that have more than `patience` data points."""
        return sorted(
            name
            for (gpu_node, name), counts in self._counts.items()
            if gpu_node == node and counts.sum() > patience
        )

    def _judge_node(self, step: int, node: str, names: list[str]) -> bool:
        counts = np.array([self._counts[Device(node, name)] for name in names])
        distance = distances(coarse(counts))
        pairs = {
            (f"{names[first]}, {names[second]}", node): (first, second)
            for first, second in itertools.combinations(range(len(names)), 2)
        }
        measured = {pair: float(distance[indexes]) for pair, indexes in pairs.items()}
        notes: dict[tuple[str, str], str] = {}
        if max(measured.values()) > self.threshold:
            unequal, gap = distance > self.threshold, gaps(counts)
            if not self.binds("threshold"):
                unequal &= gap >= LEAST_GAP
            used = [f"{name} {_mean(row):.0f} %" for name, row in zip(names, counts, strict=True)]
            notes = {
                pair: f"Average use: {used[first]}, {used[second]}; "
                f"they differ by {gap[first, second]:.1f} points."
                for pair, (first, second) in pairs.items()
                if unequal[first, second]
            }
        self.count_violations(len(notes), len(notes))
        return self.measured_all(
            step, DISTANCE, measured, self.threshold, met=notes.keys(), notes=notes
        )

    def details(self) -> dict[str, Any]:
        """Return the histograms of the GPUs of each node and their distances."""
        details: dict[str, Any] = {}
        for node in sorted({gpu.node for gpu in self._counts}):
            names = self._names(node)
            counts = coarse(np.array([self._counts[Device(node, name)] for name in names]))
            between = distances(counts)
            details[node] = {
                "workloads": {name: counts[row].tolist() for row, name in enumerate(names)},
                "distances": {
                    name: {
                        second: float(between[row, column])
                        for column, second in enumerate(names)
                        if column > row
                    }
                    for row, name in enumerate(names[:-1])
                },
            }
        return details


def fine_histogram(values: Floats) -> Counts:
    """Return the fine histogram of percentages; the last bin holds 100 and more."""
    bins = np.clip(np.floor(values / BIN_WIDTH + 1e-9), 0, 100 / BIN_WIDTH).astype(np.int64)
    return np.bincount(bins, minlength=int(100 / BIN_WIDTH) + 1)


def coarse(counts: Counts) -> Counts:
    """Return documented histograms of shape ``(n, 49)`` from fine ones of ``(n, 1001)``."""
    histograms: Counts = (
        counts[:, : BINS * FINE_BINS].reshape(len(counts), BINS, FINE_BINS).sum(axis=2)
    )
    histograms[:, -1] += counts[:, BINS * FINE_BINS :].sum(axis=1)
    return histograms


def distances(counts: Counts) -> Floats:
    """Return the Jensen-Shannon distances between histograms; shape ``(n, n)``."""
    share = counts / counts.sum(axis=1, keepdims=True)
    divergence = np.array([_divergences(row, share) for row in share])
    roots: Floats = np.sqrt(np.maximum(0.0, (divergence + divergence.T) / 2))
    return roots


def gaps(counts: Counts) -> Floats:
    """Return the earth mover's distances between fine histograms, in points; shape ``(n, n)``."""
    below = np.cumsum(counts / counts.sum(axis=1, keepdims=True), axis=1)
    return BIN_WIDTH * np.array([np.abs(below - row).sum(axis=1) for row in below])


def _divergences(row: Floats, rows: Floats) -> Floats:
    """Return the divergences of a distribution from its means with others; shape ``(n,)``."""
    mean = (row + rows) / 2
    with np.errstate(divide="ignore", invalid="ignore"):
        divergences: Floats = np.where(row > 0, row * np.log(row / mean), 0.0).sum(axis=1)
    return divergences


def _mean(counts: Counts) -> float:
    """Return the average of a fine histogram, in percent."""
    return float(BIN_WIDTH * (counts * np.arange(len(counts))).sum() / counts.sum())
