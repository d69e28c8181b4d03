"""The pages of rules: how many trials have which verdict, and which trials they are."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from rule_runner.index.reader import IndexReader
from rule_runner.index.records import RuleRecord, TrialFilter, TrialRecord
from rule_runner.results.evaluations import ORDER
from rule_runner.results.status import Outcome
from rule_runner.service.pages.rule_text import RuleText, rule_text
from rule_runner.service.pages.words import TrialName, Verdict, split_path, verdict

TRIALS_SHOWN: Final = 100


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
    rule: str
    verdict: Verdict
    record: RuleRecord


def rule_entry(name: str, counts: Mapping[str, int]) -> RuleEntry:
    """Return a rule with its counts by outcome."""
    ordered = {str(outcome): counts[outcome] for outcome in ORDER if outcome in counts}
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
    return [_trial(trial, by_trial[trial.id], name) for trial in trials], total


def _trial(trial: TrialRecord, rules: list[RuleRecord], name: str) -> RuleTrial:
    record = next(rule for rule in rules if rule.name == name)
    how = verdict(record.outcome, record.severity)
    return RuleTrial(trial, split_path(trial.path), record.rule, how, record)
