"""RuleJob: one rule over one trial; the only place where an invocation result sets a status."""

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Final, assert_never

import numpy as np
from msgspec import UNSET
from msgspec.structs import replace
from numpy.typing import NDArray

from rule_core.clock import Clock
from rule_core.model.segments import SEGMENT_STEPS
from rule_core.rules.evidence import Finding
from rule_core.severity import Severity
from rule_runner.config.model import RuleJobConfig
from rule_runner.engine.invocation import InvocationOutcome, InvocationResult, Invoker
from rule_runner.loading.parameters import BoundRule
from rule_runner.logs import get_logger
from rule_runner.results.issues.acknowledged import FindingIds
from rule_runner.results.measurements import Measurements
from rule_runner.results.output_folder import OutputFolder
from rule_runner.results.schema import (
    Evidence,
    OtherTrial,
    RuleJobFacts,
    RuleResult,
    evidence,
    rule_result,
)
from rule_runner.results.state import RuleJobState
from rule_runner.results.status import CLIENT_ERROR, RuleStatus
from rule_runner.steps.protocol import StepSource

if TYPE_CHECKING:
    from rule_runner.notify.actions.runner import JobActions

TRAINING: Final = frozenset({"", "GLOBAL", "TRAIN"})  # modes that findings do not name
_log: Final = get_logger(__name__)
CUT_OFF: Final = (
    "Trial {path!r} was still growing before the first step was judged: at each step the rule sees "
    "it up to that step. A later evaluation sees the whole trial, and may differ."
)


class RuleJob:
    """One rule job: its invoker, its state, its results and its position.

    Attributes
    ----------
    bound
        The rule with its arguments.
    step_source
        Supplies the steps to judge.
    position
        The last global step that was judged, skipped or not in the range to judge; or one before
        the first to judge.
    waits
        Whether the rule needs more data before its next step.
    triggers
        The first finding of the verdict, and each later one that is more serious than all before.
    actions
        The actions that they trigger; None if there are none.
    other_trials
        The trials that the rule compares with; empty until it is known how much of them it sees.
    recorded
        The result that an earlier process recorded; None if there is none.
    """

    def __init__(
        self,
        config: RuleJobConfig,
        bound: BoundRule,
        source: StepSource,
        state: RuleJobState,
        facts: RuleJobFacts,
        folder: OutputFolder,
        clock: Clock,
        now: Callable[[], datetime],
    ) -> None:
        self.config = config
        self.bound = bound
        self.step_source = source
        self.state = state
        self.facts = facts
        self.recorded = folder.recorded.get(config.configuration_name)
        self._folder = folder
        self._finding_ids = FindingIds(facts.fingerprint, facts.run_id)
        self.invoker: Invoker | None = None
        self.position = self._last = (config.start_step or 0) - 1
        self.waits = False
        self.triggers: list[Evidence] = []
        self.actions: JobActions | None = None
        self.other_trials: Sequence[OtherTrial] = ()
        if self.recorded is not None and self.recorded.other_trials is not UNSET:
            self.other_trials = self.recorded.other_trials
        self._over = bool(config.missing_parameter)
        self._judged_kinds = {""}  # steps of unknown kind count as expected
        self._is_restored = False
        self.rule_time_s = 0.0
        self.missed: tuple[str, ...] = ()
        self.measurements = Measurements(config.loaded.rule_class.QUANTITIES)
        self._log_step = _log.debug  # once: that costs more than a suppressed event
        self._clock = clock
        self._now = now
        self._began = clock.monotonic()

    def begin(self) -> None:
        """Wait until the rule is constructed, if there is one.

        Raises
        ------
        ClientError
            If it cannot be constructed.
        """
        if self.invoker is not None:
            rule_info = self.invoker.begin()
            self.measurements = Measurements(rule_info.quantities)
            for note in rule_info.notes:
                self.state.note(note)

    def restore(self, result: RuleResult) -> None:
        """Adopt the result of an earlier process, so that nothing is judged again."""
        self._is_restored = True
        ended_at = datetime.fromisoformat(result.ended_at or result.started_at)
        self.state.restore(
            RuleStatus(result.status),
            result.status_details,
            result.global_step,
            ended_at,
            result.severity,
        )
        if result.status == RuleStatus.ISSUES_FOUND:
            self._add_triggers(result.findings)

    @property
    def live(self) -> bool:
        """Whether the rule job wants further steps."""
        return not (self.state.done or self._over)

    def wants(self, step: int) -> bool:
        """Return whether to judge a step now.

        A step past the range ends the rule job, unless a resumed run may repeat earlier steps.
        """
        own, end = step % SEGMENT_STEPS, self.config.end_step
        if end is not None and own >= end:
            if not self.step_source.may_resume:
                self._over = True
            self._pass_by(step)
            return False
        if own < (self.config.start_step or 0):
            self._pass_by(step)
            return False
        return self.live and not self.waits and step > self.position

    def _pass_by(self, step: int) -> None:
        """Leave out a step that is not in the range to judge."""
        if not self.waits:
            self.position = max(self.position, step)

    def show(self, others: Sequence[OtherTrial]) -> None:
        """Adopt how much of the other trials the rule sees, and note those that it sees in part.

        This is decided once, before the first step: what an earlier process recorded stands.
        """
        self.other_trials = others
        for other in others:
            if not other.whole:
                self.state.note(CUT_OFF.format(path=other.path))

    def judge(self, step: int, missing_workers: list[str]) -> bool:
        """Judge a step, record its findings, and return whether the status changed."""
        if self.invoker is None:
            return False
        invocation = self._muted(self.invoker.judge(step))
        self.rule_time_s += invocation.seconds
        self.missed = invocation.missed
        self.measurements.add(invocation.measurements)
        if invocation.did is InvocationOutcome.WAITS and not self.step_source.is_loaded:
            self.waits = True
            return False
        self.position = self._last = step
        changed = self._apply(step, invocation)
        if self.state.coverage.last == step:
            self._judged_kinds.add(self.step_source.kind(step))
        if missing_workers:
            self.state.missing_workers(step, missing_workers)
        may_change = invocation.findings or step >= SEGMENT_STEPS
        return bool(may_change and self.state.follow(step)) or changed

    def skip(self, step: int, reason: str) -> None:
        """Skip a step that cannot be read."""
        self.position = self._last = step
        self.state.step_skipped(step, reason)

    def wait(self, step: int) -> bool:
        """Let the rule judge that nothing followed a step; return whether the status changed."""
        invocation = self.invoker.wait(step) if self.invoker is not None else None
        if invocation is None or invocation.did not in {
            InvocationOutcome.MET,
            InvocationOutcome.FAILED,
        }:
            return False
        invocation = self._muted(invocation)
        self.rule_time_s += invocation.seconds
        self.measurements.add(invocation.measurements)
        changed = self._apply(step, invocation)
        return self.state.follow(step) or changed

    def finish(self, *, complete: bool) -> bool:
        """Let the rule finish, and return whether the status changed.

        Its answer counts if all steps of the trial were judged (`complete`) and the rule job has
        not ended. An exception fails the rule job unless it already has a verdict.
        """
        state, step = self.state, max(self._last, 0)
        if self.invoker is None or state.status is RuleStatus.ERROR:
            return False
        counts = complete and not state.done
        invocation = self._muted(self.invoker.finish(step))
        self.rule_time_s += invocation.seconds
        if invocation.did is InvocationOutcome.FAILED:
            return state.rule_failed(CLIENT_ERROR + invocation.reason, self._now())
        if not counts or not (invocation.measurements or invocation.findings):
            return False
        self.measurements.add(invocation.measurements)
        if not invocation.findings:
            state.step_judged(step)
            return False
        changed = self._apply(step, invocation)
        return state.follow(step) or changed

    def _muted(self, invocation: InvocationResult) -> InvocationResult:
        """Return a result whose findings have mode and sentences, muted as configured.

        If all findings are muted, the condition is not met.
        """
        if not invocation.findings:
            return invocation
        findings = tuple(self._mute(self._explained(each)) for each in invocation.findings)
        did = invocation.did
        if did is InvocationOutcome.MET and not any(finding.counts for finding in findings):
            did = InvocationOutcome.CLEAR
        return dataclasses.replace(invocation, did=did, findings=findings)

    def _explained(self, finding: Finding) -> Finding:
        """Return a finding with its mode and, unless it is a note, its sentences."""
        source = self.step_source
        mode = source.kind(finding.step, finding.tensor)
        if mode not in TRAINING:
            finding = dataclasses.replace(finding, mode=mode)
        if not finding.counts:
            return finding
        worker = finding.worker if finding.worker and len(source.workers) != 1 else None
        where = " of ".join(filter(None, (finding.tensor, worker)))
        explanation = self.config.loaded.explain(finding, where, source.step_name(finding.step))
        return dataclasses.replace(finding, summary=explanation.summary, advice=explanation.advice)

    def _mute(self, finding: Finding) -> Finding:
        for mute in self.config.mutes:
            if mute.covers_finding(finding):
                return dataclasses.replace(finding, muted=mute.why)
        return finding

    def _apply(self, step: int, invocation: InvocationResult) -> bool:
        """Apply the result of an invocation to the state; return whether the status changed."""
        state = self.state
        for note in invocation.notes:
            state.note(note)
        self._log_step("step_judged", step=step, did=invocation.did.name, reason=invocation.reason)
        match invocation.did:
            case InvocationOutcome.MET:
                _log.info("condition_met", step=step, rule=state.rule)
                changed = state.condition_met(
                    step, invocation.findings, self._now(), end_of_rule=invocation.ends
                )
                if changed:
                    self._add_triggers(map(evidence, invocation.findings))
                self._record_findings()
                return changed
            case InvocationOutcome.CLEAR if invocation.findings:
                state.finding_only(step, invocation.findings)
                self._record_findings()
            case InvocationOutcome.CLEAR:
                state.step_judged(step)
            case InvocationOutcome.SKIPPED | InvocationOutcome.WAITS:
                state.step_skipped(step, invocation.reason)
            case InvocationOutcome.FAILED:
                return state.rule_failed(CLIENT_ERROR + invocation.reason, self._now())
            case InvocationOutcome.ENDED:
                state.step_skipped(step, "the rule ended")
                self._over = True
            case _:
                assert_never(invocation.did)
        return False

    def _add_triggers(self, findings: Iterable[Evidence]) -> None:
        for finding in findings:
            highest = self.triggers[-1].severity if self.triggers else Severity.NOTE
            if finding.counts and finding.severity.rank > highest.rank:
                self.triggers.append(finding)

    def _record_findings(self) -> None:
        """Record the findings of the step in the output folder."""
        name = self.config.configuration_name
        for finding in map(evidence, self.state.kept):
            self._folder.append_finding(name, self._finding_ids.next(finding), finding)

    def expected(self, steps: NDArray[np.int64]) -> int:
        """Return how many of `steps` are of a kind, such as a mode, that the rule judges."""
        counts = self.step_source.kinds(steps)
        return sum(count for kind, count in counts.items() if kind in self._judged_kinds)

    def actions_changed(self) -> bool:
        """Return whether actions have made progress since the last call."""
        return self.actions is not None and bool(self.actions.news())

    def result(self) -> RuleResult:
        """Return the result of the rule job so far."""
        if self._is_restored and self.recorded is not None:
            actions = self.actions.results() if self.actions else []
            return replace(self.recorded, actions=actions or self.recorded.actions)
        return rule_result(
            self.state,
            self.facts,
            trial_ended=self.step_source.ended,
            duration_s=round(self._clock.monotonic() - self._began, 3),
            rule_time_s=round(self.rule_time_s, 6),
            actions=self.actions.results() if self.actions else (),
            segments=self.step_source.segments(),
            windows=self.step_source.windows(),
            other_trials=self.other_trials,
        )

    def result_to_record(self, *, final: bool, caught_up: bool) -> RuleResult:
        """Return the result of the rule job for ``results.json``.

        Only the `final` result has an end time. If the process is killed before that, a restart
        judges the missing steps and publishes the missing events. Until it has judged as many
        steps as the earlier process, or has `caught_up` with the trial, the earlier result stays.
        """
        before = self.recorded
        if before is not None and not (self._is_restored or final or caught_up):
            judged_to = before.coverage.last if before.ended_at is None else None
            if self.live and judged_to is not None and self.position < judged_to:
                return before
        result = self.result()
        return result if final or self._is_restored else replace(result, ended_at=None)

    def close(self) -> None:
        """Close the rule."""
        if self.invoker is not None:
            self.invoker.close()
