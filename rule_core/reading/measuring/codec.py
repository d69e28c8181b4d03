"""The measures of a block as bytes: MessagePack, which may come from anyone, and no pickles.

Numbers keep their types. Of other results only tuples of them, arrays, and named tuples of the
statistic's own module can be represented.
"""

import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
import numpy as np

from rule_core.model.streaming_statistics import Want
from rule_core.reading.measuring.measurer import PartMeasures

_PLAIN: Final = (bool, int, float, str)
_KINDS: Final = "biuf"


class _Column(msgspec.Struct, array_like=True):
    """The values of one statistic.

    Attributes
    ----------
    want
        The number of the statistic.
    before
        The global step of the earlier values; None without.
    names
        The number of the list of tensors.
    dtype
        The type of all values, which `values` then holds as bytes; "" if they differ.
    """

    want: int
    before: int | None
    names: int
    dtype: str
    values: Any


class _Part(msgspec.Struct, array_like=True):
    step: int
    part: str
    shapes: int
    columns: list[_Column]


class _EncodedBlock(msgspec.Struct, array_like=True):
    """Parts, with what they have in common: lists of names and tables of shapes."""

    names: list[list[str]] = []
    shapes: list[dict[str, tuple[int, ...]]] = []
    parts: list[_Part] = []


_DECODER: Final = msgspec.msgpack.Decoder(_EncodedBlock)
EMPTY: Final = msgspec.msgpack.encode(_EncodedBlock())


class BlockEncoder:
    """Encodes the measures of parts, one after the other.

    Parameters
    ----------
    wants
        The statistics, which are represented by their position.
    """

    def __init__(self, wants: Sequence[Want]) -> None:
        self._numbers = {want: number for number, want in enumerate(wants)}
        self._block = _EncodedBlock()
        self._names: dict[tuple[str, ...], int] = {}
        self._shapes: dict[tuple[Any, ...], int] = {}

    def add(
        self,
        step: int,
        part: str,
        results: Mapping[Want, Mapping[str, Any]],
        before: Mapping[int, int],
        shapes: Mapping[str, tuple[int, ...]],
    ) -> None:
        """Add the measures of a part.

        Parameters
        ----------
        results
            By statistic and tensor. Those that cannot be represented are left out.
        before
            The global step of the earlier values, by steps back.
        shapes
            The shape of each tensor in `results`.
        """
        columns = []
        measured: set[str] = set()
        for want, values in results.items():
            statistic, back = want
            if not values or (back and back not in before):
                continue
            try:
                dtype, content = _content([*values.values()], statistic)
            except TypeError:
                continue
            number = self._number(tuple(values))
            columns.append(_Column(self._numbers[want], before.get(back), number, dtype, content))
            measured.update(values)
        if columns:
            table = tuple((name, shapes[name]) for name in sorted(measured))
            self._block.parts.append(_Part(step, part, self._table(table), columns))

    def _number(self, names: tuple[str, ...]) -> int:
        """Return the number of a list of names."""
        if names not in self._names:
            self._names[names] = len(self._names)
            self._block.names.append([*names])
        return self._names[names]

    def _table(self, shapes: tuple[Any, ...]) -> int:
        """Return the number of a table of shapes."""
        if shapes not in self._shapes:
            self._shapes[shapes] = len(self._shapes)
            self._block.shapes.append(dict(shapes))
        return self._shapes[shapes]

    def content(self) -> bytes:
        """Return what was added."""
        return msgspec.msgpack.encode(self._block)


class DecodedBlock:
    """The measures of a block.

    Parameters
    ----------
    content
        As `BlockEncoder` returns it.
    wants
        The statistics, in the order that they were encoded with; None for those of others.

    Raises
    ------
    ValueError
        If the content is of another form.
    """

    def __init__(self, content: bytes | memoryview, wants: Sequence[Want | None]) -> None:
        try:
            block = _DECODER.decode(content)
        except msgspec.MsgspecError as err:
            raise ValueError(f"no measures: {err}") from err
        self._wants = wants
        self._names, self._shapes = block.names, block.shapes
        self._parts = {(part.step, part.part): part for part in block.parts}

    def __contains__(self, key: tuple[int, str]) -> bool:
        return key in self._parts

    def measures(self, step: int, part: str) -> PartMeasures | None:
        """Return the measures of a part of a step; None without any.

        Raises
        ------
        ValueError
            If the content is of another form.
        """
        encoded = self._parts.get((step, part))
        if encoded is None:
            return None
        try:
            values: dict[Any, dict[str, Any]] = {}
            for column in encoded.columns:
                if (want := self._wants[column.want]) is not None:
                    decoded = _values(column, want[0])
                    names = self._names[column.names]
                    values[want[0], column.before] = dict(zip(names, decoded, strict=True))
            return PartMeasures(values, self._shapes[encoded.shapes])
        except (IndexError, KeyError, TypeError, AttributeError) as err:
            raise ValueError(f"no measures: {err!r}") from err


def _content(values: list[Any], statistic: Any) -> tuple[str, Any]:
    """Return the type of all values and their bytes, or "" and each value."""
    first = type(values[0])
    if issubclass(first, np.number) and all(type(value) is first for value in values):
        array = np.array(values, first)
        return array.dtype.str, array.tobytes()
    return "", [_encoded(value, statistic) for value in values]


def _values(column: _Column, statistic: Any) -> list[Any]:
    if column.dtype:
        return [*np.frombuffer(column.values, _dtype(column.dtype))]
    return [_decoded(value, statistic) for value in column.values]


def _encoded(value: Any, statistic: Any) -> Any:
    """Return a value of msgspec.

    Raises
    ------
    TypeError
        If the value cannot be represented.
    """
    if type(value) is int and not -(1 << 63) <= value < 1 << 64:
        raise TypeError(f"The number {value} is too long.")
    if value is None or type(value) in _PLAIN:
        return value
    if isinstance(value, np.generic | np.ndarray) and value.dtype.kind in _KINDS:
        shape = [*value.shape] if isinstance(value, np.ndarray) else None
        return {"d": value.dtype.str, "s": shape, "b": value.tobytes()}
    if isinstance(value, tuple) and (type(value) is tuple or _is_own(type(value), statistic)):
        name = "" if type(value) is tuple else type(value).__name__
        return {"n": name, "t": [_encoded(item, statistic) for item in value]}
    raise TypeError(f"A {type(value).__name__} cannot be represented.")


def _decoded(value: Any, statistic: Any) -> Any:
    """Return the value that was encoded.

    Raises
    ------
    TypeError, KeyError, ValueError
        If it is none.
    """
    if value is None or type(value) in _PLAIN:
        return value
    if "d" in value:
        array = np.frombuffer(value["b"], _dtype(value["d"]))
        return array[0] if value["s"] is None else array.reshape(value["s"])
    items = tuple(_decoded(item, statistic) for item in value["t"])
    if not value["n"]:
        return items
    kind = getattr(sys.modules[type(statistic).__module__], value["n"])
    if not _is_own(kind, statistic):
        raise TypeError(f"{value['n']!r} is no named tuple.")
    return kind(*items)


def _is_own(kind: Any, statistic: Any) -> bool:
    """Return whether a class is a named tuple of the module of a statistic."""
    if not (isinstance(kind, type) and issubclass(kind, tuple) and hasattr(kind, "_fields")):
        return False
    return getattr(sys.modules[type(statistic).__module__], kind.__name__, None) is kind


def _dtype(text: str) -> "np.dtype[Any]":
    """Return a type of numbers.

    Raises
    ------
    TypeError
        If it is another one.
    """
    dtype = np.dtype(text)
    if dtype.kind not in _KINDS:
        raise TypeError(f"{text!r} is no type of numbers.")
    return dtype
