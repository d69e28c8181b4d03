"""Evaluated: what an evaluation came to, and the exit code that this is."""

from dataclasses import dataclass
from pathlib import Path

from rule_runner.delivery import Undelivered
from rule_runner.errors import EXIT_CLIENT, EXIT_INTERNAL, EXIT_ISSUES, EXIT_OUTPUT
from rule_runner.results import EvaluationResult
from rule_runner.status import INTERNAL_ERROR, RuleStatus
from rule_runner.stopping import StopReason


@dataclass(frozen=True, slots=True)
class Evaluated:
    """What an evaluation came to.

    Attributes
    ----------
    stop
        Why it stopped early, if it did.
    unwritten
        Why the output folder does not hold all of the result, if it does not.
    report
        The page for people, once it is written.
    undelivered
        What sinks did not take.
    """

    result: EvaluationResult
    stop: StopReason | None = None
    unwritten: str = ""
    report: Path | None = None
    undelivered: tuple[Undelivered, ...] = ()


def exit_code(evaluated: Evaluated, *, fail_on_issues: bool, lenient: bool = False) -> int:
    """Return the exit code of an evaluation.

    Parameters
    ----------
    fail_on_issues
        Whether a condition met is 10; one of a rule in mode ``observe`` never is.
    lenient
        Whether a rule that could judge nothing does not count.
    """
    rules = evaluated.result.rules
    statuses = {rule.status for rule in rules}
    if any(rule.status_details == INTERNAL_ERROR for rule in rules):
        return EXIT_INTERNAL
    if evaluated.unwritten:
        return EXIT_OUTPUT
    if evaluated.stop and RuleStatus.STOPPED in statuses:
        return evaluated.stop.exit_code
    failed = [rule for rule in rules if rule.status == RuleStatus.ERROR]
    if any(rule.outcome != "NotEvaluated" or not lenient for rule in failed):
        return EXIT_CLIENT
    issues = any(
        rule.status == RuleStatus.ISSUES_FOUND and rule.mode == "enforce" for rule in rules
    )
    return EXIT_ISSUES if fail_on_issues and issues else 0
