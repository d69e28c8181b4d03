"""RuleJob: one rule over one trial; the only place where what a rule did becomes a status."""

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Final, assert_never

import structlog
from msgspec.structs import replace

from rule_runner.config import RuleJobConfig
from rule_runner.evaluation import Evaluation
from rule_runner.invocation import Did, Invocation, Invoker
from rule_runner.measurements import Measurements
from rule_runner.outputs import OutputFolder
from rule_runner.results import Evidence, RuleJobFacts, RuleResult, evidence, rule_result
from rule_runner.status import CLIENT_ERROR, RuleStatus, StatusChange
from rule_runner.walk import Walk
from smdebug.core.clock import Clock

if TYPE_CHECKING:
    from rule_runner.actions.job_actions import JobActions

_log: Final = structlog.get_logger()
WRITE_EVERY_S: Final = 2.0


class RuleJob:
    """One rule job: its invoker, its evaluation, its output folder, and where it stands.

    Attributes
    ----------
    walk
        What it judges.
    position
        The last global step that was judged or skipped, or one before the first to judge.
    waits
        Whether the rule wants its next step only when there is more.
    first
        The first finding, once the condition was met.
    actions
        What is done then; None if nothing is.
    """

    def __init__(
        self,
        config: RuleJobConfig,
        walk: Walk,
        evaluation: Evaluation,
        facts: RuleJobFacts,
        folder: OutputFolder,
        clock: Clock,
        now: Callable[[], datetime],
    ) -> None:
        self.config = config
        self.walk = walk
        self.evaluation = evaluation
        self.facts = facts
        self.folder = folder
        self.invoker: Invoker | None = None
        self.position = (config.start_step or 0) - 1
        self.waits = False
        self.first: Evidence | None = None
        self.actions: JobActions | None = None
        self._over = bool(config.lacking)
        self.rule_time_s = 0.0
        self.missed: tuple[str, ...] = ()
        self.measurements = Measurements(config.loaded.rule_class.QUANTITIES)
        self._log = _log.bind()  # which takes longer than not to write an event
        self._clock = clock
        self._now = now
        self._began = self._written = clock.monotonic()

    def begin(self) -> None:
        """Wait until the rule was made, if there is one.

        Raises
        ------
        ClientError
            If it cannot be made.
        """
        if self.invoker is not None:
            begun = self.invoker.begin()
            self.measurements = Measurements(begun.quantities)
            for note in begun.notes:
                self.evaluation.note(note)

    @property
    def live(self) -> bool:
        """Whether the rule job wants further steps."""
        return not (self.evaluation.done or self._over)

    def wants(self, step: int) -> bool:
        """Say whether a step is this rule job's to judge now; one past its range ends it."""
        if self.config.end_step is not None and step >= self.config.end_step:
            self._over = True
        return self.live and not self.waits and step > self.position

    def judge(self, step: int, missing_workers: list[str]) -> list[StatusChange]:
        """Judge a step, record what was found, and return how the status moved."""
        if self.invoker is None:
            return []
        invocation = self.invoker.judge(step)
        self.rule_time_s += invocation.seconds
        self.missed = invocation.missed
        self.measurements.add(invocation.measurements)
        if invocation.did is Did.WAITS and not self.walk.ended:
            self.waits = True
            return []
        self.position = step
        change = self._take(step, invocation)
        if missing_workers:
            self.evaluation.missing_workers(step, missing_workers)
        if change or self._clock.monotonic() - self._written >= WRITE_EVERY_S:
            self.write()
        return [change] if change else []

    def pass_over(self, step: int, reason: str) -> None:
        """Skip a step that nobody can judge."""
        self.position = step
        self.evaluation.step_skipped(step, reason)

    def wait(self, step: int) -> list[StatusChange]:
        """Let the rule judge that nothing has come after a step; return how the status moved."""
        invocation = self.invoker.wait(step) if self.invoker is not None else None
        if invocation is None or invocation.did not in {Did.MET, Did.FAILED}:
            return []
        self.rule_time_s += invocation.seconds
        self.measurements.add(invocation.measurements)
        change = self._take(step, invocation)
        if change:
            self.write()
        return [change] if change else []

    def finish(self, *, complete: bool) -> list[StatusChange]:
        """Let the rule do what is left, and return how the status moved.

        What the rule says then counts if all steps of the trial were judged (`complete`) and the
        rule job has not ended; what it raises is its error, unless a verdict is there.
        """
        evaluation, step = self.evaluation, max(self.position, 0)
        if self.invoker is None or evaluation.status is RuleStatus.ERROR:
            return []
        counts = complete and not evaluation.done
        invocation = self.invoker.finish(step)
        self.rule_time_s += invocation.seconds
        if invocation.did is Did.FAILED:
            change = evaluation.rule_failed(CLIENT_ERROR + invocation.reason, self._now())
            return [change] if change else []
        if not counts or not (invocation.measurements or invocation.did is Did.MET):
            return []
        self.measurements.add(invocation.measurements)
        if invocation.did is not Did.MET:
            evaluation.step_judged(step)
            return []
        change = self._take(step, invocation)
        return [change] if change else []

    def _take(self, step: int, invocation: Invocation) -> StatusChange | None:
        """Tell the evaluation what the rule did."""
        evaluation = self.evaluation
        for note in invocation.notes:
            evaluation.note(note)
        self._log.debug("step_judged", step=step, did=invocation.did.name, reason=invocation.reason)
        match invocation.did:
            case Did.MET:
                _log.info("condition_met", step=step, rule=evaluation.rule)
                change = evaluation.condition_met(
                    step, invocation.findings, self._now(), end_of_rule=invocation.ends
                )
                if change:
                    self.first = evidence(invocation.findings[0])
                self._record(invocation)
                return change
            case Did.CLEAR if invocation.findings:
                if evaluation.finding_only(step, invocation.findings):
                    self._record(invocation)
            case Did.CLEAR:
                evaluation.step_judged(step)
            case Did.SKIPPED | Did.WAITS:
                evaluation.step_skipped(step, invocation.reason)
            case Did.FAILED:
                return evaluation.rule_failed(CLIENT_ERROR + invocation.reason, self._now())
            case Did.ENDED:
                evaluation.step_skipped(step, "the rule ended")
                self._over = True
            case _:
                assert_never(invocation.did)
        return None

    def _record(self, invocation: Invocation) -> None:
        for finding in invocation.findings:
            self.folder.append_finding(evidence(finding))

    def take_outcomes(self) -> bool:
        """Say whether anything came of actions since the last call."""
        return self.actions is not None and bool(self.actions.news())

    def result(self) -> RuleResult:
        """Return what the rule job came to so far."""
        return rule_result(
            self.evaluation,
            self.facts,
            trial_ended=self.walk.ended,
            duration_s=round(self._clock.monotonic() - self._began, 3),
            rule_time_s=round(self.rule_time_s, 6),
            actions=self.actions.results() if self.actions else (),
        )

    def write(self, *, final: bool = False) -> None:
        """Write ``rule_result.json``, and at the end ``measurements.json`` before it.

        Only the `final` one says that the evaluation has ended: whatever was not told or not
        judged when the process was killed before that is made up for after a restart.
        """
        self._written = self._clock.monotonic()
        result = self.result()
        if final:
            self.folder.write_measurements(self.measurements.record())
        self.folder.write_result(result if final else replace(result, ended_at=None))

    def close(self) -> None:
        """Let go of the rule and of the output folder."""
        if self.invoker is not None:
            self.invoker.close()
        self.folder.close()
