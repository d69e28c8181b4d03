"""DatabaseRun: a run in a SQLite database of MLflow."""

import random
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import mlflow_runs
import pytest
from memory_store import MemoryStore
from mlflow_runs import ROWS, RUN, WRITER, add_rows, add_run, end_run, run_files
from source_content import content, opened, read

from rule_core.exceptions import SMDebugValueError
from rule_core.sources.format import SourceFolder
from rule_core.sources.mlflow.format import FORMAT, SQLITE_HEAD
from rule_core.storage.local import LocalStore

OTHER = "f" * 32
NAME = "mlflow.db"


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / NAME
    add_run(path)
    return path


def test_a_database_holds_what_the_files_hold(database: Path) -> None:
    add_rows(database, ROWS)
    index = read(FORMAT, LocalStore(database.parent), NAME)
    assert content(index) == content(read(FORMAT, MemoryStore(run_files(ROWS))))
    assert "inf" in {value for *_, value in content(index)}


def test_new_rows_are_read_live(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rule_core.sources.mlflow.database_run.ROWS", 4)
    index = opened(FORMAT, LocalStore(database.parent), NAME)
    assert not index.refresh()
    draw = random.Random(1)
    rest = [*ROWS]
    while rest:
        count = draw.randint(1, 5)
        add_rows(database, rest[:count])
        del rest[:count]
        index.refresh()
    assert content(index) == content(read(FORMAT, MemoryStore(run_files(ROWS))))
    assert index.sources[0].has_ended() is None
    end_run(database, "FAILED")
    assert index.sources[0].has_ended() is True


def test_a_run_is_named_if_there_are_several(database: Path) -> None:
    add_run(database, OTHER, start=1_800_000_000_000)
    add_rows(database, ROWS)
    add_rows(database, ROWS[:3], OTHER)
    store = LocalStore(database.parent)
    with pytest.raises(SMDebugValueError, match=f"has 2 runs. Name one.*{OTHER} .*{RUN} "):
        opened(FORMAT, store, NAME)
    with pytest.raises(SMDebugValueError, match="has no run 'x'"):
        opened(FORMAT, store, f"{NAME}#x")
    assert len(content(read(FORMAT, store, f"{NAME}#{RUN}"))) == len(ROWS)
    assert len(content(read(FORMAT, store, f"{NAME}#latest"))) == 3


def test_other_files_are_refused(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    (tmp_path / NAME).write_bytes(SQLITE_HEAD + b"\xff" * 500)
    (tmp_path / "text.db").write_bytes(b"hello")
    with closing(sqlite3.connect(tmp_path / "other.db")) as other:
        other.execute("CREATE TABLE t (x)")
    with closing(sqlite3.connect(tmp_path / "view.db")) as view:
        view.executescript(
            "CREATE TABLE runs (x); CREATE VIEW metrics AS WITH RECURSIVE a(x) AS "
            "(SELECT 1 UNION ALL SELECT x FROM a) SELECT * FROM a"
        )
    for name in (NAME, "text.db", "other.db", "view.db", "absent.db"):
        with pytest.raises(SMDebugValueError, match="is not a readable SQLite database of MLflow"):
            opened(FORMAT, store, name)
    with pytest.raises(SMDebugValueError, match="must be a local file"):
        opened(FORMAT, MemoryStore({}), NAME)
    add_run(tmp_path / "empty.db")
    with closing(sqlite3.connect(tmp_path / "empty.db")) as empty:
        empty.execute("DELETE FROM runs")
        empty.commit()
    with pytest.raises(SMDebugValueError, match="no runs yet"):
        opened(FORMAT, store, "empty.db")


def test_values_of_other_types_are_skipped(database: Path) -> None:
    add_rows(database, ROWS)
    with closing(sqlite3.connect(database)) as changed:
        changed.execute("UPDATE metrics SET value = 'x' WHERE key = 'grad_norm' AND step = 2")
        changed.execute("UPDATE metrics SET key = x'00ff' WHERE key = 'val_loss' AND step = 2")
        changed.execute("UPDATE metrics SET step = -1 WHERE key = 'val_loss' AND step = 3")
        changed.commit()
    index = read(FORMAT, LocalStore(database.parent), NAME)
    assert len(content(index)) == len(ROWS) - 3
    assert index.file_problems.problems


def test_a_locked_database_is_read_later(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rule_core.sources.mlflow.database_run.BUSY_S", 0.01)
    add_rows(database, ROWS[:4])
    index = read(FORMAT, LocalStore(database.parent), NAME)
    with closing(sqlite3.connect(database, isolation_level=None)) as writer:
        writer.execute("BEGIN EXCLUSIVE")
        index.refresh()
        writer.execute("ROLLBACK")
    add_rows(database, ROWS[4:])
    index.refresh()
    assert len(content(index)) == len(ROWS)


def test_nothing_is_written(database: Path) -> None:
    add_rows(database, ROWS)
    before = database.read_bytes()
    read(FORMAT, LocalStore(database.parent), NAME)
    assert database.read_bytes() == before
    assert [path.name for path in database.parent.iterdir()] == [NAME]


def test_a_database_is_recognized_by_name_and_content(database: Path) -> None:
    store = LocalStore(database.parent)
    folder = SourceFolder(
        "", [NAME, "other.db"], lambda _: [], lambda name: bytes(store.read(name)[:100])
    )
    assert [item.key for item in FORMAT.recognize(folder)] == [NAME]


def test_a_database_that_mlflow_wrote(tmp_path: Path) -> None:
    pytest.importorskip("mlflow", reason="mlflow is not installed.")
    pytest.importorskip("sqlalchemy", reason="sqlalchemy is not installed.")
    command = [sys.executable, "-c", WRITER, f"sqlite:///{tmp_path}/{NAME}"]
    subprocess.run(command, check=True, capture_output=True, cwd=tmp_path)
    index = read(FORMAT, LocalStore(tmp_path), NAME)
    assert index.has_ended()
    mlflow_runs.check_written(content(index))
