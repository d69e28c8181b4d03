"""The table of trials: rows, columns of rules, filters and their addresses."""

from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Final, NamedTuple
from urllib.parse import urlencode

import msgspec

from rule_runner.index.states import WatchState
from rule_runner.results.status import Outcome
from rule_runner.service.api.queries import TrialQuery
from rule_runner.service.api.trials import RuleItem, TrialItem
from rule_runner.service.pages.words import (
    STATES,
    VERDICTS,
    Verdict,
    short,
    split_path,
    verdict,
    verdict_so_far,
)

TRIALS: Final = "/trials"
ROWS: Final = 200  # of a page
PENDING: Final = (WatchState.RUNNING, WatchState.QUEUED, WatchState.LOST)
_VERSION_LENGTH: Final = 12
_LOUD: Final = frozenset({Outcome.ISSUES_FOUND, Outcome.ERROR, Outcome.STOPPED})


class Cell(NamedTuple):
    """The verdict of a rule on a trial; `label` says everything in words."""

    rule: str
    verdict: Verdict
    label: str
    is_loud: bool
    is_seen: bool


class TableRow(NamedTuple):
    """A trial in the table.

    Attributes
    ----------
    cells
        One of each column; None where the rule was not run.
    version
        Differs when anything that the row shows does.
    """

    item: TrialItem
    name: str
    folder: str
    state: str
    verdict: Verdict | None
    cells: Sequence[Cell | None]
    version: str


class Chip(NamedTuple):
    """A number of trials, with a link to them."""

    word: str
    sign: str
    name: str
    trials: int
    link: str
    is_current: bool


class SortLink(NamedTuple):
    """A link that sorts by a column; `direction` is that of the present order, or ""."""

    link: str
    direction: str


def columns(items: Iterable[TrialItem]) -> list[str]:
    """Return the names of the rules that have judged something of any of the trials, sorted."""
    return sorted({rule.name for item in items for rule in item.rules if _has_judged(rule)})


def _has_judged(rule: RuleItem) -> bool:
    if rule.outcome == Outcome.IN_PROGRESS:
        return rule.judged > 0
    return rule.outcome != Outcome.NOT_EVALUATED


def rows(items: Iterable[TrialItem], names: Sequence[str]) -> list[TableRow]:
    """Return the rows of trials; `names` are the columns."""
    return [_row(item, names) for item in items]


def _row(item: TrialItem, names: Sequence[str]) -> TableRow:
    by_name = {rule.name: rule for rule in item.rules}
    cells = [None if (rule := by_name.get(name)) is None else _cell(rule) for name in names]
    return TableRow(
        item,
        *split_path(item.path),
        STATES[WatchState(item.state)],
        verdict_so_far(item.verdict, item.severity),
        cells,
        sha256(msgspec.json.encode((item, names))).hexdigest()[:_VERSION_LENGTH],
    )


def _cell(rule: RuleItem) -> Cell:
    how = verdict(rule.verdict, rule.severity)
    where = "" if rule.step is None else f" at step {rule.step:,}"
    count = f", {rule.findings:,} findings" if rule.findings > 1 else ""
    acknowledged = ", acknowledged" if rule.acknowledged else ""
    name = short(rule.name)
    label = f"{name}: {how.word}{where}{count}{acknowledged}"
    return Cell(name, how, label, rule.verdict in _LOUD, rule.acknowledged)


def address(query: TrialQuery, **changes: object) -> str:
    """Return the address of the table with another query; a changed filter begins at page 1.

    >>> address(TrialQuery(text="a b", page=3), outcome="IssuesFound")
    '/trials?text=a+b&outcome=IssuesFound'
    """
    changed = msgspec.structs.replace(query, **({"page": 1} | changes))
    default = TrialQuery()
    fields = {
        name: value
        for name in query.__struct_fields__
        if name != "limit" and (value := getattr(changed, name)) != getattr(default, name)
    }
    return f"{TRIALS}?{urlencode(fields)}" if fields else TRIALS


def chips(query: TrialQuery, counts: Mapping[tuple[str, str], int]) -> list[Chip]:
    """Return the number of all trials, of those that wait or run, and by outcome.

    Parameters
    ----------
    counts
        By state and outcome, of the whole index.
    """
    all_trials = address(query, state=None, outcome=None)
    is_all = query.state is None and query.outcome is None
    result = [Chip("All", "", "all", sum(counts.values()), all_trials, is_all)]
    groups = [("outcome", 1, str(outcome), verdict(outcome)) for outcome in VERDICTS]
    groups += [("state", 0, str(state), Verdict(state, STATES[state], "")) for state in PENDING]
    for field, column, value, how in groups:
        if count := sum(n for key, n in counts.items() if key[column] == value):
            is_current = getattr(query, field) == value
            link = address(query, **{field: None if is_current else value})
            result.append(Chip(how.word, how.sign, how.name, count, link, is_current))
    return result


def sort_link(query: TrialQuery, order: str, *, descending: bool = False) -> SortLink:
    """Return the link of a column's heading, which turns the order if it is the present one.

    Parameters
    ----------
    descending
        Whether the column is sorted in descending order first.
    """
    first, second = (f"-{order}", order) if descending else (order, f"-{order}")
    target = second if query.sort == first else first
    direction = ""
    if query.sort.removeprefix("-") == order:
        direction = "descending" if query.sort.startswith("-") else "ascending"
    return SortLink(address(query, sort=target), direction)
