"""AlertStore: which alerts there were, and what became of their messages; it survives crashes."""

import enum
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from rule_core.failures import OnError
from rule_core.named_texts import NamedTexts
from rule_runner.index.sqlite_file import SqliteFile
from rule_runner.notify.messenger import Message
from rule_runner.results.durable_files import output_errors
from rule_runner.results.json_text import dump_json
from rule_runner.watch.alerts.alert import Alert
from rule_runner.watch.alerts.entries import AlertEntry, Recoveries, Wait, advance

HOUR_S: Final = 3600.0
LONGEST_PAUSE_S: Final = 3600.0  # between two attempts
_SQL: Final = NamedTexts(Path(__file__).with_suffix(".sql"))


class MessageKind(enum.IntEnum):
    """What a message is on: one alert, several, or one that receivers update."""

    SINGLE = 0
    DIGEST = 1
    UPDATE = 2


class UnsentMessage(NamedTuple):
    """A message that a service has not taken.

    Attributes
    ----------
    number
        Of the message.
    service
        The name of the service, without secrets.
    attempts
        How often it was tried.
    made_at
        When the message was made, in seconds since the epoch.
    """

    number: int
    service: str
    message: Message
    attempts: int
    made_at: float


class AlertStore(SqliteFile):
    """An SQLite database beside the index; unlike the index, it cannot be made again.

    Every change is on disk when its method returns.

    Parameters
    ----------
    path
        The database; created if missing.

    Raises
    ------
    OutputError
        If it cannot be used; from every method.
    """

    contents = ("Alerts", "are")
    remedy = "Remove the file: what is open is then told once more."
    schema_version = 2

    def __init__(self, path: Path) -> None:
        with output_errors(path):
            path.parent.mkdir(parents=True, exist_ok=True)
        super().__init__(path, "rwc")
        with OnError(self.close):
            self.execute("PRAGMA journal_mode = WAL")
            self.execute("PRAGMA synchronous = FULL")
            self.make_tables(_SQL)

    def keep_open(self, alerts: Sequence[Alert], recoveries: Recoveries, now: float) -> None:
        """Record what is open and what has recovered; see `rule_runner.watch.alerts.entries`."""
        rows = self.execute("SELECT id, content, told, waits, found_at FROM alerts ORDER BY id")
        before = {
            row[0]: AlertEntry(row[0], _alert(row[1]), row[2], Wait(row[3]), row[4]) for row in rows
        }
        entries = [*advance(before.values(), alerts, recoveries, now)]
        ended = [(row_id,) for row_id in before.keys() - {entry.id for entry in entries}]
        changed = [
            (entry.id, dump_json(entry.alert), *entry[2:])
            for entry in entries
            if entry.id is None or entry != before[entry.id]
        ]
        if ended or changed:
            with self.transaction():
                self.connection.executemany("DELETE FROM alerts WHERE id = ?", ended)
                self.connection.executemany("REPLACE INTO alerts VALUES (?, ?, ?, ?, ?)", changed)

    def waiting(self, waits: Wait = Wait.MESSAGE) -> list[Alert]:
        """Return the alerts with news that are in no message, the oldest first."""
        text = "SELECT content FROM alerts WHERE waits = ? ORDER BY found_at, id"
        return [_alert(content) for (content,) in self.execute(text, waits)]

    def shows(self, incident: str) -> bool:
        """Return whether there was a message on an incident alone, which receivers can update."""
        statement = "SELECT count(*) FROM messages WHERE kind = ? AND instr(content, ?)"
        return bool(self.execute(statement, MessageKind.SINGLE, incident)[0][0])

    def history(self, now: float) -> tuple[int, float | None]:
        """Return the number of messages on one alert in the last hour, and the last digest."""
        singles = "SELECT count(*) FROM messages WHERE kind = ? AND made_at BETWEEN ? AND ?"
        last = "SELECT max(made_at) FROM messages WHERE kind = ?"
        return (
            self.execute(singles, MessageKind.SINGLE, now - HOUR_S, now)[0][0],
            self.execute(last, MessageKind.DIGEST)[0][0],
        )

    def add_message(
        self,
        message: Message,
        alerts: Sequence[Alert],
        services: Sequence[str],
        now: float,
        kind: MessageKind,
    ) -> None:
        """Record a message on some alerts, which is to be delivered to each service."""
        content = dump_json(message)
        with self.transaction():
            number = self.connection.execute(
                "INSERT INTO messages (content, kind, made_at) VALUES (?, ?, ?)",
                (content, kind, now),
            ).lastrowid
            self.connection.executemany(
                _SQL["told"], [(Wait.MESSAGE, alert.phase, dump_json(alert)) for alert in alerts]
            )
            self.connection.executemany(
                "INSERT INTO deliveries (message, service) VALUES (?, ?)",
                [(number, service) for service in services],
            )

    def due(self, now: float) -> list[UnsentMessage]:
        """Return the messages to deliver now, the oldest first.

        A pause far in the future is one of before the clock was set back.
        """
        return [
            UnsentMessage(number, service, msgspec.json.decode(content, type=Message), *rest)
            for number, service, content, *rest in self.execute(
                _SQL["due"], now, now + LONGEST_PAUSE_S
            )
        ]

    def count_undelivered(self) -> int:
        """Return how many deliveries wait, due or not."""
        return int(self.execute("SELECT count(*) FROM deliveries")[0][0])

    def delivered(self, delivery: UnsentMessage) -> None:
        """Record that a service took a message, or that it is given up."""
        self.execute("DELETE FROM deliveries WHERE message = ? AND service = ?", *delivery[:2])

    def postpone(self, delivery: UnsentMessage, until: float) -> None:
        """Record that a service did not take a message, and when to try again."""
        self.execute(_SQL["postpone"], until, *delivery[:2])


def _alert(content: str) -> Alert:
    return msgspec.json.decode(content, type=Alert)
