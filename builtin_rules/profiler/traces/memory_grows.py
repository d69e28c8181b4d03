"""MemoryGrows: the memory that is still in use between steps grows from step to step."""

from collections import defaultdict
from collections.abc import Iterable
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from builtin_rules.profiler.statistics.parameters import SCAN_INTERVAL, positive
from builtin_rules.profiler.statistics.samples import Device
from builtin_rules.profiler.statistics.window_rule import WindowRule
from builtin_rules.statistics.parameters import count
from smdebug.rules.extensions import Quantity, TorchTraces, is_step

if TYPE_CHECKING:
    from smdebug.profiler.trace_event_file_parser import TraceEvent

GROWTH: Final = "growth"
LEAST_BYTES: Final = 1 << 20  # smaller changes are of no consequence
NO_MEMORY: Final = "no steps with samples of memory in this window"
TOO_FEW: Final = "not more than steps steps with samples of memory yet"
_MEBIBYTE: Final = 1 << 20
_PHASE: Final = "memory"


class MemoryGrows(WindowRule):
    """Met when the least memory in use during a step rises at several steps in a row.

    The least memory of a step is the smallest amount that PyTorch's allocator had handed out
    between the step's start and end. The condition is met if it rises at each of `steps` successive
    steps, by more than `increase` % and by more than 1 MiB in all. A rise equal to the limit does
    not meet it. Each GPU of each process is judged, and so is the memory of the process, in each
    window with steps, once there are more than `steps` of them.
    """

    READS = "the steps and the samples of memory in traces of torch.profiler."
    steps = count("Number of successive rises of memory.", 5, "steps")
    increase = positive("Largest tolerated rise over these steps.", 5, "percent")
    scan_interval_us = SCAN_INTERVAL
    QUANTITIES = (Quantity(GROWTH, "rise of the least memory over steps that all rise (%)"),)

    required_inputs = (TorchTraces(),)

    def _prepare(self) -> None:
        self._lows: defaultdict[Device, list[float]] = defaultdict(list)
        self._growth: dict[Device, float] = {}

    def judge(self, step: int) -> bool:
        """Return whether the memory of some device grows from step to step."""
        lows = _lows_of(self.events(step))
        self.record_points(self._report["Datapoints"] + sum(map(len, lows.values())))
        if not lows:
            return self.not_judged(NO_MEMORY)
        met: list[bool] = []
        for device, new in sorted(lows.items()):
            series = self._lows[device] + new
            self._lows[device] = series[-self.steps :]
            if len(series) > self.steps:
                met.append(self._judge_device(step, device, series))
        return self.any_met(met, TOO_FEW)

    def _judge_device(self, step: int, device: Device, lows: list[float]) -> bool:
        windows = [lows[i : i + self.steps + 1] for i in range(len(lows) - self.steps)]
        growths = [(_growth(window), window[-1]) for window in windows]
        growth, used = max(growths)
        self._growth[device] = growth
        met = growth > self.increase
        if met:
            self.count_violations()
        note = f"At the end of these {self.steps} steps it is {used / _MEBIBYTE:,.1f} MiB."
        return self.measured_on(device, step, GROWTH, growth, self.increase, met=met, note=note)

    def details(self) -> dict[str, Any]:
        """Return the largest rise of the latest window in percent by node and device."""
        return self.details_of(self._growth)


def _growth(lows: list[float]) -> float:
    """Return the rise in percent if each value is above the one before, and 0 otherwise.

    >>> _growth([100e6, 110e6, 120e6]), _growth([100e6, 130e6, 120e6]), _growth([0, 1])
    (20.0, 0.0, 0.0)
    """
    first, last = lows[0], lows[-1]
    if last - first <= LEAST_BYTES or any(after <= before for before, after in pairwise(lows)):
        return 0.0
    return 100 * (last - first) / max(first, LEAST_BYTES)


def _lows_of(events: Iterable["TraceEvent"]) -> dict[Device, list[float]]:
    """Return the least memory in use during each step, in order, by device."""
    steps: defaultdict[tuple[str, Any], list[tuple[float, float]]] = defaultdict(list)
    samples: defaultdict[tuple[Device, Any], list[tuple[float, float]]] = defaultdict(list)
    for event in events:
        args = event.event_args or {}
        node, trace = event.node_id or "", args.get("trace")
        if trace is not None and is_step(event):
            steps[node, trace].append((event.start_time, event.end_time))
        elif trace is not None and event.event_phase == _PHASE:
            name = f"gpu{args['device']}" if "device" in args else "cpu"
            samples[Device(node, name), trace].append((event.start_time, args["allocated"]))
    lows: dict[Device, list[float]] = {}
    for (device, trace), values in samples.items():
        times, allocated = np.array(sorted(values), np.float64).T
        for start, end in sorted(steps.get((device.node, trace), ())):
            first, last = np.searchsorted(times, [start, end])
            if first < last:
                lows.setdefault(device, []).append(float(allocated[first:last].min()))
    return lows
