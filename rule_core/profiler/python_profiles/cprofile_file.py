"""parse_cprofile: the table in an untrusted file of cProfile.

Such a file is a marshalled dictionary. `marshal.loads` can crash on malicious bytes. This parser
accepts the grammar that the profiler writes, in which nesting is limited, and nothing else::

    table   = { function: (primitive calls, calls, own time, cumulative time, callers) ... }
    callers = { function: (calls, primitive calls, own time, cumulative time) ... }
    function = (file, line, name)

As in marshal since its version 3, a reference can repeat an earlier text, number, function or tuple
of a caller's numbers, so that no reference costs more work than its five bytes. All numbers are
little-endian. Format: ``Python/marshal.c`` of CPython 3.0 to 3.14, versions 2 to 5.
"""

import math
import struct
from collections.abc import Callable
from typing import Final, NoReturn, TypeVar

from rule_core.exceptions import CorruptFileError, TruncatedFileError

Function = tuple[str, int, str]
Calls = tuple[int, int, float, float]
Callers = dict[Function, Calls]
Table = dict[Function, tuple[int, int, float, float, Callers]]
T = TypeVar("T")

MAX_BYTES: Final = 64 << 20  # the profile of a large program has a few million bytes
MAX_ENTRIES: Final = 1 << 18  # functions and their callers
MAX_TEXT: Final = 1 << 16  # bytes
MAX_LINE: Final = (1 << 31) - 1
MAX_COUNT: Final = (1 << 63) - 1

_FLAG: Final = 0x80  # the value may be referred to
_REFERENCE, _DICT, _END, _TUPLE, _SMALL_TUPLE = b"r{0()"
_INT, _INT64, _LONG, _FLOAT = b"iIlg"
_SHORT_TEXTS: Final = frozenset(b"zZ")
_TEXTS: Final = dict.fromkeys(b"zZaA", "ascii") | dict.fromkeys(b"ut", "utf-8")
_LONG_DIGIT: Final = 15  # bits
_LONG_DIGITS: Final = 5  # enough for MAX_COUNT
_WORD: Final = struct.Struct("<i")
_WORD64: Final = struct.Struct("<q")
_DOUBLE: Final = struct.Struct("<d")
_DIGIT: Final = struct.Struct("<H")


def parse_cprofile(name: str, data: bytes | memoryview) -> Table:
    """Return the table in the bytes of a file.

    Parameters
    ----------
    name
        Name of the file in messages.
    data
        The whole file; parsing takes time proportional to its length.

    Raises
    ------
    TruncatedFileError
        If the file ends within the table.
    CorruptFileError
        If the file does not contain exactly one such table within the limits above.
    """
    if len(data) > MAX_BYTES:
        raise CorruptFileError(name, f"at most {MAX_BYTES} bytes", f"{len(data)} of them")
    return _Parser(name, bytes(data)).table()


class _Parser:
    """A position in the bytes, and the values before it that references may repeat.

    `_values` has None for values without references: dictionaries and incomplete tuples.
    """

    def __init__(self, name: str, data: bytes) -> None:
        self._name = name
        self._data = data
        self._position = 0
        self._entries = 0
        self._values: list[object] = []

    def table(self) -> Table:
        table = self._dict(self._code()[0], self._numbers_and_callers)
        if self._position != len(self._data):
            self._fail("the end of the file", f"{len(self._data) - self._position} more bytes")
        return table

    # -- parts of the grammar; each takes its first code --------------------------------------

    def _dict(self, code: int, value: Callable[[int, int | None], T]) -> dict[Function, T]:
        if code != _DICT:
            self._unexpected("a table of functions", code)
        table: dict[Function, T] = {}
        while True:
            code, slot = self._code()
            if code == _END and slot is None:
                return table
            self._entries += 1
            if self._entries > MAX_ENTRIES:
                self._fail(f"at most {MAX_ENTRIES} functions and callers", "more")
            function = self._function(code, slot)
            if function in table:
                self._fail("each function once", f"{function!r:.200} twice")
            table[function] = value(*self._code())

    def _function(self, code: int, slot: int | None) -> Function:
        expected = "a function's file, line and name"
        if code == _REFERENCE:
            return self._tuple_before(expected, 3)  # type: ignore[return-value]  # its length says it
        self._begin_tuple(expected, code, 3)
        return self._kept(slot, (self._text(), self._int("a line", MAX_LINE), self._text()))

    def _calls(self, code: int, slot: int | None) -> Calls:
        expected = "a caller's four numbers"
        if code == _REFERENCE:
            return self._tuple_before(expected, 4)  # type: ignore[return-value]  # its length says it
        self._begin_tuple(expected, code, 4)
        return self._kept(slot, (self._count(), self._count(), self._time(), self._time()))

    def _numbers_and_callers(
        self, code: int, _slot: int | None
    ) -> tuple[int, int, float, float, Callers]:
        self._begin_tuple("a function's four numbers and its callers", code, 5)
        calls = self._count(), self._count(), self._time(), self._time()
        return *calls, self._dict(self._code()[0], self._calls)

    def _begin_tuple(self, expected: str, code: int, length: int) -> None:
        if code not in {_TUPLE, _SMALL_TUPLE}:
            self._unexpected(expected, code)
        got = self._take(1)[0] if code == _SMALL_TUPLE else self._word()
        if got != length:
            self._fail(expected, f"{got} things")

    # -- texts and numbers --------------------------------------------------------------------

    def _text(self) -> str:
        code, slot = self._code()
        if code == _REFERENCE:
            return self._before("a text", str)
        encoding = _TEXTS.get(code)
        if encoding is None:
            self._unexpected("a text", code)
        length = self._take(1)[0] if code in _SHORT_TEXTS else self._word()
        if not 0 <= length <= MAX_TEXT:
            self._fail(f"a text of at most {MAX_TEXT} bytes", f"one of {length}")
        raw = self._take(length)
        try:
            # As in marshal, because names of files may contain bytes that are not UTF-8.
            text = raw.decode(encoding, "surrogatepass" if encoding == "utf-8" else "strict")
        except UnicodeDecodeError:
            self._fail(f"a text in {encoding}", f"{raw[:20]!r}")
        return self._kept(slot, text)

    def _count(self) -> int:
        return self._int("a number of calls", MAX_COUNT)

    def _int(self, expected: str, largest: int) -> int:
        code, slot = self._code()
        if code == _REFERENCE:
            number = self._before(expected, int)
        elif code == _INT:
            number = self._kept(slot, self._word())
        elif code == _INT64:
            number = self._kept(slot, int(_WORD64.unpack(self._take(8))[0]))
        elif code == _LONG:
            number = self._kept(slot, self._long(expected))
        else:
            self._unexpected(expected, code)
        if not 0 <= number <= largest:
            self._fail(f"{expected} of 0 to {largest}", str(number))
        return number

    def _long(self, expected: str) -> int:
        digits = self._word()
        if not 0 <= digits <= _LONG_DIGITS:
            self._fail(expected, f"a number of {digits} digits")
        raw = self._take(digits * _DIGIT.size)
        number = 0
        for index, (digit,) in enumerate(_DIGIT.iter_unpack(raw)):
            if digit >> _LONG_DIGIT:
                self._fail(expected, f"a digit of {digit}")
            number |= digit << (_LONG_DIGIT * index)
        return number

    def _time(self) -> float:
        code, slot = self._code()
        if code == _REFERENCE:
            return self._before("a time", float)
        if code != _FLOAT:
            self._unexpected("a time", code)
        (seconds,) = _DOUBLE.unpack(self._take(_DOUBLE.size))
        if not math.isfinite(seconds):
            self._fail("a time in seconds", str(seconds))
        return self._kept(slot, float(seconds))

    # -- references ---------------------------------------------------------------------------

    def _code(self) -> tuple[int, int | None]:
        """Return the code of the next value, and the value's number if it may be referred to."""
        try:
            byte = self._data[self._position]
        except IndexError:
            self._cut_off(1)
        self._position += 1
        if not byte & _FLAG:
            return byte, None
        self._values.append(None)
        return byte & ~_FLAG, len(self._values) - 1

    def _kept(self, slot: int | None, value: T) -> T:
        if slot is not None:
            self._values[slot] = value
        return value

    def _before(self, expected: str, kind: type[T]) -> T:
        """Return the earlier value of a reference."""
        number = self._word()
        value = self._values[number] if 0 <= number < len(self._values) else None
        if value is None:
            self._fail(expected, f"a reference to number {number}, which is none")
        if not isinstance(value, kind):
            self._fail(expected, f"a reference to {value!r:.200}")
        return value

    def _tuple_before(self, expected: str, length: int) -> tuple[object, ...]:
        value = self._before(expected, tuple)
        if len(value) != length:
            self._fail(expected, f"a reference to {value!r:.200}")
        return value

    # -- bytes --------------------------------------------------------------------------------

    def _take(self, count: int) -> bytes:
        data = self._data[self._position : self._position + count]
        if len(data) != count:
            self._cut_off(count)
        self._position += count
        return data

    def _word(self) -> int:
        return int(_WORD.unpack(self._take(_WORD.size))[0])

    # -- errors -------------------------------------------------------------------------------

    def _unexpected(self, expected: str, code: int) -> NoReturn:
        self._fail(expected, f"the code {bytes([code])!r}")

    def _fail(self, expected: str, got: str) -> NoReturn:
        raise CorruptFileError(
            self._name, f"{expected} before byte {self._position}", got
        ) from None

    def _cut_off(self, count: int) -> NoReturn:
        rest = f"{len(self._data) - self._position} of them"
        raise TruncatedFileError(self._name, f"{count} bytes at {self._position}", rest) from None
