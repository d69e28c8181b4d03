"""MaxInitializationTime: the first step of the training comes late, or not at all."""

from typing import Any, Final

from builtin_rules.profiler.parameters import MINUTE_US, SCAN_INTERVAL, NumberParam
from builtin_rules.profiler.window_rule import WindowRule
from smdebug.profiler.analysis.rules.utils import is_step
from smdebug.rules import Page, Quantity

MINUTES: Final = "minutes"
FIRST_STEP: Final = "first step"
NO_EVENTS: Final = "no framework event yet"
_SECOND_US: Final = 1_000_000


class MaxInitializationTime(WindowRule):
    """Met when the first step of the training begins later than `threshold` minutes after the job.

    The job begins with its first sample or event. While no step has ended, the time up to the end
    of the window is judged, or of the job; in the window in which the first one ends, the time up
    to its begin, and nothing after that. Exactly `threshold` does not meet the condition.

    Windows are judged from the first one on that has a framework event or comes after one: without
    framework profiling there is nothing to tell whether the job trains.
    """

    READS = "the framework events of steps, `Step:ModeKeys...`, and the times of system metrics."
    PARAMS = (
        NumberParam(
            "threshold",
            "How long the job may take to begin its first step.",
            default=20,
            unit="minutes",
            minimum=0,
            minimum_open=True,
        ),
        SCAN_INTERVAL,
    )
    QUANTITIES = (Quantity(MINUTES, "time without a step (min)"),)
    PAGE = Page(
        why="""
        Before the first step a job pulls images, downloads data, compiles and fills caches: the
        machines are paid for, and nothing is learnt.
        """,
        save="""
        Framework profiling, which writes a timeline with an event for each step.
        """,
        missing="""
        The windows before the first framework event are skipped: a job without framework profiling
        is not judged at all.
        """,
        remedy="""
        - Stream the data, or mount them, instead of downloading all of them first.
        - Fewer and larger files; a smaller image, or one that is cached on the machine.
        - Prepare data in a job of its own and keep the result.
        - Compile the model once and save what was compiled.
        """,
        limits="""
        A step is known when it has ended: one that takes longer than `threshold` itself looks like
        none. What the job did before its first sample is not seen.
        """,
    )
    REPORTED = ("threshold",)
    threshold: float

    def __init__(
        self, base_trial: Any, threshold: Any = 20, scan_interval_us: Any = MINUTE_US
    ) -> None:
        super().__init__(base_trial, threshold=threshold, scan_interval_us=scan_interval_us)
        self._is_profiled = False
        self._steps: list[int] = []  # when the first and the last one began, or nothing
        self._times: list[int] = []  # of the first and the last system sample, or nothing

    def judge(self, step: int) -> bool:
        """Say whether the job goes on for too long without a step."""
        self._take_times(step)
        events = self.events(step)
        self._is_profiled |= bool(events)
        if not self._is_profiled:
            return self.not_judged(NO_EVENTS)
        had_steps = bool(self._steps)
        begins = [int(one.start_time) for one in events if is_step(one)]
        if begins:
            self._steps = [min(self._steps + begins), max(self._steps + begins)]
            self.has_seen(self._report["Datapoints"] + len(begins))
        return not had_steps and self._judge_wait(step)

    def _judge_wait(self, step: int) -> bool:
        begun = self.base_trial.first_timestamp
        end = min(self.window_of(step)[1], self.base_trial.newest_timestamp)
        now = self._steps[0] if self._steps else end
        minutes = (now - begun) / MINUTE_US
        met = minutes > self.threshold
        if met:
            self.violated()
        note = (
            f"The first step began after {minutes:.1f} minutes." if self._steps else "No step yet."
        )
        return self.measured(
            step, MINUTES, minutes, self.threshold, met=met, tensor=FIRST_STEP, note=note
        )

    def _take_times(self, step: int) -> None:
        times = self.samples(step).time_us
        if len(times):
            self._times = [self._times[0] if self._times else int(times[0]), int(times[-1])]

    def details(self) -> dict[str, Any]:
        """Return when steps began, in microseconds, and job_start and job_end, in seconds."""
        found: dict[str, Any] = {"step_num": {}}
        if self._steps:
            found["step_num"] = {"first": self._steps[0], "last": self._steps[1]}
        if self._times:
            found["job_start"], found["job_end"] = (one / _SECOND_US for one in self._times)
        return found
