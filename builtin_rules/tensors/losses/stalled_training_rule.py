"""StalledTrainingRule: no step was saved for too long."""

import json
import statistics
from collections import defaultdict, deque
from collections.abc import Mapping
from typing import Any, ClassVar, Final

from builtin_rules.declared_rule import DeclaredRule
from builtin_rules.statistics.parameters import Declared, count, flag
from builtin_rules.statistics.tensor_selection import LITERAL
from smdebug.rules.extensions import Clock, Quantity, Severity, SystemClock, TextParam

SECONDS: Final = "seconds without news"
USUAL_GAPS: Final = 3.0  # times the median of the latest gaps, which are no stall
FEWEST_GAPS: Final = 3  # that tell what is usual
GAPS_KEPT: Final = 20
STOP: Final = "stop_training_on_fire"
PREFIX: Final = "training_job_name_prefix"
ASKED: Final = (
    f"{STOP!r} requests to stop the training job; the actions of the result show the outcome."
)


class StalledTrainingRule(DeclaredRule):
    """Met when more than `threshold` seconds lie between two saved steps, for some worker.

    Times are those recorded in the event files, so the answer is the same during and after the
    training. At each step, every worker that has saved before is judged: a worker that saved the
    step by the time since its previous step, any other by the time since its last step until the
    latest save of this one; its silence is reported once. While waiting for a running job, the time
    since each worker's last step is measured by the local clock, and each silence is reported once.
    The first saved step of a worker has nothing to compare with. A gap of exactly `threshold` does
    not meet the condition, nor does a negative one. A training that saves rarely is not stalled:
    unless you give `threshold`, the time must also exceed three times the median of the worker's
    latest 20 such times, if there are three. A worker has recovered when it saves a step in time.

    With `literal`, times are those observed on this machine: the time between the evaluations of
    two steps, or since the rule was created, regardless of the worker. A job that has ended is
    judged at once and is never stalled.

    With `stop_training_on_fire`, the first finding triggers the action ``stoptraining``; the rule
    itself stops nothing.
    """

    READS = "the times at which event files were written; no tensor in particular."
    threshold = count(
        "A training that saves nothing for longer than this is stalled.", 1800, "seconds"
    )
    stop_training_on_fire = flag("Stop the training job when the condition is met.")
    training_job_name_prefix = Declared[str | None](
        TextParam(
            "",
            "Name of the training job to stop, or a prefix that only one running job has; by "
            "default the job of the container or of --training-job-name.",
            pattern="[A-Za-z0-9-]+",
            allowed="letters, digits and hyphens",
        )
    )
    literal = Declared[bool](LITERAL)
    QUANTITIES = (Quantity(SECONDS, "time since the step before (s)", worse="above"),)
    SEVERITY = Severity.ERROR
    clock: ClassVar[Clock] = SystemClock()

    def _prepare(self) -> None:
        self._action_str = self.declared_actions(vars(self))
        self._is_bound = self.binds("threshold")
        self._last_arrival = self.clock.monotonic()
        self._judged_step = -1
        self._last: dict[str, float] = {}  # wall time of each worker's last step
        # Workers whose silence was reported, until they save again.
        self._reported: set[str] = set()
        # When those that stalled had saved last, until they save in time again.
        self._stalled: dict[str, float] = {}
        self._gaps: dict[str, deque[float]] = defaultdict(lambda: deque(maxlen=GAPS_KEPT))

    @classmethod
    def declared_actions(cls, arguments: Mapping[str, Any]) -> str:
        """Return the action ``stoptraining`` if the parameters request it."""
        if not arguments.get(STOP):
            return ""
        action = {"name": "stoptraining", "training_job_prefix": arguments.get(PREFIX)}
        return json.dumps({key: value for key, value in action.items() if value})

    def invoke_at_step(self, step: int) -> bool:
        """Judge the time before global step `step`, by worker."""
        return self._judge_arrival(step) if self.literal else self._judge_step(step)

    def invoke_while_waiting(self, step: int) -> bool:
        """Judge the time since global step `step`, the latest so far."""
        if self.literal:
            return self._judge_silence(step, self.clock.monotonic(), {"": self._last_arrival})
        last = dict(self._last)
        for later in self.base_trial.steps(show_incomplete_steps=True):
            if self._judged_step < later <= step:  # not judged yet: incomplete
                last |= self.base_trial.wall_times(later)
        return self._judge_silence(step, self.clock.time(), last)

    def _judge_step(self, step: int) -> bool:
        times = self.base_trial.wall_times(step)
        self._judged_step = step
        if not times:
            return self.not_judged("no time is recorded at this step")
        before = self._last
        self._last = before | times
        self._reported -= times.keys()
        if not before:
            return self.not_judged("the first step has no predecessor")
        gaps = {worker: time - before[worker] for worker, time in times.items() if worker in before}
        met = [self._measured(step, worker, gap, times[worker]) for worker, gap in gaps.items()]
        for worker, gap in gaps.items():
            self._gaps[worker].append(gap)
        silent = {worker: time for worker, time in before.items() if worker not in times}
        return self._judge_silence(step, max(times.values()), silent) or any(met)

    def _judge_arrival(self, step: int) -> bool:
        now = self.clock.monotonic()
        gap, self._last_arrival = now - self._last_arrival, now
        self._reported.clear()
        return self._measured(step, "", gap, now)

    def _judge_silence(self, step: int, now: float, last: Mapping[str, float]) -> bool:
        """Report the workers that have been silent for too long since they saved, each once."""
        new = {
            worker: time
            for worker, time in last.items()
            if now - time > self._limit(worker) and worker not in self._reported
        }
        self._reported |= new.keys()
        for worker, time in new.items():
            self._measured(step, worker, now - time, time)
        return bool(new)

    def _measured(self, step: int, worker: str, gap: float, saved: float) -> bool:
        """Record a time without news, of a worker that has last saved at `saved`."""
        limit = self._limit(worker)
        met = gap > limit
        if met:
            self._stalled[worker] = saved
        elif self._stalled.get(worker, saved) < saved:
            del self._stalled[worker]
            self.found(step, None, worker or None, recovers=True)
        note = ASKED if self.stop_training_on_fire else None
        return self.measured(step, SECONDS, gap, limit, met=met, worker=worker or None, note=note)

    def _limit(self, worker: str) -> float:
        """Return how long a worker may be silent; at least `threshold` seconds."""
        gaps = self._gaps[worker]
        if self._is_bound or len(gaps) < FEWEST_GAPS:
            return self.threshold
        return max(self.threshold, USUAL_GAPS * statistics.median(gaps))
