"""Collected results: the saved results of each trial of a plan, or below an output folder."""

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby
from typing import Final, NamedTuple

import msgspec

from rule_core.exceptions import SMDebugError
from rule_core.storage import ObjectNotFoundError, StorageUnavailableError, open_store
from rule_core.storage.base import TrialStore
from rule_runner.batch.plan import PlanLine
from rule_runner.config.defaults import EVERY_RULE, FITTING_RULES
from rule_runner.config.request import EvaluationRequest
from rule_runner.errors import ClientError, OutputError, UsageError
from rule_runner.loading.trials import trial_name
from rule_runner.report.saved_results import ORDER
from rule_runner.results.acknowledged import acknowledged_in
from rule_runner.results.job_names import safe_name
from rule_runner.results.output_folder import REPORT, RESULT
from rule_runner.results.schema import WINDOW, EvaluationResult, RuleResult, TrialSummary
from rule_runner.results.status import Outcome

_PLACES: Final = {str(outcome): place for place, outcome in enumerate(ORDER)}
_UNREADABLE: Final = (SMDebugError, ValueError, msgspec.MsgspecError)


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
    """

    trial: str
    output: str
    rules: list[RuleResult] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    has_report: bool = False

    @property
    def name(self) -> str:
        """The name of the trial, or else of its output."""
        return trial_name(self.trial) if self.trial else self.output.rpartition("/")[2]

    @property
    def outcome(self) -> Outcome:
        """The outcome that needs attention most; an error if a result is missing."""
        if self.problems:
            return Outcome.ERROR
        known = [rule.outcome for rule in self.rules if rule.outcome in _PLACES]
        judged = [outcome for outcome in known if outcome != Outcome.NOT_EVALUATED]
        return Outcome(min(judged or known, key=_PLACES.__getitem__, default=Outcome.ERROR))

    def as_evaluation(self) -> EvaluationResult:
        """Return the results in the form of one evaluation."""
        windows = [rule for rule in self.rules if rule.unit == WINDOW]
        steps = [rule for rule in self.rules if rule.unit != WINDOW]
        trial = _summary(steps or windows, self.trial)
        profiler = _summary(windows, "") if steps and windows else None
        return EvaluationResult(trial=trial, profiler_trial=profiler, rules=self.rules)


def _summary(rules: list[RuleResult], path: str) -> TrialSummary:
    """Return what results say about their trial."""
    path = rules[0].trial if rules else path
    firsts = [rule.coverage.first for rule in rules if rule.coverage.first is not None]
    lasts = [rule.coverage.last for rule in rules if rule.coverage.last is not None]
    return TrialSummary(
        name=trial_name(path),
        path=path,
        ended=bool(rules) and all(rule.trial_ended for rule in rules),
        steps=max((rule.coverage.known for rule in rules), default=0),
        first_step=min(firsts, default=None),
        last_step=max(lasts, default=None),
        workers=[],
    )


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
        collected.rules = _ordered(collected.rules)
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
        yield from _below(place)
    except StorageUnavailableError as err:
        msg = f"Results at {place!r} cannot be read: {err.reason}."
        raise ClientError(msg) from err
    except SMDebugError as err:  # there is no such folder
        msg = f"No result in {place!r}: {str(err).rstrip('.')}. Give an output folder or a plan."
        raise ClientError(msg) from err


def _below(place: str) -> Iterator[CollectedTrial]:
    store = open_store(place)
    place = place.rstrip("/")
    for folder, saved in groupby(_results(store, place), key=lambda result: result.folder):
        yield _collected(store, folder, place, deque(saved))


class _Saved(NamedTuple):
    """A saved result, or why it cannot be read, and the folder of its evaluation."""

    folder: str
    key: str
    result: RuleResult | None
    problem: str


def _results(store: TrialStore, place: str) -> Iterator[_Saved]:
    """Yield the results in a store; those of an evaluation follow each other."""
    for key in store.list_keys(""):
        folder, _, name = key.rpartition("/")
        if name != RESULT or any(part.startswith(".") for part in folder.split("/")):
            continue
        parent, _, own = folder.rpartition("/")
        try:
            result = msgspec.json.decode(store.read(key), type=RuleResult)
        except _UNREADABLE as err:
            text = f"Result '{place}/{key}' cannot be read: {str(err).rstrip('.')}."
            yield _Saved(parent, key, None, text)
            continue
        alone = result.configuration_name != own
        yield _Saved(folder if alone else parent, key, result, _unfinished(result, place, key))


def _unfinished(result: RuleResult, place: str, key: str) -> str:
    """Return that a result is not final, or ""."""
    if result.ended_at is not None:
        return ""
    return f"Result '{place}/{key}' is not final: its evaluation has not ended, or was killed."


def _collected(
    store: TrialStore, folder: str, place: str, saved: Iterable[_Saved]
) -> CollectedTrial:
    """Return one evaluation from its results."""
    collected = CollectedTrial("", f"{place}/{folder}".rstrip("/"))
    for _, _, result, problem in saved:
        if result is not None:
            collected.rules.append(result)
            if not collected.trial or result.unit != WINDOW:
                collected.trial = result.trial
        if problem:
            collected.problems.append(problem)
    try:
        collected.rules = _ordered(acknowledged_in(collected.output, collected.rules))
    except OutputError as err:
        collected.problems.append(str(err))
    collected.has_report = _holds(store, f"{folder}/{REPORT}".lstrip("/"))
    return collected


def _ordered(rules: Iterable[RuleResult]) -> list[RuleResult]:
    return sorted(rules, key=lambda rule: _PLACES.get(rule.outcome, 0))


def _holds(store: TrialStore, key: str) -> bool:
    """Return whether a store holds a file."""
    try:
        store.status(key)
    except SMDebugError:
        return False
    return True
