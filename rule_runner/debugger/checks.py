"""Checks of arguments: what every configuration class asks of its own, in one sentence each."""

import re
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any


def require(holds: bool, argument: str, what: str, value: object) -> None:
    """Refuse an argument that does not hold.

    Raises
    ------
    AssertionError
        As the SDK does; also under ``python -O``.
    """
    if not holds:
        msg = f"Argument {argument} must be {what}, got {value!r}."
        raise AssertionError(msg)


def require_integer(argument: str, value: object, minimum: int) -> None:
    """Refuse what is no integer or is below `minimum`; True counts as 1, as in the SDK."""
    holds = isinstance(value, int) and value >= minimum
    require(holds, argument, f"an integer >= {minimum}", value)


def require_positive_number(argument: str, value: object) -> None:
    """Refuse what is no number > 0; NaN is none."""
    holds = isinstance(value, int | float) and value > 0
    require(holds, argument, "a number > 0", value)


def require_unix_time(argument: str, value: object) -> None:
    """Refuse what is no whole Unix time that the calendar has.

    Raises
    ------
    OSError
        From the platform, for a time that its own calendar cannot hold: 10**18, not 10**30.
    """
    holds = False
    if isinstance(value, int):
        with suppress(OverflowError, ValueError):
            datetime.fromtimestamp(value, UTC)
            holds = True
    require(holds, argument, "an integer Unix time in seconds", value)


def require_regex(argument: str, value: Any) -> None:
    """Refuse what does not compile as a regular expression."""
    holds = False
    with suppress(re.error, TypeError):
        re.compile(value)
        holds = True
    require(holds, argument, "a regular expression", value)
