"""get_logger: the logger of rules, configured by the application."""

import logging


def get_logger(name: str = "smdebug") -> logging.Logger:
    """Return the named logger below ``smdebug``, without configuring anything.

    >>> get_logger().name, get_logger("my_rule").name
    ('smdebug', 'smdebug.my_rule')
    """
    return logging.getLogger(
        name if name == "smdebug" or name.startswith("smdebug.") else f"smdebug.{name}"
    )
