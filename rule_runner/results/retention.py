"""Retention: removes earlier evaluations beside an output folder, and no other files."""

import re
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final, NamedTuple

from rule_runner.durations import seconds_of
from rule_runner.errors import OutputError, UsageError, restated
from rule_runner.escape import printable
from rule_runner.logs import get_logger
from rule_runner.results.cursors import has_undelivered
from rule_runner.results.durable_files import SCRATCH, FolderLock, remove_files
from rule_runner.results.evaluations import saved_evaluations
from rule_runner.results.file_names import ACKNOWLEDGEMENTS
from rule_runner.results.output_folder import evaluation_files

_log: Final = get_logger(__name__)
_NUMBER: Final = re.compile("[1-9][0-9]{0,8}")
_UNITS: Final = "hdw"
# Files that built-in rules write beside their results.
_OF_RULES: Final = ("xgboost_report.html", "xgboost_report.json", "profiler-output")


@dataclass(frozen=True, slots=True)
class Retention:
    """How many evaluations to keep, or for how many seconds after their end; the other is None."""

    runs: int | None = None
    seconds: int | None = None


class _Ended(NamedTuple):
    """An ended evaluation whose events are delivered.

    Attributes
    ----------
    time
        When it ended, in seconds since the epoch.
    folder
        Its output folder.
    inner
        Folders in it that hold results or files of rules.
    """

    time: float
    folder: Path
    inner: frozenset[Path]


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
    problem = (
        "Option --retention must be a number of evaluations, such as 50, or a time, such as "
        f"12h, 30d or 8w, got {text!r}."
    )
    with restated(UsageError, ValueError, sentence=problem):
        return Retention(seconds=seconds_of(text, _UNITS))


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
    ended = (_ended(path) for path in _folders(output.parent) if path.name != output.name)
    runs = sorted((run for run in ended if run is not None), reverse=True, key=lambda run: run[:2])
    if retention.runs is not None:
        old = runs[retention.runs - 1 :]
    else:
        old = [run for run in runs if now - run.time > (retention.seconds or 0)]
    return [run.folder for run in old if _remove(run)]


def remove_run(folder: Path) -> bool:
    """Remove an evaluation's files if it has ended and has no undelivered events; return success.

    Only files that rule-runner wrote are removed, and a folder only if it is empty then.
    """
    run = _ended(folder)
    return run is not None and _remove(run)


def _folders(parent: Path) -> Iterator[Path]:
    with suppress(OSError):
        for path in parent.iterdir():
            if _is_folder(path) and not path.name.startswith("."):
                yield path


def _ended(folder: Path) -> _Ended | None:
    """Return the evaluation in a folder; None if it must be kept."""
    saved = [run for run in saved_evaluations(str(folder), depth=1) if run.output == str(folder)]
    if any(run.problems or run.unfinished for run in saved):
        return None
    ends = [rule.ended_at for run in saved for rule in run.rules if rule.ended_at is not None]
    holders = {Path(path) for run in saved for path in run.folders.values()}
    if not ends or any(map(has_undelivered, holders)):
        return None
    inner = {folder / rule.configuration_name for run in saved for rule in run.rules}
    time = datetime.fromisoformat(max(ends)).timestamp()
    return _Ended(time, folder, frozenset(path for path in inner if _is_folder(path)))


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def _remove(run: _Ended) -> bool:
    """Remove an evaluation's files, and its folders if they are empty then; return success."""
    folders = [*run.inner, run.folder]
    try:
        with ExitStack() as locks:
            for folder in folders:
                locks.enter_context(FolderLock(folder))
            for folder in folders:
                for path in (folder / name for name in _OF_RULES):
                    if _is_folder(path):
                        shutil.rmtree(path)
                    else:
                        path.unlink(missing_ok=True)
                # The result last: it identifies the folder as ours.
                remove_files([folder / ACKNOWLEDGEMENTS, *reversed(evaluation_files(folder))])
        for folder in folders:
            shutil.rmtree(folder / SCRATCH, ignore_errors=True)
            with suppress(OSError):  # it holds files of others
                folder.rmdir()
    except (OSError, OutputError) as err:
        _log.warning("run_not_removed", path=str(run.folder), reason=printable(err))
        return False
    return True
