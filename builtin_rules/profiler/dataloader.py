"""Dataloader: the number of loader processes does not match the number of cores."""

from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from builtin_rules.profiler.statistics.parameters import SCAN_INTERVAL, patience_of, positive
from builtin_rules.profiler.statistics.samples import CPU
from builtin_rules.profiler.statistics.utilization import LoadingNode, is_loading
from builtin_rules.profiler.statistics.window_rule import WindowRule
from builtin_rules.statistics.parameters import Declared
from builtin_rules.statistics.tensor_selection import LITERAL
from smdebug.rules.extensions import FrameworkEvents, Quantity, SystemMetric, is_on_host

if TYPE_CHECKING:
    from smdebug.profiler.trace_event_file_parser import TraceEvent

FEW: Final = "few"
MANY: Final = "many"
LOADERS: Final = "data loaders"
# Percent of the time; see docs/decisions/0069-profiler-rules-over-trainings-of-today.md.
LEAST_WAIT: Final = 20.0
NO_LOADERS: Final = "no data loader event in this window"
NO_CORES: Final = "no node with known cores and data loaders"
TOO_FEW: Final = "not more than patience seconds with data loading yet"


class Dataloader(WindowRule):
    """Met when a node has too few or too many loader processes for its cores.

    For each second in which the node loads data, the distinct processes are counted: the workers of
    the loader, by their own events or by the number that the loader began with, or its iterators if
    it has no workers. The integer part of the median of these
    counts is compared with the number of cores: fewer than `min_threshold` percent of them, or more
    than `max_threshold` percent, meets the condition; equality does not. A node is judged in each
    window in which it loads data, once there are more than `patience` such seconds.

    `literal`, or a `min_threshold` other than the default, disables one refinement. On machines
    with many cores, few processes often load faster than the model trains. So too few processes
    meet the condition only if iterators take at least 20 % of the time for their batches after the
    first one, or if it is unknown how long they take.

    Only PyTorch's loader writes these events. All ranks of a node are combined.
    """

    READS = "the framework events of PyTorch's data loader, and the cores of CPUUtilization."
    min_threshold = positive(
        "A node with fewer loader processes than this share of its cores has too few.",
        70,
        "percent of the cores",
    )
    max_threshold = positive(
        "A node with more loader processes than this share of its cores has too many.",
        200,
        "percent of the cores",
    )
    patience = patience_of(10, "seconds with data loading")
    scan_interval_us = SCAN_INTERVAL
    literal = Declared[bool](LITERAL)
    QUANTITIES = (
        Quantity(FEW, "loader processes (% of the cores)", worse="below"),
        Quantity(MANY, "loader processes (% of the cores)", worse="above"),
    )
    REPORTED = ("min_threshold", "max_threshold")

    required_inputs = (FrameworkEvents("the events of a data loader"), SystemMetric(CPU))

    def _prepare(self) -> None:
        self._cores: defaultdict[str, set[str | None]] = defaultdict(set)
        self._hosts: dict[str, LoadingNode] = {}

    def judge(self, step: int) -> bool:
        """Return whether some node of the window has too few or too many loader processes."""
        self._count_cores(step)
        loading = [event for event in self.events(step) if is_loading(event)]
        names = sorted({self._add(event) for event in loading})
        for host in self._hosts.values():
            host.settle(self.window_of(step)[0])
        self.record_points(sum(node.loading.seconds for node in self._hosts.values()))
        if not names:
            return self.not_judged(NO_LOADERS)
        with_cores = [name for name in names if self._cores.get(name)]
        if not with_cores:
            return self.not_judged(NO_CORES)
        ready = [name for name in with_cores if self._hosts[name].loading.seconds > self.patience]
        if not ready:
            return self.not_judged(TOO_FEW)
        met = [self._judge_host(step, name) for name in ready]
        if any(met):
            self.count_violations(sum(met), int(not self._report["RuleTriggered"]))
        return any(met)

    def _count_cores(self, step: int) -> None:
        samples = self.samples(step).of(dimension=CPU)
        for number in np.unique(samples.series):
            key = samples.keys[number]
            self._cores[key.node].add(key.name)

    def _add(self, event: "TraceEvent") -> str:
        """Add an event and return the name of its node."""
        name = self._host_of(event.node_id or "")
        self._hosts.setdefault(name, LoadingNode()).add(event)
        return name

    def _host_of(self, node_id: str) -> str:
        """Return the node of a timeline, whose name also contains the process."""
        names = [host for host in self._cores if is_on_host(node_id, host)]
        if names:
            return max(names, key=len)
        return next(iter(self._cores)) if len(self._cores) == 1 else node_id

    def _judge_host(self, step: int, name: str) -> bool:
        cores, loaders = len(self._cores[name]), self._hosts[name].loading.median
        share = 100 * loaders / cores
        waiting = self._hosts[name].waiting
        note = f"{loaders} loader processes, {cores} cores."
        if waiting is not None:
            note += f" Batches take {waiting:.3g} percent of the time."
        few, many = share < self.min_threshold, share > self.max_threshold
        few &= self.binds("min_threshold") or waiting is None or waiting >= LEAST_WAIT
        host = name, LOADERS
        self.measured_on(host, step, FEW, share, self.min_threshold, met=few, note=note)
        self.measured_on(host, step, MANY, share, self.max_threshold, met=many, note=note)
        return few or many

    def details(self) -> dict[str, Any]:
        """Return how the first node loads data, and the compared numbers of each node."""
        if not self._hosts:
            return {}
        first = min(self._hosts)
        nodes = {
            name: {"cores": len(self._cores.get(name, ())), "dataloaders": host.loading.median}
            for name, host in sorted(self._hosts.items())
        }
        return {**self._hosts[first].details(), **nodes[first], "nodes": nodes}
