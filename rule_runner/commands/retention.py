"""Retention: removes earlier evaluations beside an output folder, and no other files."""

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

import msgspec

from rule_runner.durations import seconds_of
from rule_runner.errors import OutputError, UsageError
from rule_runner.escape import printable
from rule_runner.logs import get_logger
from rule_runner.notify.actions.journal import ACTIONS
from rule_runner.notify.dead_letters import DEAD_LETTERS
from rule_runner.notify.outbox import EVENTS, has_undelivered
from rule_runner.results.acknowledgements import ACKNOWLEDGEMENTS
from rule_runner.results.durable_files import SCRATCH, FolderLock, make_folder, open_regular
from rule_runner.results.output_folder import FINDINGS, MEASUREMENTS, REPORT, RESULT

_log: Final = get_logger(__name__)
_NUMBER: Final = re.compile("[1-9][0-9]{0,8}")
_UNITS: Final = "hdw"
_FILES: Final = (FINDINGS, MEASUREMENTS, EVENTS, ACTIONS, DEAD_LETTERS, REPORT)
# Files that built-in rules write beside their results.
_OF_RULES: Final = ("xgboost_report.html", "xgboost_report.json", "profiler-output")


@dataclass(frozen=True, slots=True)
class Retention:
    """How many evaluations to keep, or for how many seconds after their end; the other is None."""

    runs: int | None = None
    seconds: int | None = None


class _Ended(msgspec.Struct):
    """The fields that a result must have to be removed."""

    fingerprint: str
    ended_at: datetime


def parse_retention(text: str) -> Retention:
    """Parse a number of evaluations, such as ``50``, or a time: ``12h``, ``30d`` or ``8w``.

    >>> parse_retention("50"), parse_retention("2d")
    (Retention(runs=50, seconds=None), Retention(runs=None, seconds=172800))

    Raises
    ------
    UsageError
        If the text is neither.
    """
    if _NUMBER.fullmatch(text):
        return Retention(runs=int(text))
    try:
        return Retention(seconds=seconds_of(text, _UNITS))
    except ValueError as err:
        msg = (
            "Option --retention must be a number of evaluations, such as 50, or a time, such as "
            f"12h, 30d or 8w, got {text!r}."
        )
        raise UsageError(msg) from err


def remove_old_runs(output: Path, retention: Retention, now: float) -> list[Path]:
    """Remove expired evaluations beside `output`; return their folders.

    Evaluations that have not ended, are in use or have undelivered events are kept. Only files that
    rule-runner wrote are removed, and a folder only if it is empty then.

    Parameters
    ----------
    output
        The output folder of the newest evaluation.
    now
        Seconds since the epoch.
    """
    runs = sorted(_runs(output), reverse=True)
    if retention.runs is not None:
        old = runs[retention.runs - 1 :]
    else:
        old = [run for run in runs if now - run[0] > (retention.seconds or 0)]
    return [folder for _, folder in old if _remove(folder)]


def remove_run(folder: Path) -> bool:
    """Remove an evaluation's files if it has ended and has no undelivered events; return success.

    Only files that rule-runner wrote are removed, and a folder only if it is empty then.
    """
    jobs = _rule_jobs(folder)
    if not jobs or any(_ended_at(job) is None for job in jobs):
        return False
    return _remove(folder)


def _runs(output: Path) -> Iterator[tuple[float, Path]]:
    """Yield the end time and the folder of each ended evaluation beside `output`."""
    for folder in _folders(output.parent):
        if folder.name != output.name:
            ended = [_ended_at(job) for job in _rule_jobs(folder)]
            times = [time for time in ended if time is not None]
            if times and len(times) == len(ended):
                yield max(times), folder


def _folders(parent: Path) -> list[Path]:
    with suppress(OSError):
        return sorted(
            path
            for path in parent.iterdir()
            if path.is_dir() and not (path.is_symlink() or path.name.startswith("."))
        )
    return []


def _rule_jobs(folder: Path) -> list[Path]:
    """Return the folders of an evaluation's rule jobs: its own folder or subfolders."""
    return [path for path in (folder, *_folders(folder)) if os.path.lexists(path / RESULT)]


def _ended_at(job: Path) -> float | None:
    """Return when a rule job ended; None if it must be kept."""
    try:
        with os.fdopen(open_regular(job / RESULT, os.O_RDONLY), "rb") as stream:
            ended = msgspec.json.decode(stream.read(), type=_Ended).ended_at.timestamp()
    except (OSError, ValueError, msgspec.MsgspecError):
        return None
    return None if has_undelivered(job) else ended


def _remove(folder: Path) -> bool:
    """Remove an evaluation's files, and its folders if they are empty then; return success."""
    jobs = _rule_jobs(folder)
    try:
        with ExitStack() as locks:
            for job in jobs:
                make_folder(job)
                locks.callback(FolderLock(job, "lock").release)
            for job in jobs:
                _empty(job)
        for path in dict.fromkeys((*jobs, folder)):
            for name in (REPORT, ACKNOWLEDGEMENTS):
                (path / name).unlink(missing_ok=True)
            shutil.rmtree(path / SCRATCH, ignore_errors=True)
            with suppress(OSError):  # it holds files of others
                path.rmdir()
    except (OSError, OutputError) as err:
        _log.warning("run_not_removed", path=str(folder), reason=printable(err))
        return False
    return True


def _empty(job: Path) -> None:
    """Remove the files of a rule job, the result last: it identifies the folder as ours."""
    for name in (*_OF_RULES, *_FILES, RESULT):
        path = job / name
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
