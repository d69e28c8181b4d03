"""JobActions: carries out the actions of one rule job beside its evaluation, each at most so long.

An action is on disk before it is carried out. After a crash one that can be repeated is done
again, for the same training job; any other may have been done, is told so and left.
"""

import hashlib
import json
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final, TypeVar

import msgspec
import structlog

from rule_runner.actions.journal import ActionRecord, Journal
from rule_runner.errors import OutputError
from rule_runner.results import ActionResult, Evidence, rfc3339
from smdebug.core.clock import Clock
from smdebug.rules.action.base import Action, ActionState, Fired, Limits, Outcome
from smdebug.rules.action.stop_training_action import StopTrainingAction

_log: Final = structlog.get_logger()
T = TypeVar("T")
SLACK_S: Final = 5.0  # for an action that knows its own end
LEFT: Final = "The evaluation was ended while it was carried out: it may have been done."
TOO_LATE: Final = "The evaluation was ended before it was begun."
LOST: Final = (
    "The process ended while it was carried out: it may have been done, and is not done again."
)


@dataclass(frozen=True, slots=True)
class Hit:
    """What the actions are for: the first finding of a rule job, with its id."""

    id: str
    fired: Fired


@dataclass(frozen=True, slots=True)
class How:
    """How actions are carried out.

    Attributes
    ----------
    deadline_s
        Seconds for each of them.
    dry_run
        Whether it is only said what would be done.
    """

    deadline_s: float
    dry_run: bool
    clock: Clock
    now: Callable[[], datetime]


class JobActions:
    """The actions of one rule job, carried out in order in a thread of their own.

    Parameters
    ----------
    rule_job
        Name of the rule job, for the log.
    actions
        What is to be done.
    journal
        Where it is written down; closed by `close`.
    """

    def __init__(
        self, rule_job: str, actions: Sequence[Action], journal: Journal, how: How
    ) -> None:
        self._rule_job = rule_job
        self._actions = actions
        self._journal = journal
        self._how = how
        self._thread: threading.Thread | None = None
        self._records: dict[int, ActionRecord] = {}
        self._ended = False
        self._lock = threading.Lock()
        self._told = 0
        self._over: list[ActionRecord] = []

    def begin(self, hit: Hit) -> None:
        """Carry all actions out for a finding; for the first one only."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, args=(hit,), daemon=True)
            self._thread.start()

    def join(self) -> None:
        """Return when all that was begun has an outcome."""
        if self._thread is not None:
            self._thread.join()

    def end(self, *, wait: bool) -> None:
        """Begin no action any more, and give each that has none an outcome; `wait` for it first."""
        if wait:
            self.join()
        with self._lock:
            self._ended = True
            for number, action in enumerate(self._actions):
                record = self._records.get(number)
                if record is None:
                    found = self._record(_One(number, action, ""), ActionState.REFUSED, TOO_LATE)
                elif record.state is ActionState.INTENDED:
                    found = msgspec.structs.replace(record, state=ActionState.UNKNOWN, detail=LEFT)
                else:
                    continue
                self._records[number] = found
                self._over.append(found)

    def news(self) -> list[ActionRecord]:
        """Return the outcomes since the last call."""
        new = self._over[self._told :]
        self._told += len(new)
        return new

    def results(self) -> list[ActionResult]:
        """Return how far each action came, in order."""
        return [
            ActionResult(one.action, one.target, one.state, one.detail, one.at)
            for _, one in sorted(self._records.items())
        ]

    def close(self) -> None:
        """Close the journal, once all is over."""
        self.join()
        self._journal.close()

    def _run(self, hit: Hit) -> None:
        for number, action in enumerate(self._actions):
            one = _One(number, action, _id(hit, number, action), hit.fired)
            try:
                record = self._carried_out(one)
            except _EndedError:
                return
            except OutputError as err:
                text = f"It was not carried out, since that could not be written down. {err}"
                record = self._record(one, ActionState.REFUSED, text)
            self._records[number] = record
            self._over.append(record)
            quiet = record.state in {ActionState.DONE, ActionState.DRY_RUN}
            (_log.info if quiet else _log.warning)(
                "action_ended",
                rule_job=self._rule_job,
                action=record.action,
                target=record.target,
                state=str(record.state),
                reason=record.detail,
            )

    def _carried_out(self, one: "_One") -> ActionRecord:
        """Carry one action out unless that was done before, and return its last record."""
        before = self._journal.last.get(one.id)
        if before is not None and before.state is not ActionState.DRY_RUN:
            if before.state is ActionState.DONE:
                return before
            if not one.action.repeatable:
                lost = before.state is ActionState.INTENDED
                return self._written(one, ActionState.UNKNOWN, LOST) if lost else before
            one = one.again(before.job)
        limits = Limits(self._how.deadline_s, self._how.clock)
        found = self._in_time(lambda: one.action.settled(limits), ActionState.FAILED)
        if isinstance(found, Outcome):
            return self._written(one, found.state, found.detail)
        one = one.settled(found)
        if self._how.dry_run:
            return self._written(one, ActionState.DRY_RUN, found.plan(one.fired))
        self._written(one, ActionState.INTENDED, "It is being carried out.")
        outcome = self._in_time(
            lambda: one.action.carry_out(one.fired, limits), ActionState.UNKNOWN
        )
        return self._written(one, outcome.state, outcome.detail)

    def _in_time(self, call: Callable[[], T], state: ActionState) -> T | Outcome:
        """Return what `call` returns, or what its failure or silence means."""
        found: list[T | Outcome] = []

        def run() -> None:
            try:
                found.append(call())
            except Exception as err:  # noqa: BLE001 - an action never costs a verdict
                _log.debug("action_broke", exc_info=True)
                text = f"{type(err).__name__} was raised."
                found.append(Outcome(ActionState.FAILED, text))

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        thread.join(self._how.deadline_s + SLACK_S)
        late = Outcome(state, f"It had not ended after {self._how.deadline_s:g} s.")
        return found[0] if found else late

    def _written(self, one: "_One", state: ActionState, detail: str) -> ActionRecord:
        """Write down how far an action came."""
        record = self._record(one, state, detail)
        with self._lock:
            if self._ended:
                raise _EndedError
            self._journal.write(record)
            self._records[one.number] = record
        return record

    def _record(self, one: "_One", state: ActionState, detail: str) -> ActionRecord:
        return ActionRecord(
            id=one.id,
            action=one.action.name,
            target=one.action.target,
            state=state,
            at=rfc3339(self._how.now()),
            detail=detail,
            job=one.job,
        )


@dataclass(frozen=True, slots=True)
class _One:
    """One action for one finding; `job` is the training job that it was settled on."""

    number: int
    action: Action
    id: str
    fired: Fired = Fired("")  # noqa: RUF009 - it is frozen
    job: str = ""

    def settled(self, action: Action) -> "_One":
        job = action.training_job_prefix if isinstance(action, StopTrainingAction) else ""
        return replace(self, action=action, job=job)

    def again(self, job: str) -> "_One":
        """Return the action for the training job that it was settled on before, if it was."""
        if not job:
            return self
        action = StopTrainingAction(self.fired.rule, job, exact=True)
        return replace(self, action=action, job=job)


class _EndedError(Exception):
    """Nothing is to be written down any more."""


def _id(hit: Hit, number: int, action: Action) -> str:
    """Return the same text whenever the same action is taken for the same finding."""
    parts = [hit.id, number, action.name, action.target]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]


def hit_of(
    finding: Evidence,
    finding_id: str,
    *,
    rule: str,
    rule_job: str,
    status: str,
    details: str | None,
    training_job: str,
) -> Hit:
    """Return what actions are told of a finding, in words and as facts."""
    seen = [
        f"tensor {finding.tensor!r}" if finding.tensor is not None else "",
        f"worker {finding.worker!r}" if finding.worker is not None else "",
        f"measured {finding.measured}" if finding.measured is not None else "",
        f"limit {finding.limit}" if finding.limit is not None else "",
    ]
    where = f"Training job {training_job}, rule job {rule_job}, step {finding.step}"
    facts = {
        "schema_version": 1,
        "id": finding_id,
        "rule": rule,
        "configuration_name": rule_job,
        "status": status,
        "step": finding.step,
        "details": (details or "").strip(),
        "finding": finding,
    }
    return Hit(finding_id, Fired(rule, f"{', '.join(filter(None, [where, *seen]))}.", facts))
