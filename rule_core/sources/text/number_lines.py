"""lines_with_numbers: the lines of a text that may be rows, found in many lines at once."""

import re
from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

NOT_FINITE: Final = r"[Nn][Aa][Nn]\b|[Ii][Nn][Ff](?:inity|INITY)?\b"
BLOCK: Final = 1 << 17  # characters that are searched at once, which fit into a processor's cache
_NOT_FINITE: Final = re.compile(NOT_FINITE)
# A line whose only digits are those of a date and a time.
_STAMPED: Final = re.compile(
    r"[^0-9|\n]*+[0-9]{4}[-/.][0-9]{2}[-/.][0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}(?:[.,][0-9]++)?"
    r"[^0-9\n]*+(?:\n|\Z)"
)
_SURE: Final = 2  # a mark that no time has


def lines_with_numbers(text: str) -> Iterator[tuple[int, int]]:
    r"""Yield the start and the end of each line with a number, or with a ``|``, which frames boxes.

    A date with a time is no number; ``nan`` and ``inf`` are.

    >>> [*lines_with_numbers("a\nloss 1\n2026-05-01 12:00:01 b\nloss nan")]
    [(2, 8), (31, 39)]
    """
    start = 0
    while start < len(text):
        end = text.rfind("\n", start, start + BLOCK) + 1 or text.find("\n", start + BLOCK) + 1
        end = end or len(text)
        codes = np.frombuffer(f"{text[start:end]}\n".encode("ascii", "replace"), np.uint8)
        marks = (codes - np.uint8(ord("0")) < 10).view(np.uint8)  # noqa: PLR2004 - digits
        marks |= codes == ord("|")
        for position in _like_undefined(codes).tolist():
            if _NOT_FINITE.match(text, start + position):
                marks[position] = _SURE
        ends = np.flatnonzero(codes == ord("\n"))
        starts = np.concatenate(([0], ends[:-1] + 1))
        kinds = np.maximum.reduceat(marks, starts)
        lines = np.stack((starts + start, ends + start, kinds), axis=1)
        for first, last, kind in lines[kinds > 0].tolist():
            if kind == _SURE or not _STAMPED.match(text, first):
                yield first, last
        start = end


def _like_undefined(codes: NDArray[np.uint8]) -> NDArray[np.intp]:
    """Return the positions of ``nan`` and ``inf`` that are not followed by a letter but ``i``."""
    lower = codes | np.uint8(0x20)
    is_n = lower == ord("n")
    is_nan = is_n[:-3] & is_n[2:-1] & (lower[1:-2] == ord("a"))
    is_inf = is_n[1:-2] & (lower[:-3] == ord("i")) & (lower[2:-1] == ord("f"))
    positions = np.flatnonzero(is_nan | is_inf)
    after = lower[positions + 3]
    return np.compress((after - np.uint8(ord("a")) >= 26) | (after == ord("i")), positions)  # noqa: PLR2004 - letters
