"""run_state: what the results of all rules mean for a run, in a word and in a line."""

import enum
from collections.abc import Sequence

from rule_core.model.segments import step_text
from rule_core.severity import Severity
from rule_runner.errors import counted
from rule_runner.escape import printable
from rule_runner.report.incidents import incidents
from rule_runner.results.schema import RuleResult
from rule_runner.results.status import Outcome


class RunState(enum.StrEnum):
    """The state of a run, by its most serious issue that still holds."""

    BROKEN = "broken"
    SUSPICIOUS = "suspicious"
    LOOKS_HEALTHY = "looks healthy"
    CANNOT_TELL = "cannot tell"  # nothing was judged, or something failed


def run_state(rules: Sequence[RuleResult], problem: str = "") -> RunState:
    """Return the state of a run.

    Parameters
    ----------
    problem
        Why its results are not complete; "" if they are.
    """
    issues = incidents(rules)
    if issues:
        is_error = issues[0].severity is Severity.ERROR
        return RunState.BROKEN if is_error else RunState.SUSPICIOUS
    outcomes = {rule.outcome for rule in rules}
    if (
        problem
        or outcomes <= {Outcome.NOT_EVALUATED}
        or outcomes & {Outcome.ERROR, Outcome.STOPPED}
    ):
        return RunState.CANNOT_TELL
    return RunState.LOOKS_HEALTHY


def headline(rules: Sequence[RuleResult], left_out: int = 0, problem: str = "") -> str:
    """Return the state of a run, since when, and how many rules could judge it.

    Parameters
    ----------
    left_out
        The number of further rules, which were not run.
    problem
        As in `run_state`.
    """
    judged = [rule for rule in rules if rule.outcome != Outcome.NOT_EVALUATED]
    state = run_state(rules, problem)
    if not judged:
        return f"{state}, nothing was judged"
    judging = f"judged by {len(judged)} of {counted(len(rules) + left_out, 'rule')}"
    if state is RunState.LOOKS_HEALTHY:
        names = [
            printable(rule.configuration_name)
            for rule in judged
            if rule.outcome == Outcome.NO_ISSUES_FOUND
        ]
        return ": ".join(filter(None, (f"{state}, {judging}", ", ".join(names))))
    issues = incidents(judged)
    step = issues[0].root.global_step if issues else None
    since = "" if step is None else f" since {issues[0].root.unit} {step_text(step)}"
    return f"{state}{since}, {judging}"
