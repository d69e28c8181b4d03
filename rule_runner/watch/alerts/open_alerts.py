"""OpenAlerts: the alerts that follow from the index."""

from pathlib import Path
from typing import Final

import msgspec

from rule_core.severity import Severity
from rule_runner.errors import OutputError
from rule_runner.index.reader import IndexReader
from rule_runner.watch.alerts.alert import Alert

_OPEN: Final = """
    SELECT trials.id, path, output, name, rule_jobs.outcome,
        coalesce(counted_severity, 'error'), step, ''
    FROM rule_jobs JOIN trials ON trials.id = trial
    WHERE mode = 'enforce' AND NOT acknowledged
        AND (counted_severity IS NOT NULL OR rule_jobs.outcome = 'Error')
    UNION ALL
    SELECT id, path, output, '', outcome, 'error', NULL, problem
    FROM trials WHERE state = 'judged' AND outcome = 'Error' AND problem != ''
"""


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
        self._reader: IndexReader | None = None
        self._file: tuple[int, int] | None = None
        self._version = -1

    def changed(self) -> list[Alert] | None:
        """Return the alerts; None if the index has not changed since the last call.

        Raises
        ------
        OutputError
            If the index cannot be read.
        """
        reader = self._opened()
        version = reader.data_version()
        if version == self._version:
            return None
        with reader.errors():
            rows = reader.connection.execute(_OPEN).fetchall()
        alerts = [
            msgspec.convert(dict(zip(Alert.__struct_fields__, row, strict=True)), Alert)
            for row in rows
        ]
        self._version = version
        return [alert for alert in alerts if alert.severity.rank >= self._least.rank]

    def forget(self) -> None:
        """Let the next call of `changed` return the alerts in any case."""
        self._version = -1

    def _opened(self) -> IndexReader:
        """Return the reader of the index, opened again if the file was replaced."""
        try:
            status = self._path.stat()
        except OSError as err:
            self.close()
            msg = f"Database {str(self._path)!r} cannot be used: {err.strerror}."
            raise OutputError(msg) from err
        file = status.st_dev, status.st_ino
        if self._reader is None or file != self._file:
            self.close()
            reader = IndexReader(self._path)
            self._reader, self._file, self._version = reader, file, -1
        return self._reader

    def close(self) -> None:
        """Close the index."""
        if self._reader is not None:
            self._reader.close()
            self._reader = None
