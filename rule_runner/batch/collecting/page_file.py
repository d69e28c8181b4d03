"""The page on many trials, with links to the report of each."""

import posixpath
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import quote

from rule_core.storage.uri import is_s3
from rule_runner.batch.collecting.results import CollectedTrial
from rule_runner.batch.collecting.streams import CollectedFile
from rule_runner.errors import counted
from rule_runner.report.html.trials import TrialRow, trial_row, trials_page
from rule_runner.results.file_names import REPORT


class PageFile(CollectedFile):
    """One HTML file; links are relative, so that it can be moved together with the outputs."""

    def __init__(self, place: str) -> None:
        super().__init__(place)
        self._counts: Counter[str] = Counter()

    def add(self, trial: CollectedTrial) -> None:
        """Add the row of a trial."""
        self._counts[trial.outcome] += 1
        link = report_link(self.place, trial.output) if trial.has_report else ""
        row = TrialRow(trial.name, trial.trial, trial.outcome, trial.rules, trial.problems, link)
        self.spool.append(trial_row(row))

    def pieces(self, exit_code: int) -> Iterable[bytes]:
        """Return the page."""
        del exit_code
        title = counted(self._counts.total(), "trial")
        page = trials_page(title, self._counts, map(bytes.decode, self.spool.lines()))
        return (piece.encode(errors="backslashreplace") for piece in page)


def report_link(page: str, output: str) -> str:
    """Return the relative link from a page to the report of an output; "" if there is none.

    >>> report_link("s3://bucket/fleet/index.html", "s3://bucket/fleet/a b")
    'a%20b/report.html'
    """
    if is_s3(page) != is_s3(output):
        return ""
    if is_s3(page):
        bucket, _, start = page.partition("://")[2].partition("/")
        other, _, end = output.partition("://")[2].partition("/")
        if bucket != other:
            return ""
        start, end = f"/{start}", f"/{end}"
    else:
        start, end = (str(Path(place).expanduser().absolute()) for place in (page, output))
    return quote(posixpath.relpath(posixpath.join(end, REPORT), posixpath.dirname(start)))
