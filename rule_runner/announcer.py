"""Announcer: tells the world, through outboxes and sinks, whenever a rule's status changes."""

from collections.abc import Callable, Container, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from rule_runner.delivery import Delivery, Undelivered, drain
from rule_runner.evaluation import Evaluation
from rule_runner.events import Progress, RuleState, TrainingJob, build_event
from rule_runner.outbox import Outbox
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
    profiling
        Names of the rule jobs that judge profiler data.
    modes
        ``enforce`` or ``observe`` by name of the rule job.
    lag
        Returns `Progress.lag_s` of a rule job by its name.

    Raises
    ------
    OutputError
        If an output folder cannot be used or is in use.
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
        profiling: Container[str] = (),
        overwrite: bool,
        lag: Callable[[str], float] = lambda _: 0.0,
    ) -> None:
        self._training_job = training_job
        self._evaluations = evaluations
        self._now = now
        self._modes = modes
        self._profiling = profiling
        self._lag = lag
        with ExitStack() as stack:
            self._outboxes = [
                stack.enter_context(Outbox(folder, overwrite=overwrite)) for folder in folders
            ]
            self._deliveries: list[Delivery] = []
            for sink in sinks:
                self._deliveries.append(Delivery(self._outboxes[0], sink))
                stack.callback(self._deliveries[-1].close)
            self._stack = stack.pop_all()

    def announce(self, trial_ended: bool) -> None:
        """Tell where all rules stand now; what was told before is not told again."""
        rules = [self._state(one) for one in self._evaluations]
        first = self._outboxes[0]
        event = build_event(
            self._training_job,
            rules,
            training_ended=trial_ended or first.told_ended,
            at=self._now(),
            sequence=max(outbox.next_sequence for outbox in self._outboxes),
            changed=[one.configuration_name for one in rules if self._is_news(one)],
        )
        for outbox in self._outboxes:
            outbox.publish(event)
        for delivery in self._deliveries:
            delivery.wake(first.size)

    def _is_news(self, state: RuleState) -> bool:
        told = self._outboxes[0].told.get(state.configuration_name)
        return told is None or told.status is not state.status

    def _state(self, evaluation: Evaluation) -> RuleState:
        """Return where a rule job stands; what a crashed evaluation told as final, stays told."""
        name = evaluation.configuration_name
        told = self._outboxes[0].told.get(name)
        if told and told.status.final and not evaluation.status.final:
            return replace(told, mode=self._modes[name])
        coverage = evaluation.coverage
        progress = Progress(coverage.judged, coverage.last, self._lag(name))
        details = evaluation.status_details
        profiler = name in self._profiling
        return RuleState(name, evaluation.status, details, self._modes[name], progress, profiler)

    def drain(self, seconds: float, stopped: Callable[[], bool]) -> list[Undelivered]:
        """Wait for the sinks, and return what they did not take; nothing more is announced."""
        return drain(self._deliveries, seconds, stopped=stopped)

    def close(self) -> None:
        """Stop what is sent, and close the outboxes."""
        self._stack.close()
