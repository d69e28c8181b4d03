"""The final event of an evaluation whose container was killed."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rule_runner.notify.event import COMPLETED, EventSubject, RuleState, statuses
from rule_runner.notify.outbox import Outbox, read_events
from rule_runner.notify.publisher import publish
from rule_runner.results.durable_files import FolderLock
from rule_runner.results.schema import RuleResult
from rule_runner.results.status import RuleStatus


def record_last_event(folder: Path, results: Sequence[RuleResult]) -> None:
    """Record the final statuses of started rule jobs in the outbox of an output folder.

    Raises
    ------
    OutputError
        If the outbox cannot be read, or written.
    """
    with FolderLock(folder), Outbox(folder) as outbox:
        if not outbox.size:
            return
        *_, (_, last) = read_events(outbox.path)
        event: Any = last
        current = outbox.published | {
            result.configuration_name: _state(result) for result in results
        }
        publish(
            outbox,
            _training_job(event),
            [*current.values()],
            training_ended=event["detail"]["TrainingJobStatus"] == COMPLETED,
            now=datetime.now(UTC),
            run_id=event["detail"].get("RunId", ""),
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
    return RuleState(
        result.configuration_name,
        RuleStatus(result.status),
        result.status_details,
        result.mode,
        result.coverage.judged,
        result.coverage.last,
    )
