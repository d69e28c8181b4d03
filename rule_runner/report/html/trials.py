"""The page on many trials: a table whose rows are made one after the other."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import jinja2

from rule_runner.errors import counted
from rule_runner.escape import printable
from rule_runner.report.html.page import QUIET, TEMPLATES, WORDS, frame, tally, template_text
from rule_runner.report.html.series import display_name
from rule_runner.report.text import place, recovery
from rule_runner.results.schema import RuleResult
from rule_runner.results.status import Outcome

VERDICTS: Final = 12  # in a row; the others are counted


@dataclass(frozen=True, slots=True)
class TrialRow:
    """A trial on the page.

    Attributes
    ----------
    rules
        The results of its rules, in the order of its own report.
    problems
        Sentences on results that are missing.
    page
        Link to its own report; "" if there is none.
    """

    name: str
    trial: str
    outcome: str
    rules: Sequence[RuleResult]
    problems: Sequence[str]
    page: str


def trial_row(row: TrialRow) -> str:
    """Return a row of the table as HTML."""
    (verdict,) = tally({row.outcome: 1})
    verdicts = [
        _verdict(rule, position, row.page)
        for position, rule in enumerate(row.rules, 1)
        if rule.outcome not in QUIET
    ]
    counts = Counter(rule.outcome for rule in row.rules)
    others = [
        f"{counts[outcome]} {WORDS[outcome][0].lower()}" for outcome in QUIET if counts[outcome]
    ]
    if muted := sum(rule.muted_count for rule in row.rules):
        others.append(counted(muted, "muted finding"))
    if more := len(verdicts) - VERDICTS:
        others[:0] = [f"{more} more"] if more > 0 else []
    return template("trial_row.html.jinja").render(
        name=row.name,
        trial=row.trial,
        page=row.page,
        **verdict,
        verdicts=verdicts[:VERDICTS],
        others=", ".join(others),
        problems=row.problems,
    )


def _verdict(rule: RuleResult, position: int, page: str) -> dict[str, Any]:
    return {
        "name": rule.configuration_name,
        "outcome": _tone(rule),
        "place": place(rule)
        + "".join(f", {since}" for since in recovery(rule))
        + (", muted" * rule.is_muted or ", acknowledged" * rule.is_acknowledged),
        "link": f"{page}#rule-1-{position}" if page else "",
    }


def _tone(rule: RuleResult) -> str:
    """Return the outcome that gives a verdict its colour."""
    if rule.is_set_aside:
        return str(Outcome.STOPPED)
    return rule.outcome if rule.outcome in list(Outcome) else str(Outcome.ERROR)


def trials_page(title: str, counts: Mapping[str, int], rows: Iterator[str]) -> Iterator[str]:
    """Yield the page in pieces.

    Parameters
    ----------
    counts
        The number of trials with each outcome.
    rows
        The rows of the table, as HTML.
    """
    style = template_text("colours.css", "report.css", "trials.css")
    yield from template("trials.html.jinja").generate(
        title=title, summary=tally(counts), rows=rows, **frame(style, template_text("trials.js"))
    )


@cache
def template(name: str) -> jinja2.Template:
    """Return a compiled template; compilation takes longer than rendering."""
    return template_environment(TEMPLATES, display_name=display_name).get_template(name)


def template_environment(folder: Path, **filters: Callable[..., Any]) -> jinja2.Environment:
    """Return an environment for the templates in a folder, which escapes everything."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(folder),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(filters, printable=printable)
    return environment
