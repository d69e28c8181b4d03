"""MaxInitializationTime: the first training step starts late, or not at all."""

from typing import Any, Final

from builtin_rules.profiler.statistics.parameters import (
    MINUTE_US,
    SCAN_INTERVAL,
    SECOND_US,
    positive,
)
from builtin_rules.profiler.statistics.window_rule import WindowRule
from smdebug.rules.extensions import FrameworkEvents, Quantity, is_step

MINUTES: Final = "minutes"
FIRST_STEP: Final = "first step"
NO_EVENTS: Final = "no framework event yet"


class MaxInitializationTime(WindowRule):
    """Met when the first training step starts later than `threshold` minutes after the job.

    The job starts with its first sample or event. Until a step has ended, the time to the end of
    the window, or of the job, is judged; in the window in which the first step ends, the time to
    its start; afterwards nothing. Exactly `threshold` does not meet the condition.

    Windows are judged from the first framework event on: without framework profiling it is unknown
    whether the job trains.
    """

    READS = "the framework events of steps, `Step:ModeKeys...`, and the times of system metrics."
    threshold = positive("Longest time from the start of the job to its first step.", 20, "minutes")
    scan_interval_us = SCAN_INTERVAL
    QUANTITIES = (Quantity(MINUTES, "time without a step (min)"),)

    required_inputs = (FrameworkEvents(),)

    def _prepare(self) -> None:
        self._is_profiled = False
        self._steps: list[int] = []  # start of the first and the last one, or empty
        self._times: list[int] = []  # of the first and the last system sample, or empty

    def judge(self, step: int) -> bool:
        """Return whether the job runs for too long without a step."""
        times = self.samples(step).time_us
        if len(times):
            self._times = [self._times[0] if self._times else int(times[0]), int(times[-1])]
        events = self.events(step)
        self._is_profiled |= bool(events)
        if not self._is_profiled:
            return self.not_judged(NO_EVENTS)
        had_steps = bool(self._steps)
        starts = [int(event.start_time) for event in events if is_step(event)]
        if starts:
            self._steps = [min(self._steps + starts), max(self._steps + starts)]
            self.record_points(self._report["Datapoints"] + len(starts))
        return not had_steps and self._judge_wait(step)

    def _judge_wait(self, step: int) -> bool:
        start = self.base_trial.first_timestamp
        end = min(self.window_of(step)[1], self.base_trial.newest_timestamp)
        now = self._steps[0] if self._steps else end
        minutes = (now - start) / MINUTE_US
        met = minutes > self.threshold
        if met:
            self.count_violations()
        started = f"The first step started after {minutes:.1f} minutes."
        note = started if self._steps else "No step yet."
        return self.measured(
            step, MINUTES, minutes, self.threshold, met=met, tensor=FIRST_STEP, note=note
        )

    def details(self) -> dict[str, Any]:
        """Return the start of steps in microseconds, and job_start and job_end in seconds."""
        details: dict[str, Any] = {"step_num": {}}
        if self._steps:
            details["step_num"] = {"first": self._steps[0], "last": self._steps[1]}
        if self._times:
            details["job_start"], details["job_end"] = (
                time_us / SECOND_US for time_us in self._times
            )
        return details
