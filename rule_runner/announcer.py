"""Announcer: tells the world, through outboxes and sinks, whenever a rule's status changes."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from rule_runner.evaluation import Evaluation
from rule_runner.events import RuleState, TrainingJob, build_event
from rule_runner.outputs import Outbox
from rule_runner.sinks import EventSink


class Announcer:
    """The events of one evaluation.

    Every rule job's folder gets every event, since an event's list holds all rules; the first
    folder's outbox feeds the sinks.

    Parameters
    ----------
    training_job
        Whom events speak of.
    folders
        Output folders of the rule jobs.
    sinks
        Where events go besides.
    modes
        ``enforce`` or ``observe`` by name of the rule job.
    """

    def __init__(
        self,
        training_job: TrainingJob,
        folders: Sequence[Path],
        sinks: Sequence[EventSink],
        evaluations: Sequence[Evaluation],
        now: Callable[[], datetime],
        *,
        modes: Mapping[str, str],
        overwrite: bool,
    ) -> None:
        self._training_job = training_job
        self._evaluations = evaluations
        self._now = now
        self._modes = modes
        with ExitStack() as stack:
            self._outboxes = [
                stack.enter_context(Outbox(folder, () if at else sinks, overwrite=overwrite))
                for at, folder in enumerate(folders)
            ]
            self._stack = stack.pop_all()

    def announce(self, trial_ended: bool) -> None:
        """Tell where all rules stand now; what was told before is not told again."""
        rules = [self._state(one) for one in self._evaluations]
        event = build_event(
            self._training_job,
            rules,
            training_ended=trial_ended or self._outboxes[0].told_ended,
            at=self._now(),
            sequence=max(outbox.next_sequence for outbox in self._outboxes),
        )
        for outbox in self._outboxes:
            outbox.publish(event)

    def _state(self, evaluation: Evaluation) -> RuleState:
        """Return where a rule job stands; what a crashed evaluation told as final, stays told."""
        name = evaluation.configuration_name
        told = self._outboxes[0].told.get(name)
        if told and told.status.final and not evaluation.status.final:
            return replace(told, mode=self._modes[name])
        details = evaluation.status_details
        return RuleState(name, evaluation.status, details, self._modes[name])

    def close(self) -> None:
        """Close the outboxes."""
        self._stack.close()
