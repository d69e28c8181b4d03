"""Checks of the arguments of configuration classes."""

import re
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any


def require(holds: bool, argument: str, what: str, value: object) -> None:
    """Reject an argument unless `holds`.

    Raises
    ------
    AssertionError
        As the SDK does; also under ``python -O``.
    """
    if not holds:
        raise AssertionError(f"Argument {argument} must be {what}, got {value!r}.")


def require_integer(argument: str, value: object, minimum: int) -> None:
    """Reject anything but an integer of at least `minimum`; True counts as 1, as in the SDK."""
    holds = isinstance(value, int) and value >= minimum
    require(holds, argument, f"an integer >= {minimum}", value)


def require_positive_number(argument: str, value: object) -> None:
    """Reject anything but a positive number; NaN is rejected."""
    holds = isinstance(value, int | float) and value > 0
    require(holds, argument, "a number > 0", value)


def require_unix_time(argument: str, value: object) -> None:
    """Reject anything but an integer Unix time within the calendar.

    Raises
    ------
    OSError
        Raised by the platform for a time outside its calendar: 10**18, but not 10**30.
    """
    holds = False
    if isinstance(value, int):
        with suppress(OverflowError, ValueError):
            datetime.fromtimestamp(value, UTC)
            holds = True
    require(holds, argument, "an integer Unix time in seconds", value)


def require_regex(argument: str, value: Any) -> None:
    """Reject anything but a valid regular expression."""
    holds = False
    with suppress(re.error, TypeError):
        re.compile(value)
        holds = True
    require(holds, argument, "a regular expression", value)
