"""ReportWriter: writes a report while its data grows, and at the end."""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Final

from smdebug.exceptions import SMDebugRuntimeError
from smdebug.rules.extensions import Clock

REFRESH_S: Final = 60.0


class ReportWriter:
    """Writes a report at most once a minute, and at the end.

    Parameters
    ----------
    write
        Writes the report; may raise OSError.
    """

    def __init__(self, write: Callable[[], None], clock: Clock, logger: logging.Logger) -> None:
        self._write = write
        self._clock = clock
        self._logger = logger
        self._tried_at: float | None = None
        self._has_written = False

    def refresh(self) -> bool:
        """Write the report, at most once a minute; return whether it was written."""
        now = self._clock.monotonic()
        if self._tried_at is not None and now - self._tried_at < REFRESH_S:
            return False
        self._tried_at = now
        return not self._try_to_write()

    def finish(self, folder: Path) -> bool:
        """Write the final report and return whether that succeeded.

        Raises
        ------
        SMDebugRuntimeError
            If no report could be written to `folder`, neither now nor earlier.
        """
        reason = self._try_to_write()
        if reason and not self._has_written:
            raise SMDebugRuntimeError(f"No report could be written to {str(folder)!r}: {reason}.")
        return not reason

    def _try_to_write(self) -> str:
        """Write the report; return the reason if that fails."""
        try:
            self._write()
        except OSError as err:
            self._logger.warning("Report not written: %s", err)
            return err.strerror or str(err)
        self._has_written = True
        return ""
