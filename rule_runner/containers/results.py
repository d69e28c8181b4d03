"""Exit codes and results of containers; unfinished results are completed."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import msgspec

from rule_core.sources.address import address_of
from rule_runner import errors
from rule_runner.commands.evaluate import document
from rule_runner.config.request import EvaluationRequest
from rule_runner.containers.supervisor import ContainerExit
from rule_runner.escape import printable
from rule_runner.logs import get_logger
from rule_runner.notify.event import COMPLETED, EventSubject, RuleState, statuses
from rule_runner.notify.outbox import Outbox, read_events
from rule_runner.notify.publisher import publish
from rule_runner.report.text import print_results
from rule_runner.results.durable_files import FolderLock
from rule_runner.results.issues.incidents import incident_records
from rule_runner.results.json_text import rfc3339
from rule_runner.results.output_folder import read_results_file, write_results_file
from rule_runner.results.schema import EvaluationResult, RuleResult, summary, summary_of_trial
from rule_runner.results.status import CLIENT_ERROR, RuleStatus, wire_details

_log: Final = get_logger(__name__)
KILLED: Final = errors.EXIT_SIGNAL + 9
_NO_COMMAND: Final = {126, 127}  # exit codes of an init process that cannot run the command
_FINAL: Final = {RuleStatus.NO_ISSUES_FOUND, RuleStatus.ISSUES_FOUND, RuleStatus.ERROR}
_SIGNALS: Final = (errors.EXIT_SIGNAL + 2, errors.EXIT_SIGNAL + 15)
# The exit code of several containers is the first of these that occurs.
_FIRST: Final = (
    *(errors.EXIT_USAGE, errors.EXIT_INTERNAL, errors.EXIT_OUTPUT, *_SIGNALS),
    *(errors.EXIT_TIMEOUT, errors.EXIT_CLIENT, errors.EXIT_ISSUES, 0),
)


def trouble(ending: ContainerExit, memory: str) -> str:
    """Return the message about a container that did not end by itself; "" if it did.

    Parameters
    ----------
    memory
        The memory limit as given by the user.
    """
    if ending.killed:
        after = "its time limit" if ending.timed_out else "a signal"
        return f"The container was killed after {after}, because it had not stopped by itself."
    if ending.out_of_memory and ending.code:
        return f"The container needed more memory than --memory {memory}. Increase it."
    if ending.code == KILLED:
        return (
            "The container was killed, probably because it needed more memory than --memory "
            f"{memory}. Increase it."
        )
    if ending.code in _NO_COMMAND:
        return "The image does not contain rule-runner. Choose another image: --image."
    return ""


def exit_code(ending: ContainerExit, *, has_results: bool) -> int:
    """Return the exit code of the evaluation in a container.

    Parameters
    ----------
    has_results
        Whether any result exists.
    """
    stopped = errors.EXIT_SIGNAL + ending.signalled if ending.signalled else None
    if ending.killed or ending.timed_out:
        late = ending.killed or ending.code in _SIGNALS
        return (stopped or errors.EXIT_TIMEOUT) if late else ending.code or 0
    if ending.code is None or (stopped and (ending.code in _SIGNALS or not has_results)):
        return stopped or errors.EXIT_CLIENT
    return errors.EXIT_CLIENT if ending.code in {KILLED, *_NO_COMMAND} else ending.code


def combined(codes: Iterable[int]) -> int:
    """Return the exit code of several containers.

    >>> combined([0, 10, 1]), combined([0, 10])
    (1, 10)
    """
    distinct = set(codes) or {0}
    return max(distinct - {*_FIRST}, default=0) or next(code for code in _FIRST if code in distinct)


def bring_to_an_end(
    folder: Path, ending: ContainerExit, why: str, since: datetime
) -> list[RuleResult]:
    """Return the results in an output folder, and complete the unfinished ones.

    Parameters
    ----------
    why
        See `trouble`; "" if the container ended by itself.
    since
        Start of the container: older results are ignored.
    """
    try:
        evaluation = read_results_file(folder)
    except FileNotFoundError:
        return []
    except (OSError, ValueError, msgspec.MsgspecError) as err:
        _log.warning("result_not_read", path=str(folder), reason=printable(err))
        return []
    results = [rule for rule in evaluation.rules if rule.started_at >= rfc3339(since)]
    if not (why and results):
        return results
    ended = [_ended(rule, ending, why) for rule in results]
    if ended == results:
        return results
    try:
        write_results_file(folder, msgspec.structs.replace(evaluation, rules=ended))
        _record_last_event(folder, ended)
    except errors.OutputError as err:
        _log.warning("result_not_written", path=str(folder), reason=str(err))
    return ended


def _ended(result: RuleResult, ending: ContainerExit, why: str) -> RuleResult:
    """Return the completed result of a rule job in a container that has ended."""
    if result.ended_at is not None:
        return result
    now = datetime.now(UTC)
    changes = {
        "ended_at": rfc3339(now),
        "duration_s": (now - datetime.fromisoformat(result.started_at)).total_seconds(),
        "notes": [*result.notes, why],
    }
    if result.status not in _FINAL:
        stopped = ending.killed and ending.code is not None
        word = RuleStatus.STOPPED if stopped else RuleStatus.ERROR
        details = wire_details(why if stopped else CLIENT_ERROR + why)
        changes |= {"status": str(word), "outcome": str(word), "status_details": details}
    return msgspec.structs.replace(result, **changes)


def _record_last_event(folder: Path, results: Sequence[RuleResult]) -> None:
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
        current = outbox.published | {rule.configuration_name: _state(rule) for rule in results}
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
    coverage = result.coverage
    return RuleState(
        result.configuration_name,
        RuleStatus(result.status),
        result.status_details,
        result.mode,
        coverage.judged,
        coverage.last,
    )


def compose(
    trial: str, parts: Sequence[EvaluationResult], rules: Sequence[RuleResult]
) -> EvaluationResult:
    """Return the results of several containers as one.

    Parameters
    ----------
    trial
        The path or address given by the user.
    parts
        Results printed by containers that ended by themselves.
    rules
        All results, also of the other containers.
    """
    whole = parts[0].trial if parts else summary_of_trial(address_of(trial).name, trial, rules)
    return EvaluationResult(
        summary=summary(rules),
        trial=whole,
        rules=[*rules],
        incidents=incident_records(rules),
    )


def parsed(printed: Mapping[str, bytes]) -> dict[str, EvaluationResult]:
    """Return the results that containers printed as JSON, by name."""
    results = {}
    for name, text in printed.items():
        try:
            results[name] = msgspec.json.decode(text, type=EvaluationResult)
        except msgspec.DecodeError as err:
            _log.debug("result_not_printed", rule_job=name, reason=printable(err))
    return results


def show(
    result: EvaluationResult,
    request: EvaluationRequest,
    folder: Path | None,
    report: Path | None,
) -> None:
    """Print results in the requested form; stdout gets nothing else."""
    if request.format != "table":
        print(document(result, request.format, (), 0, request.fails_on))
        return
    places = [f"Results: {printable(folder)}"] if folder else []
    places += [f"Report: {printable(report)}"] if report else []
    print_results(result, places)
