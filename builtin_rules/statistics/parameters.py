"""Parameters as attributes of a rule's class, and the kinds that rules over tensors share."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from smdebug.rules.extensions import BoolParam, FloatParam, IntParam, NamesParam, Param

T = TypeVar("T")
C = TypeVar("C", int, None)
F = TypeVar("F", float, None)


class Declared(Generic[T]):
    """A parameter of a rule as an attribute of its class, from which it takes its name.

    The same attribute of an object of the rule has the value, of type `T`.
    """

    def __init__(self, param: Param) -> None:
        self.param = param

    def __set_name__(self, rule_class: type, name: str) -> None:
        if self.param.name != name:
            self.param = replace(self.param, name=name)

    if TYPE_CHECKING:

        def __get__(self, rule: Any, rule_class: type | None = None) -> T: ...


def count(meaning: str, default: C, unit: str, *, minimum: int = 1) -> Declared[int | C]:
    """Return a parameter that is a number of `unit`."""
    return Declared(IntParam("", meaning, default=default, unit=unit, minimum=minimum))


def positive(meaning: str, default: float, unit: str) -> Declared[float]:
    """Return a parameter above 0."""
    return Declared(
        FloatParam("", meaning, default=default, unit=unit, minimum=0.0, minimum_open=True)
    )


def non_negative(
    meaning: str, default: F, unit: str, *, minimum: float = 0.0
) -> Declared[float | F]:
    """Return a parameter that is 0 or more, or `minimum` or more."""
    return Declared(FloatParam("", meaning, default=default, unit=unit, minimum=minimum))


def share(meaning: str, default: float, unit: str) -> Declared[float]:
    """Return a parameter between 0 and 1, inclusive."""
    return Declared(FloatParam("", meaning, default=default, unit=unit, minimum=0.0, maximum=1.0))


def percentage(meaning: str, default: float, *, below_100: bool = False) -> Declared[float]:
    """Return a parameter between 0 and 100, inclusive unless `below_100`."""
    return Declared(
        FloatParam(
            "", meaning, default, "percent", minimum=0.0, maximum=100.0, maximum_open=below_100
        )
    )


def flag(meaning: str, *, default: bool = False) -> Declared[bool]:
    """Return a parameter that is true or false."""
    return Declared(BoolParam("", meaning, default=default))


def names(param: NamesParam) -> Declared[tuple[str, ...]]:
    """Return a parameter that is a tuple of names or patterns."""
    return Declared(param)
