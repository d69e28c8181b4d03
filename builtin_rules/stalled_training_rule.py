"""StalledTrainingRule: nothing was saved for too long a time."""

import json
from collections.abc import Mapping
from typing import Any, Final

from builtin_rules.selection import LITERAL
from smdebug.core.clock import Clock, SystemClock
from smdebug.rules import Page, Quantity, Rule
from smdebug.rules.params import BoolParam, IntParam, TextParam, set_parameters

SECONDS: Final = "seconds without news"
_THRESHOLD: Final = 1800
STOP: Final = "stop_training_on_fire"
PREFIX: Final = "training_job_name_prefix"
ASKED: Final = (
    f"{STOP!r} asks to stop the training job; the actions of the result say what came of it."
)


class StalledTrainingRule(Rule):
    """Met when more than `threshold` seconds lie between two saved steps, for some worker.

    The times are those recorded in the event files when the training job wrote them, so the answer
    is the same while it runs and afterwards. At each step every worker is judged that has saved
    before: one that saved the step by the time since its step before, any other by the time since
    its last step, until the latest of those who saved this one; its silence is reported once. While
    a running job is waited for, the time since each worker's last step is judged by this machine's
    clock, and each silence reported once. The first saved step of a worker has nothing to be
    compared with. A gap of exactly `threshold` does not meet the condition, nor does one backwards.

    With `literal` news is what this machine sees: the time between the judging of two steps, or
    since the rule was made, whichever workers saved; a job that has ended is judged at once and
    never stalled.

    With `stop_training_on_fire` the condition's first time has the action ``stoptraining``: the
    rule itself stops nothing.
    """

    READS = "the times at which event files were written; no tensor in particular."
    PARAMS = (
        IntParam(
            "threshold",
            "A training that saves nothing for longer than this has stalled.",
            default=_THRESHOLD,
            minimum=1,
            unit="seconds",
        ),
        BoolParam(
            STOP,
            "Stop the training job when the condition is met.",
            default=False,
        ),
        TextParam(
            PREFIX,
            "Name of the training job to stop, or a beginning that only one running job has; by "
            "default the job that the container or --training-job-name names.",
            pattern="[A-Za-z0-9-]+",
            allowed="letters, digits and hyphens",
        ),
        LITERAL,
    )
    QUANTITIES = (Quantity(SECONDS, "time since the step before (s)", worse="above"),)
    PAGE = Page(
        why="""
        A training that hangs (a deadlock between workers, a data loader that waits for ever, a full
        disk) costs as much as one that learns, and nobody sees it until the bill comes.
        """,
        save="""
        Anything, more often than `threshold`; the losses will do:

            Hook(
                out_dir,
                include_collections=["losses"],
                save_config=SaveConfig(save_interval=100),
            )
        """,
        missing="""
        A step whose event files tell no time (shapes only, damaged, a time that is no time) is
        skipped, and so is the first step, which has none before it.
        """,
        remedy="""
        - Look at the worker in the evidence first: the others may have waited for it.
        - Look at its stacks (`py-spy dump`), and at what it waits for: data, a collective, a lock.
        - See whether disk, memory or network ran out at the time of the last saved step.
        - A long validation or a checkpoint that saves nothing is no fault: raise `threshold`.
        """,
        limits="""
        The training must save more often than `threshold`. A training that was stopped and taken up
        again has a gap, which fires: begin behind it with `--start-step`. A worker that saves much
        more seldom than the others is reported as silent: raise `threshold`. The clocks of the
        machines are compared with each other: they must agree to within a fraction of `threshold`.
        """,
    )
    threshold: int
    stop_training_on_fire: bool
    training_job_name_prefix: str | None
    literal: bool

    def __init__(
        self,
        base_trial: Any,
        threshold: Any = _THRESHOLD,
        stop_training_on_fire: Any = False,
        training_job_name_prefix: Any = None,
        literal: Any = False,
        *,
        clock: Clock | None = None,
    ) -> None:
        super().__init__(base_trial)
        set_parameters(
            self,
            threshold=threshold,
            stop_training_on_fire=stop_training_on_fire,
            training_job_name_prefix=training_job_name_prefix,
            literal=literal,
        )
        self._action_str = self.declared_actions(vars(self))
        self.clock = clock or SystemClock()
        self._news = self.clock.monotonic()
        self._at = -1
        # Each worker's last wall time: one entry for each worker, kept for good.
        self._last: dict[str, float] = {}
        # The workers whose silence was reported: one leaves when it saves again.
        self._reported: set[str] = set()

    @classmethod
    def declared_actions(cls, arguments: Mapping[str, Any]) -> str:
        """Return the action ``stoptraining`` if the parameters ask for it."""
        if not arguments.get(STOP):
            return ""
        action = {"name": "stoptraining", "training_job_prefix": arguments.get(PREFIX)}
        return json.dumps({key: value for key, value in action.items() if value})

    def invoke_at_step(self, step: int) -> bool:
        """Judge the time before global step `step`, by worker."""
        return self._judge_arrival(step) if self.literal else self._judge_step(step)

    def invoke_while_waiting(self, step: int) -> bool:
        """Judge the time since global step `step`, after which nothing has come so far."""
        if self.literal:
            return self._judge_silence(step, {"": self.clock.monotonic() - self._news})
        now, last = self.clock.time(), dict(self._last)
        for later in self.base_trial.steps(show_incomplete_steps=True):
            if self._at < later <= step:  # not judged yet: some worker has not saved it
                last |= self.base_trial.wall_times(later)
        return self._judge_silence(step, {worker: now - time for worker, time in last.items()})

    def _judge_step(self, step: int) -> bool:
        times = self.base_trial.wall_times(step)
        self._at = step
        if not times:
            return self.not_judged("no time is recorded at this step")
        before = self._last
        self._last = before | times
        self._reported -= times.keys()
        if not before:
            return self.not_judged("the first step has none before it")
        gaps = {one: time - before[one] for one, time in times.items() if one in before}
        met = [self._measured(step, worker, gap) for worker, gap in gaps.items()]
        now = max(times.values())
        silent = {one: now - time for one, time in before.items() if one not in times}
        return self._judge_silence(step, silent) or any(met)

    def _judge_arrival(self, step: int) -> bool:
        now = self.clock.monotonic()
        gap, self._news = now - self._news, now
        self._reported.clear()
        return self._measured(step, "", gap)

    def _judge_silence(self, step: int, silent: dict[str, float]) -> bool:
        """Report the workers that have been silent for too long, each once."""
        new = {
            worker: gap
            for worker, gap in silent.items()
            if gap > self.threshold and worker not in self._reported
        }
        self._reported |= new.keys()
        for worker, gap in new.items():
            self._measured(step, worker, gap)
        return bool(new)

    def _measured(self, step: int, worker: str, gap: float) -> bool:
        met = gap > self.threshold
        note = ASKED if self.stop_training_on_fire else None
        return self.measured(
            step, SECONDS, gap, self.threshold, met=met, worker=worker or None, note=note
        )
