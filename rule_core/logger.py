"""get_logger: the logger of rules, configured by the application."""

import logging
from functools import lru_cache
from typing import Final

WARNINGS_REMEMBERED: Final = 1000


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
