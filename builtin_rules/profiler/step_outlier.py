"""StepOutlier: many steps take much longer than the others."""

from array import array
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from builtin_rules.profiler.statistics.parameters import SCAN_INTERVAL, SECOND_US, positive
from builtin_rules.profiler.statistics.samples import Floats
from builtin_rules.profiler.statistics.window_rule import WindowRule
from builtin_rules.statistics.parameters import Declared, count
from builtin_rules.statistics.tensor_selection import LITERAL
from smdebug.rules.extensions import (
    FrameworkEvents,
    FrameworkTimes,
    Quantity,
    TextParam,
    histogram,
    is_step,
    summary,
)

if TYPE_CHECKING:
    from smdebug.profiler.trace_event_file_parser import TraceEvent

Spans = list[tuple[float, float]]  # starts and ends of steps
OUTLIERS: Final = "outliers"
TIME_LOST: Final = "time_lost"
MIN_EARLIER_STEPS: Final = 100  # steps required before the next is judged
LEAST_FACTOR: Final = 1.5  # of the median; a step below it does not take much longer
# Percent of the time of all steps. Lognormal noise of 10 to 50 % loses less than 1 % to outliers.
LEAST_TIME_LOST: Final = 5.0
_MAD_TO_DEVIATION: Final = 1.4826  # of a normal distribution
STEPS_KEPT: Final = 1_000_000  # of each node and mode; 16 bytes each
NO_STEPS: Final = "no steps in this window"
TOO_FEW: Final = "not more than 100 steps of any kind yet"
_NUMBER_LIMIT: Final = 1 << 63


class StepGroup(NamedTuple):
    """The steps of one node and mode, which are compared with each other."""

    node: str
    phase: str


@dataclass(slots=True)
class _Steps:
    """Durations in seconds and numbers of the latest steps of one kind."""

    durations: "array[float]" = field(default_factory=lambda: array("d"))
    numbers: "array[int]" = field(default_factory=lambda: array("q"))
    outliers: int = 0
    time_lost: float = 0.0  # percent of the time of all steps, beyond their median

    def add(self, events: Sequence["TraceEvent"]) -> None:
        self.durations.extend(event.duration / SECOND_US for event in events)
        self.numbers.extend(map(_number, events))
        if len(self.durations) > STEPS_KEPT:
            del self.durations[: STEPS_KEPT // 2], self.numbers[: STEPS_KEPT // 2]

    def judge(self, factor: float, *, literal: bool) -> tuple[Floats, float]:
        """Count the outliers; return all durations and the limit for outliers."""
        durations = np.array(self.durations)
        limit = literal_limit(durations, factor) if literal else robust_limit(durations, factor)
        slow = durations[durations > limit]
        lost = (slow - np.median(durations)).sum()
        self.outliers = len(slow)
        self.time_lost = float(100 * lost / durations.sum()) if len(slow) else 0.0
        return durations, limit


def literal_limit(durations: Floats, factor: float) -> float:
    """Return the mean plus `factor` standard deviations."""
    return float(durations.mean() + factor * durations.std())


def robust_limit(durations: Floats, factor: float) -> float:
    """Return the duration that exceeds the median by `factor` robust deviations.

    Deviations of durations and of their logarithms count, as well as half the median.
    """
    median = float(np.median(durations))
    if median <= 0:
        return literal_limit(durations, factor)
    deviation = _MAD_TO_DEVIATION * float(np.median(np.abs(durations - median)))
    logs = np.log(np.maximum(durations, 1e-6 * median) / median)
    of_logs = _MAD_TO_DEVIATION * float(np.median(np.abs(logs)))
    return max(
        LEAST_FACTOR * median,
        median + factor * deviation,
        median * float(np.exp(min(factor * of_logs, 700.0))),
    )


class StepOutlier(WindowRule):
    """Met when more than `n_outliers` steps take much longer than the others.

    An outlier takes longer than the median of all steps so far of the same node and mode by more
    than half the median and by more than `stddev` robust deviations (1.4826 times the median
    absolute deviation), both of the durations and of their logarithms. A duration equal to the
    limit is not an outlier, and neither is a short step. Besides, the outliers must cost at least
    5 % of the time of all steps: the sum of what they take beyond the median.

    With `literal`, or a `stddev` that is no default, an outlier takes longer than the mean plus
    `stddev` standard deviations of all steps, including outliers. The time they cost does not count
    then, nor with an `n_outliers` other than the default.

    Steps are judged in each window with steps of their kind, once more than 100 are known. The
    latest million of each kind are kept.
    """

    READS = "the framework events of steps, `Step:ModeKeys...`; all others for the report."
    stddev = positive(
        "Number of deviations above the median from which a step is an outlier.", 3, "deviations"
    )
    mode = Declared["str | None"](
        TextParam(
            "mode",
            "Judge only the steps of this mode, such as TRAIN or EVAL, or events of this name.",
            allowed="the name of a mode or of an event",
        )
    )
    n_outliers = count("Number of tolerated outliers.", 10, "steps", minimum=0)
    scan_interval_us = SCAN_INTERVAL
    literal = Declared[bool](LITERAL)
    DOCUMENTED = MappingProxyType({"stddev": 5})
    QUANTITIES = (
        Quantity(OUTLIERS, "steps that take much longer than the others"),
        Quantity(TIME_LOST, "time that these steps take beyond the median (% of all)"),
    )

    required_inputs = (FrameworkEvents("the events of steps"),)

    def _prepare(self) -> None:
        self._groups: defaultdict[StepGroup, _Steps] = defaultdict(_Steps)
        self._times = FrameworkTimes()

    def rule_parameters(self) -> str:
        """Return the parameters for the report, with the factor under two names."""
        return (
            f"threshold:{self.stddev}\nmode:{self.mode}\n"
            f"n_outliers:{self.n_outliers}\nstddev:{self.stddev}"
        )

    def judge(self, step: int) -> bool:
        """Return whether some kind of step has too many outliers."""
        events = self.events(step)
        new: defaultdict[StepGroup, list[TraceEvent]] = defaultdict(list)
        for event in events:
            if self._is_judged(event):
                new[StepGroup(event.node_id or "", event.event_name)].append(event)
        for group, steps in new.items():
            self._groups[group].add(steps)
        self.record_points(self._report["Datapoints"] + sum(map(len, new.values())))
        if not new:
            return self.not_judged(NO_STEPS)
        ready = {group: steps for group, steps in new.items() if self._knows(group)}
        if not ready:
            return self.not_judged(TOO_FEW)
        slow: Spans = []
        met = [self._judge_kind(step, group, steps, slow) for group, steps in ready.items()]
        self.count_violations(0, int(any(met)))
        if slow:
            self._times = FrameworkTimes()
            self._times.add_during(events, np.array(slow))
        return any(met)

    def _is_judged(self, event: "TraceEvent") -> bool:
        if self.mode is None:
            return is_step(event)
        if event.event_name == self.mode:
            return True
        return is_step(event) and event.event_name.lower().endswith(f".{self.mode.lower()}")

    def _knows(self, group: StepGroup) -> bool:
        return len(self._groups[group].durations) > MIN_EARLIER_STEPS

    def _judge_kind(
        self, step: int, group: StepGroup, new: Sequence["TraceEvent"], slow: Spans
    ) -> bool:
        """Judge the steps of one kind, and add the outliers of the window to `slow`."""
        steps = self._groups[group]
        _, limit = steps.judge(self.stddev, literal=self.binds("stddev"))
        slow += [
            (event.start_time, event.end_time)
            for event in new
            if event.duration / SECOND_US > limit
        ]
        costs = self.binds("stddev", "n_outliers") or steps.time_lost >= LEAST_TIME_LOST
        met = steps.outliers > self.n_outliers and costs
        if met:
            self.count_violations(steps.outliers, 0)
        share = 100 * steps.outliers / len(steps.durations)
        note = (
            f"Of {len(steps.durations)} steps ({share:.2g} %), above {limit:.3g} s; "
            f"they cost {steps.time_lost:.3g} % of the time."
        )
        self.measured_on(group, step, TIME_LOST, steps.time_lost, LEAST_TIME_LOST, met=False)
        return self.measured_on(
            group, step, OUTLIERS, steps.outliers, self.n_outliers, met=met, note=note
        )

    def details(self) -> dict[str, Any]:
        """Return the kind of step with most outliers by node, and what the framework did.

        The framework tables are from the latest window with outliers.
        """
        worst: dict[str, StepGroup] = {}
        for group in filter(self._knows, list(self._groups)):
            previous = worst.setdefault(group.node, group)
            if self._groups[group].outliers > self._groups[previous].outliers:
                worst[group.node] = group
        details = {node: self._details_of(group) for node, group in worst.items()}
        return {"step_details": details, **self._times.details()}

    def _details_of(self, group: StepGroup) -> dict[str, Any]:
        steps = self._groups[group]
        durations, limit = steps.judge(self.stddev, literal=self.binds("stddev"))
        return {
            "step_stats": {"mean": float(durations.mean()), **summary(durations)},
            "number_of_outliers": steps.outliers,
            "phase": group.phase,
            "stddev": float(durations.std()),
            **histogram(durations),
            "step_numbers": np.array(steps.numbers)[durations > limit].tolist(),
        }


def _number(event: "TraceEvent") -> int:
    """Return the number of a step, text in most timelines; -1 if missing or invalid."""
    try:
        number = int((event.event_args or {}).get("step_num", -1))
    except (TypeError, ValueError, OverflowError):
        return -1
    return number if 0 <= number < _NUMBER_LIMIT else -1
