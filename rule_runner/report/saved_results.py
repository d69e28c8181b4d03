"""Saved results: the output folders of rule jobs, read and sorted."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from rule_core.model.segments import global_step
from rule_runner.errors import OutputError
from rule_runner.report.html.series import Drawing, drawings, reported
from rule_runner.results.acknowledged import acknowledged_in
from rule_runner.results.durable_files import open_regular
from rule_runner.results.measurements import MeasurementsRecord
from rule_runner.results.output_folder import MEASUREMENTS, RESULT
from rule_runner.results.schema import RuleResult
from rule_runner.results.status import Outcome

T = TypeVar("T")

DEPTH: Final = 4  # of searched folders
UNREADABLE: Final = (OSError, ValueError, msgspec.MsgspecError)
# Outcomes that need attention come first.
ORDER: Final = (
    Outcome.ISSUES_FOUND,
    Outcome.ERROR,
    Outcome.NOT_EVALUATED,
    Outcome.STOPPED,
    Outcome.STOPPING,
    Outcome.IN_PROGRESS,
    Outcome.NO_ISSUES_FOUND,
)


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

    folder: Path
    result: RuleResult
    drawings: tuple[Drawing, ...]
    left_out: int
    problem: str


@dataclass(frozen=True, slots=True)
class Run:
    """The rule jobs of one evaluation; those that need attention come first.

    Attributes
    ----------
    address
        The address from which the folder was fetched; "" for a local folder.
    page
        Link to a separate page with the details of the run; "" if there is none.
    left_out
        The reason why each of the other rules was not run, by name.
    """

    folder: Path
    trial: str
    jobs: tuple[SavedRuleJob, ...]
    address: str = ""
    page: str = ""
    left_out: Mapping[str, str] = field(default_factory=dict)


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


def read(folders: Iterable[Path]) -> Saved:
    """Return the results in `folders` and below, in the order of the folders.

    Acknowledgements in the folder of a run are applied. Links and folders with a leading dot are
    skipped.
    """
    runs: dict[tuple[Path, str], dict[Path, SavedRuleJob]] = {}
    problems: list[str] = []
    for folder in folders:
        for place in _with_results(folder, DEPTH):
            try:
                job = _job(place)
            except UNREADABLE as err:
                problems.append(f"Result {str(place / RESULT)!r} cannot be read: {err}.")
                continue
            runs.setdefault((_of_run(job), job.result.trial), {})[place] = job
    found = tuple(
        Run(folder, trial, ordered(_acknowledged(folder, [*jobs.values()], problems)))
        for (folder, trial), jobs in runs.items()
    )
    return Saved(found, tuple(problems))


def _acknowledged(
    folder: Path, jobs: Sequence[SavedRuleJob], problems: list[str]
) -> Sequence[SavedRuleJob]:
    """Return rule jobs with the acknowledgements in the folder of their run."""
    try:
        results = acknowledged_in(folder, [job.result for job in jobs])
    except OutputError as err:
        problems.append(str(err))
        return jobs
    return [replace(job, result=result) for job, result in zip(jobs, results, strict=True)]


def _with_results(folder: Path, depth: int) -> Iterator[Path]:
    if (folder / RESULT).exists():
        yield folder
    if depth:
        try:
            inner = sorted(path for path in folder.iterdir() if not path.name.startswith("."))
        except OSError:  # missing, not a folder, or not readable
            return
        for path in inner:
            if path.is_dir() and not path.is_symlink():
                yield from _with_results(path, depth - 1)


def _of_run(job: SavedRuleJob) -> Path:
    """Return the folder of the evaluation, the parent of the folders of several rule jobs."""
    several = job.folder.name == job.result.configuration_name
    return job.folder.parent if several else job.folder


def ordered(jobs: Iterable[SavedRuleJob]) -> tuple[SavedRuleJob, ...]:
    """Return rule jobs in the order of outcomes, those that need attention first."""
    places = {str(outcome): place for place, outcome in enumerate(ORDER)}
    return tuple(sorted(jobs, key=lambda job: places.get(job.result.outcome, 0)))


def _job(folder: Path) -> SavedRuleJob:
    result = _decoded(folder / RESULT, RuleResult)
    record, problem = None, ""
    try:
        with suppress(FileNotFoundError):
            record = _decoded(folder / MEASUREMENTS, MeasurementsRecord)
    except UNREADABLE as err:
        problem = f"Its measurements cannot be read: {err}."
    measured: Sequence[Drawing] = ()
    segments = [global_step(part.segment, part.first) for part in result.coverage.segments or ()]
    if record:
        measured = drawings(record.quantities, record.series, segments)
    return SavedRuleJob(
        folder,
        result,
        tuple(measured or reported(result.findings, segments)),
        record.left_out if record else 0,
        problem,
    )


def _decoded(path: Path, kind: type[T]) -> T:
    with os.fdopen(open_regular(path, os.O_RDONLY), "rb") as stream:
        return msgspec.json.decode(stream.read(), type=kind)
