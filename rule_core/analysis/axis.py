"""Axis: the position of values along a chart's axis, and its round ticks."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

LENGTH: Final = 1000  # the length of an axis in its own unit
TICKS: Final = 6  # roughly the number of ticks
_LARGEST: Final = 1e300  # the difference of two such numbers is finite
_SMALLEST: Final = 1e-300
_MILLION: Final = 10**6
_TINY: Final = 1e-3  # numbers below it are written with an exponent
_POWERS: Final = 301  # powers of ten end there
_RESOLUTION: Final = 1e-12  # values with a smaller relative difference count as equal
_ROUNDING: Final = 1 + 1e-9  # tolerance for rounding errors


def number(value: float) -> str:
    """Format a number for display: six digits, without leading zeros in the exponent.

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
    """Format a step for an axis: short even when large.

    >>> step_number(150), step_number(2_000_000_000)
    ('150', '2,000M')
    """
    if abs(value) < _MILLION:
        return f"{value:,.10g}"
    return f"{value / _MILLION:,.10g}M"


@dataclass(frozen=True)
class Axis:
    """A linear or logarithmic axis from `low` to `high`, with the values of its ticks."""

    low: float
    high: float
    log: bool
    ticks: tuple[float, ...]

    def position(self, value: float) -> int | None:
        """Return the position of `value` in [0, `LENGTH`], clipped to its ends; None for NaN."""
        if math.isnan(value):
            return None
        low, high = self._ends
        share = (self._linear(value) - low) / (high - low)
        return round(LENGTH * min(max(share, 0.0), 1.0))

    def contains(self, value: float) -> bool:
        """Return whether `value` is finite and lies on the axis, so that it is not clipped."""
        return math.isfinite(value) and self.low <= value <= self.high

    @cached_property
    def _ends(self) -> tuple[float, float]:
        return self._linear(self.low), self._linear(self.high)

    def _linear(self, value: float) -> float:
        if not self.log:
            return min(max(value, -_LARGEST), _LARGEST)
        return math.log10(max(min(value, _LARGEST), _SMALLEST))


def steps_axis(steps: Iterable[int]) -> Axis:
    """Return a linear axis from the first step to the last, with whole steps as ticks."""
    numbers = list(steps) or [0]
    low, high = min(numbers), max(numbers)
    if low == high:
        low, high = low - 1, high + 1
    distance = max(1, _round_distance(high - low))
    first = math.ceil(low / distance)
    ticks = (n * distance for n in range(first, math.floor(high / distance) + 1))
    return Axis(low, high, log=False, ticks=tuple(ticks))


def values_axis(values: Iterable[float], *, log: bool) -> Axis:
    """Return an axis that contains all finite values and ends at ticks.

    It is linear if `log` is false or no value is positive.
    """
    finite = [value for value in values if math.isfinite(value)] or [0.0, 1.0]
    low, high = min(finite), max(finite)
    if log and high > 0:
        low = min(value for value in finite if value > 0)
        return _log_axis(*(min(max(end, _SMALLEST), _LARGEST) for end in (low, high)))
    return _linear_axis(*(min(max(end, -_LARGEST), _LARGEST) for end in (low, high)))


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
    if decades <= 2:  # noqa: PLR2004 - few decades leave room for ticks between powers of ten
        ticks = [factor * 10.0**power for power in range(first, last + 1) for factor in (1, 2, 5)]
    else:
        stride = math.ceil(decades / TICKS)
        start = first // stride * stride
        ticks = [10.0**power for power in range(start, min(last + stride, _POWERS), stride)]
    return _cut(ticks, low, high)


def _cut(ticks: Sequence[float], low: float, high: float) -> Axis:
    """Return the axis over the fewest ticks that enclose `low` and `high`."""
    below = [tick for tick in ticks if tick <= low] or [low]
    above = [tick for tick in ticks if tick >= high] or [high]
    first, last = below[-1], above[0]
    enclosing = tuple(tick for tick in ticks if first <= tick <= last)
    return Axis(first, last, log=True, ticks=enclosing)


def _round_distance(span: float) -> float:
    """Return 1, 2 or 5 times a power of ten, which divides `span` into about `TICKS` parts."""
    rough = span / TICKS
    power = 10.0 ** math.floor(math.log10(rough))
    return power * next(factor for factor in (1, 2, 5, 10) if rough <= factor * power * _ROUNDING)
