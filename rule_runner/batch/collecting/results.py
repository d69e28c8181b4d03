"""Collected results: the saved results of each trial of a plan, or below an output folder."""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from rule_core.exceptions import SMDebugError
from rule_core.sources.address import address_of
from rule_core.storage.base import ObjectNotFoundError, StorageUnavailableError
from rule_core.storage.uri import open_store
from rule_runner.batch.plan import PlanLine
from rule_runner.config.defaults import EVERY_RULE, FITTING_RULES
from rule_runner.config.request import EvaluationRequest
from rule_runner.errors import ClientError, UsageError, unreadable
from rule_runner.results.evaluations import RANKS, attention, saved_evaluations
from rule_runner.results.file_names import REPORT, safe_name
from rule_runner.results.schema import (
    WINDOW,
    EvaluationResult,
    RuleResult,
    TrialSummary,
    summary_of_trial,
)
from rule_runner.results.status import FindingState, Outcome

_RANKS: Final = RANKS | {str(FindingState.RECOVERED): RANKS[Outcome.NO_ISSUES_FOUND] - 0.5}


@dataclass(slots=True)
class CollectedTrial:
    """The saved results of one trial.

    Attributes
    ----------
    trial
        Its path; "" if nothing says it.
    output
        The output folder of its evaluation, or the address of that.
    rules
        The results of its rules, those that need attention first, as its report has them.
    problems
        Sentences on results that are missing, cut off or not final.
    has_report
        Whether the output folder holds a report.
    label
        A name that keeps it apart from other trials; "" if its own does.
    """

    trial: str
    output: str
    rules: list[RuleResult] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    has_report: bool = False
    label: str = ""

    @property
    def name(self) -> str:
        """The label or the name of the trial, or else of its output."""
        if self.label:
            return self.label
        return address_of(self.trial).name if self.trial else self.output.rpartition("/")[2]

    @property
    def outcome(self) -> str:
        """The outcome that needs attention most; an error if a result is missing.

        ``recovered`` counts as one: that of an issue that does not hold any more.
        """
        if self.problems:
            return Outcome.ERROR
        outcomes = [rule.current_outcome for rule in self.rules if rule.current_outcome in _RANKS]
        judged = [outcome for outcome in outcomes if outcome != Outcome.NOT_EVALUATED]
        return min(judged or outcomes, key=_RANKS.__getitem__, default=Outcome.ERROR)

    def as_evaluation(self) -> EvaluationResult:
        """Return the results in the form of one evaluation."""
        windows = [rule for rule in self.rules if rule.unit == WINDOW]
        steps = [rule for rule in self.rules if rule.unit != WINDOW]
        trial = _summary(steps or windows, self)
        profiler = _summary(windows, self) if steps and windows else None
        return EvaluationResult(trial=trial, profiler_trial=profiler, rules=self.rules)


def _summary(rules: list[RuleResult], collected: CollectedTrial) -> TrialSummary:
    """Return what results say about their trial."""
    path = rules[0].trial if rules else collected.trial
    return summary_of_trial(collected.label or address_of(path).name, path, rules)


def of_plan(lines: Iterable[PlanLine]) -> Iterator[CollectedTrial]:
    """Yield the trial of each line of a plan, with its results if there are any."""
    for line in lines:
        try:
            request = line.request()
        except UsageError as err:
            yield CollectedTrial("", f"line {line.number}", problems=[str(err)])
            continue
        collected = CollectedTrial(
            request.trial or request.profiler_trial or "", request.output or ""
        )
        try:
            for part in _below(collected.output):
                collected.rules += part.rules
                collected.problems += part.problems
                collected.has_report |= part.has_report
        except ObjectNotFoundError:
            pass  # there is no such folder
        except SMDebugError as err:
            collected.problems.append(str(err))
        if not (collected.rules or collected.problems):
            collected.problems.append(
                f"No result in {collected.output!r}: the trial was not judged. Run the plan again."
            )
        elif not collected.problems:
            collected.problems += _absent(request, collected)
        collected.rules = sorted(collected.rules, key=attention)
        yield collected


def _absent(request: EvaluationRequest, collected: CollectedTrial) -> Iterator[str]:
    """Yield a sentence on each rule that a request names and that has no result."""
    names = {rule.id or rule.name or "" for rule in request.rules}
    expected = {safe_name(name) for name in names.difference({EVERY_RULE, FITTING_RULES, ""})}
    for name in sorted(expected - {rule.configuration_name for rule in collected.rules}):
        yield f"No result of rule {name!r} in {collected.output!r}. Run the plan again."


def below(place: str) -> Iterator[CollectedTrial]:
    """Yield each evaluation whose results are in a folder or below it, in order of the folders.

    Parameters
    ----------
    place
        A folder or an ``s3://`` address.

    Raises
    ------
    ClientError
        If it cannot be read.
    """
    try:
        with unreadable(f"Results at {place!r}", ClientError, StorageUnavailableError):
            yield from _below(place)
    except SMDebugError as err:  # there is no such folder
        raise ClientError(
            f"No result in {place!r}: {str(err).rstrip('.')}. Give an output folder or a plan."
        ) from err


def _below(place: str) -> Iterator[CollectedTrial]:
    found = False
    for saved in saved_evaluations(place):
        found = True
        steps = [rule.trial for rule in saved.rules if rule.unit != WINDOW]
        windows = [rule.trial for rule in saved.rules if rule.unit == WINDOW]
        yield CollectedTrial(
            trial=next(iter(steps + windows), ""),
            output=saved.output,
            rules=sorted(saved.rules, key=attention),
            problems=[
                *saved.problems,
                *(
                    f"Result {path!r} is not final: its evaluation has not ended, or was killed."
                    for path in saved.unfinished
                ),
                *filter(None, [saved.acknowledgement_problem]),
            ],
            has_report=_has_report(saved.output),
        )
    if not found:
        next(open_store(place).list_keys(""), None)  # fails if there is no such folder


def _has_report(output: str) -> bool:
    with suppress(SMDebugError):
        open_store(output).status(REPORT)
        return True
    return False
