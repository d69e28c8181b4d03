"""evaluate: runs an evaluation, prints the results, and returns the exit code."""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, TextIO

from msgspec.structs import replace as with_fields

from rule_core.failures import attempt
from rule_core.severity import Severity
from rule_core.storage.uri import is_s3
from rule_runner.config.model import EvaluationConfig
from rule_runner.config.request import EvaluationRequest
from rule_runner.config.resolve import resolve
from rule_runner.engine.evaluate import evaluate
from rule_runner.engine.outcome import EvaluationOutcome, exit_code
from rule_runner.engine.stop_requests import PAUSED, Signals
from rule_runner.errors import EXIT_SIGNAL, UsageError
from rule_runner.escape import print_lines, printable
from rule_runner.loading.standard_input import STANDARD_INPUT, standard_input
from rule_runner.logs import get_logger
from rule_runner.notify.event import check_source
from rule_runner.notify.sinks import EventSink
from rule_runner.report.progress import LogObserver, observer
from rule_runner.report.text import print_results
from rule_runner.results.json_text import dump_json
from rule_runner.results.schema import EvaluationResult
from rule_runner.results.status import Outcome

if TYPE_CHECKING:
    from rule_runner.loading.loader import LoadedRule
    from rule_runner.results.retention import Retention
    from rule_runner.results.s3_output import S3OutputSync

_log: Final = get_logger(__name__)


class Evaluation(NamedTuple):
    """A finished evaluation.

    Attributes
    ----------
    to_address
        Converts paths in the output folder to what the user sees.
    """

    config: EvaluationConfig
    outcome: EvaluationOutcome
    exit_code: int
    to_address: Callable[[str], str]

    def sentences(self) -> Iterator[str]:
        """Yield the messages that go with the results."""
        folder = str(self.config.output)
        yield from self.outcome.sentences(folder, self.to_address(folder))
        yield from tagged(self.config, self.outcome.result)


def evaluate_trial(request: EvaluationRequest) -> int:
    """Evaluate, print the results, and return the exit code."""
    results = sys.stdout
    notice = _follow_notice(request)
    if request.trial == STANDARD_INPUT:
        name = request.trial_name or "standard-input"
        request = with_fields(request, trial=standard_input(), trial_name=name)
    with redirect_stdout(sys.stderr), Signals() as signals:  # what rules print
        evaluation = evaluate_request(request, results, signals, notice=notice)
        _print(request, evaluation, results)
        if request.format in {"junit", "sarif"}:  # these formats have no field for notes
            for note in evaluation.config.notes:
                _log.warning("evaluation_noted", reason=note)
        print_lines(evaluation.sentences(), sys.stderr)
    return EXIT_SIGNAL + signals.number if signals.late else evaluation.exit_code


def _follow_notice(request: EvaluationRequest) -> str:
    """Return until when the evaluation follows its trial, and how to avoid that.

    It is "" for a pipe, and if `watch` started the evaluation.
    """
    trial, idle = request.trial or request.profiler_trial, request.idle_timeout
    if trial in {None, STANDARD_INPUT} or request.pause_file is not None:
        return ""
    limit = f"nothing new has come for {idle:g} s (--idle-timeout)" if idle else "it ends"
    return (
        f"Trial {trial!r} may still grow. Waiting until {limit}; "
        "--no-wait judges only what is there."
    )


def evaluate_request(
    request: EvaluationRequest,
    results: TextIO,
    signals: Signals,
    *,
    title: str = "",
    notice: str = "",
    report_issues_only: bool = False,
) -> Evaluation:
    """Evaluate as requested, with its sinks and its output folder, which may be in S3.

    Parameters
    ----------
    results
        The standard output, for sinks that write to it.
    signals
        Handles signals before and after the evaluation; outside of the main thread it is not
        entered.
    title, notice
        See `rule_runner.report.progress.ProgressObserver`.
    report_issues_only
        Whether to write no report if no rule found an issue.

    Raises
    ------
    RuleRunnerError
        If the request cannot be evaluated.
    """
    check_source(request.event_source)
    retention = _retention(request)
    sinks = event_sinks(request.sinks, results)
    s3_output = _s3_output(request)
    if s3_output is not None:
        request = with_fields(request, output=str(s3_output.folder))
    config = resolve(request)
    with closing(observer(quiet=request.quiet, title=title, notice=notice)) as progress:
        outcome = evaluate_to(
            s3_output, config, sinks, progress, signals, report_issues_only=report_issues_only
        )
    if retention is not None:
        from rule_runner.results.retention import remove_old_runs

        for folder in remove_old_runs(config.output.absolute(), retention, time.time()):
            _log.info("run_removed", path=str(folder))
    code = exit_code(outcome, fail_on=request.fails_on, lenient=request.every_rule)
    to_address = str if s3_output is None or s3_output.problem else s3_output.to_address
    return Evaluation(config, outcome, code, to_address)


def tagged(config: EvaluationConfig, result: EvaluationResult) -> Sequence[str]:
    """Give the judged run its verdicts if that is requested; return what to tell the user."""
    if not config.results.tag_run:
        return ()
    from rule_runner.commands.tag_run import tag_run

    return tag_run(config.trial, result)


def _retention(request: EvaluationRequest) -> "Retention | None":
    """Return which earlier evaluations to keep; None keeps all.

    Raises
    ------
    UsageError
        If the option is malformed, or the output folder is in S3.
    """
    if request.retention is None:
        return None
    from rule_runner.results.retention import parse_retention

    if is_s3(request.output or ""):
        raise UsageError(
            "Option --retention needs a local output folder. In S3, use lifecycle rules."
        )
    return parse_retention(request.retention)


def event_sinks(texts: Sequence[str], stdout: TextIO | None = None) -> list[EventSink]:
    """Return the requested sinks; the one for standard output writes to `stdout`."""
    if not texts:
        return []
    from rule_runner.notify.sinks.spec import parse_sinks

    return parse_sinks(texts, stdout or sys.stdout)


def _s3_output(request: EvaluationRequest) -> "S3OutputSync | None":
    """Return the upload of an output folder in S3; None for a local folder."""
    if request.output is None or not is_s3(request.output):
        return None
    from rule_runner.results.s3_output import S3OutputSync

    return S3OutputSync(request.output, overwrite=request.overwrite)


def evaluate_to(
    s3_output: "S3OutputSync | None",
    config: EvaluationConfig,
    sinks: Sequence[EventSink],
    progress: LogObserver,
    signals: Signals,
    *,
    report_issues_only: bool = False,
) -> EvaluationOutcome:
    """Evaluate, and write the report; an output folder in S3 is uploaded at the same time."""
    if s3_output is None:
        outcome = evaluate(config, sinks=sinks, observer=progress, signals=signals)
        return with_report(config, outcome, issues_only=report_issues_only)
    with s3_output:
        outcome = evaluate(
            config, sinks=sinks, observer=progress, signals=signals, recorded=s3_output.record
        )
        outcome = with_report(config, outcome, issues_only=report_issues_only)
        s3_output.keep = bool(outcome.undelivered_events)
    return replace(outcome, output_error=outcome.output_error or s3_output.problem)


def with_report(
    config: EvaluationConfig, outcome: EvaluationOutcome, *, issues_only: bool = False
) -> EvaluationOutcome:
    """Write the report on a finished evaluation if it is to have one; return its outcome.

    Parameters
    ----------
    issues_only
        Whether to leave the report out if no rule found an issue.
    """
    is_over = not outcome.output_error and outcome.stop is not PAUSED
    rules = outcome.result.rules
    has_issues = any(rule.outcome == Outcome.ISSUES_FOUND for rule in rules)
    if not (is_over and config.results.report and (has_issues or not issues_only)):
        return outcome
    return replace(outcome, report=try_report(config.output, outcome.result.trial.name))


def try_report(output: Path, title: str, target: Path | None = None) -> Path | None:
    """Write the report on the results in a folder; a failure is logged and changes no verdict."""
    from rule_runner.report import write_report

    def fail(err: Exception) -> None:
        _log.warning("report_not_written", path=str(output), reason=printable(err))

    return attempt(lambda: write_report(output, title, target), fail)


def _print(request: EvaluationRequest, evaluation: Evaluation, stream: TextIO) -> None:
    """Print the results to `stream`."""
    config, outcome = evaluation.config, evaluation.outcome
    if request.format == "table":
        lines = [f"Results: {printable(config.output)}"]
        if outcome.report is not None:
            lines.append(f"Report: {printable(outcome.report)}")
        shown = [*map(evaluation.to_address, lines)]
        print_results(outcome.result, shown, stream, folded=request.fits_rules)
    else:
        loaded = [rule.loaded for rule in config.rules]
        text = document(
            outcome.result, request.format, loaded, evaluation.exit_code, request.fails_on
        )
        print(text, file=stream)


def document(
    result: EvaluationResult,
    form: str,
    rules: Sequence["LoadedRule"],
    code: int,
    fail_on: Severity | None = None,
) -> str:
    """Return a result as text in the format ``json``, ``junit``, ``sarif`` or ``brief``."""
    match form:
        case "brief":
            from rule_runner.report.brief import JudgedRun, brief

            judged = JudgedRun(result.trial.name, result.rules, result.trial, result.left_out)
            return brief([judged], code)
        case "junit":
            from rule_runner.report.junit import junit

            return junit(result, fail_on or Severity.WARNING)
        case "sarif":
            from rule_runner.report.sarif import sarif

            return sarif(result, rules, code)
        case _:
            return dump_json(result, indent=2)
