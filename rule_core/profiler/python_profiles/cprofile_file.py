"""parse_cprofile: the table in a file of cProfile, read without trusting it.

Such a file is a marshalled dictionary. `marshal.loads` may crash on bytes that were made for it, so
they are walked here by the one grammar that the profiler writes, which no nesting can deepen::

    table   = { function: (primitive calls, calls, own time, cumulative time, callers) ... }
    callers = { function: (calls, primitive calls, own time, cumulative time) ... }
    function = (file, line, name)

What was written before may be referred to, as marshal does since its version 3, if it is a text,
a number, a function or a caller's numbers: no reference makes more work than its five bytes. All
numbers are little-endian. Format: ``Python/marshal.c`` of CPython 3.0 to 3.14, versions 2 to 5.
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

MAX_BYTES: Final = 64 << 20  # a profile of a whole large program has a few million
MAX_ENTRIES: Final = 1 << 18  # functions and callers of all of them
MAX_TEXT: Final = 1 << 16  # bytes
MAX_LINE: Final = (1 << 31) - 1
MAX_COUNT: Final = (1 << 63) - 1

_FLAG: Final = 0x80  # what follows may be referred to
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
        What the file is called in messages.
    data
        All of it; the time taken grows with its length only.

    Raises
    ------
    TruncatedFileError
        If it ends before the table does.
    CorruptFileError
        If it holds anything else than such a table, or one beyond the bounds above.
    """
    if len(data) > MAX_BYTES:
        raise CorruptFileError(name, f"at most {MAX_BYTES} bytes", f"{len(data)} of them")
    return _Parser(name, bytes(data)).table()


class _Parser:
    """A place in the bytes, and what may be referred to so far.

    `_known` has None for what nothing may refer to: dictionaries, and what is not complete.
    """

    def __init__(self, name: str, data: bytes) -> None:
        self._name = name
        self._data = data
        self._at = 0
        self._entries = 0
        self._known: list[object] = []

    def table(self) -> Table:
        found = self._dict(self._code()[0], self._numbers_and_callers)
        if self._at != len(self._data):
            self._fail("the end of the file", f"{len(self._data) - self._at} more bytes")
        return found

    # -- parts of the grammar; each is given the code that it begins with ---------------------

    def _dict(self, code: int, value: Callable[[int, int | None], T]) -> dict[Function, T]:
        if code != _DICT:
            self._unexpected("a table of functions", code)
        found: dict[Function, T] = {}
        while True:
            code, slot = self._code()
            if code == _END and slot is None:
                return found
            self._entries += 1
            if self._entries > MAX_ENTRIES:
                self._fail(f"at most {MAX_ENTRIES} functions and callers", "more")
            function = self._function(code, slot)
            if function in found:
                self._fail("each function once", f"{function!r:.200} twice")
            found[function] = value(*self._code())

    def _function(self, code: int, slot: int | None) -> Function:
        what = "a function's file, line and name"
        if code == _REFERENCE:
            return self._tuple_before(what, 3)  # type: ignore[return-value]  # its length says it
        self._begin_tuple(what, code, 3)
        found = self._text(), self._int("a line", MAX_LINE), self._text()
        return self._kept(slot, found)

    def _calls(self, code: int, slot: int | None) -> Calls:
        what = "a caller's four numbers"
        if code == _REFERENCE:
            return self._tuple_before(what, 4)  # type: ignore[return-value]  # its length says it
        self._begin_tuple(what, code, 4)
        return self._kept(slot, (self._count(), self._count(), self._time(), self._time()))

    def _numbers_and_callers(
        self, code: int, _slot: int | None
    ) -> tuple[int, int, float, float, Callers]:
        self._begin_tuple("a function's four numbers and its callers", code, 5)
        calls = self._count(), self._count(), self._time(), self._time()
        return *calls, self._dict(self._code()[0], self._calls)

    def _begin_tuple(self, what: str, code: int, length: int) -> None:
        if code not in {_TUPLE, _SMALL_TUPLE}:
            self._unexpected(what, code)
        got = self._take(1)[0] if code == _SMALL_TUPLE else self._word()
        if got != length:
            self._fail(what, f"{got} things")

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
            # As marshal does: names of files may hold bytes that are no UTF-8.
            text = raw.decode(encoding, "surrogatepass" if encoding == "utf-8" else "strict")
        except UnicodeDecodeError:
            self._fail(f"a text in {encoding}", f"{raw[:20]!r}")
        return self._kept(slot, text)

    def _count(self) -> int:
        return self._int("a number of calls", MAX_COUNT)

    def _int(self, what: str, largest: int) -> int:
        code, slot = self._code()
        if code == _REFERENCE:
            found = self._before(what, int)
        elif code == _INT:
            found = self._kept(slot, self._word())
        elif code == _INT64:
            found = self._kept(slot, int(_WORD64.unpack(self._take(8))[0]))
        elif code == _LONG:
            found = self._kept(slot, self._long(what))
        else:
            self._unexpected(what, code)
        if not 0 <= found <= largest:
            self._fail(f"{what} of 0 to {largest}", str(found))
        return found

    def _long(self, what: str) -> int:
        digits = self._word()
        if not 0 <= digits <= _LONG_DIGITS:
            self._fail(what, f"a number of {digits} digits")
        raw = self._take(digits * _DIGIT.size)
        found = 0
        for at, (digit,) in enumerate(_DIGIT.iter_unpack(raw)):
            if digit >> _LONG_DIGIT:
                self._fail(what, f"a digit of {digit}")
            found |= digit << (_LONG_DIGIT * at)
        return found

    def _time(self) -> float:
        code, slot = self._code()
        if code == _REFERENCE:
            return self._before("a time", float)
        if code != _FLOAT:
            self._unexpected("a time", code)
        (found,) = _DOUBLE.unpack(self._take(_DOUBLE.size))
        if not math.isfinite(found):
            self._fail("a time in seconds", str(found))
        return self._kept(slot, float(found))

    # -- what may be referred to --------------------------------------------------------------

    def _code(self) -> tuple[int, int | None]:
        """Return what follows, and its number if it may be referred to."""
        try:
            byte = self._data[self._at]
        except IndexError:
            self._cut_off(1)
        self._at += 1
        if not byte & _FLAG:
            return byte, None
        self._known.append(None)
        return byte & ~_FLAG, len(self._known) - 1

    def _kept(self, slot: int | None, found: T) -> T:
        if slot is not None:
            self._known[slot] = found
        return found

    def _referred(self, what: str) -> object:
        number = self._word()
        found = self._known[number] if 0 <= number < len(self._known) else None
        if found is None:
            self._fail(what, f"a reference to number {number}, which is none")
        return found

    def _before(self, what: str, kind: type[T]) -> T:
        found = self._referred(what)
        if not isinstance(found, kind):
            self._fail(what, f"a reference to {found!r:.200}")
        return found

    def _tuple_before(self, what: str, length: int) -> tuple[object, ...]:
        found = self._before(what, tuple)
        if len(found) != length:
            self._fail(what, f"a reference to {found!r:.200}")
        return found

    # -- bytes --------------------------------------------------------------------------------

    def _take(self, count: int) -> bytes:
        found = self._data[self._at : self._at + count]
        if len(found) != count:
            self._cut_off(count)
        self._at += count
        return found

    def _word(self) -> int:
        try:
            (found,) = _WORD.unpack_from(self._data, self._at)
        except struct.error:
            self._cut_off(_WORD.size)
        self._at += _WORD.size
        return int(found)

    # -- what is wrong ------------------------------------------------------------------------

    def _unexpected(self, what: str, code: int) -> NoReturn:
        self._fail(what, f"the code {bytes([code])!r}")

    def _fail(self, expected: str, got: str) -> NoReturn:
        raise CorruptFileError(self._name, f"{expected} before byte {self._at}", got) from None

    def _cut_off(self, count: int) -> NoReturn:
        there = f"{len(self._data) - self._at} of them"
        raise TruncatedFileError(self._name, f"{count} bytes at {self._at}", there) from None
