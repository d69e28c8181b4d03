"""The report on many trials: a table of verdicts with links to the report of each trial."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import quote

from rule_runner.report.html.page import write_page
from rule_runner.report.saved_results import Run, Saved, SavedRuleJob, ordered
from rule_runner.results.file_names import REPORT
from rule_runner.results.schema import RuleResult


def write_overview(
    results: Mapping[Path, Sequence[RuleResult]], problems: Sequence[str], output: Path
) -> Path:
    """Write the report to the folder `output`, and return its path.

    Parameters
    ----------
    results
        The results of each trial, in the order of the table, by its folder in `output`.
    problems
        A message for each trial that could not be judged.

    Raises
    ------
    OutputError
        If the report cannot be written.
    """
    runs = [_run(folder, rules, output) for folder, rules in results.items() if rules]
    title = f"{len(runs)} trials" if len(runs) != 1 else "1 trial"
    return write_page(Saved(tuple(runs), tuple(problems)), output, title)


def _run(folder: Path, rules: Sequence[RuleResult], output: Path) -> Run:
    jobs = ordered(map(SavedRuleJob, rules))
    page = folder / REPORT
    link = quote(page.relative_to(output).as_posix()) if page.is_file() else ""
    return Run(str(folder), rules[0].trial, jobs, page=link)
