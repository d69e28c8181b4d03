"""Bottleneck: GPUs wait while cores are in some state, counted over the moments of the job."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from builtin_rules.profiler.samples import (
    GPU,
    MOMENT_US,
    NO_GPU,
    Whole,
    by_node,
    moments,
    sensible,
)
from builtin_rules.profiler.window_rule import WindowRule
from smdebug.profiler.analysis.rules.utils import FrameworkTimes
from smdebug.profiler.system_samples import SystemSamples

SHARE: Final = "share"
TOO_FEW: Final = "no node with more than patience snapshots yet"
NEVER_BOTH: Final = "no snapshot yet with samples of GPUs and cores"
SAVE: Final = """
Nothing of the training script: the platform's profiler samples the system metrics. With
framework profiling the report names the operators that ran at the time.
"""
MISSING: Final = """
A window without GPU utilisation is skipped, and so are the windows until there are
snapshots enough, and until one has samples of GPUs and cores. Nodes without GPUs are never
judged. Samples that are no finite numbers are left out.
"""
KEPT: Final = 1000  # bottlenecks in the report: beyond that every second, every fourth, ...
_SECOND_US: Final = 1_000_000
Flags = NDArray[np.bool_]


@dataclass(slots=True)
class _Node:
    """What is remembered of one node: counts, and its latest snapshot, which may go on."""

    snapshots: int = 0
    low: int = 0  # snapshots with a GPU that waits
    bottlenecks: int = 0
    waited: Counter[str] = field(default_factory=Counter)  # bottlenecks of each GPU
    both: bool = False  # whether some snapshot had samples of GPUs and cores
    start_us: int = -MOMENT_US - 1
    waits: bool = False
    held: bool = False
    gpus: bool = False
    cores: bool = False


@dataclass(slots=True)
class _Kept:
    """Snapshots with a bottleneck for the report: every `stride`-th."""

    stride: int = 1
    count: int = 0
    entries: list[tuple[float, str, dict[str, float], dict[str, float]]] = field(
        default_factory=list
    )

    def is_next(self) -> bool:
        """Say whether the next bottleneck is to be kept, and count it."""
        self.count += 1
        return (self.count - 1) % self.stride == 0

    def add(self, entry: tuple[float, str, dict[str, float], dict[str, float]]) -> None:
        """Keep a bottleneck."""
        self.entries.append(entry)
        if len(self.entries) > KEPT:
            del self.entries[1::2]
            self.stride *= 2


class Bottleneck(WindowRule):
    """A rule about snapshots in which a GPU waits while a core is held up.

    A subclass says what a core's state is told by, and from which value on it is held up. The
    samples of a node within 20 ms of the first one of a snapshot belong to it, also across windows.

    Attributes
    ----------
    CORES
        The dimension that tells a core's state.
    """

    CORES: ClassVar[str]
    threshold: float
    gpu_threshold: float
    patience: int

    def __init__(self, base_trial: Any, **given: Any) -> None:
        self._nodes: dict[str, _Node] = {}  # as many as nodes
        self._kept = _Kept()
        self._times = FrameworkTimes()
        super().__init__(base_trial, **given)

    @property
    def core_threshold(self) -> float:
        """The value above which a core is held up."""
        raise NotImplementedError

    def judge(self, step: int) -> bool:
        """Say whether the share of bottlenecks is too large on some node of the window."""
        samples = self.samples(step)
        chosen = _of_dimensions(samples, {GPU, self.CORES})
        if not len(chosen.of(dimension=GPU)):
            return self.not_judged(NO_GPU)
        self._aggregate(step, [at for node in self._look(chosen) for at in node])
        self.has_seen(sum(one.snapshots for one in self._nodes.values()))
        bottlenecks = sum(one.bottlenecks for one in self._nodes.values())
        self.violated(bottlenecks - self._report["Violations"], 0)
        return self._judge_nodes(step, set(by_node(chosen)))

    def _judge_nodes(self, step: int, names: set[str]) -> bool:
        ready = {name: self._nodes[name] for name in sorted(names) if self._nodes[name].both}
        if not ready:
            return self.not_judged(NEVER_BOTH)
        ready = {name: one for name, one in ready.items() if one.snapshots > self.patience}
        if not ready:
            return self.not_judged(TOO_FEW)
        met = [self._judge_node(step, name, one) for name, one in ready.items()]
        self.violated(0, int(any(met)))
        return any(met)

    def _judge_node(self, step: int, name: str, node: _Node) -> bool:
        share = 100 * node.bottlenecks / node.snapshots
        gpu, count = min(
            node.waited.items(), key=lambda one: (-one[1], one[0]), default=("a GPU", 0)
        )
        note = f"{node.bottlenecks} of {node.snapshots} snapshots; {gpu} waits in {count} of them."
        return self.measured(
            step,
            SHARE,
            share,
            self.threshold,
            met=share > self.threshold,
            worker=name,
            tensor=gpu,
            note=note,
        )

    def _look(self, samples: SystemSamples) -> Iterator[list[int]]:
        """Take in a window, and yield by node when its new bottlenecks were, in microseconds."""
        for name, own in by_node(samples).items():
            node = self._nodes.setdefault(name, _Node())
            yield self._look_at(name, node, samples.where(own))

    def _look_at(self, name: str, node: _Node, samples: SystemSamples) -> list[int]:
        is_gpu = np.array([key.dimension == GPU for key in samples.keys], bool)[samples.series]
        starts, number = _numbered(samples.time_us, node.start_us)
        waiting = is_gpu & (samples.value < self.gpu_threshold)
        holding = ~is_gpu & (samples.value > self.core_threshold)
        seen = np.column_stack((waiting, holding, is_gpu, ~is_gpu))
        found = np.zeros((len(starts), 4), bool)
        first = np.flatnonzero(np.diff(number, prepend=-1))
        found[number[first]] = np.logical_or.reduceat(seen, first, axis=0)
        found[0] |= node.waits, node.held, node.gpus, node.cores
        known = node.waits and node.held
        waits, held, gpus, cores = found.T
        bottleneck = waits & held
        node.snapshots += len(starts) - 1
        node.low += int(waits.sum()) - node.waits
        new = np.flatnonzero(bottleneck)[int(known) :]
        node.bottlenecks += len(new)
        here = waiting & np.isin(number, new)
        for series, count in zip(*np.unique(samples.series[here], return_counts=True), strict=True):
            node.waited[samples.keys[series].name or GPU] += int(count)
        node.both |= bool((gpus & cores).any())
        node.start_us = int(starts[-1])
        node.waits, node.held, node.gpus, node.cores = found[-1].tolist()
        for at in new.tolist():
            if self._kept.is_next():
                gpus_here = _values(samples, waiting & (number == at))
                cores_here = _values(samples, holding & (number == at))
                self._kept.add((starts[at] / _SECOND_US, name, gpus_here, cores_here))
        times: list[int] = starts[new].tolist()
        return times

    def _aggregate(self, step: int, times_us: list[int]) -> None:
        """Take in what the framework did at the new bottlenecks."""
        if self.base_trial.has_framework_data and (times_us or self._times.is_open):
            moments_us = np.array(times_us, np.float64)
            self._times.add_during(self.events(step), np.column_stack((moments_us, moments_us)))

    def details(self) -> dict[str, Any]:
        """Return the snapshots with a bottleneck, and what the framework did at their time.

        ``low_gpu_utilization`` is the number of snapshots in which a GPU waits; ``bottlenecks``
        has by time, in seconds, the values of the GPUs that waited and the cores that held them up,
        by node.
        """
        bottlenecks: dict[str, Any] = {}
        for time, node, gpus, cores in self._kept.entries:
            entry = bottlenecks.setdefault(str(time), {"GPUs": {}, "CPUs": {}})
            entry["GPUs"][node], entry["CPUs"][node] = gpus, cores
        return {
            "low_gpu_utilization": sum(one.low for one in self._nodes.values()),
            "bottlenecks": bottlenecks,
            **self._times.details(),
        }


def _of_dimensions(samples: SystemSamples, dimensions: set[str]) -> SystemSamples:
    """Return the sensible samples of some dimensions."""
    wanted = np.array([key.dimension in dimensions for key in samples.keys], bool)
    return sensible(samples.where(wanted[samples.series]))


def _numbered(time_us: Whole, open_us: int) -> tuple[Whole, Whole]:
    """Return when each snapshot begins, the open one first, and the number of each sample's."""
    late = int(np.searchsorted(time_us, open_us + MOMENT_US, "right"))
    number = np.zeros(len(time_us), np.int64)
    starts = np.array([open_us], np.int64)
    if late < len(time_us):
        new = moments(time_us[late:]) + late
        number[new] = 1
        starts = np.concatenate((starts, time_us[new]))
    return starts, np.cumsum(number)


def _values(samples: SystemSamples, chosen: Flags) -> dict[str, float]:
    found = samples.where(chosen)
    names = (found.keys[number].name or "" for number in found.series)
    return dict(zip(names, found.value.tolist(), strict=True))
