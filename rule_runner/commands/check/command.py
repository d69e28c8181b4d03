"""check: judges every trial at and below paths by the rules whose inputs it holds."""

import sys
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import closing, redirect_stdout
from itertools import chain, count
from math import inf
from pathlib import Path
from typing import Final

from msgspec.structs import replace as with_fields

from rule_core.clock import SystemClock
from rule_core.severity import Severity
from rule_core.sources.address import address_of
from rule_runner import errors
from rule_runner.commands.check.earlier import EarlierChecks
from rule_runner.commands.check.tables import (
    CheckedTrial,
    CheckResult,
    NotRead,
    judged_run,
    print_results,
    ranked,
)
from rule_runner.commands.evaluate import evaluate_request
from rule_runner.config.defaults import DEFAULT_END_GRACE_S, FITTING_RULES
from rule_runner.config.fitting_rules import has_ended
from rule_runner.config.model import default_output
from rule_runner.config.output_names import folder_name
from rule_runner.config.request import EvaluationRequest, RuleRequest
from rule_runner.engine.stop_requests import Signals
from rule_runner.loading.standard_input import STANDARD_INPUT, standard_input
from rule_runner.loading.trial_lists import ListedTrial, list_trials
from rule_runner.loading.trial_search import TrialFolder
from rule_runner.logs import get_logger
from rule_runner.report.brief import brief
from rule_runner.results.file_names import REPORT
from rule_runner.results.json_text import dump_json

_log: Final = get_logger(__name__)
NAME_LENGTH: Final = 100  # characters of a folder's name


def check_trials(
    paths: Sequence[str],
    request: EvaluationRequest,
    severity: Severity = Severity.WARNING,
    *,
    again: bool = False,
) -> int:
    """Judge the trials at and below `paths`, print the results, and return the exit code.

    Parameters
    ----------
    request
        How to judge each trial, and where to write and how to print the results of all.
    severity
        The least serious findings that the table lists.
    again
        Whether to judge trials that have not changed since the last check.

    Raises
    ------
    ClientError
        If no trial was found.
    OutputError
        If the output folder cannot be used.
    """
    stdout = sys.stdout
    with redirect_stdout(sys.stderr), Signals() as signals:  # rules may print
        result = judge_trials(paths, request, signals, again=again)
        codes = [trial.exit_code for trial in result.trials]
        if result.problems:
            codes.append(errors.EXIT_CLIENT)
        if signals.number:
            codes.append(errors.EXIT_SIGNAL + signals.number)
        code = errors.worst_exit_code(codes)
        if request.format == "table":
            print_results(result, stdout, severity, quiet=request.quiet)
        else:
            print(_document(result, request, code), file=stdout)
    return code


def _document(result: CheckResult, request: EvaluationRequest, exit_code: int) -> str:
    """Return the results in the requested format for programs."""
    if request.format == "json":
        return dump_json(result, indent=2)
    if request.format == "brief":
        return brief([judged_run(trial) for trial in result.trials], exit_code)
    from rule_runner.commands.check.documents import document

    return document(result, request.format, exit_code, request.fails_on or Severity.WARNING)


def judge_trials(
    paths: Sequence[str], request: EvaluationRequest, signals: Signals, *, again: bool = False
) -> CheckResult:
    """Judge the trials at and below `paths`, and return the results of all.

    Parameters are those of `check_trials`; `signals` are as in `evaluate_request`.

    Raises
    ------
    ClientError
        If no trial was found.
    OutputError
        If the output folder cannot be used.
    """
    output_folder = Path(request.output or default_output("check"))
    folders, problems, not_read = _find(paths, request)
    if not folders:
        raise errors.TrialError(" ".join(problems))
    shared = output_folder if request.output else output_folder.parent
    earlier = EarlierChecks(shared, request)
    trials = [*_check_each(folders, output_folder, request, signals, earlier, again=again)]
    earlier.write()
    if all(trial.exit_code == errors.EXIT_OUTPUT and trial.evaluation is None for trial in trials):
        raise errors.OutputError(trials[0].problem)
    if remaining := len(folders) - len(trials):
        problems.append(f"Stopped by a signal before {remaining} of {len(folders)} trials.")
    report = _report(trials, not_read, output_folder) if request.report else None
    return CheckResult(
        trials=trials,
        problems=problems,
        results=trials[0].results if len(folders) == 1 else str(output_folder),
        report=str(report or ""),
        not_read=not_read,
    )


def _find(
    paths: Sequence[str], request: EvaluationRequest
) -> tuple[dict[str, TrialFolder], list[str], list[NotRead]]:
    """Return the trials at and below paths, each once, what is wrong, and what is not read.

    The keys are the names of the trials' folders of results.
    """
    trials: dict[str, TrialFolder] = {}
    named = [path for path in paths if path != STANDARD_INPUT]
    with closing(_SearchProgress(is_shown=sys.stderr.isatty() and not request.quiet)) as progress:
        listed, problems, not_read = list_trials(
            named, sources=request.sources, looked=progress.advance
        )
    if STANDARD_INPUT in paths:
        piped = standard_input()
        listed.append(ListedTrial(TrialFolder(piped, tensors=True, profiler=False), piped, piped))
    for folder, trial_path, path in listed:
        trials[_new_name(trial_path, path, trials, several=len(paths) > 1)] = folder
    return trials, problems, [NotRead(*item) for item in not_read.items()]


class _SearchProgress:
    """Shows on a terminal how many folders were searched, if that takes longer than a second."""

    def __init__(self, *, is_shown: bool) -> None:
        self._is_shown = is_shown
        self._next = SystemClock().monotonic() + 1 if is_shown else inf
        self._count = 0

    def advance(self) -> None:
        """Count a folder."""
        self._count += 1
        now = SystemClock().monotonic()
        if now >= self._next:
            self._next = now + 0.1
            folders = errors.counted(self._count, "folder")
            print(f"\rLooking for trials: {folders}\x1b[K", end="", file=sys.stderr, flush=True)

    def close(self) -> None:
        """Clear the line."""
        print("\r\x1b[K" * self._is_shown, end="", file=sys.stderr, flush=True)


def _new_name(trial_path: str, path: str, names: Container[str], *, several: bool) -> str:
    """Return a folder name for the results of a trial that was found below `path`.

    It is the relative path of the trial, so that it does not change when other trials are added;
    it starts with the last part of `path` if there are several paths.
    """
    root = address_of(path).canonical.rstrip("/")
    relative = trial_path.removeprefix(root).strip("/")
    label = f"{root.rpartition('/')[2]}/{relative}" if several or not relative else relative
    name = folder_name(label, NAME_LENGTH)
    numbered = (f"{name}-{suffix}" for suffix in count(2))
    return next(candidate for candidate in chain([name], numbered) if candidate not in names)


def _check_each(
    folders: Mapping[str, TrialFolder],
    output: Path,
    request: EvaluationRequest,
    signals: Signals,
    earlier: EarlierChecks,
    *,
    again: bool,
) -> Iterator[CheckedTrial]:
    """Judge trials one after another, ended ones first, until a signal arrives.

    The end grace for files of slow workers runs once for all ended trials, not once for each.
    """
    clock = SystemClock()
    running = {name for name, folder in folders.items() if not has_ended(folder, request.sources)}
    grace_end = clock.monotonic() + DEFAULT_END_GRACE_S
    several = len(folders) > 1
    for position, name in enumerate(sorted(folders, key=running.__contains__), 1):
        path = folders[name].path
        digest = earlier.digest(path)
        if not again and (outcome := earlier.outcome(path, digest)):
            yield outcome
            continue
        grace_left = max(0.0, grace_end - clock.monotonic())
        folder = str(output / name if several else output)
        own = with_fields(
            request,
            output=folder,
            overwrite=request.overwrite or earlier.replaces(path, folder),
            end_grace=DEFAULT_END_GRACE_S if name in running else grace_left,
        )
        title = f"{position} of {len(folders)}, {name}: " if several else ""
        trial = _judge(folders[name], own, title, signals)
        if not signals.number:
            earlier.add(trial, digest)
        yield trial
        if signals.number:
            return


def _judge(
    folder: TrialFolder, request: EvaluationRequest, title: str, signals: Signals
) -> CheckedTrial:
    """Judge a trial by the rules whose inputs it holds."""
    request = with_fields(
        request,
        trial=folder.path if folder.tensors else None,
        profiler_trial=folder.path if folder.profiler else None,
        rules=(RuleRequest(name=FITTING_RULES),),
        as_it_is=not request.wait,
    )
    try:
        evaluation = evaluate_request(
            request, sys.stdout, signals, title=title, report_issues_only=True
        )
    except (errors.ClientError, errors.OutputError) as err:
        return CheckedTrial(path=folder.path, problem=str(err), exit_code=err.exit_code)
    outcome, code = evaluation.outcome, evaluation.exit_code
    for sentence in evaluation.sentences():
        if sentence != outcome.output_error:  # the table says so
            _log.warning("evaluation_noted", reason=sentence)
    if code == 0 and not any(rule.coverage.judged for rule in outcome.result.rules):
        code = errors.EXIT_CLIENT
    return CheckedTrial(
        path=folder.path,
        results=request.output or "",
        exit_code=code,
        evaluation=with_fields(outcome.result, left_out={}),
        problem=outcome.output_error,
        left_out={**evaluation.config.left_out},
    )


def _report(
    trials: Sequence[CheckedTrial], not_read: Sequence[NotRead], output: Path
) -> Path | None:
    """Write the report on all trials, with links to the report of each, and return its path.

    The report on a single trial is its own; None if no report was written.
    """
    from rule_runner.report.html.page import write_overview

    results = {
        Path(trial.results): trial.evaluation.rules for trial in ranked(trials) if trial.evaluation
    }
    if len(trials) == 1 or not results:
        page = Path(trials[0].results, REPORT)
        return page if results and page.is_file() else None
    problems = [trial.problem for trial in trials if trial.problem]
    problems += (f"Not read: {item.path} ({item.reason})." for item in not_read)
    try:
        return write_overview(results, problems, output)
    except errors.OutputError as err:
        _log.warning("report_not_written", path=str(output), reason=str(err))
        return None
