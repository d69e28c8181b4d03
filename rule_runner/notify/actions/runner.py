"""JobActions: carries out the actions of a rule job during its evaluation, with a time limit each.

An action is recorded on disk before it is carried out. After a crash a repeatable action is carried
out again, for the same training job; any other action gets the state ``unknown``.
"""

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final, TypeVar

import msgspec

from rule_core.clock import Clock
from rule_core.failures import Contained
from rule_core.model.segments import step_text
from rule_core.rules.actions.base import Action, ActionOutcome, ActionState, ActionTrigger, Deadline
from rule_core.severity import Severity
from rule_runner.errors import OutputError
from rule_runner.logs import get_logger
from rule_runner.notify.actions.journal import ActionRecord, Journal
from rule_runner.results.json_text import json_digest, rfc3339
from rule_runner.results.schema import ActionResult, Evidence
from rule_runner.results.state import RuleJobState

_log: Final = get_logger(__name__)
T = TypeVar("T")
SLACK_S: Final = 5.0  # for an action that observes its own deadline
INTERRUPTED: Final = "The evaluation ended during the action: it may have been carried out."
TOO_LATE: Final = "The evaluation ended before the action started."
TOO_MILD: Final = (
    "No finding was serious enough: the action needs an {}. --stop-on warning lets warnings stop a "
    "training."
)
LOST: Final = (
    "The process ended during the action: it may have been carried out, and is not repeated."
)


@dataclass(frozen=True, slots=True)
class FindingTrigger:
    """The first finding of a rule job, which triggers its actions, with its id."""

    id: str
    trigger: ActionTrigger


@dataclass(frozen=True, slots=True)
class ActionPolicy:
    """How actions are carried out.

    Attributes
    ----------
    deadline_s
        Seconds for each of them.
    dry_run
        Whether actions are only described.
    recorded
        Called when the intent is on disk, before the action.
    stop_on
        The severity from which actions that stop a training are carried out.
    """

    deadline_s: float
    dry_run: bool
    clock: Clock
    now: Callable[[], datetime]
    recorded: Callable[[], None] = lambda: None
    stop_on: Severity = Severity.ERROR

    def needs(self, action: Action) -> Severity:
        """Return the lowest severity of findings that trigger an action."""
        return self.stop_on if action.stops_training else Severity.WARNING


class JobActions:
    """The actions of a rule job, carried out in order in a separate thread.

    Parameters
    ----------
    rule_job
        Name of the rule job.
    actions
        The actions, in order.
    journal
        Records them.
    """

    def __init__(
        self, rule_job: str, actions: Sequence[Action], journal: Journal, policy: ActionPolicy
    ) -> None:
        self._rule_job = rule_job
        self._actions = actions
        self._journal = journal
        self._policy = policy
        self._thread: threading.Thread | None = None
        self._begun: set[int] = set()
        self._first: FindingTrigger | None = None
        self._records: dict[int, ActionRecord] = {}
        self._ended = False
        self._lock = threading.Lock()
        self._reported = 0
        self._outcomes: list[ActionRecord] = []

    def begin(self, finding: FindingTrigger, severity: Severity) -> None:
        """Start the actions that a finding triggers, unless they were started before."""
        self._first = self._first or finding
        due = [
            number
            for number, action in enumerate(self._actions)
            if number not in self._begun and severity.rank >= self._policy.needs(action).rank
        ]
        if due:
            self._begun.update(due)
            arguments = (finding, due, self._thread)
            self._thread = threading.Thread(target=self._run, args=arguments, daemon=True)
            self._thread.start()

    def join(self) -> None:
        """Wait until every started action has an outcome."""
        if self._thread is not None:
            self._thread.join()

    def end(self, *, wait: bool) -> None:
        """Start no more actions; give each an outcome, after a `wait` for running ones."""
        if wait:
            self.join()
        with self._lock:
            self._ended = True
            for number, action in enumerate(self._actions):
                record = self._records.get(number)
                if self._first is not None and number not in self._begun:
                    final = self._not_triggered(self._first, number, action)
                elif record is None:
                    planned = _PlannedAction(number, action, "", ActionTrigger(""))
                    final = self._record(planned, ActionState.REFUSED, TOO_LATE)
                elif record.state is ActionState.INTENDED:
                    final = msgspec.structs.replace(
                        record, state=ActionState.UNKNOWN, detail=INTERRUPTED
                    )
                else:
                    continue
                self._records[number] = final
                self._outcomes.append(final)

    def _not_triggered(self, first: FindingTrigger, number: int, action: Action) -> ActionRecord:
        """Return the outcome of an action for which no finding was serious enough."""
        planned = self._planned(first, number)
        needed = self._policy.needs(action)
        record = self._record(planned, ActionState.REFUSED, TOO_MILD.format(needed))
        before = self._journal.last.get(record.id)
        if before is not None and before.detail == record.detail:
            return before
        with suppress(OutputError):  # nothing depends on it
            self._journal.write(record)
        return record

    def _planned(self, finding: FindingTrigger, number: int) -> "_PlannedAction":
        """Return an action for a finding, with an id that is the same whenever it is planned."""
        action = self._actions[number]
        identity = [finding.id, number, action.name, action.target]
        return _PlannedAction(number, action, json_digest(identity, 16), finding.trigger)

    def news(self) -> list[ActionRecord]:
        """Return the outcomes since the last call."""
        new = self._outcomes[self._reported :]
        self._reported += len(new)
        return new

    def results(self) -> list[ActionResult]:
        """Return the state of each action, in order."""
        return [
            ActionResult(record.action, record.target, record.state, record.detail, record.at)
            for _, record in sorted(self._records.items())
        ]

    def _run(
        self, finding: FindingTrigger, numbers: Sequence[int], before: threading.Thread | None
    ) -> None:
        if before is not None:
            before.join()
        for number in numbers:
            planned = self._planned(finding, number)
            try:
                record = self._carried_out(planned)
            except _EndedError:
                return
            except OutputError as err:
                text = f"The action was not carried out, because it could not be recorded. {err}"
                record = self._record(planned, ActionState.REFUSED, text)
            self._records[number] = record
            self._outcomes.append(record)
            quiet = record.state in {ActionState.DONE, ActionState.DRY_RUN}
            (_log.info if quiet else _log.warning)(
                "action_ended",
                rule_job=self._rule_job,
                action=record.action,
                target=record.target,
                state=str(record.state),
                reason=record.detail,
            )

    def _carried_out(self, planned: "_PlannedAction") -> ActionRecord:
        """Carry out an action unless that was done before, and return its last record."""
        before = self._journal.last.get(planned.id)
        if before is not None and before.state is not ActionState.DRY_RUN:
            if before.state is ActionState.DONE:
                return before
            if not planned.action.repeatable:
                lost = before.state is ActionState.INTENDED
                return self._written(planned, ActionState.UNKNOWN, LOST) if lost else before
            planned = planned.again(before.job)
        deadline = Deadline(self._policy.deadline_s, self._policy.clock)
        resolved = self._in_time(lambda: planned.action.resolve(deadline), ActionState.FAILED)
        if isinstance(resolved, ActionOutcome):
            return self._written(planned, resolved.state, resolved.detail)
        planned = planned.settled(resolved)
        if self._policy.dry_run:
            return self._written(planned, ActionState.DRY_RUN, resolved.plan(planned.trigger))
        self._written(planned, ActionState.INTENDED, "The action is being carried out.")
        self._policy.recorded()
        outcome = self._in_time(
            lambda: planned.action.carry_out(planned.trigger, deadline), ActionState.UNKNOWN
        )
        return self._written(planned, outcome.state, outcome.detail)

    def _in_time(self, call: Callable[[], T], state: ActionState) -> T | ActionOutcome:
        """Return the result of `call`, or the outcome of its failure or timeout."""
        results: list[T | ActionOutcome] = []

        def fail(err: Exception) -> None:
            _log.debug("action_broke", exc_info=True)
            results.append(ActionOutcome.of_error(err))

        def run() -> None:
            with Contained(fail):  # an action never costs a verdict
                results.append(call())

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        thread.join(self._policy.deadline_s + SLACK_S)
        late = ActionOutcome(
            state, f"The action had not ended after {self._policy.deadline_s:g} s."
        )
        return results[0] if results else late

    def _written(self, planned: "_PlannedAction", state: ActionState, detail: str) -> ActionRecord:
        """Record the state of an action."""
        record = self._record(planned, state, detail)
        with self._lock:
            if self._ended:
                raise _EndedError
            self._journal.write(record)
            self._records[planned.number] = record
        return record

    def _record(self, planned: "_PlannedAction", state: ActionState, detail: str) -> ActionRecord:
        return ActionRecord(
            id=planned.id,
            configuration_name=self._rule_job,
            action=planned.action.name,
            target=planned.action.target,
            state=state,
            at=rfc3339(self._policy.now()),
            detail=detail,
            job=planned.job,
        )


@dataclass(frozen=True, slots=True)
class _PlannedAction:
    """One action for one finding; `job` is the training job that it was resolved to."""

    number: int
    action: Action
    id: str
    trigger: ActionTrigger
    job: str = ""

    def settled(self, action: Action) -> "_PlannedAction":
        from rule_core.rules.actions.stop_training import StopTrainingAction

        job = action.training_job_prefix if isinstance(action, StopTrainingAction) else ""
        return replace(self, action=action, job=job)

    def again(self, job: str) -> "_PlannedAction":
        """Return the action for the training job that it was resolved to before, if any."""
        if not job:
            return self
        from rule_core.rules.actions.stop_training import StopTrainingAction

        action = StopTrainingAction(self.trigger.rule, job, exact=True)
        return replace(self, action=action, job=job)


class _EndedError(Exception):
    """The journal takes no more records."""


def finding_trigger(
    finding: Evidence, finding_id: str, state: RuleJobState, training_job: str
) -> FindingTrigger:
    """Return the trigger for actions: a finding of a rule job as text and as facts."""
    parts = [
        f"tensor {finding.tensor!r}" if finding.tensor is not None else "",
        f"worker {finding.worker!r}" if finding.worker is not None else "",
        f"measured {finding.measured}" if finding.measured is not None else "",
        f"limit {finding.limit}" if finding.limit is not None else "",
    ]
    name, step = state.configuration_name, step_text(finding.global_step)
    where = f"Training job {training_job}, rule job {name}, step {step}"
    facts = {
        "schema_version": 1,
        "id": finding_id,
        "rule": state.rule,
        "configuration_name": name,
        "status": str(state.status),
        "step": finding.step,
        **({"segment": finding.segment} if finding.segment else {}),
        "details": (state.status_details or "").strip(),
        "finding": finding,
    }
    sentence = f"{', '.join(filter(None, [where, *parts]))}. {finding.sentences}".rstrip()
    return FindingTrigger(finding_id, ActionTrigger(state.rule, sentence, facts))
