"""The results of `check`, printed as one table of trials and verdicts, findings last."""

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from io import StringIO
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TextIO

import msgspec

from rule_core.optional_imports import data_frame
from rule_core.severity import Severity
from rule_core.storage.uri import is_s3
from rule_runner.errors import counted
from rule_runner.escape import printable
from rule_runner.report.brief import JudgedRun
from rule_runner.report.text import (
    STATE_OUTCOMES,
    STYLES,
    asides,
    evidence,
    headline,
    place,
    reason,
    verdict,
)
from rule_runner.results.issues.incidents import RunState, incidents, run_state
from rule_runner.results.schema import (
    EvaluationResult,
    IncidentRecord,
    RuleResult,
    finding_rows,
    in_order,
)
from rule_runner.results.status import FindingState, Outcome

if TYPE_CHECKING:
    from rich.text import Text

    from rule_core.optional_imports import DataFrame
    from rule_runner.report.html.notebook import NotebookRun

NOTES_SHOWN: Final = 3
MAX_HEALTHY_ROWS: Final = 5  # of more trials without issues, only some are named
HEALTHY_NAMES: Final = 3
MAY_GROW: Final = "may still grow"
# The states of trials, the worst first, and the word for several trials.
_STATES: Final = {
    RunState.BROKEN: "broken",
    RunState.SUSPICIOUS: "suspicious",
    RunState.UNKNOWN: "not judged",
    RunState.HEALTHY: "healthy",
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

    @property
    def rules(self) -> list[RuleResult]:
        """The results of the rules that were run; none if the trial could not be judged."""
        return self.evaluation.rules if self.evaluation else []

    @property
    def state(self) -> RunState:
        """``broken``, ``suspicious``, ``looks healthy`` or ``cannot tell``."""
        return run_state(self.rules, self.problem)

    @property
    def incidents(self) -> list[IncidentRecord]:
        """The issues that still hold: each root cause with what may follow from it."""
        return self.evaluation.incidents if self.evaluation else []

    def _repr_html_(self) -> str:
        """Return the trial as HTML, which notebooks show."""
        return CheckResult(trials=[self])._repr_html_()

    def notebook_run(self) -> "NotebookRun":
        """Return the trial as notebooks show it."""
        from rule_runner.report.html.notebook import NotebookRun

        line = _headline(self) + ("" if has_ended(self) else f" ({MAY_GROW})")
        name, lines = shown_path(self.path), [self.problem]
        return NotebookRun(name, line, self.state, self.evaluation, lines, self.left_out)


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

    def _repr_html_(self) -> str:
        """Return the trials as HTML, which notebooks show: those with findings come first."""
        from rule_runner.report.html.notebook import runs_html

        trials, folded = _fold_healthy(ranked(self.trials))
        return runs_html([trial.notebook_run() for trial in trials], [*folded, *_footer(self)])

    def _repr_pretty_(self, printer: Any, _cycle: bool) -> None:
        """Print the trials as the command does in IPython."""
        stream = StringIO()
        print_results(self, stream)
        printer.text(stream.getvalue().rstrip())

    def to_pandas(self) -> "DataFrame":
        """Return a frame with a row for each finding, and for each rule or trial without one."""
        return data_frame(
            {"trial": trial.path, "trial_state": trial.state, **row}
            for trial in self.trials
            for row in finding_rows(trial.rules) or [{"summary": trial.problem}]
        )


def print_results(
    result: CheckResult,
    stream: TextIO,
    severity: Severity = Severity.WARNING,
    *,
    quiet: bool = False,
) -> None:
    """Print a table on a terminal, and plain lines elsewhere.

    Parameters
    ----------
    severity
        The least serious findings to list; rules with others are only named.
    quiet
        Whether to leave out healthy trials and the summary.
    """
    if quiet:
        loud = [trial for trial in result.trials if trial.state is not RunState.HEALTHY]
        result = CheckResult(trials=loud, problems=result.problems)
    trials = sorted(result.trials, key=lambda trial: -_rank(trial))
    trials, folded = _fold_healthy(trials)
    for line in folded:
        print(line, file=stream)
    if stream.isatty() and trials:
        _print_table(trials, stream, severity)
    else:
        for trial in trials:
            may_grow = "" if has_ended(trial) else f" ({MAY_GROW})"
            print(f"{shown_path(trial.path)}: {_headline(trial)}{may_grow}", file=stream)
            for line in verdict_lines(trial, severity):
                print(f"  {line}", file=stream)
    for line in map(printable, result.problems) if quiet else _footer(result):
        print(line, file=stream)


def judged_run(trial: CheckedTrial) -> JudgedRun:
    """Return a trial for a brief answer."""
    summary = trial.evaluation.trial if trial.evaluation else None
    return JudgedRun(shown_path(trial.path), trial.rules, summary, trial.left_out, trial.problem)


def _fold_healthy(trials: Sequence[CheckedTrial]) -> tuple[list[CheckedTrial], list[str]]:
    """Return the trials to show, and a line on the healthy ones if they are many."""
    healthy = [trial for trial in trials if _is_silent(trial)]
    if len(healthy) <= MAX_HEALTHY_ROWS:
        return [*trials], []
    names = ", ".join(shown_path(trial.path) for trial in healthy[:HEALTHY_NAMES])
    folded = {id(trial) for trial in healthy}
    line = f"{len(healthy)} trials look healthy: {names} and {len(healthy) - HEALTHY_NAMES} more."
    return [trial for trial in trials if id(trial) not in folded], [line]


def ranked(trials: Iterable[CheckedTrial]) -> list[CheckedTrial]:
    """Return trials in the order of the report: those with findings first."""
    return sorted(trials, key=_rank)


def _rank(trial: CheckedTrial) -> int:
    return [*_STATES].index(trial.state)


def _is_silent(trial: CheckedTrial) -> bool:
    """Return whether a trial looks healthy, and there is nothing more to say about it."""
    return trial.state is RunState.HEALTHY and not any(True for _ in verdict_lines(trial))


def verdict_lines(trial: CheckedTrial, severity: Severity = Severity.WARNING) -> Iterator[str]:
    """Yield the findings and failures of a trial, the rules without issues, and some notes."""
    rules = in_order(trial.rules)
    if trial.problem:
        yield printable(trial.problem)
    elif rules and all(rule.outcome == Outcome.NOT_EVALUATED for rule in rules):
        # The table names the trial already.
        yield reason(trial.rules[0]).replace(f"Trial {trial.path!r}", "The trial")
    yield from _issues([rule for rule in rules if not _group(rule, severity)])
    if severity is Severity.NOTE:
        for rule in rules:
            name = printable(rule.configuration_name)
            yield from (f"{name}: {aside}" for aside in asides(rule, NOTES_SHOWN))
    yield from _names(trial, severity)
    notes = dict.fromkeys(note for rule in rules for note in rule.notes)
    yield from (f"note: {printable(note)}" for note in islice(notes, NOTES_SHOWN))


def _issues(rules: Sequence[RuleResult]) -> Iterator[str]:
    """Yield each root cause with what follows from it, and then what failed."""
    for root, consequences in incidents(rules):
        yield f"{_named(root)}: {_first(root, whole=True)}"
        yield from (f"  follows: {_named(rule)}: {_first(rule)}" for rule in consequences)
    for rule in rules:
        if rule.outcome in {Outcome.ERROR, Outcome.STOPPED}:
            yield f"{printable(rule.configuration_name)}: {verdict(rule)}. {reason(rule)}"


def _names(trial: CheckedTrial, severity: Severity) -> Iterator[str]:
    """Yield the rules that are only named, unless the headline names them."""
    names: dict[str, list[str]] = {name: [] for name in _GROUPS}
    for rule in trial.rules:
        if group := _group(rule, severity):
            names[group].append(f"{printable(rule.configuration_name)}{_recovery(rule)}")
    if trial.state is RunState.HEALTHY:
        del names["no issues"]
    yield from (f"{group}: {', '.join(members)}" for group, members in names.items() if members)


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


def _named(rule: RuleResult) -> str:
    """Return the name of a rule with issues and their severity."""
    return f"{printable(rule.configuration_name)} ({rule.severity or Severity.ERROR})"


def _first(rule: RuleResult, *, whole: bool = False) -> str:
    """Return what the first finding that holds says, if `whole` with its advice and numbers."""
    finding = rule.main_finding
    if finding is None:
        return place(rule).strip()
    if whole or finding.acknowledgement or not finding.summary:
        return evidence(finding, rule.unit)
    return printable(finding.summary)


def _headline(trial: CheckedTrial) -> str:
    """Return the state of a trial, since when, and how many rules could judge it."""
    if trial.evaluation is None:
        return "cannot be judged"
    return headline(trial.rules, trial.evaluation.trial, trial.left_out, trial.problem)


def _unevaluated_count(trial: CheckedTrial) -> int:
    """Return how many rules have no verdict, those that were not run included."""
    outcomes = [rule.outcome for rule in trial.rules]
    return outcomes.count(Outcome.NOT_EVALUATED) + len(trial.left_out)


def has_ended(trial: CheckedTrial) -> bool:
    """Return whether a trial has ended; one without an evaluation counts as ended."""
    if trial.evaluation is None:
        return True
    summaries = (trial.evaluation.trial, trial.evaluation.profiler_trial)
    return all(data.ended for data in summaries if data is not None)


def shown_path(path: str) -> str:
    """Return a path as a user would write it: relative if it lies below the working directory."""
    if not is_s3(path) and Path(path).is_relative_to(Path.cwd()):
        path = os.path.relpath(path)
    return printable(path)


def _footer(result: CheckResult) -> Iterator[str]:
    """Yield the lines below the table."""
    if result.results and any(map(_unevaluated_count, result.trials)):
        yield _UNEVALUATED
    yield from map(printable, result.problems)
    counts = Counter(trial.state for trial in result.trials)
    tally = [f"{counts[name]} {word}" for name, word in _STATES.items() if counts[name]]
    yield f"Checked {counted(len(result.trials), 'trial')}: {', '.join(tally)}."
    if unchanged := sum(trial.unchanged for trial in result.trials):
        yield f"Unchanged since the last check: {unchanged}. Option --again judges all."
    if result.not_read:
        folders = {item.path.rpartition("/")[0] for item in result.not_read}
        first = result.not_read[0]
        example = f"{shown_path(first.path)} ({printable(first.reason)})"
        yield f"Not read: {counted(len(folders), 'folder')}, for example {example}"
    if result.results:
        yield f"Results: {shown_path(result.results)}"
    if result.report:
        yield f"Report: {shown_path(result.report)}"


def _print_table(trials: list[CheckedTrial], stream: TextIO, severity: Severity) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.text import Text

    from rule_runner.report.tables import grid

    def row(trial: CheckedTrial) -> "tuple[Text, Text]":
        first = Text(_headline(trial), style=STYLES[STATE_OUTCOMES[trial.state]])
        lines = [Text(line) for line in verdict_lines(trial, severity)]
        name = Text(shown_path(trial.path))
        if not has_ended(trial):
            name.append(f"\n{MAY_GROW}", style="dim")
        return name, Text("\n").join([first, *lines])

    console = Console(file=stream)
    table = grid(("trial", "verdicts"), map(row, trials), box=SIMPLE_HEAD, pad_edge=False)
    table.columns[0].max_width = console.width * 35 // 100
    console.print(table)
