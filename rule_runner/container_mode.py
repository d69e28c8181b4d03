"""Container mode: the contract of a rule container, from its environment to its message file."""

import signal
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import Final, NoReturn

import structlog

from rule_runner.commands import run as run_evaluation
from rule_runner.config import (
    DEFAULT_WINDOW,
    WINDOW,
    EvaluationConfig,
    RuleMode,
)
from rule_runner.contract import (
    GRACE,
    IDLE_TIMEOUT,
    MESSAGE,
    OVERWRITE,
    RULE,
    Contract,
    empty_contract,
    read_contract,
)
from rule_runner.contract_job import rule_job
from rule_runner.delivery import DEADLINE_S
from rule_runner.durable import make_folder, output_errors, write_atomically
from rule_runner.errors import (
    EXIT_INTERNAL,
    EXIT_OUTPUT,
    EXIT_SIGNAL,
    ClientError,
    OutputError,
    ParameterError,
    UsageError,
)
from rule_runner.evaluated import exit_code
from rule_runner.evaluation import Evaluation
from rule_runner.outputs import RESULT, safe_name
from rule_runner.results import RuleJobFacts, dump_json, rule_result, versions
from rule_runner.show import lines, printable
from rule_runner.sinks import EventSink
from rule_runner.sinks.parsing import SINK_DEADLINE, SINKS, parse_sinks, sinks_of
from rule_runner.status import CLIENT_ERROR, RuleStatus, message_bytes
from rule_runner.terminal import LogObserver
from rule_runner.windows import judges_windows, over_windows
from smdebug.analysis.utils import parse_bool

_log: Final = structlog.get_logger()


def run() -> int:
    """Evaluate the rule of the contract; write results and message, and return the exit code."""
    signal.signal(signal.SIGTERM, _leave)  # the first process of a container has no default
    contract = empty_contract()
    try:
        contract = read_contract()
        config = _configuration(contract)
        deadline = contract.number(SINK_DEADLINE, DEADLINE_S)
        telling = _Telling(contract)
        evaluated = run_evaluation(config, _sinks(contract), telling, deadline)
    except OutputError:
        raise
    except ClientError as err:
        unsaid = _refuse(contract, CLIENT_ERROR + str(err))
        if unsaid:
            raise OutputError(unsaid) from err
        raise
    print("\n".join(lines(evaluated.result)))  # noqa: T201 - stdout carries results
    if evaluated.unwritten:
        _log.error("output_not_written", reason=evaluated.unwritten)
    for one in evaluated.undelivered:
        _log.error("events_not_delivered", reason=one.sentence(str(config.output)))
    code = exit_code(evaluated, fail_on_issues=False)
    if telling.unsaid:
        print(telling.unsaid, file=sys.stderr)  # noqa: T201 - after the results
        return code if code == EXIT_INTERNAL else EXIT_OUTPUT
    return code


class _Telling(LogObserver):
    """Leaves the message as soon as there is a verdict, whatever actions and sinks still do.

    Attributes
    ----------
    unsaid
        Why the platform will not hear of the verdict; "" if it will.
    """

    def __init__(self, contract: Contract) -> None:
        self._contract = contract
        self.unsaid = ""

    def decided(self, evaluations: Sequence[Evaluation]) -> None:
        """Write the message of a verdict that must be told."""
        for one in evaluations:
            if one.status in {RuleStatus.ISSUES_FOUND, RuleStatus.ERROR}:
                self.unsaid = _write_message(self._contract, one.status_details or "")


def _sinks(contract: Contract) -> list[EventSink]:
    """Return the sinks that the environment names."""
    try:
        return parse_sinks(sinks_of(contract.environment), sys.stdout)
    except UsageError as err:
        msg = f"Environment variable {SINKS} cannot be used: {err}"
        raise ParameterError(msg) from err


def _leave(number: int, frame: FrameType | None) -> NoReturn:
    """End on a signal that comes before anything was begun."""
    del frame
    sys.exit(EXIT_SIGNAL + number)


def _write_message(contract: Contract, details: str) -> str:
    """Write the exit message; return "", or why the platform will not hear of the verdict."""
    path = contract.place(MESSAGE)
    try:
        with output_errors(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(message_bytes(details))
    except OutputError as err:
        return printable(f"{err} It would have said: {details.strip()}")
    return ""


def _refuse(contract: Contract, details: str) -> str:
    """Leave message and result of a rule job that could not begin; see `_write_message`."""
    unsaid = _write_message(contract, details)
    now = datetime.now(UTC)
    rule = contract.environment.get(RULE, "")
    evaluation = Evaluation(rule, contract.configuration_name, False, now)
    evaluation.rule_failed(details, now)
    parameters = dict(contract.declared or {})
    facts = RuleJobFacts(parameters, str(contract.tensors), RuleMode.ENFORCE, "", versions())
    result = rule_result(evaluation, facts, trial_ended=False, duration_s=0.0, rule_time_s=0.0)
    try:
        make_folder(contract.output)
        write_atomically(contract.output / RESULT, dump_json(result, indent=2) + "\n")
    except OutputError as err:
        _log.warning("result_not_written", path=str(contract.output), reason=printable(err))
    return unsaid


def _configuration(contract: Contract) -> EvaluationConfig:
    rule = rule_job(contract, safe_name(contract.configuration_name))
    if judges_windows(rule.loaded, otherwise=contract.has_profiler_only):
        rule = over_windows(rule)
    trial = contract.profiler if rule.profiler else contract.tensors
    stop_files = _stop_files(contract.stop_file_in(trial), rule.loaded.name)
    idle = contract.number(IDLE_TIMEOUT, 0.0)
    return EvaluationConfig(
        trial=str(trial),
        rules=(rule,),
        output=contract.output,
        other_trials=contract.other_trials,
        trial_name=contract.training_job_name,
        training_job_name=contract.training_job_name,
        wait_for_trial=float("inf"),
        idle_timeout=idle or None,
        window=int(contract.number(WINDOW, DEFAULT_WINDOW)),
        stop_files=() if rule.profiler else stop_files,
        profiler_stop_files=stop_files,
        stop_grace=contract.number(GRACE, 60.0),
        overwrite=parse_bool(contract.environment.get(OVERWRITE) or None),
    )


def _stop_files(given: Path | None, rule: str) -> tuple[Path, ...]:
    """Return the stop file, and beside it one that is named like the rule."""
    return () if given is None else tuple(dict.fromkeys((given, given.with_name(rule))))
