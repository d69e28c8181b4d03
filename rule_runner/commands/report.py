"""report: creates a page from results in folders or in S3."""

from collections.abc import Sequence
from pathlib import Path

from rule_core.exceptions import SMDebugValueError
from rule_core.sources.address import address_of
from rule_core.storage.publish import publish
from rule_core.storage.uri import is_s3, open_output
from rule_runner.errors import ClientError, OutputError, UsageError, translated
from rule_runner.escape import printable
from rule_runner.report.brief import JudgedRun, brief
from rule_runner.report.html.page import page, write_page
from rule_runner.report.saved_results import Saved, read
from rule_runner.results.file_names import REPORT, RESULTS

_NOTHING = Saved((), ())
_GIVE = "Give the output folder of an evaluation."


def report(places: Sequence[str], output: str | None, title: str | None) -> None:
    """Create a page about the results at `places` and below, and print its path.

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
    trials = dict.fromkeys(address_of(run.trial).name for run in saved.runs)
    target = output or (places[0] if len(places) == 1 and not is_s3(places[0]) else REPORT)
    title = title or ", ".join(trials) or "Results"
    if is_s3(target):
        path: str | Path = _write_to_s3(saved, target, title)
    else:
        path = write_page(saved, Path(target), title)
    print(f"Report: {printable(path)}")


def print_brief(places: Sequence[str]) -> None:
    """Print a brief answer about the results at `places` and below.

    Raises
    ------
    ClientError
        If a folder does not exist or holds no result.
    """
    saved = results_at(places)
    runs = [
        JudgedRun(
            address_of(run.trial).name, [job.result for job in run.jobs], run.summary, run.left_out
        )
        for run in saved.runs
    ]
    runs += [JudgedRun("results", (), problem=problem) for problem in saved.problems]
    print(brief(runs, 0))


def results_at(places: Sequence[str]) -> Saved:
    """Return the results at folders or addresses, and below.

    Raises
    ------
    ClientError
        If a folder does not exist or holds no result.
    """
    for place in places:
        if not (is_s3(place) or Path(place).is_dir()):
            raise ClientError(f"Folder {place!r} does not exist. {_GIVE}")
    saved = read(places)
    for place in places:
        if not (saved.runs or saved.problems) or (len(places) > 1 and read([place]) == _NOTHING):
            kind = "Address" if is_s3(place) else "Folder"
            raise ClientError(
                f"{kind} {place!r} holds no {RESULTS}, nor do the folders in it. {_GIVE}"
            )
    return saved


def _write_to_s3(saved: Saved, target: str, title: str) -> str:
    """Write the page to an address or below it, and return its address."""
    address = target.strip()
    if not address.endswith(".html"):
        address = f"{address.rstrip('/')}/{REPORT}"
    folder, _, name = address.rpartition("/")
    with translated(OutputError, OSError), translated(UsageError, SMDebugValueError):
        publish(open_output(folder), name, page(saved, title).encode())
    return address
