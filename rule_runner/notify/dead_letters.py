"""Dead letters: events that a receiver refused for good, stored to be sent again."""

import threading
from collections.abc import Collection, Iterable
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from rule_runner.notify.event import Event
from rule_runner.results.durable_files import JsonLines, write_atomically
from rule_runner.results.file_names import DEAD_LETTERS
from rule_runner.results.json_text import dump_json, rfc3339


class DeadLetter(msgspec.Struct, frozen=True, kw_only=True):
    """One line: an event, the sink that refused it, why, and when."""

    sink: str
    reason: str
    at: str
    event: Event

    @property
    def id(self) -> tuple[str, object]:
        """Identifies the letter: after a crash, the same event may be refused a second time."""
        return self.sink, self.event["id"]


class DeadLetters:
    """``dead-letters.jsonl`` of a locked output folder; created with the first letter.

    Parameters
    ----------
    folder
        The output folder.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / DEAD_LETTERS
        self._lock = threading.Lock()

    def read(self) -> list[DeadLetter]:
        """Return all letters in order, without duplicates.

        Raises
        ------
        OutputError
            If the file cannot be read.
        """
        if not self.path.exists():
            return []
        with JsonLines(self.path) as lines:
            return [*{letter.id: letter for letter in lines.read(DeadLetter)}.values()]

    def add(self, sink: str, refused: Iterable[tuple[Event, str]]) -> None:
        """Record events that a sink refused, with reasons; return when they are on disk.

        Raises
        ------
        OutputError
            If they cannot be recorded.
        """
        with self._lock, JsonLines(self.path) as lines:
            recorded = {letter.id for letter in lines.read(DeadLetter)}
            now = rfc3339(datetime.now(UTC))
            for event, reason in refused:
                letter = DeadLetter(sink=sink, reason=reason, at=now, event=event)
                if letter.id not in recorded:
                    lines.append(dump_json(letter), durable=True)

    def keep(self, sink: str, ids: Collection[object]) -> None:
        """Remove the letters of a sink, except for events with these ids.

        Raises
        ------
        OutputError
            If the file cannot be written.
        """
        with self._lock:
            letters = [
                letter for letter in self.read() if letter.sink != sink or letter.event["id"] in ids
            ]
            if letters:
                lines = "".join(f"{dump_json(letter)}\n" for letter in letters)
                write_atomically(self.path, lines)
            else:
                self.path.unlink(missing_ok=True)
