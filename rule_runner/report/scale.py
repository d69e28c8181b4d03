"""Scales: where a value stands on an axis, and which round values are written at it."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

LENGTH: Final = 1000  # of an axis, in its own unit
TICKS: Final = 6  # at most about so many
_LARGEST: Final = 1e300  # the span of two such numbers is still one
_SMALLEST: Final = 1e-300
_MILLION: Final = 10**6
_TINY: Final = 1e-3  # below it digits behind a power of ten are easier to read than zeros
_POWERS: Final = 301  # and those of ten beyond are no axis's
_RESOLUTION: Final = 1e-12  # values that differ by less, relatively, are one
_ABOUT: Final = 1 + 1e-9  # what rounding may add


def number(value: float) -> str:
    """Return a number for people: six digits, and no zeros in front of an exponent.

    >>> number(0.0001), number(12000.0), number(0.30000000000000004), number(float("inf"))
    ('1e-4', '12,000', '0.3', 'Infinity')
    """
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if value == int(value) and abs(value) < _MILLION:
        return f"{int(value):,}"
    if abs(value) < _TINY:
        digits, _, exponent = f"{value:.5e}".partition("e")
        return f"{float(digits):g}e{int(exponent)}"
    digits, _, exponent = f"{value:.6g}".partition("e")
    return f"{digits}e{int(exponent)}" if exponent else digits


def step_number(value: float) -> str:
    """Return a step as it is written at an axis: short however large.

    >>> step_number(150), step_number(2_000_000_000)
    ('150', '2,000M')
    """
    if abs(value) < _MILLION:
        return f"{value:,.10g}"
    return f"{value / _MILLION:,.10g}M"


@dataclass(frozen=True)
class Axis:
    """Values from `low` to `high`, linear or logarithmic, with the values written at it."""

    low: float
    high: float
    log: bool
    ticks: tuple[float, ...]

    def at(self, value: float) -> int | None:
        """Return the place of `value` in [0, `LENGTH`], an end of it if it is beyond.

        NaN has none.
        """
        if math.isnan(value):
            return None
        low, high = self._ends
        share = (self._linear(value) - low) / (high - low)
        return round(LENGTH * min(max(share, 0.0), 1.0))

    def holds(self, value: float) -> bool:
        """Say whether `value` has a place of its own: no end stands in for it."""
        return math.isfinite(value) and self.low <= value <= self.high

    @cached_property
    def _ends(self) -> tuple[float, float]:
        return self._linear(self.low), self._linear(self.high)

    def _linear(self, value: float) -> float:
        if not self.log:
            return min(max(value, -_LARGEST), _LARGEST)
        return math.log10(max(min(value, _LARGEST), _SMALLEST))


def steps_axis(steps: Iterable[int]) -> Axis:
    """Return the axis of the steps, from the first to the last."""
    known = list(steps) or [0]
    low, high = min(known), max(known)
    if low == high:
        low, high = low - 1, high + 1
    distance = max(1, _round_distance(high - low))
    first = math.ceil(low / distance)
    ticks = (n * distance for n in range(first, math.floor(high / distance) + 1))
    return Axis(low, high, log=False, ticks=tuple(ticks))


def values_axis(values: Iterable[float], *, log: bool) -> Axis:
    """Return an axis that holds all finite values, between round ones.

    Without a positive value there is no logarithmic axis, but a linear one.
    """
    finite = [one for one in values if math.isfinite(one)] or [0.0, 1.0]
    if log and max(finite) > 0:
        ends = min(one for one in finite if one > 0), max(finite)
        return _log_axis(*(min(max(one, _SMALLEST), _LARGEST) for one in ends))
    return _linear_axis(*(min(max(one, -_LARGEST), _LARGEST) for one in (min(finite), max(finite))))


def _linear_axis(low: float, high: float) -> Axis:
    size = max(abs(low), abs(high))
    if high - low <= size * _RESOLUTION or size < _SMALLEST:
        room = size / 10 if size >= _SMALLEST else 1.0
        low, high = low - room, high + room
    distance = _round_distance(high - low)
    first, last = math.floor(low / distance), math.ceil(high / distance)
    ticks = tuple(n * distance for n in range(first, last + 1))
    return Axis(ticks[0], ticks[-1], log=False, ticks=ticks)


def _log_axis(low: float, high: float) -> Axis:
    if high - low <= low * _RESOLUTION:
        low, high = low / 2, high * 2
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    decades = last - first
    if decades <= 2:  # noqa: PLR2004 - so few decades have room for more than their powers
        ticks = [factor * 10.0**power for power in range(first, last + 1) for factor in (1, 2, 5)]
    else:
        every = math.ceil(decades / TICKS)
        start = first // every * every
        ticks = [10.0**power for power in range(start, min(last + every, _POWERS), every)]
    return _cut(ticks, low, high)


def _cut(ticks: Sequence[float], low: float, high: float) -> Axis:
    """Return the axis over the ticks that are needed to hold `low` and `high`."""
    below = [one for one in ticks if one <= low] or [low]
    above = [one for one in ticks if one >= high] or [high]
    first, last = below[-1], above[0]
    kept = tuple(one for one in ticks if first <= one <= last)
    return Axis(first, last, log=True, ticks=kept)


def _round_distance(span: float) -> float:
    """Return a distance of 1, 2 or 5 times a power of ten that divides `span` into a few."""
    rough = span / TICKS
    power = 10.0 ** math.floor(math.log10(rough))
    return power * next(factor for factor in (1, 2, 5, 10) if rough <= factor * power * _ABOUT)
