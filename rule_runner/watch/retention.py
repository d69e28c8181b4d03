"""Retention: removes outputs that have expired, and nothing else."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rule_runner.errors import OutputError
from rule_runner.index.database import WatchDatabase
from rule_runner.index.outputs import output_of, read_output
from rule_runner.index.records import TrialRecord
from rule_runner.logs import get_logger

_log: Final = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Expiry:
    """Which outputs to remove: all but the newest, or those that ended too long ago.

    Attributes
    ----------
    runs, seconds
        The number of outputs to keep, or how long to keep each; the other is None.
    remove
        Removes the files of an evaluation from its folder; returns whether it did.
    """

    runs: int | None
    seconds: int | None
    remove: Callable[[Path], bool]


def expire(
    database: WatchDatabase, expiry: Expiry, template: str, now: float
) -> Iterator[TrialRecord]:
    """Remove the outputs that have expired; yield their trials.

    Only a folder that is the output of the trial whose results it holds is touched.
    """
    if expiry.runs is not None:
        trials = database.beyond_newest(expiry.runs)
    else:
        trials = database.expired(now - (expiry.seconds or 0))
    for trial in trials:
        folder = Path(trial.output)
        if not _is_own(trial, template) or not expiry.remove(folder):
            continue
        database.update(trial.id, removed=True)
        _log.info("output_removed", trial=trial.path, output=trial.output)
        yield trial


def _is_own(trial: TrialRecord, template: str) -> bool:
    """Return whether an output folder is where this trial's results belong, and holds them."""
    folder = Path(trial.output)
    if trial.output != output_of(trial.path, template) or folder.is_symlink():
        return False
    try:
        return read_output(trial.output).trial == trial.path
    except OutputError:
        return False
