"""Container mode: fulfils the contract of a SageMaker rule container."""

import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from datetime import UTC, datetime
from math import inf
from typing import Final, NoReturn, TextIO

from rule_core.trials.refresh import parse_bool
from rule_runner import errors
from rule_runner.commands.evaluate import evaluate_to
from rule_runner.config import sagemaker_contract
from rule_runner.config.defaults import DEFAULT_WINDOW, WINDOW, RuleMode
from rule_runner.config.request import ContainerRule, EvaluationRequest
from rule_runner.config.resolve import resolve
from rule_runner.engine.outcome import exit_code
from rule_runner.engine.stop_requests import Signals
from rule_runner.escape import printable
from rule_runner.logs import get_logger
from rule_runner.notify.delivery import DEADLINE_S
from rule_runner.notify.sinks import EventSink
from rule_runner.notify.sinks.spec import SINK_DEADLINE, SINKS, parse_sinks, sinks_in
from rule_runner.report.progress import LogObserver
from rule_runner.report.text import lines
from rule_runner.results.durable_files import make_folder, output_errors, remove_scratch
from rule_runner.results.file_names import safe_name
from rule_runner.results.output_folder import write_results_file
from rule_runner.results.schema import EvaluationResult, RuleJobFacts, rule_result, summary_of_trial
from rule_runner.results.state import RuleJobState
from rule_runner.results.status import CLIENT_ERROR, RuleStatus, message_bytes
from rule_runner.results.versions import versions

_log: Final = get_logger(__name__)


def run() -> int:
    """Evaluate the rule of the contract; write results and message, and return the exit code."""
    results = sys.stdout
    with redirect_stdout(sys.stderr), Signals() as signals:  # the rule may print
        code = _run(results, signals)
    return errors.EXIT_SIGNAL + signals.number if signals.late else code


def _run(results: TextIO, signals: Signals) -> int:
    """Evaluate the rule; print the results, and nothing else, to `results`."""
    contract = sagemaker_contract.empty_contract()
    try:
        contract = sagemaker_contract.read_contract()
        request = _request(contract)
        config = resolve(request)
        messenger = _Messenger(contract)
        sinks = _sinks(request, results)
        evaluated = evaluate_to(None, config, sinks, messenger, signals)
    except errors.OutputError as err:
        write_message(contract, CLIENT_ERROR + str(err))
        raise
    except errors.ClientError as err:
        unsent = refuse(contract, CLIENT_ERROR + str(err))
        if unsent:
            raise errors.OutputError(unsent) from err
        raise
    print("\n".join(lines(evaluated.result)), file=results)
    if evaluated.earlier:
        _log.info("evaluated_before", reason=evaluated.again(str(config.output)))
    if evaluated.output_error:
        _log.error("output_not_written", reason=evaluated.output_error)
    for undelivered in evaluated.undelivered_events:
        _log.error("events_not_delivered", reason=undelivered.sentence(str(config.output)))
    code = exit_code(evaluated, fail_on=None)
    if messenger.unsent:
        print(messenger.unsent, file=sys.stderr)
        return code if code == errors.EXIT_INTERNAL else errors.EXIT_OUTPUT
    return code


def reject() -> NoReturn:
    """Report that the platform named no rule; also in the message file, if its folder exists.

    Raises
    ------
    UsageError
        Always.
    """
    contract = sagemaker_contract.empty_contract()
    msg = (
        f"No rule is named: {sagemaker_contract.RULE!r} is neither in the environment nor in "
        f"'{contract.place(sagemaker_contract.JOB)}'. Add it to the rule's parameters."
    )
    if contract.place(sagemaker_contract.MESSAGE).parent.is_dir():
        write_message(contract, CLIENT_ERROR + msg)
    raise errors.UsageError(msg)


class _Messenger(LogObserver):
    """Writes the exit message as soon as there is a verdict, before actions and sinks end.

    Attributes
    ----------
    unsent
        Why the message could not be written; "" if it was.
    """

    def __init__(self, contract: sagemaker_contract.Contract) -> None:
        super().__init__()
        self._contract = contract
        self.unsent = ""

    def decided(self, states: Sequence[RuleJobState]) -> None:
        """Write the message of a finding or an error."""
        for state in states:
            if state.status in {RuleStatus.ISSUES_FOUND, RuleStatus.ERROR}:
                self.unsent = write_message(self._contract, state.status_details or "")


def _sinks(request: EvaluationRequest, stdout: TextIO) -> list[EventSink]:
    """Return the sinks that the environment names; see `commands.evaluate.event_sinks`."""
    problem = f"Environment variable {SINKS} cannot be used: "
    with errors.translated(errors.ParameterError, errors.UsageError, before=problem):
        return parse_sinks(request.sinks, stdout)


def write_message(contract: sagemaker_contract.Contract, details: str) -> str:
    """Write the exit message; return why it could not be written, or ""."""
    path = contract.place(sagemaker_contract.MESSAGE)
    try:
        with output_errors(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(message_bytes(details))
    except errors.OutputError as err:
        return printable(f"{err} It would have said: {details.strip()}")
    return ""


def refuse(contract: sagemaker_contract.Contract, details: str) -> str:
    """Write message and result of a rule job that could not start; see `write_message`."""
    unsent = write_message(contract, details)
    now = datetime.now(UTC)
    rule = contract.environment.get(sagemaker_contract.RULE, "")
    evaluation = RuleJobState(rule, contract.configuration_name, False, now)
    evaluation.rule_failed(details, now)
    parameters = dict(contract.declared or {})
    facts = RuleJobFacts(parameters, str(contract.tensors), RuleMode.ENFORCE, "", versions())
    result = rule_result(evaluation, facts, trial_ended=False, duration_s=0.0, rule_time_s=0.0)
    trial = summary_of_trial(contract.trial_name or "", facts.trial, [result])
    try:
        make_folder(contract.output)
        write_results_file(contract.output, EvaluationResult(trial=trial, rules=[result]))
        remove_scratch(contract.output)
    except errors.OutputError as err:
        _log.warning("result_not_written", path=str(contract.output), reason=printable(err))
    return unsent


def _request(contract: sagemaker_contract.Contract) -> EvaluationRequest:
    """Return the evaluation that the platform requests."""
    environment = contract.environment
    return EvaluationRequest(
        trial=str(contract.tensors),
        profiler_trial=str(contract.profiler),
        trial_name=contract.trial_name,
        other_trials=contract.other_trials,
        container=ContainerRule(
            name=safe_name(contract.configuration_name),
            environment={
                name: text
                for name, text in environment.items()
                if sagemaker_contract.is_reserved(name) or name in sagemaker_contract.SUPPORTED
            },
            parameters=contract.declared,
            profiler=contract.has_profiler_only,
            training_job_arn=contract.training_job_arn,
            rule_job_arn=contract.job.processing_job_arn,
        ),
        training_job_name=contract.training_job_name,
        wait_for_trial=inf,
        idle_timeout=contract.number(sagemaker_contract.IDLE_TIMEOUT, 0.0),
        window=int(contract.number(WINDOW, DEFAULT_WINDOW)),
        stop_file=contract.stop_file,
        stop_grace=contract.number(sagemaker_contract.GRACE, 60.0),
        output=str(contract.output),
        overwrite=parse_bool(environment.get(sagemaker_contract.OVERWRITE) or None),
        sinks=tuple(sinks_in(environment)),
        sink_deadline=contract.number(SINK_DEADLINE, DEADLINE_S),
    )
