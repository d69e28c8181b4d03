"""TextDecoder: the text of a file whose encoding is recognised by its first bytes."""

import codecs
import io
from typing import Final

BINARY: Final = "It is a binary file, not text."
NOT_UTF8: Final = "It is not valid UTF-8. Its invalid bytes are read as Windows-1252."
_HEAD_BYTES: Final = 4  # that tell encodings apart, unless the first two are ASCII
_BINARY_BYTES: Final = 16  # in which nearly every binary file has a NUL
_LEGACY: Final = "rule_core.cp1252"


def _as_cp1252(err: UnicodeError) -> tuple[str, int]:
    """Decode bytes that are not UTF-8; an error handler for `codecs`."""
    if not isinstance(err, UnicodeDecodeError):
        raise err
    return err.object[err.start : err.end].decode("cp1252", "replace"), err.end


codecs.register_error(_LEGACY, _as_cp1252)


class TextDecoder:
    r"""Decodes UTF-8 and UTF-16 incrementally, and gives each end of a line as ``\n``.

    Attributes
    ----------
    problem
        A sentence on the encoding; "" if there is none.
    """

    def __init__(self) -> None:
        self.problem = ""
        self._head = b""
        self._codec: codecs.IncrementalDecoder | None = None

    def decode(self, data: bytes, *, is_last: bool = False) -> str:
        """Return the text of the next bytes; incomplete characters wait for more bytes."""
        if self._codec is None:
            self._head += data
            is_plain = self._head[:2].isascii() and 0 not in self._head[:2]
            if len(self._head) < (1 if is_last else 2 if is_plain else _HEAD_BYTES):
                return ""
            data = self._head.removeprefix(codecs.BOM_UTF8)
            encoding = _utf16_of(data[:_HEAD_BYTES])
            if not encoding and 0 in data[:_BINARY_BYTES]:
                self.problem = BINARY
            errors = "replace" if encoding else "strict"
            self._codec = codecs.getincrementaldecoder(encoding or "utf-8")(errors)
            self._lines = io.IncrementalNewlineDecoder(self._codec, translate=True)
        if self.problem == BINARY:
            return ""
        try:
            return self._lines.decode(data, is_last)
        except UnicodeDecodeError:
            self.problem, self._codec.errors = NOT_UTF8, _LEGACY
            return self._lines.decode(data, is_last)


def _utf16_of(head: bytes) -> str:
    """Return the codec of UTF-16, which has a mark, or a NUL in every second byte; else ""."""
    if head[:2] in {codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE}:
        return "utf-16"
    low, high = head[::2], head[1::2]
    if high and all(low) and not any(high):
        return "utf-16-le"
    return "utf-16-be" if high and all(high) and not any(low) else ""
