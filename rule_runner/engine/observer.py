"""Observer: receives the progress of an evaluation, for a progress bar or a log."""

from collections.abc import Sequence
from typing import Final

from rule_core.clock import Clock
from rule_runner.engine.rule_job import RuleJob
from rule_runner.results.state import RuleJobState

FIRST_NOTICE_S: Final = 10.0
NOTICE_INTERVAL_S: Final = 60.0


class Observer:
    """Receives the progress of an evaluation; does nothing by default."""

    def progress(self, judged: int, known: int) -> None:
        """Receive how many of the `known` steps have been judged."""

    def waiting(self, text: str, seconds: float) -> None:
        """Receive what the evaluation is waiting for, and for how many seconds."""

    def following(self) -> None:
        """Learn that everything saved is judged and that trials may still grow; called often."""

    def decided(self, states: Sequence[RuleJobState]) -> None:
        """Receive the verdicts of all rules; actions and sinks may still be running."""


class WaitNotices:
    """Reports a long wait: after `FIRST_NOTICE_S`, then every `NOTICE_INTERVAL_S`."""

    def __init__(self, observer: Observer, clock: Clock) -> None:
        self._observer = observer
        self._clock = clock
        self._waiting_since: float | None = None
        self._last_notice = 0.0

    def reset(self) -> None:
        """Record that data arrived: the next wait starts from zero."""
        self._waiting_since = None

    def wait_on(self, jobs: Sequence[RuleJob]) -> None:
        """Record that rule jobs are waiting, and report it if a notice is due."""
        now = self._clock.monotonic()
        if self._waiting_since is None:
            self._waiting_since = now
            self._last_notice = now + FIRST_NOTICE_S - NOTICE_INTERVAL_S
        if now - self._last_notice >= NOTICE_INTERVAL_S:
            self._last_notice = now
            self._observer.waiting(describe_wait(jobs), now - self._waiting_since)


def describe_wait(jobs: Sequence[RuleJob]) -> str:
    """Return what the rule job that is furthest behind is waiting for."""
    unfinished = [job for job in jobs if job.live and not all_judged(job)]
    last = min(unfinished, key=lambda job: job.position)
    return last.step_source.describe_wait(last.position)


def all_judged(job: RuleJob) -> bool:
    """Return whether every step is judged, and no further one is expected."""
    steps = job.step_source.all_steps
    return job.step_source.is_loaded and job.position >= (steps[-1] if steps else -1)
