"""StepOutlier: many steps take far longer than the others."""

from array import array
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from builtin_rules.profiler.parameters import MINUTE_US, SCAN_INTERVAL, NumberParam
from builtin_rules.profiler.samples import Floats
from builtin_rules.profiler.window_rule import WindowRule
from smdebug.profiler.analysis.rules.utils import FrameworkTimes, histogram, is_step, summary
from smdebug.rules import Page, Quantity
from smdebug.rules.params import IntParam, TextParam

if TYPE_CHECKING:
    from smdebug.profiler.trace_event import TraceEvent

OUTLIERS: Final = "outliers"
KNOWN: Final = 100  # as many steps must be known before one more is judged
STEPS_KEPT: Final = 1_000_000  # of each node and mode; 16 bytes each
NO_STEPS: Final = "no steps in this window"
TOO_FEW: Final = "no more than 100 steps of any kind yet"
_SECOND_US: Final = 1e6
_MOST: Final = 1 << 63


class Kind(NamedTuple):
    """Steps that are compared with each other: of one node and one mode."""

    node: str
    phase: str


@dataclass(slots=True)
class _Steps:
    """Durations in seconds and numbers of the steps of one kind; the newest, if there are many."""

    durations: "array[float]" = field(default_factory=lambda: array("d"))
    numbers: "array[int]" = field(default_factory=lambda: array("q"))
    outliers: int = 0

    def add(self, events: Sequence["TraceEvent"]) -> None:
        self.durations.extend(one.duration / _SECOND_US for one in events)
        self.numbers.extend(map(_number, events))
        if len(self.durations) > STEPS_KEPT:
            del self.durations[: STEPS_KEPT // 2], self.numbers[: STEPS_KEPT // 2]

    def judge(self, factor: float) -> tuple[Floats, float]:
        """Count the outliers; return all durations, and the limit beyond which one is."""
        durations = np.array(self.durations)
        limit = float(durations.mean() + factor * durations.std())
        self.outliers = int(np.count_nonzero(durations > limit))
        return durations, limit


class StepOutlier(WindowRule):
    """Met when more than `n_outliers` steps take far longer than the others.

    Far longer is longer than the mean plus `stddev` standard deviations of all steps so far of the
    same node and mode, the outliers included; a duration that equals this limit is no outlier, nor
    is a short step ever one. Steps are judged in each window that has some of their kind, once more
    than 100 are known. The newest million of each kind are remembered.
    """

    READS = "the framework events of steps, `Step:ModeKeys...`; all others for the report."
    PARAMS = (
        NumberParam(
            "stddev",
            "How many standard deviations above the mean an outlier lies.",
            default=3,
            unit="standard deviations",
            minimum=0,
            minimum_open=True,
        ),
        TextParam(
            "mode",
            "Judge only the steps of this mode, such as TRAIN or EVAL, or events of this name.",
            allowed="the name of a mode or of an event",
        ),
        IntParam(
            "n_outliers",
            "How many outliers are tolerated.",
            default=10,
            unit="steps",
            minimum=0,
        ),
        SCAN_INTERVAL,
    )
    QUANTITIES = (Quantity(OUTLIERS, "steps that take far longer than the others"),)
    PAGE = Page(
        why="""
        A step that takes ten times as long as its neighbours waited for something: data, a
        checkpoint, another worker. With many workers each such wait is everybody's.
        """,
        save="""
        Framework profiling, which writes a timeline with an event for each step.
        """,
        missing="""
        A window without steps is skipped, and so are the windows until more than 100 of some kind
        are known: a job without framework profiling is not judged at all.
        """,
        remedy="""
        - See what the outliers have in common: every n-th step is a checkpoint, an evaluation, a
          log; the first of an epoch is the loader's start.
        - See which node has them: one slow machine, or a noisy neighbour.
        - The report lists the operators that ran during them.
        - Garbage collection and memory that is given back: keep buffers.
        """,
        limits="""
        Outliers raise the standard deviation by which they are judged: where more than about a
        tenth of the steps are slow, none of them is an outlier. Batches of different length make
        steps of different length.
        """,
    )
    stddev: float
    mode: str | None
    n_outliers: int

    def __init__(
        self,
        base_trial: Any,
        stddev: Any = 3,
        mode: Any = None,
        n_outliers: Any = 10,
        scan_interval_us: Any = MINUTE_US,
    ) -> None:
        super().__init__(
            base_trial,
            stddev=stddev,
            mode=mode,
            n_outliers=n_outliers,
            scan_interval_us=scan_interval_us,
        )
        self._kinds: defaultdict[Kind, _Steps] = defaultdict(_Steps)  # as many as nodes and modes
        self._times = FrameworkTimes()

    def rule_parameters(self) -> str:
        """Return the parameters as the report has them: the factor under two names."""
        return (
            f"threshold:{self.stddev}\nmode:{self.mode}\n"
            f"n_outliers:{self.n_outliers}\nstddev:{self.stddev}"
        )

    def judge(self, step: int) -> bool:
        """Say whether some kind of step has too many outliers."""
        events = self.events(step)
        new: defaultdict[Kind, list[TraceEvent]] = defaultdict(list)
        for event in events:
            if self._is_judged(event):
                new[Kind(event.node_id or "", event.event_name)].append(event)
        for kind, steps in new.items():
            self._kinds[kind].add(steps)
        self.has_seen(self._report["Datapoints"] + sum(map(len, new.values())))
        if not new:
            return self.not_judged(NO_STEPS)
        ready = {kind: steps for kind, steps in new.items() if self._knows(kind)}
        if not ready:
            return self.not_judged(TOO_FEW)
        slow: list[tuple[float, float]] = []
        met = [self._judge_kind(step, kind, steps, slow) for kind, steps in ready.items()]
        self.violated(0, int(any(met)))
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

    def _knows(self, kind: Kind) -> bool:
        return len(self._kinds[kind].durations) > KNOWN

    def _judge_kind(
        self,
        step: int,
        kind: Kind,
        new: Sequence["TraceEvent"],
        slow: list[tuple[float, float]],
    ) -> bool:
        """Judge the steps of one kind, and add those of the window that are outliers to `slow`."""
        steps = self._kinds[kind]
        _, limit = steps.judge(self.stddev)
        slow += [(one.start_time, one.end_time) for one in new if one.duration / _SECOND_US > limit]
        met = steps.outliers > self.n_outliers
        if met:
            self.violated(steps.outliers, 0)
        return self.measured(
            step,
            OUTLIERS,
            steps.outliers,
            self.n_outliers,
            met=met,
            tensor=kind.phase,
            worker=kind.node,
            note=f"Of {len(steps.durations)} steps, beyond {limit:.3g} s.",
        )

    def details(self) -> dict[str, Any]:
        """Return by node the kind of step with most outliers; and what the framework did.

        The tables of the framework are those of the latest window that had outliers.
        """
        worst: dict[str, Kind] = {}
        for kind in filter(self._knows, list(self._kinds)):
            known = worst.setdefault(kind.node, kind)
            if self._kinds[kind].outliers > self._kinds[known].outliers:
                worst[kind.node] = kind
        found = {node: self._details_of(kind) for node, kind in worst.items()}
        return {"step_details": found, **self._times.details()}

    def _details_of(self, kind: Kind) -> dict[str, Any]:
        steps = self._kinds[kind]
        durations, limit = steps.judge(self.stddev)
        return {
            "step_stats": {"mean": float(durations.mean()), **summary(durations)},
            "number_of_outliers": steps.outliers,
            "phase": kind.phase,
            "stddev": float(durations.std()),
            **histogram(durations),
            "step_numbers": np.array(steps.numbers)[durations > limit].tolist(),
        }


def _number(event: "TraceEvent") -> int:
    """Return a step's number, which is text in most timelines; -1 if there is none of use."""
    try:
        number = int((event.event_args or {}).get("step_num", -1))
    except (TypeError, ValueError, OverflowError):
        return -1
    return number if 0 <= number < _MOST else -1
