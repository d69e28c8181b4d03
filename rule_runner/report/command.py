"""The command that makes a page from results that lie on disk."""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from rule_runner.durable import SCRATCH
from rule_runner.errors import ClientError
from rule_runner.outputs import RESULT
from rule_runner.report.page import NAME, write_page
from rule_runner.report.saved import read
from rule_runner.show import printable


def report(folders: Sequence[Path], output: Path | None, title: str | None) -> int:
    """Make a page on the results in `folders` and below, say where it lies, and return 0.

    Parameters
    ----------
    output
        The file, or a folder for it; by default the folder that is asked for, if it is one only,
        otherwise the working directory.
    title
        What stands at the top; by default the names of the trials.

    Raises
    ------
    ClientError
        If a folder is not there or holds no result.
    OutputError
        If the page cannot be written.
    """
    for folder in folders:
        if not folder.is_dir():
            msg = f"Folder {str(folder)!r} is not there. Give the output folder of an evaluation."
            raise ClientError(msg)
        found = read([folder])
        if not (found.runs or found.problems):
            msg = (
                f"Folder {str(folder)!r} holds no {RESULT}, nor do the folders in it. "
                "Give the output folder of an evaluation."
            )
            raise ClientError(msg)
    saved = read(folders)
    trials = dict.fromkeys(Path(run.trial).name for run in saved.runs)
    place = output or (folders[0] if len(folders) == 1 else Path(NAME))
    path = write_page(saved, place, title or ", ".join(trials) or "Results")
    with suppress(OSError):  # it holds something, which stays
        (path.parent / SCRATCH).rmdir()
    print(f"Report: {printable(path)}")  # noqa: T201 - stdout carries results
    return 0
