"""The kinds of parameters that profiler rules share, and their type of number."""

from dataclasses import dataclass
from numbers import Real
from typing import ClassVar, Final

from builtin_rules.statistics.parameters import Declared
from smdebug.rules.extensions import FloatParam, IntParam

SECOND_US: Final = 1_000_000
MINUTE_US: Final = 60 * SECOND_US
PERCENT: Final = "percent"


@dataclass(frozen=True, slots=True)
class NumberParam(FloatParam):
    """A number that stays an integer if it is one: ``70`` prints as ``70``, not ``70.0``."""

    type_name: ClassVar[str] = "number"

    def _number(self, raw: str | Real) -> float:
        value = float(raw)
        return int(value) if value.is_integer() else value


def percentage(meaning: str, default: int, name: str = "") -> Declared[float]:
    """Return a parameter between 0 and 100, inclusive."""
    return Declared(
        NumberParam(name, meaning, default=default, unit=PERCENT, minimum=0, maximum=100)
    )


def positive(meaning: str, default: int, unit: str) -> Declared[float]:
    """Return a parameter above 0."""
    return Declared(
        NumberParam("", meaning, default=default, unit=unit, minimum=0, minimum_open=True)
    )


def patience_of(default: int, points: str) -> Declared[int]:
    """Return the parameter `patience`, which counts `points`."""
    meaning = f"The number of {points} to wait for; judging starts with the next one."
    return Declared(IntParam("patience", meaning, default=default, unit=points, minimum=0))


def window_of(default: int, meaning: str) -> Declared[int]:
    """Return the parameter `window`, a number of data points."""
    return Declared(IntParam("window", meaning, default=default, unit="data points", minimum=1))


SCAN_INTERVAL: Final = Declared[int](
    IntParam(
        "scan_interval_us",
        "Length of the time window that each evaluation covers.",
        default=MINUTE_US,
        unit="microseconds",
        minimum=100_000,  # the shortest sampling interval of metrics
    )
)
