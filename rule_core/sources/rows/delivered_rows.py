"""DeliveredRows: recognises rows that were delivered before, when a file is rewritten."""

from array import array
from collections.abc import Hashable, Iterable
from typing import Final

MARKS: Final = 1024  # digests are kept of so many first rows, and of each row at a multiple of it


class RowsDifferError(Exception):
    """A row differs from the one that was given at its place: the file holds something else."""


class DeliveredRows:
    """A rolling digest of the rows of a file, in a few bytes for a thousand rows."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forget all rows."""
        self._count = 0
        self._last = 0  # digest of all rows that were given
        self._marks = array("q")
        self.restart()

    def restart(self) -> None:
        """Expect the rows that were given, from the first one on."""
        self._position = 0
        self._digest = 0

    def is_new(self, row: Hashable) -> bool:
        """Return whether a row, which follows the one before, was not given yet; it is now.

        Raises
        ------
        RowsDifferError
            If this row, or an earlier one, is not the one that was given.
        """
        digest = self._digest = hash((self._digest, row))
        self._position += 1
        position = self._position
        is_marked = position <= MARKS or not position % MARKS
        if position > self._count:
            self._count = position
            self._last = digest
            if is_marked:
                self._marks.append(digest)
            return True
        is_other = is_marked and self._marks[_mark(position)] != digest
        if is_other or (position == self._count and self._last != digest):
            raise RowsDifferError
        return False

    def count_delivered(self, rows: Iterable[Hashable]) -> int:
        """Return how many of the next rows were given before; the others are given now.

        Raises
        ------
        RowsDifferError
            See `is_new`.
        """
        return sum(not self.is_new(row) for row in rows)


def _mark(position: int) -> int:
    """Return the place of the digest of the rows up to a position.

    >>> _mark(1), _mark(1024), _mark(2048), _mark(3072)
    (0, 1023, 1024, 1025)
    """
    return position - 1 if position <= MARKS else MARKS + position // MARKS - 2
