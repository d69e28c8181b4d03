"""LoadBalancing: the GPUs of a node are not equally loaded."""

import itertools
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from builtin_rules.profiler.parameters import MINUTE_US, SCAN_INTERVAL, patience
from builtin_rules.profiler.samples import GPU, NO_GPU, Device, Floats, by_device
from builtin_rules.profiler.window_rule import WindowRule
from builtin_rules.selection import LITERAL
from smdebug.rules import Page, Quantity
from smdebug.rules.params import FloatParam

DISTANCE: Final = "distance"
NO_PAIR: Final = "no node with two GPUs yet"
TOO_FEW: Final = "no two GPUs of a node with more than patience data points yet"
# The documented histogram has bins 2 wide up to 98 and what is above in the last; ours 0.1 wide.
BINS: Final = 49
FINE: Final = 20  # of ours in one of the documented ones
WIDTH: Final = 0.1
# Why, and why 5 points: docs/decisions/0022-load-balancing.md.
LEAST_GAP: Final = 5.0
Counts = NDArray[np.int64]


class LoadBalancing(WindowRule):
    """Met when the utilisation histograms of two GPUs of a node differ by more than `threshold`.

    Histograms are of all data points since the beginning of the job, with bins 2 percentage points
    wide from 0 to 98; what lies above is in the last one. The distance of two is Jensen and
    Shannon's: ``sqrt((KL(p, m) + KL(q, m)) / 2)`` of the normalised histograms `p` and `q` with
    ``m = (p + q) / 2``, by natural logarithms; it is 0 for equal and 0.83 for disjoint ones. A
    distance of exactly `threshold` does not meet the condition.

    One refinement, which `literal` leaves out: the distance does not tell a point from fifty, and
    constant loads of 94 % and 93 % lie in different bins. So the load must differ by at least 5
    points as well: that much, on average, would each data point of one GPU have to be moved to make
    the two distributions equal (the earth mover's distance).

    All pairs of a node are compared in each window that has samples of the node, once both GPUs
    have more than `patience` data points. GPUs of different nodes are not compared.
    """

    READS = "the system metric GPUUtilization."
    PARAMS = (
        FloatParam(
            "threshold",
            "The largest distance between two GPUs' histograms.",
            default=0.2,
            unit="Jensen-Shannon distance",
            minimum=0.0,
            maximum=100.0,
        ),
        patience(1000, "data points"),
        SCAN_INTERVAL,
        LITERAL,
    )
    QUANTITIES = (Quantity(DISTANCE, "distance between two GPUs of a node"),)
    PAGE = Page(
        why="""
        GPUs that train one model together wait for the slowest at every step: the others are paid
        for waiting. An idle one among busy ones was, mostly, forgotten in the launch command.
        """,
        save="""
        Nothing of the training script: the platform's profiler samples the system metrics.
        """,
        missing="""
        A window without GPU utilisation is skipped, and so are the windows until two GPUs of a node
        have data points enough. Percentages above 100 count as 100, below 0 as 0; samples that are
        no finite numbers are left out.
        """,
        remedy="""
        - An idle GPU: see how many processes the launcher starts, and which devices they take.
        - `DataParallel` loads its first GPU more than the others: take `DistributedDataParallel`.
        - Pipeline or model parallel: move layers from the busy stage to the idle one.
        - Batches of different length: spread them over the GPUs by length.
        """,
        limits="""
        A GPU that joins late is compared by what it did since. The threshold is a distance, not a
        percentage: from 0.84 on it never fires.
        """,
    )
    REPORTED = ("threshold", "patience")
    threshold: float
    patience: int
    literal: bool

    def __init__(
        self,
        base_trial: Any,
        threshold: Any = 0.2,
        patience: Any = 1000,
        scan_interval_us: Any = MINUTE_US,
        literal: Any = False,
    ) -> None:
        super().__init__(
            base_trial,
            threshold=threshold,
            patience=patience,
            scan_interval_us=scan_interval_us,
            literal=literal,
        )
        # As many as GPUs, 8 kB each.
        self._counts: dict[Device, Counts] = {}

    def judge(self, step: int) -> bool:
        """Say whether two GPUs of a node of the window are loaded differently."""
        gpus = by_device(self.samples(step), GPU)
        if not gpus:
            return self.not_judged(NO_GPU)
        for gpu, values in gpus.items():
            counts = fine_histogram(values)
            self._counts[gpu] = self._counts.get(gpu, 0) + counts
        self.has_seen(max(int(one.sum()) for one in self._counts.values()))
        nodes = sorted({gpu.node for gpu in gpus})
        if not any(len(self._names(node)) > 1 for node in nodes):
            return self.not_judged(NO_PAIR)
        ready = {
            node: names for node in nodes if len(names := self._names(node, self.patience)) > 1
        }
        if not ready:
            return self.not_judged(TOO_FEW)
        met = [self._judge_node(step, node, names) for node, names in ready.items()]
        return any(met)

    def _names(self, node: str, patience: int = 0) -> list[str]:
        """Return the GPUs of a node that have more than `patience` data points."""
        return sorted(
            name
            for (at, name), counts in self._counts.items()
            if at == node and counts.sum() > patience
        )

    def _judge_node(self, step: int, node: str, names: list[str]) -> bool:
        counts = np.array([self._counts[Device(node, name)] for name in names])
        distance, gap = distances(coarse(counts)), gaps(counts)
        unequal = distance > self.threshold
        if not self.literal:
            unequal &= gap >= LEAST_GAP
        used = [f"{name} {_mean(counts[at]):.0f} %" for at, name in enumerate(names)]
        pairs = {
            (f"{names[one]}, {names[other]}", node): (one, other)
            for one, other in itertools.combinations(range(len(names)), 2)
        }
        met = {pair: at for pair, at in pairs.items() if unequal[at]}
        notes = {
            pair: f"Average use: {used[at[0]]}, {used[at[1]]}; they differ by {gap[at]:.1f} points."
            for pair, at in met.items()
        }
        self.violated(len(met), len(met))
        measured = {pair: float(distance[at]) for pair, at in pairs.items()}
        return self.measured_all(
            step, DISTANCE, measured, self.threshold, met=met.keys(), notes=notes
        )

    def details(self) -> dict[str, Any]:
        """Return by node the histograms of its GPUs and the distances between them."""
        found: dict[str, Any] = {}
        for node in sorted({gpu.node for gpu in self._counts}):
            names = self._names(node)
            counts = coarse(np.array([self._counts[Device(node, name)] for name in names]))
            between = distances(counts)
            found[node] = {
                "workloads": {name: counts[at].tolist() for at, name in enumerate(names)},
                "distances": {
                    name: {
                        other: float(between[at, to]) for to, other in enumerate(names) if to > at
                    }
                    for at, name in enumerate(names[:-1])
                },
            }
        return found


def fine_histogram(values: Floats) -> Counts:
    """Return how many of some percentages are in each bin 0.1 wide; 100 and more is the last."""
    at = np.clip(np.floor(values / WIDTH + 1e-9), 0, 100 / WIDTH).astype(np.int64)
    return np.bincount(at, minlength=int(100 / WIDTH) + 1)


def coarse(counts: Counts) -> Counts:
    """Return the documented histograms, of shape ``(n, 49)``, for fine ones of ``(n, 1001)``."""
    found: Counts = counts[:, : BINS * FINE].reshape(len(counts), BINS, FINE).sum(axis=2)
    found[:, -1] += counts[:, BINS * FINE :].sum(axis=1)
    return found


def distances(counts: Counts) -> Floats:
    """Return the Jensen-Shannon distances between histograms; shape ``(n, n)``."""
    share = counts / counts.sum(axis=1, keepdims=True)
    divergence = np.array([_divergences(one, share) for one in share])
    found: Floats = np.sqrt(np.maximum(0.0, (divergence + divergence.T) / 2))
    return found


def gaps(counts: Counts) -> Floats:
    """Return the earth mover's distances between fine histograms, in points; shape ``(n, n)``."""
    below = np.cumsum(counts / counts.sum(axis=1, keepdims=True), axis=1)
    return WIDTH * np.array([np.abs(below - one).sum(axis=1) for one in below])


def _divergences(one: Floats, others: Floats) -> Floats:
    """Return how far a distribution is from its mean with each of others; shape ``(n,)``."""
    mean = (one + others) / 2
    with np.errstate(divide="ignore", invalid="ignore"):
        found: Floats = np.where(one > 0, one * np.log(one / mean), 0.0).sum(axis=1)
    return found


def _mean(counts: Counts) -> float:
    """Return the average of a fine histogram, in percent."""
    return float(WIDTH * (counts * np.arange(len(counts))).sum() / counts.sum())
