"""Cursors: record which events of an output folder each sink has taken."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from rule_runner.results.durable_files import SCRATCH, open_regular, write_atomically
from rule_runner.results.file_names import DEAD_LETTERS, EVENTS

CURSOR: Final = "cursor-"


class Cursor:
    """The position up to which a sink has taken the events of an output folder.

    Parameters
    ----------
    folder
        The output folder.
    sink
        Name of the sink.
    """

    def __init__(self, folder: Path, sink: str) -> None:
        self._path = folder / SCRATCH / f"{CURSOR}{sink}"

    def read(self) -> int:
        """Return the position after the last event that the sink took; 0 if it is unknown."""
        try:
            return max(0, int(self._path.read_text("ascii")))
        except (OSError, ValueError):  # missing or damaged: send all again
            return 0

    def write(self, position: int) -> None:
        """Record a position; it is on disk when this returns.

        Raises
        ------
        OutputError
            If it cannot be written.
        """
        write_atomically(self._path, f"{position}\n")


def feeds_sinks(folder: Path) -> bool:
    """Return whether sinks read the events of this output folder."""
    return any(cursor_files(folder))


def has_undelivered(folder: Path) -> bool:
    """Return whether a sink has not taken all events of this output folder."""
    events = folder / EVENTS
    size = events.stat().st_size if events.is_file() else 0
    return any(position < size for position in _positions(folder))


def undelivered_events(folder: Path) -> int:
    """Return how many events of this output folder wait for a sink, or were refused by one."""
    waiting = _lines(folder / EVENTS, min(_positions(folder), default=None))
    return waiting + _lines(folder / DEAD_LETTERS, 0)


def cursor_files(folder: Path) -> Iterator[Path]:
    """Return the files of all cursors in an output folder."""
    return (folder / SCRATCH).glob(f"{CURSOR}*")


def _positions(folder: Path) -> Iterator[int]:
    """Yield the position of each sink that reads the events of this output folder."""
    names = (path.name.removeprefix(CURSOR) for path in cursor_files(folder))
    return (Cursor(folder, name).read() for name in names)


def _lines(path: Path, start: int | None) -> int:
    """Return how many lines of a file begin at or after a position; 0 if it cannot be read."""
    if start is None:
        return 0
    try:
        with os.fdopen(open_regular(path, os.O_RDONLY), "rb") as stream:
            stream.seek(start)
            return sum(1 for _ in stream)
    except OSError:
        return 0
