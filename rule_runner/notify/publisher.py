"""EventPublisher: publishes changes of rule statuses through the outbox and sinks."""

from collections.abc import Callable, Container, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from rule_runner.notify.delivery import Delivery, Undelivered, drain
from rule_runner.notify.event import EventSubject, RuleState, build_event
from rule_runner.notify.outbox import Outbox
from rule_runner.notify.sinks import EventSink
from rule_runner.results.state import RuleJobState
from rule_runner.results.status import RuleStatus


def publish(
    outbox: Outbox,
    training_job: EventSubject,
    rules: Sequence[RuleState],
    *,
    training_ended: bool,
    now: datetime,
    run_id: str,
) -> None:
    """Record the event with the statuses of all `rules`; see `build_event`."""
    published = outbox.published
    event = build_event(
        training_job,
        rules,
        training_ended=training_ended,
        now=now,
        sequence=outbox.next_sequence,
        changed=[
            rule.configuration_name
            for rule in rules
            if rule.configuration_name not in published
            or published[rule.configuration_name].identity != rule.identity
        ],
        run_id=run_id,
    )
    outbox.publish(event)


class EventPublisher:
    """The events of one evaluation.

    Parameters
    ----------
    training_job
        The subject of the events.
    folder
        The output folder, which is locked.
    sinks
        Further destinations of events.
    profiling
        Names of the rule jobs that judge profiler data.
    modes
        ``enforce`` or ``observe`` by name of the rule job.
    lag
        Returns `RuleState.lag_s` for the name of a rule job.
    run_id
        Unique identifier of this evaluation.

    Raises
    ------
    OutputError
        If the events in the folder cannot be read.
    """

    def __init__(
        self,
        training_job: EventSubject,
        folder: Path,
        sinks: Sequence[EventSink],
        evaluations: Sequence[RuleJobState],
        now: Callable[[], datetime],
        *,
        modes: Mapping[str, str],
        profiling: Container[str] = (),
        lag: Callable[[str], float] = lambda _: 0.0,
        run_id: str = "",
    ) -> None:
        self._training_job = training_job
        self._evaluations = evaluations
        self._now = now
        self._modes = modes
        self._profiling = profiling
        self._lag = lag
        self._run_id = run_id
        with ExitStack() as stack:
            self._outbox = stack.enter_context(Outbox(folder))
            self._deliveries: list[Delivery] = []
            for sink in sinks:
                self._deliveries.append(Delivery(self._outbox, sink))
                stack.callback(self._deliveries[-1].close)
            self._stack = stack.pop_all()

    def publish_status(self, trial_ended: bool) -> None:
        """Publish the current statuses of all rules, unless they are published already."""
        publish(
            self._outbox,
            self._training_job,
            [self._state(evaluation) for evaluation in self._evaluations],
            training_ended=trial_ended or self._outbox.published_end,
            now=self._now(),
            run_id=self._run_id,
        )
        for delivery in self._deliveries:
            delivery.notify(self._outbox.size)

    def _state(self, evaluation: RuleJobState) -> RuleState:
        """Return the state of a rule job; a final status published before a crash is not changed.

        Only another verdict replaces it: stopping a later process does not withdraw it.
        """
        name = evaluation.configuration_name
        published = self._outbox.published.get(name)
        undecided = not evaluation.status.final or evaluation.status is RuleStatus.STOPPED
        if published and published.status.final and undecided:
            return replace(published, mode=self._modes[name])
        finding = evaluation.first_finding
        return RuleState(
            name,
            evaluation.status,
            evaluation.status_details,
            self._modes[name],
            steps_evaluated=evaluation.coverage.judged,
            last_step=evaluation.coverage.last,
            lag_s=self._lag(name),
            profiler=name in self._profiling,
            severity=evaluation.severity,
            finding_state=evaluation.finding_state,
            state_step=evaluation.state_step,
            summary=finding.summary,
            advice=finding.advice,
        )

    def drain(self, seconds: float, stopped: Callable[[], bool]) -> list[Undelivered]:
        """Wait for the sinks after the last event, and return what they did not take."""
        return drain(self._deliveries, seconds, stopped=stopped)

    def close(self) -> None:
        """Stop sending, and close the outbox."""
        self._stack.close()
