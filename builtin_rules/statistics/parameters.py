"""The kinds of parameters that rules over tensors share: their types and ranges."""

from smdebug.rules.extensions import FloatParam, IntParam


def count(name: str, meaning: str, default: int | None, unit: str, *, minimum: int = 1) -> IntParam:
    """Return a parameter that is a number of `unit`."""
    return IntParam(name, meaning, default=default, unit=unit, minimum=minimum)


def positive(name: str, meaning: str, default: float, unit: str) -> FloatParam:
    """Return a parameter above 0."""
    return FloatParam(name, meaning, default=default, unit=unit, minimum=0.0, minimum_open=True)


def non_negative(name: str, meaning: str, default: float | None, unit: str) -> FloatParam:
    """Return a parameter that is 0 or more."""
    return FloatParam(name, meaning, default=default, unit=unit, minimum=0.0)


def share(name: str, meaning: str, default: float, unit: str) -> FloatParam:
    """Return a parameter between 0 and 1, inclusive."""
    return FloatParam(name, meaning, default=default, unit=unit, minimum=0.0, maximum=1.0)


def percentage(name: str, meaning: str, default: float, *, below_100: bool = False) -> FloatParam:
    """Return a parameter between 0 and 100, inclusive unless `below_100`."""
    return FloatParam(
        name, meaning, default, "percent", minimum=0.0, maximum=100.0, maximum_open=below_100
    )
