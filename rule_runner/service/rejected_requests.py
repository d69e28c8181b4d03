"""RejectedRequests: one line a minute about requests that are not valid HTTP."""

import logging
from typing import Final

from rule_core.clock import Clock
from rule_runner.logs import get_logger

_log: Final = get_logger(__name__)
_EVENT_LOOP: Final = "asyncio"
_SERVER: Final = "uvicorn.error"
_PARSERS: Final = ("h11", "httptools")
_WARNINGS: Final = ("Invalid HTTP request", "Unsupported upgrade", "No supported WebSocket")
_INTERVAL_S: Final = 60.0


class RejectedRequests(logging.Filter):
    """Drops the records about requests that the HTTP parser rejects, and logs their number.

    Clients that are at fault must neither fill the log nor put tracebacks in it.
    """

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock
        self._count = 0
        self._logs_from = clock.monotonic()

    def attach(self) -> None:
        """Filter the records of the HTTP server and of its event loop from now on."""
        for name in (_EVENT_LOOP, _SERVER):
            logging.getLogger(name).addFilter(self)

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether a record is about something else."""
        if not _is_rejection(record):
            return True
        self._count += 1
        if (now := self._clock.monotonic()) >= self._logs_from:
            _log.warning("requests_rejected", count=self._count)
            self._count = 0
            self._logs_from = now + _INTERVAL_S
        return False


def _is_rejection(record: logging.LogRecord) -> bool:
    if record.name == _SERVER:
        return record.levelno == logging.WARNING and record.getMessage().startswith(_WARNINGS)
    # The parser rejects what follows a request while its response is being sent.
    error = record.exc_info[0] if record.exc_info else None
    return error is not None and error.__module__.partition(".")[0] in _PARSERS
