"""Configures logging: text on stderr, or JSON lines for programs."""

import logging
import sys
import threading
from collections.abc import Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from typing import Any, Final

from rule_runner.escape import printable

# By the number of -v options; -1 is --quiet.
LEVELS: Final = {-1: logging.ERROR, 0: logging.WARNING, 1: logging.INFO, 2: logging.DEBUG}
# Libraries whose debug and info messages are dropped.
_NOISY_LIBRARIES: Final = ("boto3", "botocore", "docker", "s3transfer", "urllib3")


def _harmless(logger: Any, method: str, event: MutableMapping[str, Any]) -> Mapping[str, Any]:
    """Escape control characters, because names in texts come from untrusted files."""
    del logger, method
    return {
        key: printable(value) if isinstance(value, str) and key != "exception" else value
        for key, value in event.items()
    }


class _OpenBlocks:
    """The number of open `through_logging` blocks in all threads."""

    lock: Final = threading.Lock()
    count = 0


@contextmanager
def through_logging() -> Iterator[None]:
    """Send log events inside the block to the loggers of the standard library, as a library does.

    Sets no handler and no level. Has no effect if the program has configured structlog.
    """
    import structlog

    with _OpenBlocks.lock:
        ours = _OpenBlocks.count > 0 or not structlog.is_configured()
        _OpenBlocks.count += ours
        if ours:
            structlog.configure(
                processors=[
                    structlog.stdlib.filter_by_level,
                    structlog.contextvars.merge_contextvars,
                    structlog.processors.format_exc_info,
                    _harmless,
                    structlog.processors.KeyValueRenderer(key_order=["event"]),
                ],
                logger_factory=structlog.stdlib.LoggerFactory(),
                wrapper_class=structlog.stdlib.BoundLogger,
                cache_logger_on_first_use=False,
            )
    try:
        yield
    finally:
        with _OpenBlocks.lock:
            _OpenBlocks.count -= ours
            if ours and not _OpenBlocks.count:
                structlog.reset_defaults()


class _Stderr(logging.StreamHandler[Any]):
    """Writes to the current `sys.stderr`, which a progress bar replaces to print above itself."""

    def emit(self, record: logging.LogRecord) -> None:
        self.stream = sys.stderr
        super().emit(record)


class _Configured:
    as_json: bool = False


def is_json() -> bool:
    """Return whether `configure` selected JSON lines."""
    return _Configured.as_json


def configure(verbosity: int, *, as_json: bool = False) -> None:
    """Send the log of this program and of rules to stderr.

    Parameters
    ----------
    verbosity
        -1 (errors only) to 2 (every step).
    as_json
        Whether to write JSON lines, for programs; a terminal still gets text.
    """
    # Imported here because it loads asyncio and much of rich, which would delay --help.
    import structlog

    level = LEVELS[max(-1, min(verbosity, 2))]
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.StackInfoRenderer(),
    ]
    terminal = sys.stderr.isatty()
    _Configured.as_json = as_json
    renderer: list[Any] = (
        [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
        if as_json and not terminal
        else [
            _harmless,
            structlog.dev.ConsoleRenderer(
                colors=terminal, exception_formatter=structlog.dev.plain_traceback
            ),
        ]
    )
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.make_filtering_bound_logger(level),
        cache_logger_on_first_use=False,
    )
    handler = _Stderr()
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*shared, structlog.stdlib.add_logger_name],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *renderer],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    for name in _NOISY_LIBRARIES:
        logging.getLogger(name).setLevel(max(level, logging.WARNING))
