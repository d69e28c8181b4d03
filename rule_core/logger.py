"""get_logger: the logger of rules, configured by the application or by `show_log`."""

import logging
import os
import sys
from functools import lru_cache
from typing import Final

LEVEL_VARIABLE: Final = "SMDEBUG_LOG_LEVEL"
WARNINGS_REMEMBERED: Final = 1000
_OFF_LEVEL: Final = logging.CRITICAL + 1


def get_logger(name: str = "smdebug") -> logging.Logger:
    """Return the named logger below ``smdebug``, without configuring anything.

    >>> get_logger().name, get_logger("my_rule").name
    ('smdebug', 'smdebug.my_rule')
    """
    return logging.getLogger(
        name if name == "smdebug" or name.startswith("smdebug.") else f"smdebug.{name}"
    )


@lru_cache(WARNINGS_REMEMBERED)
def warn_once(trial: str, key: str, text: str) -> None:
    """Log the problem of a trial's file, once in a process: commands open a trial several times."""
    get_logger().warning("Trial %r: %r: %s", trial, key, text)


def show_log() -> None:
    """Print the log from INFO on, as smdebug does, where the program has not configured it.

    ``SMDEBUG_LOG_LEVEL`` sets another level: debug, info, warning, error, critical or off. A level
    of the logger ``smdebug`` takes precedence; handlers of the program get the messages if there
    are any.
    """
    logger = get_logger()
    if logger.level == logging.NOTSET:
        levels = logging.getLevelNamesMapping() | {"OFF": _OFF_LEVEL}
        logger.setLevel(levels.get(os.environ.get(LEVEL_VARIABLE, "").upper()) or logging.INFO)
    if not logger.hasHandlers():
        handler = logging.StreamHandler(sys.stdout)
        handler.setFormatter(logging.Formatter("[%(asctime)s %(levelname)s %(name)s] %(message)s"))
        logger.addHandler(handler)
