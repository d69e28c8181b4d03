"""The last event of an evaluation whose container was killed before it could tell."""

from collections.abc import Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rule_runner.events import COMPLETED, Progress, RuleState, TrainingJob, build_event
from rule_runner.outbox import Outbox, read_events
from rule_runner.results import RuleResult
from rule_runner.status import RuleStatus


def record_last_event(folders: Sequence[Path], results: Sequence[RuleResult]) -> None:
    """Record in every outbox how the rule jobs ended that had told that they began.

    Parameters
    ----------
    folders
        Of the rule jobs.
    results
        Of those that have one.

    Raises
    ------
    OutputError
        If an outbox cannot be read, or written.
    """
    with ExitStack() as stack:
        outboxes = [stack.enter_context(Outbox(folder)) for folder in folders]
        events = [event for _, event in read_events(outboxes[0].path)]
        if not events:
            return
        last: Any = events[-1]
        told = outboxes[0].told
        now = told | {one.configuration_name: _state(one) for one in results}
        event = build_event(
            _training_job(last),
            [*now.values()],
            training_ended=last["detail"]["TrainingJobStatus"] == COMPLETED,
            at=datetime.now(UTC),
            sequence=max(one.next_sequence for one in outboxes),
            changed=[
                name
                for name, state in now.items()
                if name not in told or told[name].status is not state.status
            ],
        )
        for one in outboxes:
            one.publish(event)


def _training_job(event: Any) -> TrainingJob:
    """Return whom an event speaks of."""
    detail = event["detail"]
    began = datetime.fromtimestamp(detail["CreationTime"] / 1000, UTC)
    name, source = detail["TrainingJobName"], event["source"]
    return TrainingJob(name, began, source, event["region"], event["account"])


def _state(result: RuleResult) -> RuleState:
    coverage = result.coverage
    return RuleState(
        result.configuration_name,
        RuleStatus(result.status),
        result.status_details,
        result.mode,
        Progress(coverage.judged, coverage.last),
    )
