"""SqliteFile: a database in a file, whose errors are sentences."""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, Final

from rule_core.named_texts import NamedTexts
from rule_runner.errors import OutputError
from rule_runner.results.durable_files import Closing

BUSY_MS: Final = 5000  # how long a statement waits for another process


class SqliteFile(Closing):
    """An SQLite database; subclasses say what it holds.

    Parameters
    ----------
    path
        The database.
    mode
        How to open it, as in URIs of SQLite.

    Attributes
    ----------
    contents
        The subject of its error messages, and the verb.
    remedy
        What to do if it is damaged.
    schema_version
        The version of its tables.

    Raises
    ------
    OutputError
        If it cannot be opened.
    """

    contents: ClassVar[tuple[str, str]]
    remedy: ClassVar[str]
    schema_version: ClassVar[int]

    def __init__(self, path: Path, mode: str = "ro") -> None:
        self.path = path
        with self.errors():
            self.connection = sqlite3.connect(
                f"{path.absolute().as_uri()}?mode={mode}",
                uri=True,
                isolation_level=None,
                check_same_thread=False,  # it may be handed to another thread, not shared
            )
            self.connection.execute(f"PRAGMA busy_timeout = {BUSY_MS}")

    def close(self) -> None:
        """Close the database."""
        self.connection.close()

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Turn every error of the database into an `OutputError` of one sentence."""
        subject, verb = self.contents
        try:
            yield
        except sqlite3.OperationalError as err:
            raise OutputError(f"{subject} {str(self.path)!r} cannot be used: {err}.") from err
        except sqlite3.Error as err:
            raise OutputError(
                f"{subject} {str(self.path)!r} {verb} damaged: {err}. {self.remedy}"
            ) from err

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Commit what the block writes, or nothing of it after an exception.

        Raises
        ------
        OutputError
            If the database cannot be written.
        """
        with self.errors(), self.connection:  # which commits, or rolls back
            self.connection.execute("BEGIN IMMEDIATE")
            yield

    def make_tables(self, statements: NamedTexts) -> None:
        """Make the tables of a new database, or upgrade those of the version before.

        Parameters
        ----------
        statements
            ``tables`` and ``upgrade``; empty lines separate the statements in them.

        Raises
        ------
        OutputError
            If it has those of another version.
        """
        names = {self.schema_version - 1: "upgrade", 0: "tables"}
        with self.transaction():
            if name := names.get(self.version()):
                for statement in statements[name].split("\n\n"):
                    self.execute(statement)
                self.execute(f"PRAGMA user_version = {self.schema_version}")
        self.check_version()

    def version(self) -> int:
        """Return the version of the tables; 0 if there are none."""
        return int(self.execute("PRAGMA user_version")[0][0])

    def check_version(self) -> None:
        """Check that this version of rule-runner knows the tables.

        Raises
        ------
        OutputError
            If it does not.
        """
        if self.version() != self.schema_version:
            subject, verb = self.contents
            raise OutputError(
                f"{subject} {str(self.path)!r} {verb} of another version of rule-runner. "
                f"{self.remedy}"
            )

    def execute(self, statement: str, *values: object) -> Sequence[Any]:
        """Execute a statement, and return its rows."""
        with self.errors():
            return self.connection.execute(statement, values).fetchall()
