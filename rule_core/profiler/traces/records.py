"""RecordReader: parses the records of a timeline in batches, from pieces of its text.

A batch extends to a position that looks like the end of a record, and is decoded at once. The
decoder verifies the guess: ``[`` + text + ``]`` is an array only if the text contains complete
records. If decoding fails, the batch is split into records by braces, and each is decoded alone.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec

from rule_core.profiler.files.chunks import LIMITS, TimelineFaultError, TimelineLimits

# Separators between records; writers may also end the last one with a comma.
_BETWEEN: Final = re.compile(rb"[\s,]*+")
# A lone quote begins an unterminated string.
_TOKEN: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[{}\[\]"]', re.DOTALL)
_ENDS: Final = (b"},\n{", b"},{", b"}, {", b"},\r\n{", b"},\n  {")
_PLACE: Final = re.compile(r" \(byte \d+\)$")
_QUOTE, _OPENING, _ARRAY, _OBJECT = b'"'[0], b"{[", b"[", b"{"
_END: Final = b"]"
_MARK: Final = b"\xef\xbb\xbf"  # byte order mark, written by some editors
_LIST_KEY: Final = b'"traceEvents"'
_AFTER_KEY: Final = re.compile(rb"\s*:\s*\[")
_SHOWN: Final = 20  # bytes of an invalid record


class Record(msgspec.Struct, gc=False):
    """The used fields of a record of the Trace Event Format; times are in microseconds."""

    ph: str = ""
    name: str | None = None
    ts: int | float | None = None
    dur: int | float | None = None
    pid: int | str | None = None
    tid: int | str | None = None
    args: dict[str, Any] | None = None
    s: str | None = None
    cat: str | None = None


class NotUsedError(Exception):
    """A record is skipped; the message continues a sentence about ``it``."""


class RecordReader:
    """Batches of records of one timeline: an array of them, or an object with ``traceEvents``.

    The array's last bracket may be missing, as the format allows.

    Attributes
    ----------
    limits
        Limits for the untrusted text.
    skipped
        The number of invalid records.
    reason
        Why the first of them is invalid.
    head, tail
        The text of an object up to its list of records, and the text read after it; b"" until then.
    """

    def __init__(self, chunks: Iterable[bytes], limits: TimelineLimits = LIMITS) -> None:
        self.skipped = 0
        self.reason = ""
        self.head = self.tail = b""
        self._chunks = chunks
        self.limits = limits
        self._one = msgspec.json.Decoder(Record)
        self._many = msgspec.json.Decoder(list[Record])
        self._is_object = False
        self._fault: TimelineFaultError | None = None  # raised after the records before it

    def skip(self, reason: str) -> None:
        """Count a skipped record.

        Raises
        ------
        TimelineFaultError
            If too many records were skipped.
        """
        self.skipped += 1
        self.reason = self.reason or reason
        if self.skipped > self.limits.skipped:
            raise TimelineFaultError("is not read further: too many of its records are invalid")

    def problems(self, subject: str) -> list[str]:
        """Return a sentence on the skipped records of a timeline, if there are any."""
        skipped = f"{subject} has {self.skipped} records that are skipped, the first because "
        return [f"{skipped}{self.reason}."] if self.skipped else []

    def batches(self) -> Iterator[list[Record]]:
        """Yield the records in order.

        Raises
        ------
        TimelineFaultError
            If the text cannot be read further, after all earlier records were yielded.
        """
        text, position = b"", -1
        for chunk in self._chunks:
            text += chunk
            if position < 0 and (position := self._begin(text)) < 0:
                continue
            batch, position = self._take(text, position)
            yield batch
            if self._fault is not None:
                raise self._fault
            text, position = text[position:], 0
            if text.startswith(_END):
                self._finish(text)
                return
            self._check(text)
        if position < 0:
            raise TimelineFaultError(
                "is not a JSON array of trace events" if text.strip() else "is empty"
            )
        yield from self._last(text)

    def _last(self, text: bytes) -> Iterator[list[Record]]:
        """Yield the remaining records of a text that ends without the array's bracket."""
        batch, position = self._split(text, 0)
        yield batch
        if self._fault is not None:
            raise self._fault
        text = text[position:]
        if text.startswith(_END):
            self._finish(text)
        elif text or self._is_object:
            self._check(text)
            raise TimelineFaultError("is cut off")

    def _begin(self, text: bytes) -> int:
        """Return the position of the first record, or -1 if the text is too short."""
        start = b"" if _MARK.startswith(text) else text.removeprefix(_MARK).lstrip()
        position = len(text) - len(start)
        if start.startswith(_ARRAY):
            return position + 1
        if start and not start.startswith(_OBJECT):
            raise TimelineFaultError(
                f"is not a JSON array of trace events: it begins with {bytes(start[:_SHOWN])!r}"
            )
        self._is_object = bool(start)
        depth = 0
        for token in _TOKEN.finditer(text, position):
            if depth == 1 and token[0] == _LIST_KEY:
                match = _AFTER_KEY.match(text, token.end())
                if match is not None:
                    self.head = text[: match.end()]
                    return match.end()
            depth += _depth_change(token[0])
        if len(text) > self.limits.header:
            raise TimelineFaultError(
                f"has no list traceEvents in its first {self.limits.header} bytes"
            )
        return -1

    def _check(self, text: bytes) -> None:
        """Raise if no record begins here, or if it exceeds the limits."""
        if text and not text.startswith(_OBJECT):
            raise TimelineFaultError(f"has {text[:_SHOWN]!r} where a record should begin")
        if len(text) > self.limits.record:
            raise TimelineFaultError(f"has a record of more than {self.limits.record} bytes")

    def _finish(self, rest: bytes) -> None:
        """Check the text after the records: more keys of an object, or nothing."""
        if rest[1:].strip() and not self._is_object:
            raise TimelineFaultError("continues after the end of its array")
        self.tail = rest

    def _take(self, text: bytes, position: int) -> tuple[list[Record], int]:
        """Return the complete records of a text from `position`, and the position after them."""
        position = _skip(text, position)
        end = max(text.rfind(end, position) for end in _ENDS) + 1
        if end > position:
            try:
                batch = self._many.decode(_ARRAY + text[position:end] + _END)
            except (ValueError, RecursionError):
                pass
            else:
                return batch, _skip(text, end)
        return self._split(text, position)

    def _split(self, text: bytes, position: int) -> tuple[list[Record], int]:
        """Do the same as `_take` by counting braces, skipping invalid records."""
        batch: list[Record] = []
        position = _skip(text, position)
        try:
            while (end := _record_end(text, position, self.limits.depth)) > 0:
                self._decode(text[position:end], batch)
                position = _skip(text, end)
        except TimelineFaultError as err:
            self._fault = err
        return batch, position

    def _decode(self, text: bytes, batch: list[Record]) -> None:
        try:
            batch.append(self._one.decode(text))
        except ValueError as err:
            self.skip(f"it cannot be decoded: {_PLACE.sub('', str(err))}")


def _skip(text: bytes, position: int) -> int:
    match = _BETWEEN.match(text, position)
    return match.end() if match is not None else position


def _depth_change(token: bytes) -> int:
    """Return the change of depth at a token.

    >>> _depth_change(b"{"), _depth_change(b"]"), _depth_change(b'"{"')
    (1, -1, 0)
    """
    if token[0] == _QUOTE:
        return 0
    return 1 if token in _OPENING else -1


def _record_end(text: bytes, position: int, deepest: int) -> int:
    """Return the end of the record that begins at `position`; 0 if it is incomplete or missing.

    Raises
    ------
    TimelineFaultError
        If it is nested too deeply.
    """
    if not text.startswith(_OBJECT, position):
        return 0
    depth = 0
    for token in _TOKEN.finditer(text, position):
        text_of_token = token[0]
        if text_of_token == b'"':
            return 0
        depth += _depth_change(text_of_token)
        if not depth:
            return token.end()
        if depth > deepest:
            raise TimelineFaultError(
                f"has a record of more than {deepest} nested objects and lists"
            )
    return 0
