"""What containers came to: exit codes, and results that are read back and brought to an end."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import msgspec
import structlog

from rule_runner.containers.fleet import Ending
from rule_runner.containers.last_event import record_last_event
from rule_runner.durable import write_atomically
from rule_runner.errors import (
    EXIT_CLIENT,
    EXIT_INTERNAL,
    EXIT_ISSUES,
    EXIT_OUTPUT,
    EXIT_SIGNAL,
    EXIT_TIMEOUT,
    EXIT_USAGE,
    OutputError,
)
from rule_runner.openings import trial_name
from rule_runner.outputs import RESULT
from rule_runner.results import EvaluationResult, RuleResult, TrialSummary, dump_json, rfc3339
from rule_runner.show import print_results, printable, results_at
from rule_runner.status import CLIENT_ERROR, RuleStatus, wire_details

_log: Final = structlog.get_logger()
KILLED: Final = EXIT_SIGNAL + 9
_NO_COMMAND: Final = {126, 127}  # what an init process ends with that cannot run the command
_FINAL: Final = {RuleStatus.NO_ISSUES_FOUND, RuleStatus.ISSUES_FOUND, RuleStatus.ERROR}
_SIGNALS: Final = (EXIT_SIGNAL + 2, EXIT_SIGNAL + 15)
# Several containers: the first of these that one of them ended with.
_FIRST: Final = (
    *(EXIT_USAGE, EXIT_INTERNAL, EXIT_OUTPUT, *_SIGNALS),
    *(EXIT_TIMEOUT, EXIT_CLIENT, EXIT_ISSUES, 0),
)


def trouble(ending: Ending, memory: str) -> str:
    """Return what to say of a container that did not end by itself; "" if it did.

    Parameters
    ----------
    memory
        How much it was given, as the user says it.
    """
    if ending.killed:
        after = "its time limit" if ending.timed_out else "a signal"
        return f"The container was killed after {after}: it had not stopped by itself."
    if ending.out_of_memory and ending.code:
        return f"The container needed more memory than --memory {memory}. Give it more."
    if ending.code == KILLED:
        return (
            f"The container was killed, most often because it needed more memory than --memory "
            f"{memory}. Give it more."
        )
    if ending.code in _NO_COMMAND:
        return "The image runs no rule-runner. Give one that does: --image."
    return ""


def exit_code(ending: Ending, *, begun: bool) -> int:
    """Return the exit code that a container's ending stands for.

    Parameters
    ----------
    begun
        Whether there is any result: a signal that came before cost it.
    """
    stopped = EXIT_SIGNAL + ending.signalled if ending.signalled else None
    if ending.killed or ending.timed_out:
        late = ending.killed or ending.code in _SIGNALS
        return (stopped or EXIT_TIMEOUT) if late else ending.code or 0
    if ending.code is None or (stopped and (ending.code in _SIGNALS or not begun)):
        return stopped or EXIT_CLIENT
    return EXIT_CLIENT if ending.code in {KILLED, *_NO_COMMAND} else ending.code


def combined(codes: Iterable[int]) -> int:
    """Return the exit code of several containers.

    >>> combined([0, 10, 1]), combined([0, 10])
    (1, 10)
    """
    found = set(codes) or {0}
    return max(found - {*_FIRST}, default=0) or next(code for code in _FIRST if code in found)


def bring_to_an_end(folder: Path, ending: Ending, why: str, since: datetime) -> list[RuleResult]:
    """Return the results in an output folder; write to unfinished ones that nothing follows.

    Parameters
    ----------
    folder
        Of one rule job, or with a folder for each of several.
    why
        What was said of the container's ending; "" if it ended by itself.
    since
        When it was started: older results are not its own.
    """
    paths = [folder / RESULT, *sorted(folder.glob(f"*/{RESULT}"))]
    found = [(path, result) for path in paths if (result := _read(path, since)) is not None]
    if not why:
        return [result for _, result in found]
    results = [_ended(path, result, ending, why) for path, result in found]
    if results:
        try:
            record_last_event([path.parent for path, _ in found], results)
        except OutputError as err:
            _log.warning("event_not_written", path=str(folder), reason=str(err))
    return results


def _read(path: Path, since: datetime) -> RuleResult | None:
    try:
        result = msgspec.json.decode(path.read_bytes(), type=RuleResult)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.DecodeError) as err:
        _log.warning("result_not_read", path=str(path), reason=printable(err))
        return None
    return result if result.started_at >= rfc3339(since) else None


def _ended(path: Path, result: RuleResult, ending: Ending, why: str) -> RuleResult:
    """Return an unfinished result as one of a container that is gone, and write it."""
    if result.ended_at is not None:
        return result
    now = datetime.now(UTC)
    changes = {
        "ended_at": rfc3339(now),
        "duration_s": (now - datetime.fromisoformat(result.started_at)).total_seconds(),
        "notes": [*result.notes, why],
    }
    if result.status not in _FINAL:
        gone = ending.killed and ending.code is not None
        word = RuleStatus.STOPPED if gone else RuleStatus.ERROR
        details = wire_details(why if gone else CLIENT_ERROR + why)
        changes |= {"status": str(word), "outcome": str(word), "status_details": details}
    result = msgspec.structs.replace(result, **changes)
    try:
        write_atomically(path, dump_json(result, indent=2) + "\n")
    except OutputError as err:
        _log.warning("result_not_written", path=str(path), reason=str(err))
    return result


def compose(
    trial: str, parts: Sequence[EvaluationResult], rules: Sequence[RuleResult]
) -> EvaluationResult:
    """Return the results of several containers as one.

    Parameters
    ----------
    trial
        As it was asked for.
    parts
        What the containers that ended by themselves printed.
    rules
        All results; of those that did not, no more is known of the trial.
    """
    if parts:
        return EvaluationResult(trial=parts[0].trial, rules=[*rules])
    firsts = [rule.coverage.first for rule in rules if rule.coverage.first is not None]
    lasts = [rule.coverage.last for rule in rules if rule.coverage.last is not None]
    summary = TrialSummary(
        name=trial_name(trial),
        path=trial,
        ended=bool(rules) and all(rule.trial_ended for rule in rules),
        steps=max((rule.coverage.known for rule in rules), default=0),
        first_step=min(firsts, default=None),
        last_step=max(lasts, default=None),
        workers=[],
    )
    return EvaluationResult(trial=summary, rules=[*rules])


def parsed(printed: Mapping[str, bytes]) -> dict[str, EvaluationResult]:
    """Return what containers printed as JSON, by their names; without those that printed none."""
    found = {}
    for name, text in printed.items():
        try:
            found[name] = msgspec.json.decode(text, type=EvaluationResult)
        except msgspec.DecodeError as err:
            _log.debug("result_not_printed", rule_job=name, reason=printable(err))
    return found


def show(result: EvaluationResult, form: str, folders: Sequence[Path], report: Path | None) -> None:
    """Print results in the form that is asked for: stdout carries nothing else."""
    if form == "junit":
        from rule_runner.junit import junit  # noqa: PLC0415 - only when it is asked for

        print(junit(result))  # noqa: T201 - stdout carries results
        return
    if form != "table":
        print(dump_json(result, indent=2))  # noqa: T201 - likewise
        return
    places = [results_at(folders)] if folders else []
    places += [f"Report: {printable(report)}"] if report else []
    print_results(result, places)
