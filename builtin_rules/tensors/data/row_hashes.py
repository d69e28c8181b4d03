"""Row hashes: what a batch holds, and which of it was seen before, in bounded memory."""

from typing import Any, Final

MOST_ROWS: Final = 200_000  # remembered for each set; about 15 MB
MOST_OF_BATCH: Final = 4096  # rows of values that are hashed


def hashes(array: Any, *, fingerprints: bool) -> tuple[int, ...]:
    """Return a hash of each row.

    Parameters
    ----------
    fingerprints
        Whether the array already holds a hash of each row.
    """
    if fingerprints:
        return tuple(array.reshape(-1).tolist())
    return tuple(hash(row.tobytes()) for row in array[:MOST_OF_BATCH])


class SeenRows:
    """A set of row hashes that stops growing at `MOST_ROWS`."""

    def __init__(self) -> None:
        self._rows: set[int] = set()

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, row: int) -> bool:
        return row in self._rows

    def add(self, rows: tuple[int, ...]) -> None:
        """Remember rows, while there is room."""
        if len(self._rows) < MOST_ROWS:
            self._rows.update(rows)
