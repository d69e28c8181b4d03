"""fleet collect: one report, JUnit and SARIF of the results of many trials."""

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final, NamedTuple

from rule_core.severity import Severity
from rule_core.storage.uri import is_s3
from rule_runner.batch.collecting.junit_file import JunitFile
from rule_runner.batch.collecting.page_file import PageFile
from rule_runner.batch.collecting.results import CollectedTrial, below, of_plan
from rule_runner.batch.collecting.sarif_file import SarifFile
from rule_runner.batch.collecting.streams import CollectedFile
from rule_runner.batch.plan import read_plan
from rule_runner.config.request import STDIN
from rule_runner.errors import EXIT_CLIENT, EXIT_ISSUES, ClientError, counted, worst_exit_code
from rule_runner.escape import print_lines
from rule_runner.results.evaluations import ORDER
from rule_runner.results.status import FindingState, Outcome

PLAN_SUFFIX: Final = ".jsonl"
_PROBLEMS: Final = 20  # printed at most


class Targets(NamedTuple):
    """The files to write; None for those that are not."""

    report: str | None = None
    junit: str | None = None
    sarif: str | None = None

    def files(self, fail_on: Severity) -> Iterator[CollectedFile]:
        """Yield the files; in JUnit, findings that are less serious than `fail_on` do not fail."""
        if self.report is not None:
            yield PageFile(self.report)
        if self.junit is not None:
            yield JunitFile(self.junit, fail_on)
        if self.sarif is not None:
            yield SarifFile(self.sarif)


def collect(places: Sequence[str], targets: Targets, fail_on: Severity | None) -> int:
    """Write files on the results of many trials, print a summary, and return the exit code.

    Parameters
    ----------
    places
        Plans, or folders below which to look for results.
    fail_on
        Return 10 if a rule that is not only observed found an issue that is at least so serious.

    Raises
    ------
    ClientError
        If a folder cannot be read, or nothing was found.
    UsageError
        If a plan cannot be read.
    OutputError
        If a file cannot be written.
    """
    counts: Counter[str] = Counter()
    codes: set[int] = set()
    problems: list[str] = []
    with ExitStack() as stack:
        files = list(targets.files(fail_on or Severity.WARNING))
        for file in files:
            stack.callback(file.close)
        for trial in _once(places):
            counts[trial.outcome] += 1
            codes.add(_exit_code(trial, fail_on))
            problems += trial.problems[: max(0, _PROBLEMS - len(problems))]
            for file in files:
                file.add(trial)
        if not counts:
            raise ClientError(
                f"No result in {', '.join(map(repr, places))}. Give a plan or an output folder."
            )
        code = worst_exit_code(codes)
        for file in files:
            file.write(code)
    print_lines(problems, sys.stderr)
    print(_summary(counts))
    print_lines(f"Wrote {file.place}" for file in files)
    return code


def _once(places: Sequence[str]) -> Iterator[CollectedTrial]:
    """Yield the trials of plans and folders, each output once."""
    outputs: set[str] = set()
    for place in places:
        is_file = place.endswith(PLAN_SUFFIX) if is_s3(place) else Path(place).is_file()
        is_plan = is_file or place == STDIN
        for trial in of_plan(read_plan(place)) if is_plan else below(place):
            if trial.output not in outputs:
                outputs.add(trial.output)
                yield trial


def _exit_code(trial: CollectedTrial, fail_on: Severity | None) -> int:
    """Return the exit code for one trial; see `rule_runner.engine.outcome.exit_code`."""
    failed = any(rule.outcome == Outcome.ERROR for rule in trial.rules)
    if trial.problems or failed or not any(rule.coverage.judged for rule in trial.rules):
        return EXIT_CLIENT
    issues = fail_on is not None and any(
        rule.has_issues(fail_on) and rule.mode == "enforce" for rule in trial.rules
    )
    return EXIT_ISSUES if issues else 0


def _summary(counts: Counter[str]) -> str:
    """Return a line on all trials."""
    outcomes = (*ORDER, FindingState.RECOVERED)
    parts = ", ".join(f"{counts[outcome]} {outcome}" for outcome in outcomes if counts[outcome])
    return f"{counted(counts.total(), 'trial')}: {parts}."
