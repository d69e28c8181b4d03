"""Saved evaluations: reads the results in folders and in S3, whichever version wrote them."""

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Final

import msgspec

from rule_core.exceptions import SMDebugError
from rule_core.storage.base import ObjectNotFoundError
from rule_core.storage.uri import is_s3, open_store
from rule_runner.errors import OutputError
from rule_runner.escape import printable
from rule_runner.results.durable_files import read_regular
from rule_runner.results.file_names import MEASUREMENTS, OLD_RESULT, RESULTS
from rule_runner.results.issues.acknowledged import acknowledged_in
from rule_runner.results.measurements import MeasurementsFile, decode_measurements
from rule_runner.results.schema import EvaluationResult, RuleResult, TrialSummary
from rule_runner.results.status import Outcome

DEPTH: Final = 4  # of searched folders
UNREADABLE: Final = (SMDebugError, OSError, ValueError, msgspec.MsgspecError)
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
RANKS: Final = {str(outcome): rank for rank, outcome in enumerate(ORDER)}


@dataclass(slots=True)
class SavedEvaluation:
    """The results of one evaluation, with the acknowledgements that hold now.

    An evaluation of ``docker run --isolate`` has a folder for each rule, with results of its own.

    Attributes
    ----------
    output
        The folder of the evaluation, or its address.
    rules
        The results of its rule jobs.
    folders
        The folder or address of the files of each rule job, by its name.
    left_out
        The reason why each of the other rules was not run, by name.
    trials
        What is known of the trials that were judged, by their paths.
    unfinished
        The files with results of rule jobs that have not ended.
    problems
        A message for each unreadable result.
    acknowledgement_problem
        Why the acknowledgements cannot be read; "" if they can.
    is_old
        Whether version 0.1.0 wrote it, so that it cannot be continued.
    """

    output: str
    rules: list[RuleResult] = field(default_factory=list)
    folders: dict[str, str] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    trials: dict[str, TrialSummary] = field(default_factory=dict)
    unfinished: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    acknowledgement_problem: str = ""
    is_old: bool = False


def saved_evaluations(place: str, depth: int = DEPTH) -> Iterator[SavedEvaluation]:
    """Yield the evaluations in a folder or at an address, and below.

    Links and folders with a leading dot are skipped.

    Parameters
    ----------
    depth
        How many folders below `place` to search.

    Raises
    ------
    SMDebugError
        If storage does not answer.
    """
    files = (_read(place, key) for key in _result_keys(place, depth))
    for output, group in groupby(files, key=attrgetter("output")):
        evaluation = SavedEvaluation(output)
        for file in group:
            evaluation.rules += file.rules
            evaluation.folders |= file.folders
            evaluation.left_out |= file.left_out
            evaluation.trials |= file.trials
            evaluation.unfinished += file.unfinished
            evaluation.problems += file.problems
            evaluation.is_old |= file.is_old
        try:
            evaluation.rules = acknowledged_in(output, evaluation.rules)
        except OutputError as err:
            evaluation.acknowledgement_problem = str(err)
        yield evaluation


def attention(rule: RuleResult) -> int:
    """Return a sort key for the order of outcomes: those that need attention come first."""
    return RANKS.get(rule.outcome, 0)


def read_measurements(folder: str) -> MeasurementsFile:
    """Return the measurements in the folder of a rule job or at its address; none if it has none.

    Raises
    ------
    Exception
        One of `UNREADABLE`.
    """
    try:
        return decode_measurements(_content(folder, MEASUREMENTS))
    except (FileNotFoundError, ObjectNotFoundError):
        return MeasurementsFile(rules={})


def _result_keys(place: str, depth: int) -> Iterator[str]:
    """Yield the keys of the files with results, those of an evaluation one after the other."""
    if not is_s3(place):
        yield from _local_keys(place, "", depth)
        return
    for key in open_store(place).list_keys(""):
        *folders, name = key.split("/")
        is_searched = len(folders) <= depth and all(f and not f.startswith(".") for f in folders)
        if name in {RESULTS, OLD_RESULT} and is_searched:
            yield key


def _local_keys(place: str, folder: str, depth: int) -> Iterator[str]:
    try:
        with os.scandir(Path(place, folder)) as listed:
            entries = sorted(listed, key=attrgetter("name"))
    except OSError:  # missing, not a folder, or not readable
        return
    names = {entry.name for entry in entries}
    yield from (folder + name for name in (RESULTS, OLD_RESULT) if name in names)
    for entry in entries if depth else ():
        if not entry.name.startswith(".") and entry.is_dir(follow_symlinks=False):
            yield from _local_keys(place, f"{folder}{entry.name}/", depth - 1)


def _content(place: str, key: str) -> bytes | memoryview:
    if is_s3(place):
        return open_store(place).read(key)
    return read_regular(Path(place, key))


def _read(place: str, key: str) -> SavedEvaluation:
    """Return the evaluation, or the part of it, that a file with results holds."""
    path = _joined(place, key)
    key_folder, _, name = key.rpartition("/")
    folder, is_old = _joined(place, key_folder), name == OLD_RESULT
    try:
        content = _content(place, key)
        if is_old:
            document = None
            rules = [msgspec.json.decode(content, type=RuleResult)]
        else:
            document = msgspec.json.decode(content, type=EvaluationResult)
            rules = document.rules
    except UNREADABLE as err:
        reason = printable(getattr(err, "reason", err)).rstrip(".")
        output = _parent(folder) if is_old and key_folder else folder
        problem = f"Result {path!r} cannot be read: {reason}."
        return SavedEvaluation(output, problems=[problem], is_old=is_old)
    names = {rule.configuration_name for rule in rules}
    return SavedEvaluation(
        _parent(folder) if names == {_name(folder)} else folder,
        rules,
        dict.fromkeys(names, folder),
        {} if document is None else document.left_out,
        {} if document is None else {document.trial.path: document.trial},
        [path] if any(rule.ended_at is None for rule in rules) else [],
        is_old=is_old,
    )


def _joined(place: str, key: str) -> str:
    if is_s3(place):
        return f"{place.strip().rstrip('/')}/{key}".rstrip("/")
    return str(Path(place, key))


def _parent(folder: str) -> str:
    return folder.rpartition("/")[0] if is_s3(folder) else str(Path(folder).parent)


def _name(folder: str) -> str:
    return folder.rpartition("/")[2] if is_s3(folder) else Path(folder).name
