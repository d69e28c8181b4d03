"""StragglerRank: the other ranks wait for one that is late at collectives."""

from collections import defaultdict
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from builtin_rules.profiler.statistics.parameters import SCAN_INTERVAL, percentage
from builtin_rules.profiler.statistics.window_rule import WindowRule
from builtin_rules.profiler.traces.kernels import is_collective
from smdebug.rules.extensions import Quantity, TorchTraces, is_step

if TYPE_CHECKING:
    from smdebug.profiler.trace_event_file_parser import TraceEvent

AWAITED: Final = "awaited"
LEAST_COLLECTIVES: Final = 4
TOO_FEW: Final = f"fewer than {LEAST_COLLECTIVES} collectives in common to ranks in this window"
_GLOO: Final = "gloo:"
_ONE_SIDED: Final = ("sendrecv", "gloo:send", "gloo:recv")


class StragglerRank(WindowRule):
    """Met when the ranks of a distributed training wait for one of them.

    All ranks leave a collective together, so who arrives last spends the least time in it. What the
    other ranks spend in it beyond that, on average, is how long they waited for the last one. The
    n-th collective of each name and process group is compared between the ranks. The condition is
    met if the time waited for a rank exceeds `threshold` % of the time of the traces in the window,
    from the first start to the last end of a step or a collective. A share equal to the threshold
    does not meet it. Collectives of which ranks have different numbers in a window are left out,
    and so are sends and receives.
    """

    READS = (
        "the kernels of NCCL and RCCL, and the collectives of Gloo, in traces of torch.profiler."
    )
    threshold = percentage("Largest tolerated share of time of waiting for one rank.", 10)
    scan_interval_us = SCAN_INTERVAL
    QUANTITIES = (Quantity(AWAITED, "time that other ranks wait for a rank (%)"),)

    required_inputs = (TorchTraces(),)

    def _prepare(self) -> None:
        self._shares: dict[str, float] = {}

    def judge(self, step: int) -> bool:
        """Return whether ranks wait for one of them for too long."""
        events = self.events(step)
        waited, compared = _waited_for(events)
        self.record_points(self._report["Datapoints"] + compared)
        if compared < LEAST_COLLECTIVES:
            return self.not_judged(TOO_FEW)
        span = _mean_span(events)
        self._shares = {node: 100 * wait / span for node, wait in sorted(waited.items())}
        met = [self._judge_rank(step, node, share) for node, share in self._shares.items()]
        return any(met)

    def _judge_rank(self, step: int, node: str, share: float) -> bool:
        met = share > self.threshold
        if met:
            self.count_violations()
        return self.measured(step, AWAITED, share, self.threshold, met=met, worker=node)

    def details(self) -> dict[str, Any]:
        """Return the share of the latest window in percent by rank."""
        return {**self._shares, "last_timestamp": self.window_start}


def _waited_for(events: Iterable["TraceEvent"]) -> tuple[dict[str, float], int]:
    """Return the microseconds that ranks waited for each rank, and the number of collectives."""
    # By name, group and ranks of the collective, then by rank.
    by_key: defaultdict[tuple[str, str, str], defaultdict[str, list[TraceEvent]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for event in filter(_is_compared, events):
        args = event.event_args or {}
        key = event.event_name, args.get("group", ""), args.get("group_ranks", "")
        by_key[key][event.node_id or ""].append(event)
    waited: defaultdict[str, float] = defaultdict(float)
    compared = 0
    for ranks in by_key.values():
        if len(ranks) > 1 and len({len(collectives) for collectives in ranks.values()}) == 1:
            durations = np.array([_durations(collectives) for collectives in ranks.values()])
            compared += durations.shape[1]
            for node, wait in zip(ranks, _waits(durations), strict=True):
                waited[node] += wait
    return dict(waited), compared


def _waits(durations: NDArray[np.float64]) -> list[float]:
    """Return how long other ranks waited for each rank on average; durations are by rank.

    >>> _waits(np.array([[5.0, 5.0, 1.0], [1.0, 1.0, 3.0]]))
    [2.0, 8.0]
    """
    shortest = durations.min(axis=0)
    waits = (durations - shortest).sum(axis=0) / (len(durations) - 1)
    last = durations.argmin(axis=0)
    return [float(waits[last == rank].sum()) for rank in range(len(durations))]


def _durations(collectives: list["TraceEvent"]) -> list[float]:
    ordered = sorted(collectives, key=lambda event: event.start_time)
    return [float(event.duration) for event in ordered]


def _is_compared(event: "TraceEvent") -> bool:
    if not (is_collective(event) or event.event_name.startswith(_GLOO)):
        return False
    name = event.event_name.lower()
    return not any(word in name for word in _ONE_SIDED)


def _mean_span(events: Iterable["TraceEvent"]) -> float:
    """Return the time of the traces of a rank in microseconds, on average."""
    spans: dict[str, dict[Any, tuple[float, float]]] = {}
    for event in events:
        if is_step(event) or _is_compared(event):
            trace = (event.event_args or {}).get("trace")
            traces = spans.setdefault(event.node_id or "", {})
            start, end = traces.get(trace, (event.start_time, event.end_time))
            traces[trace] = min(start, event.start_time), max(end, event.end_time)
    sums = [sum(end - start for start, end in traces.values()) for traces in spans.values()]
    return max(sum(sums) / len(sums), 1.0)
