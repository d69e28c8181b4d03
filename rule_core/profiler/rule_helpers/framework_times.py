"""FrameworkTimes: the time of framework events by phase and operator."""

from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from math import ulp
from typing import Any, Final

import numpy as np

from rule_core.profiler.traces.event import Id, TraceEvent
from rule_core.profiler.traces.intervals import Floats, union

STEP: Final = "Step:ModeKeys"
OTHERS: Final = "others"
LEAST: Final = 2.0  # percent; smaller shares of operators are omitted
NAMES_KEPT: Final = 10_000  # per table; further names are counted together
_SIBLINGS_KEPT: Final = 1 << 16  # per thread; of more operators in one, the first are lost
_SUBMODULES: Final = ("Forward-SubModuleInternal", "Backward-SubModuleInternal")
_COLLECTIVES: Final = ("horovod", "smdataparallel")

Thread = tuple[str | None, str, Id | None]  # node, phase and thread


def is_step(event: TraceEvent) -> bool:
    """Return whether an event is a whole step of training, evaluation or prediction."""
    return STEP in event.event_name


def shares(amounts: Mapping[str, float], least: float = 0.0) -> dict[str, float]:
    """Return each amount as a percentage of the sum, in descending order.

    Shares of `least` percent or less are omitted; the others are still shares of the whole.

    >>> shares({"conv": 50.0, "add": 49.0, "log": 1.0}, least=2.0)
    {'conv': 50.0, 'add': 49.0}
    """
    total = sum(amounts.values())
    return {
        name: round(100 * amount / total, 3)
        for name, amount in sorted(amounts.items(), key=lambda item: (-item[1], item[0]))
        if amount > 0 and 100 * amount / total > least
    }


def table_of(event: TraceEvent) -> str:
    """Return the table of `FrameworkTimes` for an event."""
    phase = event.event_phase
    if is_step(event):
        return "phase"
    if phase in _SUBMODULES or event.event_name in _SUBMODULES:
        return "forward_backward"
    if any(name in f"{event.file_type} {phase}".lower() for name in _COLLECTIVES):
        return "horovod"
    low = phase.lower()
    return "GPU" if "gpu" in low else "CPU" if "cpu" in low else "general"


class FrameworkTimes:
    """Sums the durations of framework events by phase and operator, window by window.

    The time of an operator on a processor is without that of the operators that it calls.

    Parameters
    ----------
    since
        Start of the job in epoch microseconds, from which time outside of steps is counted; None
        starts with the first event.
    """

    def __init__(self, since: float | None = None) -> None:
        self.count = 0
        self._since = since
        self._tables: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
        self._phase_time: dict[str, float] = defaultdict(float)
        # The first start and the last end of events, by node.
        self._spans: dict[str, tuple[float, float]] = {}
        self._intervals = 0
        # Starts and durations of ended operators that are not yet known to be in another one.
        self._ended: dict[Thread, deque[tuple[float, float]]] = {}
        self._before = np.empty((0, 2))

    @property
    def is_open(self) -> bool:
        """Whether later events may overlap the intervals of the last call."""
        return len(self._before) > 0

    def add(self, events: Sequence[TraceEvent]) -> None:
        """Count events by their durations."""
        for event, own_time in self._own_times(events):
            self._count(event, own_time, event.duration)
            node = event.node_id or ""
            start, end = self._spans.get(node, (event.start_time, event.end_time))
            span = min(start, event.start_time), max(end, event.end_time)
            self._spans[node] = span

    def add_during(self, events: Sequence[TraceEvent], intervals: Floats) -> None:
        """Count events that overlap intervals of this or the previous call.

        Operators count by duration, steps by the number of intervals they overlap. Intervals
        without a step count as ``others``.

        Parameters
        ----------
        intervals
            Start and end in epoch microseconds, both included; shape ``(n, 2)``.
        """
        new = union(intervals)
        recent = union(np.concatenate((self._before, new)))
        own_times = list(self._own_times(events))
        self._before = new
        self._intervals += len(new)
        if not len(recent) or not events:
            return
        times = np.array([(event.start_time, event.end_time) for event, _ in own_times], np.float64)
        first = np.searchsorted(recent[:, 1], times[:, 0], "left")
        overlapped = np.searchsorted(recent[:, 0], times[:, 1], "right") - first
        for index in np.flatnonzero(overlapped > 0).tolist():
            self._count(*own_times[index], float(overlapped[index]))

    def _own_times(self, events: Sequence[TraceEvent]) -> Iterator[tuple[TraceEvent, float]]:
        """Yield each event with its duration without the operators inside it."""
        operators: dict[Thread, list[TraceEvent]] = defaultdict(list)
        for event in events:
            if table_of(event) == "CPU":
                operators[event.node_id, event.event_phase, event.phase_tid].append(event)
            else:
                yield event, event.duration
        for thread, calls in operators.items():
            ended = self._ended.setdefault(thread, deque(maxlen=_SIBLINGS_KEPT))
            for event in _inner_first(calls):
                own_time = event.duration
                while ended and ended[-1][0] >= event.start_time:
                    own_time -= ended.pop()[1]
                ended.append((event.start_time, event.duration))
                yield event, max(own_time, 0.0)

    def _count(self, event: TraceEvent, own_time: float, weight: float) -> None:
        """Add an event to its table; `weight` is for steps."""
        self.count += 1
        self._phase_time[_counted_name(self._phase_time, event.event_phase)] += own_time
        name = table_of(event)
        table = self._tables[name]
        table[_counted_name(table, event.event_name)] += weight if name == "phase" else own_time

    def details(self) -> dict[str, Any]:
        """Return the tables.

        Returns
        -------
        dict
            Shares in percent, the largest first: ``phase`` by kind of step, and ``others`` for the
            time outside of steps; ``ratio`` of the operators of CPU and GPU; ``CPU`` and ``GPU`` by
            operator, ``general`` for other events, ``forward_backward`` of the passes, ``horovod``
            of the collectives. ``CPU_total``, ``GPU_total`` and ``phase_time`` are microseconds.
            Operators with 2 % or less are left out of these shares of the whole. Tables without
            events are empty.
        """
        tables: dict[str, Any] = {
            "ratio": shares({name: sum(self._tables[name].values()) for name in ("CPU", "GPU")}),
            "phase": shares(self._steps_and_others()),
            "phase_time": dict(self._phase_time),
            "forward_backward": shares(self._tables["forward_backward"]),
        }
        for name in ("CPU", "GPU", "general", "horovod"):
            tables[name] = shares(self._tables[name], LEAST)
        for name in ("CPU", "GPU"):
            tables[f"{name}_total"] = {key: self._tables[name][key] for key in tables[name]}
        return tables

    def _steps_and_others(self) -> Mapping[str, float]:
        steps = self._tables["phase"]
        if not steps:
            return {}
        whole = float(self._intervals)
        for start, end in self._spans.values():
            whole += end - (start if self._since is None else min(self._since, start))
        return {**steps, OTHERS: max(0.0, whole - sum(steps.values()))}


def _inner_first(calls: Sequence[TraceEvent]) -> Iterator[TraceEvent]:
    """Yield the operators of one thread in the order in which they returned.

    Epoch microseconds with fractions are rounded to quarters, by which an operator may seem to
    end after its caller.
    """
    running: list[TraceEvent] = []
    for event in sorted(calls, key=lambda event: (event.start_time, -event.duration)):
        while running and event.end_time > running[-1].end_time + 2 * ulp(event.end_time):
            yield running.pop()
        running.append(event)
    yield from reversed(running)


def _counted_name(table: Mapping[str, float], name: str) -> str:
    """Return `name`, or `OTHERS` if it is new and the table is full."""
    return name if name in table or len(table) < NAMES_KEPT else OTHERS
