"""The results of `check`, printed as one table of trials and verdicts, findings first."""

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final, TextIO

import msgspec

from rule_core.severity import Severity
from rule_core.storage.uri import is_s3
from rule_runner.errors import counted
from rule_runner.escape import printable
from rule_runner.report.text import STYLES, asides, evidence, reason, verdict
from rule_runner.results.schema import EvaluationResult, RuleResult, in_order, summary
from rule_runner.results.status import FindingState, Outcome

if TYPE_CHECKING:
    from rich.text import Text

NOTES_SHOWN: Final = 3
ISSUES: Final = "with issues"
FAILED: Final = "with errors"
UNJUDGED: Final = "not judged"
CLEAR: Final = "without issues"
MAY_GROW: Final = "may still grow"
# The states of trials in the order of the table, and the outcome whose color each has.
_STATES: Final = {
    ISSUES: Outcome.ISSUES_FOUND,
    FAILED: Outcome.ERROR,
    UNJUDGED: Outcome.NOT_EVALUATED,
    CLEAR: Outcome.NO_ISSUES_FOUND,
}
_GROUPS: Final = ("warnings", "muted", "recovered", "no issues")  # rules that are only named
_UNEVALUATED: Final = (
    "NotEvaluated: rules that found no inputs in the trial or lack a parameter; "
    "results.json has their names and the reasons."
)


class CheckedTrial(msgspec.Struct, frozen=True, kw_only=True):
    """The result of checking one trial: an entry of ``--format json``.

    Attributes
    ----------
    path
        The path of the trial, as it was found.
    results
        The folder of its results; "" if it has none.
    exit_code
        The exit code that `check` would have for this trial alone.
    evaluation
        The results of the rules that were run; None if the trial could not be judged.
    problem
        Why it could not be judged, or its results not be written; "" otherwise.
    left_out
        The reason why each of the other rules was not run, by name.
    unchanged
        Whether it is the outcome of an earlier check, since nothing has changed.
    """

    path: str
    results: str = ""
    exit_code: int = 0
    evaluation: EvaluationResult | None = None
    problem: str = ""
    left_out: dict[str, str] = {}
    unchanged: bool = False


class NotRead(msgspec.Struct, frozen=True):
    """A file or folder that may be of a training, and why it is not read."""

    path: str
    reason: str


class CheckResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of `check`: the object that ``--format json`` prints.

    Attributes
    ----------
    problems
        Sentences on what is wrong with the paths.
    results, report
        The folder of all results, and the report on all trials; "" if there is none.
    not_read
        What was not read below the paths.
    """

    schema_version: int = 1
    trials: list[CheckedTrial]
    problems: list[str] = []
    results: str = ""
    report: str = ""
    not_read: list[NotRead] = []


def print_results(
    result: CheckResult, stream: TextIO, severity: Severity = Severity.WARNING
) -> None:
    """Print a table on a terminal, and plain lines elsewhere.

    Parameters
    ----------
    severity
        The least serious findings to list; rules with others are only named.
    """
    trials = ranked(result.trials)
    if stream.isatty():
        _print_table(trials, stream, severity)
    else:
        for trial in trials:
            may_grow = "" if has_ended(trial) else f" ({MAY_GROW})"
            print(f"{_path(trial.path)}: {_headline(trial)}{may_grow}", file=stream)
            for line in verdict_lines(trial, severity):
                print(f"  {line}", file=stream)
    for line in _footer(result):
        print(line, file=stream)


def ranked(trials: Iterable[CheckedTrial]) -> list[CheckedTrial]:
    """Return trials in the order of the table: those with findings first."""
    ranks = [*_STATES]
    return sorted(trials, key=lambda trial: ranks.index(state(trial)))


def state(trial: CheckedTrial) -> str:
    """Return the state of a trial, such as ``with issues``."""
    rules = _rules(trial)
    outcomes = {rule.outcome for rule in rules}
    if any(rule.has_issues() for rule in rules):
        return ISSUES
    if trial.problem or outcomes & {Outcome.ERROR, Outcome.STOPPED}:
        return FAILED
    return CLEAR if any(rule.coverage.judged for rule in rules) else UNJUDGED


def verdict_lines(trial: CheckedTrial, severity: Severity = Severity.WARNING) -> Iterator[str]:
    """Yield the findings and failures of a trial, the rules without issues, and some notes."""
    rules = in_order(_rules(trial))
    if trial.problem:
        yield printable(trial.problem)
    elif state(trial) == UNJUDGED:
        # The table names the trial already.
        yield reason(_rules(trial)[0]).replace(f"Trial {trial.path!r}", "The trial")
    names: dict[str, list[str]] = {name: [] for name in _GROUPS}
    for rule in rules:
        name = printable(rule.configuration_name)
        group = _group(rule, severity)
        if group:
            names[group].append(f"{name}{_recovery(rule)}")
        elif rule.outcome != Outcome.NOT_EVALUATED:
            yield f"{name}{_finding_or_failure(rule)}"
        if severity is Severity.NOTE:
            yield from (f"{name}: {aside}" for aside in asides(rule, NOTES_SHOWN))
    yield from (f"{group}: {', '.join(members)}" for group, members in names.items() if members)
    notes = dict.fromkeys(note for rule in rules for note in rule.notes)
    yield from (f"note: {printable(note)}" for note in islice(notes, NOTES_SHOWN))


def _group(rule: RuleResult, severity: Severity) -> str:
    """Return the line on which a rule is only named; "" if it has a line of its own."""
    if rule.outcome == Outcome.NO_ISSUES_FOUND:
        return "no issues"
    if rule.is_set_aside:
        return "muted" if rule.is_muted else "recovered"
    return "warnings" if rule.has_issues() and not rule.has_issues(severity) else ""


def _recovery(rule: RuleResult) -> str:
    """Return from when to when the findings of a rule held, if they have recovered."""
    if rule.state != FindingState.RECOVERED:
        return ""
    end = f"to {rule.recovered_at}" if rule.resumed_from is msgspec.UNSET else "of an earlier start"
    return f" (step {rule.step} {end})"


def _finding_or_failure(rule: RuleResult) -> str:
    """Return the first finding of a rule, or the reason why it has no verdict."""
    if rule.outcome == Outcome.ISSUES_FOUND:
        return f" ({rule.severity or Severity.ERROR}): {evidence(rule.findings[0], rule.unit)}"
    return f": {verdict(rule)}. {reason(rule)}"


def _rules(trial: CheckedTrial) -> list[RuleResult]:
    return trial.evaluation.rules if trial.evaluation else []


def _headline(trial: CheckedTrial) -> str:
    """Return how many rules have which outcome."""
    if trial.evaluation is None:
        return "cannot be judged"
    judged = [rule for rule in _rules(trial) if rule.outcome != Outcome.NOT_EVALUATED]
    if not judged:
        return "nothing was judged"
    lasting = [rule for rule in judged if rule.state != FindingState.RECOVERED]
    counts = {
        "recovered": len(judged) - len(lasting),
        Outcome.NOT_EVALUATED: _unevaluated_count(trial),
    }
    parts = [summary(lasting), *(f"{count} {name}" for name, count in counts.items() if count)]
    return ", ".join(filter(None, parts))


def _unevaluated_count(trial: CheckedTrial) -> int:
    """Return how many rules have no verdict, those that were not run included."""
    outcomes = [rule.outcome for rule in _rules(trial)]
    return outcomes.count(Outcome.NOT_EVALUATED) + len(trial.left_out)


def has_ended(trial: CheckedTrial) -> bool:
    """Return whether a trial has ended; one without an evaluation counts as ended."""
    if trial.evaluation is None:
        return True
    summaries = (trial.evaluation.trial, trial.evaluation.profiler_trial)
    return all(data.ended for data in summaries if data is not None)


def _path(path: str) -> str:
    """Return a path as a user would write it: relative if it lies below the working directory."""
    if not is_s3(path) and Path(path).is_relative_to(Path.cwd()):
        path = os.path.relpath(path)
    return printable(path)


def _footer(result: CheckResult) -> Iterator[str]:
    """Yield the lines below the table."""
    if any(map(_unevaluated_count, result.trials)):
        yield _UNEVALUATED
    yield from map(printable, result.problems)
    counts = Counter(map(state, result.trials))
    parts = ", ".join(f"{counts[name]} {name}" for name in _STATES if counts[name])
    yield f"Checked {counted(len(result.trials), 'trial')}: {parts}."
    if unchanged := sum(trial.unchanged for trial in result.trials):
        yield f"Unchanged since the last check: {unchanged}. Option --again judges all."
    if result.not_read:
        folders = {item.path.rpartition("/")[0] for item in result.not_read}
        first = result.not_read[0]
        example = f"{_path(first.path)} ({printable(first.reason)})"
        yield f"Not read: {counted(len(folders), 'folder')}, for example {example}"
    if result.results:
        yield f"Results: {_path(result.results)}"
    if result.report:
        yield f"Report: {_path(result.report)}"


def _print_table(trials: list[CheckedTrial], stream: TextIO, severity: Severity) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.text import Text

    from rule_runner.report.tables import grid

    def row(trial: CheckedTrial) -> "tuple[Text, Text]":
        headline = Text(_headline(trial), style=STYLES[_STATES[state(trial)]])
        lines = [Text(line) for line in verdict_lines(trial, severity)]
        name = Text(_path(trial.path))
        if not has_ended(trial):
            name.append(f"\n{MAY_GROW}", style="dim")
        return name, Text("\n").join([headline, *lines])

    console = Console(file=stream)
    table = grid(("trial", "verdicts"), map(row, trials), box=SIMPLE_HEAD, pad_edge=False)
    table.columns[0].max_width = console.width * 35 // 100
    console.print(table)
