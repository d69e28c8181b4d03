"""Parameters that the profiler rules share, and the kind of number that they take."""

from dataclasses import dataclass
from numbers import Real
from typing import ClassVar, Final

from smdebug.rules.params import FloatParam, IntParam

MINUTE_US: Final = 60_000_000
PERCENT: Final = "percent"


@dataclass(frozen=True, slots=True)
class NumberParam(FloatParam):
    """A number, which stays whole if it is: ``70`` is shown as ``70``, ``2.5`` as ``2.5``."""

    type_name: ClassVar[str] = "number"

    def _number(self, raw: str | Real) -> float:
        value = float(raw)
        return int(value) if value.is_integer() else value


def percentage(name: str, meaning: str, default: int) -> NumberParam:
    """Return a parameter from 0 to 100, both included."""
    return NumberParam(name, meaning, default=default, unit=PERCENT, minimum=0, maximum=100)


def patience(default: int, points: str) -> IntParam:
    """Return the parameter `patience`, which counts `points`; 0 judges from the first on."""
    meaning = f"How many {points} must have been seen before; the first judgement needs one more."
    return IntParam("patience", meaning, default=default, unit=points, minimum=0)


def window(default: int, meaning: str) -> IntParam:
    """Return the parameter `window`, a number of data points."""
    return IntParam("window", meaning, default=default, unit="data points", minimum=1)


SCAN_INTERVAL: Final = IntParam(
    "scan_interval_us",
    "Length of the time window that is looked at in one evaluation.",
    default=MINUTE_US,
    unit="microseconds",
    minimum=100_000,  # metrics are sampled no more often
)
