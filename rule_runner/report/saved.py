"""Saved results: what rule jobs left in their output folders, read again and put in order."""

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from rule_runner.durable import open_regular
from rule_runner.measurements import MeasurementsRecord
from rule_runner.outputs import MEASUREMENTS, RESULT
from rule_runner.report.lines import Drawing, drawings, reported
from rule_runner.results import RuleResult
from rule_runner.status import Outcome

T = TypeVar("T")

DEPTH: Final = 4  # of folders that are looked into
UNREADABLE: Final = (OSError, ValueError, msgspec.MsgspecError)
# What needs a reader first comes first.
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
class RuleJob:
    """What one rule job left.

    Attributes
    ----------
    left_out
        Number of lines that were not kept, being less bad than those of the drawings.
    problem
        Why there are no drawings, if there should be; "" otherwise.
    """

    folder: Path
    result: RuleResult
    drawings: tuple[Drawing, ...]
    left_out: int
    problem: str


@dataclass(frozen=True, slots=True)
class Run:
    """The rule jobs of one evaluation; those that need a reader first come first.

    Attributes
    ----------
    address
        Where the folder's content came from; "" if it is at home there.
    """

    folder: Path
    trial: str
    jobs: tuple[RuleJob, ...]
    address: str = ""


@dataclass(frozen=True, slots=True)
class Saved:
    """What was found in some folders.

    Attributes
    ----------
    problems
        A sentence on each result that could not be read.
    """

    runs: tuple[Run, ...]
    problems: tuple[str, ...]


def read(folders: Iterable[Path]) -> Saved:
    """Return the results that lie in `folders` or below, in the order of the folders.

    Links are not followed, nor folders whose names begin with a dot.
    """
    runs: dict[tuple[Path, str], dict[Path, RuleJob]] = {}
    problems = []
    for folder in folders:
        for place in _with_results(folder, DEPTH):
            try:
                job = _job(place)
            except UNREADABLE as err:
                problems.append(f"Result {str(place / RESULT)!r} cannot be read: {err}.")
                continue
            runs.setdefault((_of_run(job), job.result.trial), {})[place] = job
    return Saved(
        tuple(
            Run(folder, trial, _ordered(jobs.values())) for (folder, trial), jobs in runs.items()
        ),
        tuple(problems),
    )


def _with_results(folder: Path, depth: int) -> Iterator[Path]:
    if (folder / RESULT).exists():
        yield folder
    if depth:
        try:
            inner = sorted(one for one in folder.iterdir() if not one.name.startswith("."))
        except OSError:  # not there, no folder, or not ours to look into
            return
        for one in inner:
            if one.is_dir() and not one.is_symlink():
                yield from _with_results(one, depth - 1)


def _of_run(job: RuleJob) -> Path:
    """Return the folder of the evaluation: several rule jobs have folders of their names there."""
    several = job.folder.name == job.result.configuration_name
    return job.folder.parent if several else job.folder


def _ordered(jobs: Iterable[RuleJob]) -> tuple[RuleJob, ...]:
    places = {str(outcome): place for place, outcome in enumerate(ORDER)}
    return tuple(sorted(jobs, key=lambda job: places.get(job.result.outcome, 0)))


def _job(folder: Path) -> RuleJob:
    result = _decoded(folder / RESULT, RuleResult)
    try:
        record = _decoded(folder / MEASUREMENTS, MeasurementsRecord)
    except FileNotFoundError:
        record, problem = None, ""
    except UNREADABLE as err:
        record, problem = None, f"Its measurements cannot be read: {err}."
    else:
        problem = ""
    shown: Sequence[Drawing] = drawings(record.quantities, record.series) if record else ()
    return RuleJob(
        folder,
        result,
        tuple(shown or reported(result.evidence)),
        record.left_out if record else 0,
        problem,
    )


def _decoded(path: Path, kind: type[T]) -> T:
    with os.fdopen(open_regular(path, os.O_RDONLY), "rb") as stream:
        return msgspec.json.decode(stream.read(), type=kind)
