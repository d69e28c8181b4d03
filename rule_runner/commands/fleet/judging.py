"""TrialOutcome: how the evaluation of one line of a plan ended, whatever happens in it."""

import signal
import sys
import threading
from collections import Counter
from collections.abc import Iterable
from contextlib import ExitStack, redirect_stdout, suppress
from enum import StrEnum
from typing import Final

import msgspec
from msgspec.structs import replace as with_fields

from rule_core.clock import SystemClock
from rule_core.exceptions import SMDebugError
from rule_core.failures import attempt
from rule_core.format.paths import END_OF_JOB
from rule_core.sources.address import address_of
from rule_core.storage.base import StorageUnavailableError
from rule_core.storage.uri import open_store
from rule_runner import errors
from rule_runner.batch.plan import PlanLine
from rule_runner.commands.evaluate import Evaluation, evaluate_request
from rule_runner.config.request import EvaluationRequest
from rule_runner.engine.stop_requests import Signals
from rule_runner.escape import printable
from rule_runner.executors.protocol import on_stop
from rule_runner.logs import configure, get_logger
from rule_runner.results.status import INTERNAL_ERROR

_log: Final = get_logger(__name__)
_NOTHING_JUDGED: Final = "No rule judged a step."
LONG_AGO_S: Final = 300.0


class TrialState(StrEnum):
    """How an evaluation ended: those that need attention come first."""

    FAILED = "failed"
    STOPPED = "stopped"
    ISSUES = "with issues"
    HEALTHY = "without issues"


class TrialOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """How the evaluation of one line of a plan ended: a line of ``--format jsonl``.

    Attributes
    ----------
    line
        Its number in the plan, from 1.
    trial, output
        The trial and the folder of its results; "" if the line does not say.
    exit_code
        The exit code for this trial alone.
    summary
        The number of rules with each outcome, as text.
    complete
        Whether an earlier process had completed it, so that nothing was judged again.
    problems
        Sentences on what went wrong.
    """

    line: int
    state: TrialState
    trial: str = ""
    output: str = ""
    exit_code: int = 0
    summary: str = ""
    complete: bool = False
    problems: list[str] = []

    def text(self) -> str:
        """Return the outcome as a line for people."""
        head = f"{self.line}: {self.trial or 'no trial'}: "
        before = " (judged before)" if self.complete else ""
        said = " ".join(self.problems) if self.state is TrialState.FAILED else ""
        return printable(head + (said or self.summary or str(self.state)) + before)


class Tally:
    """Counts the outcomes of a shard."""

    def __init__(self) -> None:
        self._states: Counter[TrialState] = Counter()
        self._codes: set[int] = set()
        self._complete = 0

    def add(self, outcome: TrialOutcome) -> None:
        """Count an outcome."""
        self._states[outcome.state] += 1
        self._codes.add(outcome.exit_code)
        self._complete += outcome.complete

    def text(self, shard: object) -> str:
        """Return a sentence on all outcomes."""
        present = (state for state in TrialState if self._states[state])
        counts = ", ".join(f"{self._states[state]} {state}" for state in present)
        trials = errors.counted(self._states.total(), "trial")
        before = f"; {self._complete} had been judged before" if self._complete else ""
        return f"Shard {shard}: {trials}{counts and f': {counts}'}{before}."

    def exit_code(self, signal: int = 0) -> int:
        """Return the exit code of the shard; `signal` ended it, if it is not 0."""
        return shard_exit_code(self._codes | ({errors.EXIT_SIGNAL + signal} if signal else set()))


def shard_exit_code(codes: Iterable[int]) -> int:
    """Return the exit code of a shard from those of its trials.

    Interruptions and failures that may pass precede others: a retry skips what is complete.

    >>> shard_exit_code([0, 1]), shard_exit_code([1, 75]), shard_exit_code([75, 143])
    (1, 75, 143)
    """
    present = {*codes}
    retried = [code for code in present if code > errors.EXIT_SIGNAL]
    if errors.EXIT_TEMPORARY in present and not retried:
        return errors.EXIT_TEMPORARY
    return min(retried, default=errors.worst_exit_code(present))


def failed(line: int, problem: str, code: int, request: EvaluationRequest | None) -> TrialOutcome:
    """Return the outcome of a trial that could not be judged."""
    return TrialOutcome(
        line=line,
        state=TrialState.FAILED,
        trial=trial_of(request),
        output=(request and request.output) or "",
        exit_code=code,
        problems=[problem],
    )


def trial_of(request: EvaluationRequest | None) -> str:
    """Return the trial that a request names; "" if it names none."""
    return (request and (request.trial or request.profiler_trial)) or ""


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
    except errors.RuleRunnerError as err:
        return failed(line.number, str(err), errors.EXIT_CLIENT, None)

    def fail(err: Exception) -> TrialOutcome:
        return failed(line.number, *_fault(err), request)

    return attempt(lambda: _judged(line.number, request, signals), fail)


def _judged(number: int, request: EvaluationRequest, signals: Signals) -> TrialOutcome:
    evaluation = evaluate_request(_as_it_is(request), sys.stderr, signals, title=f"line {number}: ")
    # The first sentence on an earlier evaluation says that there was one.
    problems = [*evaluation.sentences()][bool(evaluation.outcome.earlier) :]
    code = evaluation.exit_code
    if code == 0 and not any(rule.coverage.judged for rule in evaluation.outcome.result.rules):
        code = errors.EXIT_CLIENT
        problems.append(_NOTHING_JUDGED)
    return TrialOutcome(
        line=number,
        state=_state(evaluation, code),
        trial=trial_of(request),
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
        status = open_store(address_of(trial).path).status(END_OF_JOB)
        return SystemClock().time() - status.modified > LONG_AGO_S
    return False


def _state(evaluation: Evaluation, code: int) -> TrialState:
    if code in {0, errors.EXIT_ISSUES}:
        has_issues = any(rule.has_issues() for rule in evaluation.outcome.result.rules)
        return TrialState.ISSUES if has_issues else TrialState.HEALTHY
    return TrialState.STOPPED if code >= errors.EXIT_TIMEOUT else TrialState.FAILED


def _fault(err: Exception) -> tuple[str, int]:
    """Return the message and the exit code for an error of an evaluation."""
    if not isinstance(err, errors.RuleRunnerError):
        _log.error("internal_error", exc_info=err)
        return INTERNAL_ERROR, errors.EXIT_INTERNAL
    if may_pass(err):
        return str(err), errors.EXIT_TEMPORARY
    is_output = isinstance(err, errors.OutputError)
    return str(err), errors.EXIT_OUTPUT if is_output else errors.EXIT_CLIENT


def may_pass(err: BaseException | None) -> bool:
    """Return whether an error may pass: storage that does not answer, or an output in use."""
    while err is not None:
        if isinstance(err, BlockingIOError):
            return True
        if isinstance(err, StorageUnavailableError) and err.transient:
            return True
        err = err.__cause__
    return False
