"""Verdicts: gives each rule job its outcome and final result at the end of an evaluation."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Final

import numpy as np
from numpy.typing import NDArray

from rule_core.exceptions import SMDebugError
from rule_core.model.segments import SEGMENT_STEPS
from rule_runner.engine.evaluation_context import EvaluationContext
from rule_runner.engine.invocation import LATE
from rule_runner.engine.observer import Observer
from rule_runner.engine.rule_job import RuleJob
from rule_runner.engine.similar_names import nearest_names
from rule_runner.engine.stop_requests import StopReason
from rule_runner.errors import ClientError, OutputError
from rule_runner.loading.parameters import missing_inputs
from rule_runner.logs import get_logger

_log: Final = get_logger(__name__)
_NAMES_SHOWN: Final = 10
_WIDTH: Final = 120  # characters of a pattern


class Verdicts:
    """Gives the rule jobs of an evaluation their verdicts, and writes their results.

    Parameters
    ----------
    context
        The evaluation.
    observer
        Receives the verdicts.

    Attributes
    ----------
    output_error
        Why a result could not be written; "" if all were.
    """

    def __init__(self, context: EvaluationContext, observer: Observer) -> None:
        self._context = context
        self._observer = observer
        self.output_error = ""

    def fail(self, details: str) -> None:
        """End all rule jobs with an error."""
        now = self._context.now()
        self._record(
            job
            for job in self._context.jobs
            if not job.state.done and job.state.rule_failed(details, now)
        )

    def give(self, stop: StopReason | None, *, finish: bool = True) -> None:
        """Give every rule job its verdict, after its rule has finished if `finish` is set."""
        context = self._context
        lost = {
            source: source.lost_files() if source.ended else 0
            for source in context.step_sources.all
        }
        covered = {job: _cover(job) for job in context.jobs}
        for job in context.jobs:
            if count := lost[job.step_source]:
                job.state.note(f"{count} index files arrived after the end and were not judged.")
        if stop:
            now = context.now()
            self._record(job for job in context.jobs if job.state.stop_requested(stop.text, now))
        if finish:
            self._record(job for job, steps in covered.items() if _finish(job, steps))
        self._record(job for job, steps in covered.items() if self._decide(job, steps))
        self._observer.decided([job.state for job in context.jobs])
        context.end_actions(wait=finish)
        self.write()
        for job in context.jobs:
            _log_end(job)

    def postpone(self) -> None:
        """Write the results so far of rule jobs that a later process continues."""
        self._context.end_actions(wait=True)
        with self.noting_failures():
            self._context.write(caught_up=True)

    def write(self) -> None:
        """Write the final results; after a failed write no result is final."""
        with self.noting_failures():
            self._context.write(final=not self.output_error)

    def _record(self, changed: Iterable[RuleJob]) -> None:
        with self.noting_failures():
            self._context.record(changed)

    def _decide(self, job: RuleJob, steps: NDArray[np.int64]) -> bool:
        """Give a rule job its verdict if it has none; return whether the status changed."""
        if job.state.done and job.state.ended_at is not None:
            return False
        return job.state.ended(
            self._context.now(),
            job.step_source.ended,
            self._why_not_evaluated(job),
            no_data=not job.step_source.all_steps,
            expected=job.expected(steps),
            min_coverage=self._context.config.min_coverage_of(job.config),
        )

    @contextmanager
    def noting_failures(self) -> Iterator[None]:
        """Record in `output_error` that the output folder cannot be written; keep the verdicts."""
        try:
            yield
        except OutputError as err:
            self.output_error = self.output_error or str(err)

    def _why_not_evaluated(self, job: RuleJob) -> str:
        """Return what a rule that judged no step lacks or looked for, and what its trial holds."""
        if job.config.missing_parameter or job.state.coverage.judged:
            return job.config.missing_parameter
        path = str(self._context.config.trial_of(job.config))
        return f"{self._missing(job)}Trial {path!r} {job.step_source.describe_contents()}"

    def _missing(self, job: RuleJob) -> str:
        """Return what a rule did not find, and the nearest names; "" if nothing is missing."""
        context = self._context
        missing: Sequence[str] = ()
        with suppress(SMDebugError, ClientError):  # the rule ended with the same error
            if job.step_source.all_steps:  # a trial without any data lacks everything
                trial = context.step_sources.trials_of(job.config)[0]
                missing = missing_inputs(job.bound, trial)
        missing = missing or job.missed
        if not missing:
            return ""
        patterns = ", ".join(
            pattern[:_WIDTH] + "..." * (len(pattern) > _WIDTH) for pattern in missing[:_NAMES_SHOWN]
        )
        nearest = ", ".join(map(repr, nearest_names(job.missed, job.step_source.names())))
        hint = f"The nearest names: {nearest}. " if nearest else ""
        return f"It looked for {patterns}. {hint}"


def _cover(job: RuleJob) -> NDArray[np.int64]:
    """Note unreadable and late data in the result; return the known steps in range."""
    for note in job.step_source.notes():
        job.state.note(note)
    steps = _in_range(job, job.step_source.all_steps)
    job.state.coverage.known = len(steps)
    for step in _in_range(job, job.step_source.late_steps()):
        if step <= job.position:
            job.state.step_skipped(int(step), LATE)
    return steps


def _finish(job: RuleJob, steps: NDArray[np.int64]) -> bool:
    """Let a rule finish; return whether the status changed."""
    complete = job.step_source.is_loaded and job.position >= (steps[-1] if len(steps) else -1)
    return job.finish(complete=complete)


def _in_range(job: RuleJob, steps: Sequence[int]) -> NDArray[np.int64]:
    """Return the ones of global steps that a rule job is to judge."""
    array, start, end = np.asarray(steps, np.int64), job.config.start_step, job.config.end_step
    own = array % SEGMENT_STEPS
    return array[(own >= (start or 0)) & (own < (SEGMENT_STEPS if end is None else end))]


def _log_end(job: RuleJob) -> None:
    """Log the summary of a rule job."""
    coverage = job.state.coverage
    _log.info(
        "rule_job_finished",
        rule_job=job.config.configuration_name,
        rule=job.state.rule,
        status=str(job.state.status),
        outcome=str(job.state.outcome),
        first=coverage.first,
        last=coverage.last,
        evaluated=coverage.judged,
        skipped=sum(coverage.skipped.values()),
        findings=job.state.findings_count,
        rule_time_s=round(job.rule_time_s, 3),
    )
