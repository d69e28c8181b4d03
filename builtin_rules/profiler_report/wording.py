"""How the profiler report says numbers, times and places."""

import inspect
from datetime import UTC, datetime
from typing import Any, Final

from builtin_rules.profiler.window_rule import WindowRule

SECOND_US: Final = 1_000_000
_MINUTE_S: Final = 60
_HOUR_S: Final = 3600


def number(value: Any) -> str:
    """Return a number with four digits; anything else as text.

    >>> number(0.123456), number(123456.0), number(3), number("NaN")
    ('0.1235', '123,456', '3', 'NaN')
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"  # noqa: PLR2004 - four digits


def duration(seconds: float) -> str:
    """Return a time span for people.

    >>> duration(0.0042), duration(42.0), duration(150), duration(7325)
    ('4.2 ms', '42 s', '2 min 30 s', '2 h 2 min')
    """
    if seconds < 1:
        return f"{1000 * seconds:.3g} ms"
    if seconds < _MINUTE_S:
        return f"{seconds:.3g} s"
    if seconds < _HOUR_S:
        minutes, rest = divmod(round(seconds), _MINUTE_S)
        return f"{minutes} min {rest} s"
    hours, rest = divmod(round(seconds / _MINUTE_S), _MINUTE_S)
    return f"{hours:,} h {rest} min"


def moment(time_us: float) -> str:
    """Return a time in epoch microseconds, in UTC.

    >>> moment(1_600_000_000_000_000)
    '2020-09-13 12:26:40 UTC'
    """
    try:
        return f"{datetime.fromtimestamp(time_us / SECOND_US, UTC):%Y-%m-%d %H:%M:%S} UTC"
    except (ValueError, OverflowError, OSError):
        return f"{time_us:.0f} us"


def counted(count: int, noun: str) -> str:
    """Return a number with its noun.

    >>> counted(1, "window"), counted(2000, "window")
    ('1 window', '2,000 windows')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def place(tensor: str | None, worker: str | None) -> str:
    """Return where something was found.

    >>> place("gpu0", "algo-1"), place(None, "algo-1"), place(None, None)
    ('gpu0 of algo-1', 'algo-1', 'the job')
    """
    return " of ".join(filter(None, (step_name(tensor or ""), worker))) or "the job"


def step_name(name: str) -> str:
    """Return what a kind of step is called for short.

    >>> step_name("Step:ModeKeys.TRAIN"), step_name("gpu0")
    ('TRAIN', 'gpu0')
    """
    return name.removeprefix("Step:ModeKeys.")


def meaning(rule: type[WindowRule]) -> str:
    """Return in one sentence what a rule finds: the first of its file, without the name."""
    summary = (inspect.getdoc(inspect.getmodule(rule)) or "").partition("\n")[0]
    text = summary.partition(": ")[2]
    return text[:1].upper() + text[1:]
