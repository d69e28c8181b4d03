"""The final event of an evaluation whose container was killed."""

from collections.abc import Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rule_runner.notify.event import COMPLETED, EventSubject, RuleProgress, RuleState, statuses
from rule_runner.notify.outbox import Outbox, read_events
from rule_runner.notify.publisher import publish
from rule_runner.results.schema import RuleResult
from rule_runner.results.status import RuleStatus


def record_last_event(folders: Sequence[Path], results: Sequence[RuleResult]) -> None:
    """Record the final statuses of started rule jobs in every outbox.

    Parameters
    ----------
    folders
        Output folders of the rule jobs.
    results
        Results of the rule jobs that have one.

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
        current = outboxes[0].published | {
            result.configuration_name: _state(result) for result in results
        }
        publish(
            outboxes,
            _training_job(last),
            [*current.values()],
            training_ended=last["detail"]["TrainingJobStatus"] == COMPLETED,
            now=datetime.now(UTC),
            run_id=last["detail"].get("RunId", ""),
        )


def _training_job(event: Any) -> EventSubject:
    """Return the subject of an event."""
    detail = event["detail"]
    began = datetime.fromtimestamp(detail["CreationTime"] / 1000, UTC)
    return EventSubject(
        detail["TrainingJobName"],
        began,
        event["source"],
        event["region"],
        event["account"],
        detail["TrainingJobArn"],
        {rule["RuleConfigurationName"]: rule["RuleEvaluationJobArn"] for rule in statuses(detail)},
    )


def _state(result: RuleResult) -> RuleState:
    coverage = result.coverage
    return RuleState(
        result.configuration_name,
        RuleStatus(result.status),
        result.status_details,
        result.mode,
        RuleProgress(coverage.judged, coverage.last),
    )
