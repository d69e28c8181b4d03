"""Format numbers, times and places for the profiler report."""

from datetime import UTC, datetime
from typing import Any, Final

from builtin_rules.profiler.statistics.parameters import SECOND_US

_MINUTE_S: Final = 60
_HOUR_S: Final = 3600
_FOUR_DIGITS: Final = 1000
_MILLION: Final = 10**6


def number(value: Any) -> str:
    """Return a number with four significant digits; anything else as text.

    >>> number(0.123456), number(123456.0), number(3), number("NaN"), number(1.5e9)
    ('0.1235', '123,456', '3', 'NaN', '1.5e+09')
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    return f"{value:,.0f}" if _FOUR_DIGITS <= abs(value) < _MILLION else f"{value:.4g}"


def duration(seconds: float) -> str:
    """Return a duration in readable units.

    >>> duration(0.0042), duration(42.0), duration(150), duration(7325)
    ('4.2 ms', '42 s', '2 min 30 s', '2 h 2 min')
    """
    if seconds < 1:
        return f"{1000 * seconds:.3g} ms"
    if seconds < _MINUTE_S:
        return f"{seconds:.3g} s"
    if seconds < _HOUR_S:
        minutes, remainder = divmod(round(seconds), _MINUTE_S)
        return f"{minutes} min {remainder} s"
    hours, remainder = divmod(round(seconds / _MINUTE_S), _MINUTE_S)
    return f"{hours:,} h {remainder} min"


def moment(time_us: float) -> str:
    """Return epoch microseconds as a date and time in UTC.

    >>> moment(1_600_000_000_000_000)
    '2020-09-13 12:26:40 UTC'
    """
    try:
        return f"{datetime.fromtimestamp(time_us / SECOND_US, UTC):%Y-%m-%d %H:%M:%S} UTC"
    except (ValueError, OverflowError, OSError):
        return f"{time_us:.0f} us"


def counted(count: int, noun: str) -> str:
    """Return a number and its noun, in singular or plural.

    >>> counted(1, "window"), counted(2000, "window")
    ('1 window', '2,000 windows')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def place(tensor: str | None, worker: str | None) -> str:
    """Return the device and node of a finding.

    >>> place("gpu0", "algo-1"), place(None, "algo-1"), place(None, None)
    ('gpu0 of algo-1', 'algo-1', 'the job')
    """
    return " of ".join(filter(None, (step_name(tensor or ""), worker))) or "the job"


def step_name(name: str) -> str:
    """Return the short name of a kind of step.

    >>> step_name("Step:ModeKeys.TRAIN"), step_name("gpu0")
    ('TRAIN', 'gpu0')
    """
    return name.removeprefix("Step:ModeKeys.")
