"""OpenAlerts: the alerts that follow from the index."""

from pathlib import Path
from typing import Final

import msgspec

from rule_core.named_texts import NamedTexts
from rule_core.severity import Severity
from rule_runner.errors import OutputError, reason_of, translated
from rule_runner.index.reader import IndexReader
from rule_runner.watch.alerts.alert import Alert

_SQL: Final = NamedTexts(Path(__file__).with_suffix(".sql"))


class OpenAlerts:
    """The issues in the index that nobody has acknowledged or muted.

    Parameters
    ----------
    path
        The index.
    least
        The severity from which an issue is an alert.
    """

    def __init__(self, path: Path, least: Severity) -> None:
        self._path = path
        self._least = least
        self._state: tuple[int, int] | None = None

    def changed(self) -> list[Alert] | None:
        """Return the alerts; None if the index has not changed since the last call.

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
            rows = reader.execute(_SQL["open"])
        alerts = [
            msgspec.convert(dict(zip(Alert.__struct_fields__, row, strict=True)), Alert)
            for row in rows
        ]
        self._state = state
        return [alert for alert in alerts if alert.severity.rank >= self._least.rank]

    def forget(self) -> None:
        """Let the next call of `changed` return the alerts in any case."""
        self._state = None
