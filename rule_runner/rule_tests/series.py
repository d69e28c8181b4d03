"""Series: the values of a tensor by step, as test files write them."""

import re
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

LIMIT: Final = 100_000  # steps
_NUMBER: Final = r"(?:\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?|\.?nan|\.?inf)"
_REPEATED: Final = re.compile(
    rf"(?P<start>[-+]?{_NUMBER}|_)(?:(?P<operator>[-+*])(?P<change>{_NUMBER}))?x(?P<count>\d+)"
)
_WHOLE: Final = re.compile(r"[-+]?\d{1,18}")


class SeriesError(ValueError):
    """A series cannot be read: a sentence without the full stop."""


def series(value: Any) -> list[NDArray[Any] | None]:
    """Return the values by step; None stands for a step without the tensor.

    Parameters
    ----------
    value
        A list with a number, a text or a nested list (an array) for each step, or a text. A text
        holds numbers and, as in promtool, ``1+0.5x20`` (1, 1.5, ... 11), ``10-2x3``, ``1*0.9x20``,
        ``0x5`` (0 six times), ``_`` (not saved) and ``_x5`` (not saved at five steps).

    Raises
    ------
    SeriesError
        If it has another form.
    """
    items = value if isinstance(value, list | tuple | np.ndarray) else [value]
    values: list[NDArray[Any] | None] = []
    for item in items:
        if isinstance(item, str):
            values += [None if number is None else np.array([number]) for number in _numbers(item)]
        elif item is None:
            values.append(None)
        else:
            values.append(_array(item))
    if len(values) > LIMIT:
        raise SeriesError(f"a series has at most {LIMIT:,} values, got {len(values):,}")
    return values


def whole_numbers(value: Any) -> list[int]:
    """Return the numbers of a series that has neither gaps nor fractions, such as steps.

    Raises
    ------
    SeriesError
        If it has.
    """
    numbers = []
    for array in series(value):
        if array is None or array.size != 1 or float(array.flat[0]) % 1:
            raise SeriesError(f"expected whole numbers, got {value!r}")
        numbers.append(int(array.flat[0]))
    return numbers


def _array(item: Any) -> NDArray[Any]:
    """Return a number or nested lists as an array."""
    try:
        array = np.atleast_1d(np.asarray(_converted(item)))
    except ValueError as err:
        if isinstance(err, SeriesError):
            raise
        raise SeriesError(f"the rows of an array must have equal lengths, got {item!r}") from err
    if array.dtype.kind not in "biufcSU":
        raise SeriesError(f"expected numbers, got {item!r}")
    return array


def _converted(item: Any) -> Any:
    """Return nested lists with their texts as numbers."""
    if isinstance(item, list | tuple):
        return [_converted(part) for part in item]
    return _number(item) if isinstance(item, str) else item


def _number(text: str) -> int | float:
    """Return the number that a text holds, whole if it has neither point nor exponent."""
    if _WHOLE.fullmatch(text):
        return int(text)
    if re.fullmatch(rf"[-+]?{_NUMBER}", text, re.IGNORECASE):
        return float(re.sub(r"\.(?=nan|inf)", "", text.lower()))
    raise SeriesError(f"expected a number, such as 0.5, nan or 1+0.5x20, got {text!r}")


def _numbers(text: str) -> Iterator[int | float | None]:
    """Yield the numbers of a text, with repetitions expanded.

    >>> [*_numbers("1+2x3 _ 0x1 8-0.5x2")]
    [1, 3, 5, 7, None, 0, 0, 8.0, 7.5, 7.0]
    """
    for word in text.split():
        repeated = _REPEATED.fullmatch(word.lower())
        if repeated is None:
            yield None if word == "_" else _number(word)
            continue
        count = int(repeated["count"])
        if count > LIMIT:
            raise SeriesError(f"a series has at most {LIMIT:,} values, got {word!r}")
        if repeated["start"] == "_":
            yield from [None] * count
            continue
        start = _number(repeated["start"])
        change = _number(repeated["change"] or "0")
        for row in range(count + 1):
            match repeated["operator"]:
                case "*":
                    yield start * change**row
                case "-":
                    yield start - change * row
                case _:
                    yield start + change * row
