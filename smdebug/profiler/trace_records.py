"""RecordReader: the records of a timeline, out of pieces of its text, a batch at a time.

A batch is decoded at once, up to a place that looks like the end of a record. The guess is proven
by the decoder: ``[`` + text + ``]`` is an array only if the text holds whole records. Where it is
none, something in the batch is damaged, and its records are told apart by their braces and decoded
one by one.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec

from smdebug.profiler.trace_bytes import LIMITS, Limits, TimelineFaultError

# What JSON itself leaves between records; writers also end the last one with a comma.
_BETWEEN: Final = re.compile(rb"[\s,]*+")
# A quote on its own is a string that is not at its end.
_TOKEN: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[{}\[\]"]', re.DOTALL)
_ENDS: Final = (b"},\n{", b"},{", b"}, {", b"},\r\n{")
_PLACE: Final = re.compile(r" \(byte \d+\)$")
_QUOTE, _OPENING, _ARRAY, _OBJECT = b'"'[0], b"{[", b"[", b"{"
_END: Final = b"]"
_MARK: Final = b"\xef\xbb\xbf"  # of the order of bytes, which some editors write
_LIST_KEY: Final = b'"traceEvents"'
_AFTER_KEY: Final = re.compile(rb"\s*:\s*\[")
_SHOWN: Final = 20  # bytes of what is no record


class Record(msgspec.Struct, gc=False):
    """One record of the Trace Event Format, as far as it is used; times are microseconds."""

    ph: str = ""
    name: str | None = None
    ts: int | float | None = None
    dur: int | float | None = None
    pid: int | str | None = None
    tid: int | str | None = None
    args: dict[str, Any] | None = None
    s: str | None = None


class NotUsedError(Exception):
    """A record is skipped; the text says why, of an ``it``."""


class RecordReader:
    """Batches of records of one timeline: an array of them, or an object with ``traceEvents``.

    The array's last bracket may be missing, as the format allows.

    Attributes
    ----------
    skipped
        Records that could not be understood.
    reason
        What was wrong with the first of them.
    """

    def __init__(self, chunks: Iterable[bytes], limits: Limits = LIMITS) -> None:
        self.skipped = 0
        self.reason = ""
        self._chunks = chunks
        self._limits = limits
        self._one = msgspec.json.Decoder(Record)
        self._many = msgspec.json.Decoder(list[Record])
        self._is_object = False
        self._fault: TimelineFaultError | None = None  # after the records that were split off

    def skip(self, reason: str) -> None:
        """Count a record that is not used.

        Raises
        ------
        TimelineFaultError
            If there were too many of them.
        """
        self.skipped += 1
        self.reason = self.reason or reason
        if self.skipped > self._limits.skipped:
            msg = "is not read on, for too many of its records make no sense"
            raise TimelineFaultError(msg)

    def batches(self) -> Iterator[list[Record]]:
        """Yield the records in their order.

        Raises
        ------
        TimelineFaultError
            Where there is no going on; what came before has been yielded.
        """
        text, at = b"", -1
        for chunk in self._chunks:
            text += chunk
            if at < 0 and (at := self._begin(text)) < 0:
                continue
            batch, at = self._take(text, at)
            yield batch
            if self._fault is not None:
                raise self._fault
            text, at = text[at:], 0
            if text.startswith(_END):
                self._finish(text)
                return
            self._check(text)
        if at < 0:
            msg = "is no JSON array of trace events" if text.strip() else "is empty"
            raise TimelineFaultError(msg)
        yield from self._last(text)

    def _last(self, text: bytes) -> Iterator[list[Record]]:
        """Yield what is left where the text ends without the array's bracket."""
        batch, at = self._split(text, 0)
        yield batch
        if self._fault is not None:
            raise self._fault
        text = text[at:]
        if text.startswith(_END):
            self._finish(text)
        elif text or self._is_object:
            self._check(text)
            msg = "is cut off"
            raise TimelineFaultError(msg)

    def _begin(self, text: bytes) -> int:
        """Return where the records begin, or -1 if the text does not go that far."""
        start = b"" if _MARK.startswith(text) else text.removeprefix(_MARK).lstrip()
        at = len(text) - len(start)
        if start.startswith(_ARRAY):
            return at + 1
        if start and not start.startswith(_OBJECT):
            msg = f"is no JSON array of trace events, it begins with {bytes(start[:_SHOWN])!r}"
            raise TimelineFaultError(msg)
        self._is_object = bool(start)
        depth = 0
        for token in _TOKEN.finditer(text, at):
            if depth == 1 and token[0] == _LIST_KEY:
                found = _AFTER_KEY.match(text, token.end())
                if found is not None:
                    return found.end()
            depth += _deeper(token[0])
        if len(text) > self._limits.header:
            msg = f"has no list traceEvents in its first {self._limits.header} bytes"
            raise TimelineFaultError(msg)
        return -1

    def _check(self, text: bytes) -> None:
        """Raise if no record begins here, or a longer one than is believed."""
        if text and not text.startswith(_OBJECT):
            msg = f"has {text[:_SHOWN]!r} where a record should begin"
            raise TimelineFaultError(msg)
        if len(text) > self._limits.record:
            msg = f"has a record of more than {self._limits.record} bytes"
            raise TimelineFaultError(msg)

    def _finish(self, rest: bytes) -> None:
        """Look at what follows the records: more keys of an object, or nothing."""
        if rest[1:].strip() and not self._is_object:
            msg = "goes on after the end of its array"
            raise TimelineFaultError(msg)

    def _take(self, text: bytes, at: int) -> tuple[list[Record], int]:
        """Return the whole records of a text from `at`, and where what follows them begins."""
        at = _skip(text, at)
        end = max(text.rfind(end, at) for end in _ENDS) + 1
        if end > at:
            try:
                batch = self._many.decode(_ARRAY + text[at:end] + _END)
            except (ValueError, RecursionError):
                pass
            else:
                return batch, _skip(text, end)
        return self._split(text, at)

    def _split(self, text: bytes, at: int) -> tuple[list[Record], int]:
        """Do as `_take` by counting braces, and leave out what is no record."""
        batch: list[Record] = []
        at = _skip(text, at)
        try:
            while (end := _record_end(text, at, self._limits.depth)) > 0:
                self._decode(text[at:end], batch)
                at = _skip(text, end)
        except TimelineFaultError as err:
            self._fault = err
        return batch, at

    def _decode(self, text: bytes, batch: list[Record]) -> None:
        try:
            batch.append(self._one.decode(text))
        except ValueError as err:
            self.skip(f"it cannot be decoded: {_PLACE.sub('', str(err))}")


def _skip(text: bytes, at: int) -> int:
    found = _BETWEEN.match(text, at)
    return found.end() if found is not None else at


def _deeper(token: bytes) -> int:
    """Return by how much a token changes the depth.

    >>> _deeper(b"{"), _deeper(b"]"), _deeper(b'"{"')
    (1, -1, 0)
    """
    if token[0] == _QUOTE:
        return 0
    return 1 if token in _OPENING else -1


def _record_end(text: bytes, at: int, deepest: int) -> int:
    """Return where the record ends that begins at `at`; 0 if it does not, or none begins there.

    Raises
    ------
    TimelineFaultError
        If it is nested too deeply.
    """
    if not text.startswith(_OBJECT, at):
        return 0
    depth = 0
    for token in _TOKEN.finditer(text, at):
        found = token[0]
        if found == b'"':
            return 0
        depth += _deeper(found)
        if not depth:
            return token.end()
        if depth > deepest:
            msg = f"has a record of more than {deepest} objects and lists inside each other"
            raise TimelineFaultError(msg)
    return 0
