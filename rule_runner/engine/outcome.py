"""EvaluationOutcome: the result of an evaluation, its messages and its exit code."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rule_core.severity import Severity
from rule_runner.engine.stop_requests import StopReason
from rule_runner.errors import EXIT_CLIENT, EXIT_INTERNAL, EXIT_ISSUES, EXIT_OUTPUT
from rule_runner.notify.delivery import Undelivered
from rule_runner.results.schema import EvaluationResult, RuleResult
from rule_runner.results.status import INTERNAL_ERROR, RuleStatus


@dataclass(frozen=True, slots=True)
class EvaluationOutcome:
    """The result of an evaluation and how it ended.

    Attributes
    ----------
    stop
        Why it stopped early or is paused, if it did or is.
    output_error
        Why the output folder does not hold the whole result; "" if it does.
    report
        The HTML report, once it is written.
    undelivered_events
        The events that sinks did not accept.
    earlier
        When the evaluation ended, if an earlier process completed it; "" otherwise.
    """

    result: EvaluationResult
    stop: StopReason | None = None
    output_error: str = ""
    report: Path | None = None
    undelivered_events: tuple[Undelivered, ...] = ()
    earlier: str = ""

    def again(self, place: str) -> str:
        """Return the message that an earlier process completed the evaluation in `place`."""
        return (
            f"Output folder {place!r} holds this evaluation, which ended at {self.earlier}: "
            "nothing was judged again. Use --overwrite to evaluate it again."
        )

    def sentences(self, folder: str, place: str) -> Iterator[str]:
        """Yield the messages that go with the results.

        Parameters
        ----------
        folder
            The local output folder.
        place
            Its address for users: in S3 if it was uploaded.
        """
        if self.earlier:
            yield self.again(place)
        if self.output_error:
            yield self.output_error
        for undelivered in self.undelivered_events:  # `events replay` reads the local folder
            yield undelivered.sentence(folder)


def is_conclusive(result: RuleResult, *, goes_on: bool) -> bool:
    """Return whether evaluating the same rule job again could not change its verdict.

    An evaluation resumes if it was stopped or its trial had not ended, since more steps may
    follow. The first issue is final unless the rule `goes_on` after it.
    """
    if result.status == RuleStatus.ISSUES_FOUND and not goes_on:
        return True
    return result.trial_ended and result.status != RuleStatus.STOPPED


def exit_code(
    evaluated: EvaluationOutcome, *, fail_on: Severity | None, lenient: bool = False
) -> int:
    """Return the exit code of an evaluation.

    Parameters
    ----------
    fail_on
        Return 10 if a rule found an issue that is at least so serious; None: for no issue. Rules
        in mode ``observe`` do not count.
    lenient
        Whether to ignore rules that judged no step; too little coverage still counts.
    """
    rules = evaluated.result.rules
    statuses = {rule.status for rule in rules}
    if any(rule.status_details == INTERNAL_ERROR for rule in rules):
        return EXIT_INTERNAL
    if evaluated.output_error:
        return EXIT_OUTPUT
    if evaluated.stop and statuses & {RuleStatus.STOPPED, RuleStatus.IN_PROGRESS}:
        return evaluated.stop.exit_code
    failed = [rule for rule in rules if rule.status == RuleStatus.ERROR]
    if any(
        rule.outcome != "NotEvaluated" or rule.coverage.judged or not lenient for rule in failed
    ):
        return EXIT_CLIENT
    if fail_on is None:
        return 0
    issues = any(rule.has_issues(fail_on) and rule.mode == "enforce" for rule in rules)
    return EXIT_ISSUES if issues else 0
