"""Kernels: what ran on each GPU, by the traces of torch.profiler, and the rules that judge it.

The definitions are those of Holistic Trace Analysis: of the time from the first start to the last
end of a kernel, a GPU is idle while no kernel runs; copies of memory are kernels. Beside kernels of
NCCL and RCCL, those of other libraries and those named after a collective communicate.
"""

import re
from abc import abstractmethod
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from builtin_rules.profiler.statistics.samples import Device, Floats
from builtin_rules.profiler.statistics.window_rule import WindowRule
from smdebug.rules.extensions import TorchTraces, union

if TYPE_CHECKING:
    from smdebug.profiler.trace_event_file_parser import TraceEvent

Judgement = tuple[bool, dict[str, float]]  # whether it is met, and numbers for the report
NO_KERNELS: Final = "no kernels of a trace in this window"
_PHASE: Final = "gpu_functions-dev:"
_CALLS: Final = frozenset({"cuda_runtime", "cuda_driver"})
_COMMUNICATES: Final = re.compile(
    r"(?<![A-Za-z])(?i:k?userbuffers|nccl|rccl|hccl|oneccl|msccl(?:pp)?|(?:nv|roc|i)shmem[ix]?|"
    r"multimem|symmetric_memory|deep_?ep|cross_device_reduce|quick_?reduce)(?![a-z])|"
    r"(?<![A-Za-z])(?i:nccl|rccl|msccl)(?:Dev)?Kernel|"
    r"(?:(?<![A-Za-z])all|All)_?(?:[Rr]educe|[Gg]ather|_?to_?[Aa]ll|To_?All|2_?[Aa]ll)|"
    r"(?:(?<![A-Za-z])r|R)educe_?[Ss]catter"
)
_FUSED: Final = re.compile(r"triton_[a-z]+_fused")  # named after the operators around them
COMPUTES, COMMUNICATES, COPIES = 0, 1, 2
_Launch = tuple[str, Any, Any]  # node, trace and correlation
_KernelRow = tuple[float, float, _Launch, int]  # start, end, launch and kind


@dataclass(slots=True)
class Kernels:
    """The kernels of one GPU in one trace, in ascending order of their starts.

    Attributes
    ----------
    intervals
        Start and end in microseconds after some event; shape ``(n, 2)``.
    launches
        When the process launched each; NaN if that is not in the trace. Shape ``(n,)``.
    kinds
        `COMPUTES`, `COMMUNICATES` or `COPIES`; shape ``(n,)``.
    """

    intervals: Floats
    launches: Floats
    kinds: NDArray[np.int8]

    @property
    def span(self) -> float:
        """Microseconds from the first start to the last end."""
        return float(self.intervals[:, 1].max() - self.intervals[0, 0])

    @property
    def idle(self) -> float:
        """Microseconds of the span in which no kernel runs."""
        return self.span - total(self.intervals)

    @property
    def waits_for_host(self) -> float:
        """Microseconds of `idle` before kernels launched when the one before had ended."""
        previous_end = np.maximum.accumulate(self.intervals[:, 1])[:-1]
        gaps = self.intervals[1:, 0] - previous_end
        is_late = (gaps > 0) & (self.launches[1:] > previous_end)
        return float(gaps[is_late].sum())

    def of_kind(self, kind: int) -> Floats:
        """Return the intervals of the kernels of a kind."""
        chosen: Floats = self.intervals[self.kinds == kind]
        return chosen


def total(intervals: Floats) -> float:
    """Return the time that intervals cover, counted once.

    >>> total(np.array([[0.0, 2.0], [1.0, 3.0], [5.0, 6.0]]))
    4.0
    """
    merged = union(intervals)
    return float((merged[:, 1] - merged[:, 0]).sum())


def common(first: Floats, second: Floats) -> float:
    """Return the time that both of two sets of intervals cover.

    >>> common(np.array([[0.0, 2.0]]), np.array([[1.0, 3.0]]))
    1.0
    """
    return total(first) + total(second) - total(np.concatenate((first, second)))


def kernels_by_gpu(events: Iterable["TraceEvent"]) -> dict[Device, list[Kernels]]:
    """Return the kernels of each trace by sorted GPU."""
    # Epoch microseconds are rounded to quarters: the end of a kernel that takes two would be wrong
    # by 6 %, and always in the same direction.
    origin: float | None = None
    rows: defaultdict[tuple[Device, Any], list[_KernelRow]] = defaultdict(list)
    launched: dict[_Launch, float] = {}
    for event in events:
        args = event.event_args or {}
        node = event.node_id or ""
        trace = args.get("trace")
        if trace is None:
            continue
        origin = event.start_time if origin is None else origin
        start = event.start_time - origin
        if event.event_phase in _CALLS:
            launched[node, trace, args.get("correlation")] = start
        elif event.event_phase.startswith(_PHASE):
            gpu = Device(node, f"gpu{args.get('device')}")
            launch = node, trace, args.get("correlation")
            rows[gpu, trace].append((start, start + event.duration, launch, _kind(event)))
    kernels: dict[Device, list[Kernels]] = {}
    for gpu, trace in sorted(rows):
        kernels.setdefault(gpu, []).append(_kernels(rows[gpu, trace], launched))
    return kernels


def is_collective(event: "TraceEvent") -> bool:
    """Return whether an event is a kernel that communicates."""
    return event.event_phase.startswith(_PHASE) and _communicates(event.event_name)


def _communicates(name: str) -> bool:
    """Return whether a kernel communicates, by its name.

    >>> _communicates("void multimem_all_reduce_kernel<float>()"), _communicates("reduce_kernel")
    (True, False)
    """
    return _COMMUNICATES.search(name) is not None and _FUSED.match(name) is None


def _kind(event: "TraceEvent") -> int:
    if _communicates(event.event_name):
        return COMMUNICATES
    return COPIES if event.event_name.startswith(("Memcpy", "Memset")) else COMPUTES


def _kernels(rows: list[_KernelRow], launched: dict[_Launch, float]) -> Kernels:
    starts, ends, launches, kinds = zip(*sorted(rows, key=itemgetter(0)), strict=True)
    launch_times = [launched.get(launch, np.nan) for launch in launches]
    intervals = np.array([starts, ends], np.float64).T
    return Kernels(intervals, np.array(launch_times, np.float64), np.array(kinds, np.int8))


class KernelRule(WindowRule):
    """A rule whose condition is met if some GPU meets it.

    Attributes
    ----------
    LACKING
        Why a window with kernels is not judged if no GPU can be.
    """

    LACKING: ClassVar[str] = NO_KERNELS
    required_inputs = (TorchTraces(),)

    def _prepare(self) -> None:
        self._numbers: dict[Device, dict[str, float]] = {}

    def judge(self, step: int) -> bool:
        """Return whether some GPU meets the condition."""
        gpus = kernels_by_gpu(self.events(step))
        self.record_points(self._report["Datapoints"] + len(gpus))
        if not gpus:
            return self.not_judged(NO_KERNELS)
        ready = {gpu: traces for gpu, traces in gpus.items() if self.can_judge(traces)}
        met = [self._judge_one(step, gpu, traces) for gpu, traces in ready.items()]
        return self.any_met(met, self.LACKING)

    def _judge_one(self, step: int, gpu: Device, traces: list[Kernels]) -> bool:
        met, self._numbers[gpu] = self.judge_gpu(step, gpu, traces)
        if met:
            self.count_violations()
        return met

    @abstractmethod
    def can_judge(self, traces: list[Kernels]) -> bool:
        """Return whether the kernels of a GPU, trace by trace, have what the rule needs."""

    @abstractmethod
    def judge_gpu(self, step: int, gpu: Device, traces: list[Kernels]) -> Judgement:
        """Return whether a GPU meets the condition, and its numbers for the report."""

    def details(self) -> dict[str, Any]:
        """Return the numbers of the latest window by node and GPU."""
        return self.details_of(self._numbers)


def idle_percent(traces: list[Kernels]) -> float:
    """Return the share of a GPU's time in which no kernel runs, in percent."""
    span = sum(kernels.span for kernels in traces)
    return 100 * sum(kernels.idle for kernels in traces) / span if span else 0.0
