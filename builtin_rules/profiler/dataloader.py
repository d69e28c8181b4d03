"""Dataloader: the number of loader processes does not fit the number of cores."""

from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from builtin_rules.profiler.loading import Host, is_loading
from builtin_rules.profiler.parameters import MINUTE_US, SCAN_INTERVAL, NumberParam, patience
from builtin_rules.profiler.samples import CPU
from builtin_rules.profiler.window_rule import WindowRule
from smdebug.rules import Page, Quantity

if TYPE_CHECKING:
    from smdebug.profiler.trace_event import TraceEvent

FEW: Final = "few"
MANY: Final = "many"
LOADERS: Final = "data loaders"
NO_LOADERS: Final = "no data loader event in this window"
NO_CORES: Final = "no node is known that has cores and data loaders"
TOO_FEW: Final = "no more than patience seconds with data loading yet"


class Dataloader(WindowRule):
    """Met when a node has too few or too many processes that load data for its cores.

    Of each second in which the node loads data the different processes are counted: those of the
    loader's workers, or of its iterators where it has none. The integer part of their median over
    all such seconds so far is compared with the number of cores: below `min_threshold` percent of
    them, or above `max_threshold` percent, meets the condition; equality does not. A node is judged
    in each window in which it loads data, once there are more than `patience` such seconds.

    Only PyTorch's loader writes the events that are read. All ranks of a node count together.
    """

    READS = "the framework events of PyTorch's data loader, and the cores of CPUUtilization."
    PARAMS = (
        NumberParam(
            "min_threshold",
            "For fewer loader processes than this share of the cores there is room.",
            default=70,
            unit="percent of the cores",
            minimum=0,
            minimum_open=True,
        ),
        NumberParam(
            "max_threshold",
            "More loader processes than this share of the cores get in each other's way.",
            default=200,
            unit="percent of the cores",
            minimum=0,
            minimum_open=True,
        ),
        patience(10, "seconds with data loading"),
        SCAN_INTERVAL,
    )
    QUANTITIES = (
        Quantity(FEW, "loader processes (% of the cores)", worse="below"),
        Quantity(MANY, "loader processes (% of the cores)", worse="above"),
    )
    PAGE = Page(
        why="""
        With too few loader processes cores stand idle while the GPU waits for the next batch; with
        far too many they wait for each other and take memory.
        """,
        save="""
        Framework profiling of a PyTorch job, with the data loader's metrics.
        """,
        missing="""
        A window without data loader events is skipped, and so are the windows until there are
        seconds enough: a job without framework profiling, or without PyTorch's loader, is not
        judged at all.
        """,
        remedy="""
        - `DataLoader(num_workers=...)`: about as many as the node has cores for each GPU's process.
        - `persistent_workers=True` if they are started anew for each epoch.
        - `pin_memory=True`, and a larger `prefetch_factor`, when GPUs wait though cores are idle.
        """,
        limits="""
        A loader that is faster than the model needs no more processes, however many cores are idle:
        see whether `LowGPUUtilization` or `CPUBottleneck` fires as well.
        """,
    )
    REPORTED = ("min_threshold", "max_threshold")
    min_threshold: float
    max_threshold: float
    patience: int

    def __init__(
        self,
        base_trial: Any,
        min_threshold: Any = 70,
        max_threshold: Any = 200,
        patience: Any = 10,
        scan_interval_us: Any = MINUTE_US,
    ) -> None:
        super().__init__(
            base_trial,
            min_threshold=min_threshold,
            max_threshold=max_threshold,
            patience=patience,
            scan_interval_us=scan_interval_us,
        )
        self._cores: defaultdict[str, set[str | None]] = defaultdict(set)
        self._hosts: dict[str, Host] = {}  # as many as nodes that load data

    def judge(self, step: int) -> bool:
        """Say whether some node of the window has too few or too many loader processes."""
        self._count_cores(step)
        loading = [event for event in self.events(step) if is_loading(event)]
        names = sorted({self._take(event) for event in loading})
        for host in self._hosts.values():
            host.settle(self.window_of(step)[0])
        self.has_seen(sum(one.seconds for one in self._hosts.values()))
        if not names:
            return self.not_judged(NO_LOADERS)
        known = [name for name in names if self._cores.get(name)]
        if not known:
            return self.not_judged(NO_CORES)
        ready = [name for name in known if self._hosts[name].seconds > self.patience]
        if not ready:
            return self.not_judged(TOO_FEW)
        met = [self._judge_host(step, name) for name in ready]
        if any(met):
            self.violated(sum(met), int(not self._report["RuleTriggered"]))
        return any(met)

    def _count_cores(self, step: int) -> None:
        samples = self.samples(step).of(dimension=CPU)
        for number in np.unique(samples.series):
            key = samples.keys[number]
            self._cores[key.node].add(key.name)

    def _take(self, event: "TraceEvent") -> str:
        """Take in an event; return the name of its node."""
        name = self._host_of(event.node_id or "")
        self._hosts.setdefault(name, Host()).add(event)
        return name

    def _host_of(self, node_id: str) -> str:
        """Return the node of a timeline: framework events have the process behind its name."""
        names = [one for one in self._cores if f"{node_id}-".startswith(f"{one}-")]
        if names:
            return max(names, key=len)
        return next(iter(self._cores)) if len(self._cores) == 1 else node_id

    def _judge_host(self, step: int, name: str) -> bool:
        cores, loaders = len(self._cores[name]), self._hosts[name].loaders
        share = 100 * loaders / cores
        note = f"{loaders} loader processes, {cores} cores."
        few, many = share < self.min_threshold, share > self.max_threshold
        for quantity, limit, met in (
            (FEW, self.min_threshold, few),
            (MANY, self.max_threshold, many),
        ):
            self.measured(
                step, quantity, share, limit, met=met, tensor=LOADERS, worker=name, note=note
            )
        return few or many

    def details(self) -> dict[str, Any]:
        """Return how the first node loads data, and of each the numbers that are compared."""
        if not self._hosts:
            return {}
        first = min(self._hosts)
        nodes = {
            name: {"cores": len(self._cores.get(name, ())), "dataloaders": host.loaders}
            for name, host in sorted(self._hosts.items())
        }
        return {**self._hosts[first].details(), **nodes[first], "nodes": nodes}
