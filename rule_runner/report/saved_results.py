"""Saved results: the output folders of rule jobs, read and sorted."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rule_core.exceptions import SMDebugError
from rule_core.model.segments import global_step
from rule_runner.errors import ClientError, unreadable
from rule_runner.report.html.series import Drawing, drawings, reported
from rule_runner.results import evaluations
from rule_runner.results.issues.incidents import in_causal_order
from rule_runner.results.measurements import MeasurementsFile
from rule_runner.results.schema import RuleResult, TrialSummary


@dataclass(frozen=True, slots=True)
class SavedRuleJob:
    """The saved results of one rule job.

    Attributes
    ----------
    left_out
        Number of lines that were not saved because the drawn ones are worse.
    problem
        Why expected drawings are missing; "" otherwise.
    """

    result: RuleResult
    drawings: tuple[Drawing, ...] = ()
    left_out: int = 0
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Run:
    """The rule jobs of one evaluation over one trial; those that need attention come first.

    Attributes
    ----------
    output
        The output folder, or its address.
    page
        Link to a separate page with the details of the run; "" if there is none.
    left_out
        The reason why each of the other rules was not run, by name.
    summary
        What is known of the trial; None for one that version 0.1.0 judged, and in an overview.
    """

    output: str
    trial: str
    jobs: tuple[SavedRuleJob, ...]
    page: str = ""
    left_out: Mapping[str, str] = field(default_factory=dict)
    summary: TrialSummary | None = None


@dataclass(frozen=True, slots=True)
class Saved:
    """The results in some folders.

    Attributes
    ----------
    problems
        A message for each unreadable result.
    """

    runs: tuple[Run, ...]
    problems: tuple[str, ...]


def read(places: Iterable[str | Path]) -> Saved:
    """Return the results in folders or at addresses and below, in the order of the places.

    Raises
    ------
    ClientError
        If an address cannot be read.
    """
    jobs: dict[tuple[str, str], dict[tuple[str, str], SavedRuleJob]] = {}  # by run, by folder
    facts: dict[str, evaluations.SavedEvaluation] = {}
    problems: dict[str, None] = {}
    for evaluation in _evaluations(places):
        texts = (*evaluation.problems, evaluation.acknowledgement_problem)
        problems |= dict.fromkeys(filter(None, texts))
        facts[evaluation.output] = evaluation
        measured = {folder: _measured(folder) for folder in {*evaluation.folders.values()}}
        for rule in evaluation.rules:
            # Tensors and profiler data are separate trials.
            run = jobs.setdefault((evaluation.output, rule.trial), {})
            folder = evaluation.folders[rule.configuration_name]
            run[folder, rule.configuration_name] = saved_rule_job(rule, *measured[folder])
    runs = (
        Run(
            output,
            trial,
            ordered(run.values()),
            left_out=facts[output].left_out,
            summary=facts[output].trials.get(trial),
        )
        for (output, trial), run in jobs.items()
    )
    return Saved(tuple(runs), tuple(problems))


def ordered(jobs: Iterable[SavedRuleJob]) -> tuple[SavedRuleJob, ...]:
    """Return rule jobs in the order of outcomes, issues first, each after its root cause."""
    by_result = {id(job.result): job for job in jobs}
    rules = [rule for rule, _ in in_causal_order([job.result for job in by_result.values()])]
    return tuple(by_result[id(rule)] for rule in sorted(rules, key=evaluations.attention))


def _evaluations(places: Iterable[str | Path]) -> Iterator[evaluations.SavedEvaluation]:
    for place in map(str, places):
        with unreadable(f"Results at {place!r}", ClientError, SMDebugError):
            yield from evaluations.saved_evaluations(place)


def _measured(folder: str) -> tuple[MeasurementsFile | None, str]:
    """Return the measurements in a folder; if they cannot be read, why."""
    try:
        return evaluations.read_measurements(folder), ""
    except evaluations.UNREADABLE as err:
        return None, f"Its measurements cannot be read: {err}."


def saved_rule_job(
    result: RuleResult, measurements: MeasurementsFile | None, problem: str = ""
) -> SavedRuleJob:
    """Return the results of a rule job with the drawings of what it measured, or reported."""
    record = measurements.of(result.configuration_name) if measurements else None
    segments = [global_step(part.segment, part.first) for part in result.coverage.segments or ()]
    measured: Sequence[Drawing] = ()
    if record:
        measured = drawings(record.quantities, record.series, segments)
    return SavedRuleJob(
        result,
        tuple(measured or reported(result.findings, segments)),
        record.left_out if record else 0,
        problem,
    )
