"""The pages of rules: what each finds, and which trials have which verdict of it."""

from collections.abc import Mapping
from functools import cache
from typing import Final, NamedTuple

from jinja2.filters import do_mark_safe
from markdown_it import MarkdownIt
from markupsafe import Markup

from builtin_rules.rule_page import rule_page, rule_summary
from rule_core.severity import Severity
from rule_runner.index.reader import IndexReader
from rule_runner.index.records import RuleRecord, TrialFilter, TrialRecord
from rule_runner.loading.loader import every_builtin
from rule_runner.report.rule_pages import page
from rule_runner.results.status import Outcome
from rule_runner.service.pages.words import (
    VERDICTS,
    TrialName,
    Verdict,
    split_path,
    verdict,
)

TRIALS_SHOWN: Final = 100
_MARKDOWN: Final = MarkdownIt("commonmark", {"html": False}).enable("table")  # escapes HTML


class RuleText(NamedTuple):
    """The page of a built-in rule.

    Attributes
    ----------
    summary
        What it finds, in a sentence.
    remedy
        What to do about a finding; empty if the page does not say.
    text
        The whole page without its title and summary.
    """

    summary: Markup
    severity: Severity
    remedy: Markup
    text: Markup


class RuleEntry(NamedTuple):
    """A rule in the list of rules; `counts` are trials by outcome, those that need attention first.

    `text` is None unless it is a built-in rule.
    """

    name: str
    text: RuleText | None
    counts: Mapping[str, int]


class RuleTrial(NamedTuple):
    """A trial on which a rule fired."""

    trial: TrialRecord
    name: TrialName
    verdict: Verdict
    record: RuleRecord


def rule_entry(name: str, counts: Mapping[str, int]) -> RuleEntry:
    """Return a rule with its counts by outcome."""
    ordered = {str(outcome): counts[outcome] for outcome in VERDICTS if outcome in counts}
    return RuleEntry(name, rule_text(name), ordered)


def rule_trials(index: IndexReader, name: str) -> tuple[list[RuleTrial], int]:
    """Return the trials on which a rule job fired, the last ones first, and how many there are.

    Of a rule job that never fired, one trial is returned, to know its rule.
    """
    fired = TrialFilter(rule=name, rule_outcome=str(Outcome.ISSUES_FOUND))
    total = index.total(fired)
    trials = index.trials(fired, order="-changed", limit=TRIALS_SHOWN)
    trials = trials or index.trials(TrialFilter(rule=name), limit=1)
    by_trial = index.rules_of_trials(trial.id for trial in trials)
    listed = []
    for trial in trials:
        record = next(rule for rule in by_trial[trial.id] if rule.name == name)
        how = verdict(record.verdict, record.severity)
        listed.append(RuleTrial(trial, split_path(trial.path), how, record))
    return listed, total


@cache
def rule_text(rule: str) -> RuleText | None:
    """Return the page of a built-in rule.

    None for any other rule: its code is not imported here, since it may do anything.
    """
    rule_class = every_builtin().get(rule)
    if rule_class is None:
        return None
    _, _, body = page(rule).partition("\n## ")
    return RuleText(
        do_mark_safe(_MARKDOWN.renderInline(rule_summary(rule_class))),
        rule_class.SEVERITY,
        _html(rule_page(rule_class).remedy),
        _html(f"## {body}" if body else ""),
    )


def _html(text: str) -> Markup:
    """Return Markdown of this package as HTML; HTML in it is escaped."""
    return do_mark_safe(_MARKDOWN.render(text))
