"""report: creates a page from results in folders or in S3."""

import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from rule_core.storage.uri import is_s3
from rule_runner.errors import ClientError
from rule_runner.escape import printable
from rule_runner.loading.trials import trial_name
from rule_runner.report.html.page import page, write_page
from rule_runner.report.s3_results import fetch_results, with_addresses, write_to
from rule_runner.report.saved_results import Saved, read
from rule_runner.results.durable_files import SCRATCH
from rule_runner.results.output_folder import REPORT, RESULT

_GIVE = "Give the output folder of an evaluation."


def report(places: Sequence[str], output: str | None, title: str | None) -> int:
    """Create a page about the results at `places` and below, print its path, and return 0.

    Parameters
    ----------
    places
        Folders, or addresses in S3.
    output
        The file, or a folder for it; by default the only folder in `places`, otherwise the
        working directory.
    title
        Title of the page; by default the names of the trials.

    Raises
    ------
    ClientError
        If a folder does not exist or holds no result.
    OutputError
        If the page cannot be written.
    """
    saved = results_at(places)
    trials = dict.fromkeys(trial_name(run.trial) for run in saved.runs)
    target = output or (places[0] if len(places) == 1 and not is_s3(places[0]) else REPORT)
    path = _write(saved, target, title or ", ".join(trials) or "Results")
    print(f"Report: {printable(path)}")
    return 0


def results_at(places: Sequence[str]) -> Saved:
    """Return the results at folders or addresses, and below.

    Raises
    ------
    ClientError
        If a folder does not exist or holds no result.
    """
    with tempfile.TemporaryDirectory(prefix="rule-runner-") as scratch:
        folders = {
            _folder(place, Path(scratch) / str(number)): place
            for number, place in enumerate(places)
        }
        addresses = {path: place for path, place in folders.items() if is_s3(place)}
        return with_addresses(read(folders), addresses)


def _folder(place: str, scratch: Path) -> Path:
    """Return a local folder with results, after fetching them from S3."""
    folder = fetch_results(place, scratch) if is_s3(place) else Path(place)
    if not folder.is_dir():
        msg = f"Folder {place!r} does not exist. {_GIVE}"
        raise ClientError(msg)
    saved = read([folder])
    if not (saved.runs or saved.problems):
        kind = "Address" if is_s3(place) else "Folder"
        msg = f"{kind} {place!r} holds no {RESULT}, nor do the folders in it. {_GIVE}"
        raise ClientError(msg)
    return folder


def _write(saved: Saved, output: str, title: str) -> str:
    """Write the page, and return its path or address."""
    if is_s3(output):
        return write_to(output, page(saved, title))
    path = write_page(saved, Path(output), title)
    with suppress(OSError):  # not empty
        (path.parent / SCRATCH).rmdir()
    return str(path)
