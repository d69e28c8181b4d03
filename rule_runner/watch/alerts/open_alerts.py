"""OpenAlerts: the alerts that follow from the index."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from rule_core.named_texts import NamedTexts
from rule_core.severity import Severity
from rule_runner.errors import OutputError, reason_of, translated
from rule_runner.index.reader import IndexReader
from rule_runner.watch.alerts.alert import Alert
from rule_runner.watch.alerts.entries import Recoveries

_SQL: Final = NamedTexts(Path(__file__).with_suffix(".sql"))


class IndexState(NamedTuple):
    """What of an index concerns people; see `rule_runner.watch.alerts.entries.advance`."""

    alerts: list[Alert]
    recoveries: Recoveries


class OpenAlerts:
    """The incidents in the index that nobody has acknowledged or muted.

    Parameters
    ----------
    path
        The index.
    least
        The severity from which an incident is an alert.
    """

    def __init__(self, path: Path, least: Severity) -> None:
        self._path = path
        self._least = least
        self._state: tuple[int, int] | None = None

    def changed(self) -> IndexState | None:
        """Return the alerts and recoveries; None if the index is the same as at the last call.

        Raises
        ------
        OutputError
            If the index cannot be read.
        """
        problem = f"Database {str(self._path)!r} cannot be used: "
        with translated(OutputError, OSError, before=problem, after=".", words=reason_of):
            self._path.stat()  # SQLite would not say why
        with IndexReader(self._path) as reader, reader.snapshot():
            changes = reader.changes_since(0, limit=0)
            state = changes.removals, changes.revision
            if state == self._state:
                return None
            rows, failed = reader.rows(_SQL["open"]), reader.rows(_SQL["failed"])
            recovered = reader.execute(_SQL["recovered"])
        self._state = state
        alerts = [*_grouped(rows), *(msgspec.convert(row, Alert) for row in failed)]
        recoveries: dict[str, dict[str, int | None]] = defaultdict(dict)
        for path, rule, step in recovered:
            recoveries[path][rule] = step
        serious = [alert for alert in alerts if alert.severity.rank >= self._least.rank]
        return IndexState(serious, recoveries)

    def forget(self) -> None:
        """Let the next call of `changed` return the alerts in any case."""
        self._state = None


def _grouped(rows: Iterable[dict[str, Any]]) -> Iterator[Alert]:
    """Yield an alert for each incident, from the rows of its rule jobs: the root cause first."""
    for _, group in groupby(rows, key=itemgetter("trial", "outcome", "cause")):
        first, *following = jobs = [msgspec.convert(row, Alert) for row in group]
        yield msgspec.structs.replace(
            first,
            severity=max((job.severity for job in jobs), key=lambda severity: severity.rank),
            consequences=tuple(job.rule for job in following),
            since=max(job.step or 0 for job in jobs),
        )
