"""judge: evaluates one line of a plan, and turns whatever happens into its outcome."""

import signal
import sys
import threading
from contextlib import ExitStack, redirect_stdout, suppress
from typing import Final

from msgspec.structs import replace as with_fields

from rule_core.clock import SystemClock
from rule_core.exceptions import SMDebugError
from rule_core.failures import attempt
from rule_core.format.paths import END_OF_JOB
from rule_core.sources.address import split_kind
from rule_core.storage import StorageUnavailableError, open_store
from rule_runner.batch.plan import PlanLine
from rule_runner.commands.evaluate import Evaluation, evaluate_request
from rule_runner.commands.fleet.outcomes import TrialOutcome, TrialState, failed
from rule_runner.config.request import EvaluationRequest
from rule_runner.engine.stop_requests import Signals
from rule_runner.errors import (
    EXIT_CLIENT,
    EXIT_INTERNAL,
    EXIT_ISSUES,
    EXIT_OUTPUT,
    EXIT_TEMPORARY,
    EXIT_TIMEOUT,
    OutputError,
    RuleRunnerError,
)
from rule_runner.executors.protocol import on_stop
from rule_runner.logs import configure, get_logger
from rule_runner.results.status import INTERNAL_ERROR

_log: Final = get_logger(__name__)
_NOTHING_JUDGED: Final = "No rule judged a step."
LONG_AGO_S: Final = 300.0


def judge_in_worker(line: PlanLine) -> TrialOutcome:
    """Evaluate a line in a worker of an executor.

    In the main thread of the worker, a signal stops the evaluation; elsewhere the executor does.
    """
    configure(0)
    with ExitStack() as stack:
        signals = Signals()
        stack.callback(signals.close)
        if threading.current_thread() is threading.main_thread():
            stack.enter_context(signals)
        else:
            on_stop(lambda: signals.receive(signal.SIGTERM))
        stack.enter_context(redirect_stdout(sys.stderr))  # what rules print
        return judge(line, signals)


def judge(line: PlanLine, signals: Signals) -> TrialOutcome:
    """Evaluate a line of a plan; a complete output is kept, and a half one resumed."""
    try:
        request = line.request()
    except RuleRunnerError as err:
        return failed(line.number, str(err), EXIT_CLIENT)
    trial = request.trial or request.profiler_trial or ""
    place = request.output or ""

    def fail(err: Exception) -> TrialOutcome:
        problem, code = _fault(err)
        return failed(line.number, problem, code, trial, place)

    return attempt(lambda: _judged(line.number, request, signals), fail)


def _judged(number: int, request: EvaluationRequest, signals: Signals) -> TrialOutcome:
    trial = request.trial or request.profiler_trial or ""
    evaluation = evaluate_request(_as_it_is(request), sys.stderr, signals, title=f"line {number}: ")
    # The first sentence on an earlier evaluation says that there was one.
    problems = [*evaluation.sentences()][bool(evaluation.outcome.earlier) :]
    code = evaluation.exit_code
    if code == 0 and not any(rule.coverage.judged for rule in evaluation.outcome.result.rules):
        code = EXIT_CLIENT
        problems.append(_NOTHING_JUDGED)
    return TrialOutcome(
        line=number,
        state=_state(evaluation, code),
        trial=trial,
        output=request.output or "",
        exit_code=code,
        summary=evaluation.outcome.result.summary,
        complete=bool(evaluation.outcome.earlier),
        problems=problems,
    )


def _as_it_is(request: EvaluationRequest) -> EvaluationRequest:
    """Return the request to judge a trial as it is, unless it waits.

    Late files of slow workers are not waited for if the trial ended some time ago.
    """
    grace = 0.0 if _ended_long_ago(request.any_trial) else request.end_grace
    return with_fields(request, as_it_is=not request.wait, end_grace=grace)


def _ended_long_ago(trial: str) -> bool:
    """Return whether the end mark of a trial is older than any clock is wrong."""
    with suppress(SMDebugError):
        status = open_store(split_kind(trial)[1]).status(END_OF_JOB)
        return SystemClock().time() - status.modified > LONG_AGO_S
    return False


def _state(evaluation: Evaluation, code: int) -> TrialState:
    if code in {0, EXIT_ISSUES}:
        found = any(rule.has_issues() for rule in evaluation.outcome.result.rules)
        return TrialState.ISSUES if found else TrialState.HEALTHY
    return TrialState.STOPPED if code >= EXIT_TIMEOUT else TrialState.FAILED


def _fault(err: Exception) -> tuple[str, int]:
    """Return the message and the exit code for an error of an evaluation."""
    if not isinstance(err, RuleRunnerError):
        _log.error("internal_error", exc_info=err)
        return INTERNAL_ERROR, EXIT_INTERNAL
    if may_pass(err):
        return str(err), EXIT_TEMPORARY
    return str(err), EXIT_OUTPUT if isinstance(err, OutputError) else EXIT_CLIENT


def may_pass(err: BaseException | None) -> bool:
    """Return whether an error may pass: storage that does not answer, or an output in use."""
    while err is not None:
        if isinstance(err, BlockingIOError):
            return True
        if isinstance(err, StorageUnavailableError) and err.transient:
            return True
        err = err.__cause__
    return False
