"""Logging: the only place that configures it. JSON lines on stderr, readable on a terminal."""

import logging
import sys
import threading
from collections.abc import Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from typing import Any, Final

from rule_runner.show import printable

# By how often -v was given; -1 is --quiet.
LEVELS: Final = {-1: logging.ERROR, 0: logging.WARNING, 1: logging.INFO, 2: logging.DEBUG}
# What says much about its own work, none of it about ours.
_TALKATIVE: Final = ("boto3", "botocore", "docker", "s3transfer", "urllib3", "watchfiles")


def _harmless(logger: Any, method: str, event: MutableMapping[str, Any]) -> Mapping[str, Any]:
    """Take from texts what a terminal would obey: names in them are a stranger's."""
    del logger, method
    return {
        key: printable(value) if isinstance(value, str) and key != "exception" else value
        for key, value in event.items()
    }


class _Through:
    """How many blocks of `through_logging` are open, in all threads."""

    lock: Final = threading.Lock()
    count = 0


@contextmanager
def through_logging() -> Iterator[None]:
    """Hand what is logged inside the block to the standard library's loggers, as a library does.

    No handler and no level is set. Without effect if the program has configured structlog.
    """
    import structlog  # noqa: PLC0415 - see `configure`

    with _Through.lock:
        ours = _Through.count > 0 or not structlog.is_configured()
        _Through.count += ours
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
        with _Through.lock:
            _Through.count -= ours
            if ours and not _Through.count:
                structlog.reset_defaults()


def configure(verbosity: int) -> None:
    """Send the log of this program, and of rules, to stderr.

    Parameters
    ----------
    verbosity
        -1 (errors only) to 2 (every step).
    """
    # It brings asyncio and half of rich along, for which help should not wait.
    import structlog  # noqa: PLC0415 - see above

    level = LEVELS[max(-1, min(verbosity, 2))]
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.StackInfoRenderer(),
    ]
    terminal = sys.stderr.isatty()
    renderer: list[Any] = (
        [
            _harmless,
            structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback),
        ]
        if terminal
        else [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
    )
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.make_filtering_bound_logger(level),
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*shared, structlog.stdlib.add_logger_name],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *renderer],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    for name in _TALKATIVE:
        logging.getLogger(name).setLevel(max(level, logging.WARNING))
