"""DatabaseRun: a run of MLflow in a SQLite database, the default store of MLflow 3."""

import math
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Final
from urllib.parse import quote

from rule_core.exceptions import SMDebugValueError
from rule_core.reading.source_record import SourceRecord
from rule_core.sources.mlflow.run import MetricPoint, MlflowRun
from rule_core.storage.base import StorageUnavailableError, TrialStore
from rule_core.storage.local import LocalStore

ROWS: Final = 50_000  # of metrics, read at once
LISTED: Final = 5  # runs in a message
BUSY_S: Final = 5.0  # to wait for a writer
LATEST: Final = "latest"
ENDED: Final = frozenset({"FINISHED", "FAILED", "KILLED"})
INFINITE: Final = 1.7976931348623157e308  # as MLflow stores infinity in SQL

_RUNS: Final = (
    "SELECT run_uuid, name FROM runs WHERE lifecycle_stage = 'active' ORDER BY start_time DESC"
)
_NEW: Final = (  # rows keep the order in which they were written; the index on run_uuid has it
    "SELECT rowid, key, value, timestamp, step, is_nan FROM metrics "
    "WHERE run_uuid = ? AND rowid > ? ORDER BY rowid LIMIT ?"
)
_TAG: Final = "SELECT value FROM tags WHERE run_uuid = ? AND key = ?"
_SET_TAG: Final = "INSERT OR REPLACE INTO tags (key, value, run_uuid) VALUES (?, ?, ?)"
_STATUS: Final = "SELECT status FROM runs WHERE run_uuid = ?"
_TABLES: Final = "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = ?"


class DatabaseRun(MlflowRun):
    """A run in a database, read by SQLite itself, in read-only mode.

    Parameters
    ----------
    key
        The key of the file, for messages.
    """

    def __init__(self, path: Path, key: str, run_id: str) -> None:
        super().__init__(f"MLflow run {run_id} in the SQLite database {key!r}")
        self._path = path
        self._key = key
        self._run_id = run_id
        self._row = 0

    @classmethod
    def at(cls, store: TrialStore, key: str) -> "DatabaseRun":
        """Return the run of ``FILE`` or ``FILE#RUN``, where ``RUN`` may be ``latest``.

        Raises
        ------
        SMDebugValueError
            If the file is not local, or no database of MLflow, or has several runs.
        """
        name, _, run_id = key.partition("#")
        if not isinstance(store, LocalStore):
            raise SMDebugValueError(
                f"The SQLite database {name!r} of MLflow must be a local file. Copy it, or give "
                "the run on a tracking server: mlflow:http://HOST/#/experiments/ID/runs/RUN."
            )
        path = store.root / name
        try:
            with _opened(path, name) as database:
                runs = [(str(run), str(title)) for run, title in database.execute(_RUNS)]
        except (sqlite3.Error, StorageUnavailableError) as err:
            raise SMDebugValueError(
                f"File {name!r} is not a readable SQLite database of MLflow: {err}".rstrip(".")
                + "."
            ) from err
        return cls(path, name, _chosen(runs, run_id, name))

    def read_new(self, record: SourceRecord) -> bool:
        """Pass on the new rows, in the order in which they were written; see `Source`."""
        try:
            with _opened(self._path, self._key) as database:
                rows = database.execute(_NEW, (self._run_id, self._row, ROWS)).fetchall()
        except sqlite3.OperationalError as err:  # locked, say: the next look tries again
            record.problem(f"It could not be read for a while: {err}.", self._key)
            return False
        except sqlite3.DatabaseError as err:
            raise StorageUnavailableError(self._key, f"SQLite says {str(err)!r}") from err
        for row, name, value, time, step, is_nan in rows:
            self._row = row
            point = _point(value, time, step, is_nan)
            if point is None or not isinstance(name, str):
                record.problem("Table 'metrics' has values other than numbers; skipped.", self._key)
            else:
                self.pass_on(name, point, record)
                self.written = max(self.written, point.time / 1000)
        return bool(rows)

    def has_ended(self) -> bool | None:
        """Return True if the run says so; see `MlflowRun`."""
        return True if self._text(_STATUS) in ENDED else None

    def tag(self, name: str) -> str:
        """Return a tag of the run; "" if it has none of this name."""
        return self._text(_TAG, name)

    def _text(self, query: str, *arguments: str) -> str:
        """Return the first value that a query finds of the run; "" if there is none."""
        with (
            suppress(sqlite3.Error, StorageUnavailableError),
            _opened(self._path, self._key) as database,
        ):
            row = database.execute(query, (self._run_id, *arguments)).fetchone()
            return str(row[0]) if row else ""
        return ""

    def set_tags(self, tags: Mapping[str, str]) -> None:
        """Set tags of the run.

        Raises
        ------
        OSError
            If they cannot be written.
        """
        rows = [(name, value, self._run_id) for name, value in tags.items()]
        address = f"file:{quote(str(self._path.absolute()))}?mode=rw"
        try:
            with closing(sqlite3.connect(address, uri=True, timeout=BUSY_S)) as database, database:
                database.executemany(_SET_TAG, rows)
        except sqlite3.Error as err:
            raise OSError(str(err)) from err


@contextmanager
def _opened(path: Path, key: str) -> Iterator[sqlite3.Connection]:
    """Open a database for reading only."""
    if not path.is_file():
        raise StorageUnavailableError(key, "it does not exist or is no file")
    address = f"file:{quote(str(path.absolute()))}?mode=ro"
    with closing(sqlite3.connect(address, uri=True, timeout=BUSY_S)) as database:
        database.execute("PRAGMA trusted_schema = OFF")
        for table in ("metrics", "runs"):  # a view could run for ever
            if database.execute(_TABLES, (table,)).fetchone() != (1,):
                raise sqlite3.DatabaseError(f"it has no table {table!r}")
        yield database


def _chosen(runs: list[tuple[str, str]], run_id: str, key: str) -> str:
    """Return the ID of the run that was named, or of the only one."""
    ids = [run for run, _ in runs]
    if run_id in ids:
        return run_id
    if ids and (run_id == LATEST or (not run_id and len(ids) == 1)):
        return ids[0]
    if not ids:
        raise SMDebugValueError(f"The database {key!r} of MLflow has no runs yet.")
    listed = ", ".join(f"{run} ({title})" for run, title in runs[:LISTED])
    more = f" and {len(runs) - LISTED} more" if len(runs) > LISTED else ""
    problem = f"has no run {run_id!r}" if run_id else f"has {len(runs)} runs"
    raise SMDebugValueError(
        f"The database {key!r} of MLflow {problem}. Name one, as in mlflow:{key}#{ids[0]}, or the "
        f"newest with mlflow:{key}#{LATEST}. Newest first: {listed}{more}."
    )


def _point(value: object, time: object, step: object, is_nan: object) -> MetricPoint | None:
    """Return the number of a row; None if it holds none: SQLite accepts any type anywhere."""
    if not (isinstance(value, int | float) and isinstance(time, int) and isinstance(step, int)):
        return None
    return MetricPoint(time, step, math.nan if is_nan else unlimited(float(value)))


def unlimited(value: float) -> float:
    """Return a number with infinity where MLflow stored the largest one instead.

    >>> unlimited(-1.7976931348623157e308), unlimited(2.0)
    (-inf, 2.0)
    """
    return math.copysign(math.inf, value) if abs(value) >= INFINITE else value
