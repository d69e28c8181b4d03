"""WatchDatabase: the index of `watch`, which its controller writes."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

from rule_core.named_texts import NamedTexts
from rule_runner.errors import OutputError
from rule_runner.index.leases import Lease, holder
from rule_runner.index.reader import IndexReader
from rule_runner.index.records import RuleRecord, standing_of
from rule_runner.index.states import WatchState
from rule_runner.results.durable_files import open_regular, output_errors

_SQL: Final = NamedTexts(Path(__file__).with_suffix(".sql"))
# An index that was made without it gets it.
_BY_TURN: Final = "CREATE INDEX IF NOT EXISTS trials_by_turn ON trials (state, revision)"
_APPLICATION: Final = 0x72727768  # "rrwh" in the header of the file
_HEADER: Final = b"SQLite format 3\0"
_HEADER_SIZE: Final = 100
_CLOSED: Final = (0, 0)  # the identity of no file
_APPLICATION_BYTES: Final = slice(68, 72)
_ADD_RULE: Final = "INSERT INTO rule_jobs VALUES"
_UPDATE: Final = "UPDATE trials SET"


class NewTrial(NamedTuple):
    """A trial that is not in the index yet."""

    path: str
    root: str
    tensors: bool
    profiler: bool
    output: str


class WatchDatabase(IndexReader):
    """The index of `watch`; only one process has it open for writing.

    Parameters
    ----------
    path
        The database; created with its folder if missing.

    Raises
    ------
    OutputError
        If it cannot be used, another process uses it, or another version of rule-runner wrote it.
    """

    def __init__(self, path: Path) -> None:
        self._calls: list[Callable[[], object]] = []
        self._open(path)

    def _open(self, path: Path) -> None:
        with output_errors(path):
            path.parent.mkdir(parents=True, exist_ok=True)
        self._lease = _only_writer(path)
        try:
            _check_own(path)
            super().__init__(path, "rwc")
            if path.stat().st_size == 0:  # before WAL, so that it is in the file itself
                self.execute(f"PRAGMA application_id = {_APPLICATION}")
            self.execute("PRAGMA journal_mode = WAL")
            self.execute("PRAGMA synchronous = NORMAL")
            self.execute("PRAGMA foreign_keys = ON")
            self.make_tables(_SQL)
            with self.transaction():
                self.execute(_BY_TURN)
            self._file = _identity(path)
        except OutputError:
            self._lease.close()
            raise

    @classmethod
    def empty(cls, path: Path) -> Self:
        """Open a new database in place of the one at `path`.

        Raises
        ------
        OutputError
            If another process uses it, it is a file of something else, or it cannot be removed.
        """
        with output_errors(path):
            path.parent.mkdir(parents=True, exist_ok=True)
        with _only_writer(path):
            _check_own(path)
            for suffix in ("", "-wal", "-shm"):
                with output_errors(path), suppress(FileNotFoundError):
                    path.with_name(path.name + suffix).unlink()
        return cls(path)

    def close(self) -> None:
        """Close the database, and let another process use it."""
        super().close()
        self._lease.close()
        self._file = _CLOSED

    def reopen(self) -> None:
        """Open the file at the same path, which is created if missing; may be tried again."""
        self.close()
        self._open(self.path)

    @property
    def is_deleted(self) -> bool:
        """Whether the file was deleted or replaced, or could not be opened again."""
        return _identity(self.path) != self._file

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Commit what the block writes, or nothing of it after an exception.

        Raises
        ------
        OutputError
            If the database cannot be written.
        """
        self._calls.clear()
        with super().transaction():
            yield
        for call in self._calls:
            call()

    def when_committed(self, call: Callable[[], object]) -> None:
        """Call a function when the open transaction is committed; at once if there is none."""
        if self.connection.in_transaction:
            self._calls.append(call)
        else:
            call()

    def add(self, trials: Iterable[NewTrial], now: float) -> int:
        """Add trials as discovered, and return how many were added.

        A trial of which only the output was known gets its root. Others that are there stay as
        they are.
        """
        rows = [(*trial, WatchState.DISCOVERED, now, now) for trial in trials]
        with self.transaction():
            return self.connection.executemany(_SQL["add"], rows).rowcount

    def update(self, number: int, **fields: Any) -> None:
        """Change fields of a trial."""
        names = ", ".join(f"{name} = ?" for name in fields)
        self.execute(f"{_UPDATE} {names} WHERE id = ?", *fields.values(), number)

    def forget_pauses(self) -> None:
        """Make every queued trial due now."""
        self.execute(f"{_UPDATE} not_before = 0 WHERE not_before != 0")

    def remove(self, number: int) -> None:
        """Remove a trial."""
        self.execute("DELETE FROM trials WHERE id = ?", number)

    def set_rules(self, number: int, rules: Sequence[RuleRecord]) -> None:
        """Replace the rule jobs of a trial."""
        text = f"{_ADD_RULE} (?{', ?' * len(RuleRecord.__struct_fields__)})"
        rows = [
            (number, *(getattr(rule, name) for name in rule.__struct_fields__)) for rule in rules
        ]
        with self.errors():
            self.connection.execute("DELETE FROM rule_jobs WHERE trial = ?", (number,))
            self.connection.executemany(text, rows)
            # Triggers see that the trial changed, also if this is the same as before.
            self.connection.execute(
                f"{_UPDATE} standing = ?, revision = revision WHERE id = ?",
                (standing_of(rules), number),
            )


def _check_own(path: Path) -> None:
    """Check that a file is an index of `watch`, empty or missing: others are not touched.

    Raises
    ------
    OutputError
        If it is a file of something else.
    """
    try:
        with output_errors(path), os.fdopen(open_regular(path, os.O_RDWR), "rb") as stream:
            header = stream.read(_HEADER_SIZE)
    except OutputError as err:
        if isinstance(err.__cause__, FileNotFoundError):
            return
        raise
    number = int.from_bytes(header[_APPLICATION_BYTES], "big")
    if header and not (header.startswith(_HEADER) and number == _APPLICATION):
        raise OutputError(
            f"{str(path)!r} is not an index of 'rule-runner watch', and is left as it is. Choose "
            "another file with --database."
        )


def _only_writer(path: Path) -> Lease:
    """Return the lease of a database.

    Raises
    ------
    OutputError
        If another process holds it.
    """
    lock = path.with_name(f"{path.name}.lock")
    lease = Lease.take(lock)
    if lease is None:
        raise OutputError(
            f"Database {str(path)!r} is in use by process {holder(lock)}. Stop that process, or "
            "choose another file with --database."
        )
    lease.name_holder(os.getpid())
    return lease


def _identity(path: Path) -> tuple[int, int] | None:
    """Return numbers that identify the file at `path`; None if there is none."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino
