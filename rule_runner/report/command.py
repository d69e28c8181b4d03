"""The command that makes a page from results that lie in folders, or in S3."""

import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from rule_runner.durable import SCRATCH
from rule_runner.errors import ClientError
from rule_runner.outputs import RESULT
from rule_runner.report.address import addressed, fetch_results, write_to
from rule_runner.report.page import NAME, page, write_page
from rule_runner.report.saved import Saved, read
from rule_runner.show import printable
from smdebug.storage.uri import is_s3

_GIVE = "Give the output folder of an evaluation."


def report(places: Sequence[str], output: str | None, title: str | None) -> int:
    """Make a page on the results at `places` and below, say where it lies, and return 0.

    Parameters
    ----------
    places
        Folders, or addresses in S3.
    output
        The file, or a folder for it; by default the folder that is asked for, if it is one only
        and on this machine, otherwise the working directory.
    title
        What stands at the top; by default the names of the trials.

    Raises
    ------
    ClientError
        If a folder is not there or holds no result.
    OutputError
        If the page cannot be written.
    """
    with tempfile.TemporaryDirectory(prefix="rule-runner-") as scratch:
        folders = {_folder(one, Path(scratch) / str(at)): one for at, one in enumerate(places)}
        saved = read(folders)
        saved = addressed(saved, {path: one for path, one in folders.items() if is_s3(one)})
    trials = dict.fromkeys(Path(run.trial).name for run in saved.runs)
    given = output or (places[0] if len(places) == 1 and not is_s3(places[0]) else NAME)
    path = _write(saved, given, title or ", ".join(trials) or "Results")
    print(f"Report: {printable(path)}")  # noqa: T201 - stdout carries results
    return 0


def _folder(place: str, scratch: Path) -> Path:
    """Return a folder that holds a result, fetched if need be."""
    folder = fetch_results(place, scratch) if is_s3(place) else Path(place)
    if not folder.is_dir():
        msg = f"Folder {place!r} is not there. {_GIVE}"
        raise ClientError(msg)
    found = read([folder])
    if not (found.runs or found.problems):
        kind = "Address" if is_s3(place) else "Folder"
        msg = f"{kind} {place!r} holds no {RESULT}, nor do the folders in it. {_GIVE}"
        raise ClientError(msg)
    return folder


def _write(saved: Saved, output: str, title: str) -> str:
    """Write the page, and return where it lies."""
    if is_s3(output):
        return write_to(output, page(saved, title))
    path = write_page(saved, Path(output), title)
    with suppress(OSError):  # it holds something, which stays
        (path.parent / SCRATCH).rmdir()
    return str(path)
