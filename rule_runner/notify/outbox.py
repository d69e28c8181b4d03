"""Outbox: every event is on disk before any sink gets it; cursors record what each sink took."""

import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import msgspec

from rule_runner.errors import OutputError
from rule_runner.notify.dead_letters import DEAD_LETTERS, DeadLetters
from rule_runner.notify.event import COMPLETED, DecodedEvent, Event, EventDetail, RuleState
from rule_runner.results.durable_files import (
    SCRATCH,
    Closing,
    FolderLock,
    JsonLines,
    make_folder,
    open_regular,
    output_errors,
    remove_files,
    write_atomically,
)
from rule_runner.results.json_text import dump_json

EVENTS: Final = "events.jsonl"
CURSOR: Final = "cursor-"


class Outbox(Closing):
    """``events.jsonl`` of one output folder, locked until `close`.

    One outbox serves all rule jobs of one evaluation. An event with a known key is not
    written again.

    Parameters
    ----------
    folder
        Created with its parents if missing.
    overwrite
        Whether to remove the events and cursors of an earlier evaluation.

    Attributes
    ----------
    dead_letters
        Events that sinks refused for good.
    size
        Bytes of ``events.jsonl`` that are safely on disk.
    next_sequence
        ``EventSequence`` of the next event; continues after a restart.
    published
        The last published state of each rule job, by its name.
    published_end
        Whether an event reported the end of the training job.

    Raises
    ------
    OutputError
        If the folder cannot be used or is in use.
    """

    def __init__(self, folder: Path, *, overwrite: bool = False) -> None:
        make_folder(folder)
        self.folder = folder
        self.path = folder / EVENTS
        self.dead_letters = DeadLetters(folder)
        with ExitStack() as stack:
            stack.callback(FolderLock(folder, "events.lock").release)
            if overwrite:
                remove_files([self.path, self.dead_letters.path, *_cursors(folder)])
            self._events = JsonLines(self.path)
            stack.callback(self._events.close)
            details = [event.detail for event in self._events.read(DecodedEvent)]
            self._open = stack.pop_all()
        self._keys: set[str] = set()
        self.published: dict[str, RuleState] = {}
        self.published_end = False
        self.next_sequence = 1
        for detail in details:
            self._add(detail)
        self.size = self._events.size

    def _add(self, detail: EventDetail) -> None:
        """Record the content of an event that is on disk."""
        self._keys.add(detail.event_key)
        self.published |= {state.configuration_name: state for state in detail.states()}
        self.published_end = self.published_end or detail.training_job_status == COMPLETED
        self.next_sequence = max(self.next_sequence, detail.event_sequence + 1)

    def publish(self, event: Event) -> bool:
        """Record `event`; return when it is on disk.

        Returns
        -------
        bool
            False if an event with the same key is recorded already.

        Raises
        ------
        OutputError
            If it cannot be recorded.
        """
        return self.record(*encoded(event))

    def record(self, text: str, detail: EventDetail) -> bool:
        """Record an encoded event; see `publish`."""
        if detail.event_key in self._keys:
            return False
        self._events.append(text, durable=True)
        self._add(detail)
        self.size = self._events.size
        return True

    def close(self) -> None:
        """Close the file and unlock the folder."""
        self._open.close()


def encoded(event: Event) -> tuple[str, EventDetail]:
    """Return the line of an event, and its content."""
    text = dump_json(event)
    return text, msgspec.json.decode(text, type=DecodedEvent).detail


def read_events(path: Path, start: int = 0, end: int | None = None) -> Iterator[tuple[int, Event]]:
    """Yield each event from byte `start`, with the position after its line.

    May be called while another thread or process adds events.

    Parameters
    ----------
    start
        0, or the position after a line; any other position counts as 0.
    end
        The position to end at; None is the end of the last complete line.

    Raises
    ------
    OutputError
        If the file cannot be read, or a line is not an event.
    """
    with output_errors(path), os.fdopen(open_regular(path, os.O_RDONLY), "rb") as stream:
        if start > 0:
            stream.seek(start - 1)
            if stream.read(1) != b"\n":
                start = 0
        stream.seek(max(start, 0))
        position = max(start, 0)
        for line in stream:
            position += len(line)
            if not line.endswith(b"\n") or (end is not None and position > end):
                return
            try:
                yield position, msgspec.json.decode(line, type=Event)
            except msgspec.DecodeError as err:
                msg = f"{str(path)!r} has a line that is not an event, got {line[:80]!r}."
                raise OutputError(msg) from err


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
    return any(_cursors(folder))


def has_undelivered(folder: Path) -> bool:
    """Return whether a sink has not taken all events of this output folder."""
    events = folder / EVENTS
    size = events.stat().st_size if events.is_file() else 0
    return any(position < size for position in _positions(folder))


def undelivered_events(folder: Path) -> int:
    """Return how many events of this output folder wait for a sink, or were refused by one."""
    waiting = _lines(folder / EVENTS, min(_positions(folder), default=None))
    return waiting + _lines(folder / DEAD_LETTERS, 0)


def _positions(folder: Path) -> Iterator[int]:
    """Yield the position of each sink that reads the events of this output folder."""
    names = (path.name.removeprefix(CURSOR) for path in _cursors(folder))
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


def _cursors(folder: Path) -> Iterator[Path]:
    return (folder / SCRATCH).glob(f"{CURSOR}*")
