"""The index on disk: one writer, readers beside it, and what may happen to its file."""

import sqlite3
import subprocess
import sys
from contextlib import closing, suppress
from pathlib import Path

import pytest

from rule_core.severity import Severity
from rule_runner.errors import OutputError
from rule_runner.index.database import NewTrial, WatchDatabase
from rule_runner.index.reader import IndexReader
from rule_runner.index.records import RuleRecord, TrialFilter
from rule_runner.index.states import WatchState

EARLIER = Path(__file__).parents[3] / "data" / "index-3.sql"


def new(name: str, root: str = "/runs") -> NewTrial:
    return NewTrial(f"/runs/{name}", root, True, False, f"/out/{name}")


def rule(name: str, outcome: str = "IssuesFound", **fields: object) -> RuleRecord:
    values = {
        "mode": "enforce",
        "severity": Severity.WARNING if outcome == "IssuesFound" else None,
        "step": 20,
        "judged": 3,
        "findings": 1,
        "counted_severity": Severity.WARNING if outcome == "IssuesFound" else None,
    }
    return RuleRecord(name=name, rule=name, outcome=outcome, **(values | fields))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "folder" / "watch.sqlite"


def test_trials_are_added_once_and_listed_by_filters(path: Path) -> None:
    with WatchDatabase(path) as database, IndexReader(path) as reader:
        assert database.add([new("b"), new("a")], 10.0) == 2
        assert database.add([new("a"), new("c")], 20.0) == 1
        a, b, _ = reader.trials()
        assert (a.path, a.state, a.changed_at, a.final) == (
            "/runs/a",
            WatchState.DISCOVERED,
            20.0 - 10.0,
            False,
        )
        database.update(a.id, state=WatchState.JUDGED, outcome="IssuesFound", ended_at=30.0)
        database.set_rules(a.id, [rule("LossSpike"), rule("DeadRelu", "NoIssuesFound")])
        database.set_rules(a.id, [rule("LossSpike"), rule("Overfit", "NotEvaluated")])
        names = [record.name for record in reader.rules_of(a.id)]
        assert names == ["LossSpike", "Overfit"]
        for fields, expected in (
            ({"state": WatchState.JUDGED}, ["/runs/a"]),
            ({"outcome": "IssuesFound"}, ["/runs/a"]),
            ({"text": "s/b"}, ["/runs/b"]),
            ({"text": "%"}, []),
            ({"rule": "Overfit"}, ["/runs/a"]),
            ({"rule": "Overfit", "rule_outcome": "IssuesFound"}, []),
            ({"rule": "LossSpike", "rule_outcome": "IssuesFound"}, ["/runs/a"]),
        ):
            listed = reader.trials(TrialFilter(**fields))
            assert [trial.path for trial in listed] == expected, fields
        assert [trial.path for trial in reader.trials(limit=1, offset=1)] == [b.path]
        assert reader.counts() == {("discovered", ""): 2, ("judged", "IssuesFound"): 1}
        assert reader.rule_counts()["LossSpike"]["IssuesFound"] == 1
        assert reader.has_issues(Severity.WARNING)
        assert not reader.has_issues(Severity.ERROR)
        database.set_rules(a.id, [rule("LossSpike", counted_severity=None)])
        assert not reader.has_issues(Severity.WARNING), "muted"


def test_a_trial_known_by_its_output_gets_its_root(path: Path) -> None:
    with WatchDatabase(path) as database:
        database.add([new("a", root="")], 10.0)
        assert database.paths() == set()
        database.add([new("a")], 20.0)
        assert database.paths() == {"/runs/a"}


def test_a_transaction_that_fails_writes_nothing(path: Path) -> None:
    def fail(database: WatchDatabase) -> None:
        with database.transaction():
            database.update(1, state=WatchState.QUEUED)
            raise RuntimeError

    with WatchDatabase(path) as database:
        database.add([new("a")], 10.0)
        with pytest.raises(RuntimeError):
            fail(database)
        assert [trial.state for trial in database.trials()] == [WatchState.DISCOVERED]


def test_a_second_writer_is_refused(path: Path) -> None:
    with WatchDatabase(path), pytest.raises(OutputError, match=r"is in use by process \d+\. Stop"):
        WatchDatabase(path)
    with WatchDatabase(path), pytest.raises(OutputError, match=r"is in use by process"):
        WatchDatabase.empty(path)
    WatchDatabase(path).close()


def test_a_locked_database_is_one_sentence(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rule_runner.index.sqlite_file.BUSY_MS", 10)
    with WatchDatabase(path) as database:
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(OutputError, match=r"cannot be used: database is locked\."):
            database.add([new("a")], 10.0)
        other.execute("ROLLBACK")
        other.close()
        assert database.add([new("a")], 10.0) == 1


def test_a_full_disk_is_one_sentence_and_costs_nothing(path: Path) -> None:
    with WatchDatabase(path) as database:
        database.add([new("a")], 10.0)
        (pages,) = database.connection.execute("PRAGMA page_count").fetchone()
        database.connection.execute(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(OutputError, match=r"cannot be used: database or disk is full\."):
            database.add([new(f"{number:0200}") for number in range(1000)], 20.0)
        assert [trial.path for trial in database.trials()] == ["/runs/a"]


def test_a_file_that_is_deleted_or_replaced_is_noticed(path: Path) -> None:
    with WatchDatabase(path) as database:
        assert not database.is_deleted
        path.rename(path.with_name("moved"))
        assert database.is_deleted
        path.touch()
        assert database.is_deleted


def test_a_damaged_file_names_the_remedy(path: Path) -> None:
    WatchDatabase(path).close()
    path.write_bytes(path.read_bytes()[:100] + b"garbage" * 1000)
    with pytest.raises(OutputError, match=r"is damaged: .* with --rebuild"):
        WatchDatabase(path)
    WatchDatabase.empty(path).close()
    WatchDatabase(path).close()


@pytest.mark.parametrize("kind", ["text", "zeros", "database"])
def test_a_file_of_something_else_is_left_as_it_is(path: Path, kind: str) -> None:
    path.parent.mkdir()
    if kind == "database":
        with sqlite3.connect(path) as other:
            other.execute("CREATE TABLE runs (id)")
        other.close()
    else:
        path.write_bytes(b"my notes" if kind == "text" else b"\0" * 5000)
    content = path.read_bytes()
    for use in (WatchDatabase, WatchDatabase.empty):
        with pytest.raises(OutputError, match=r"is not an index of .* Choose another file"):
            use(path)
    assert path.read_bytes() == content


def test_an_index_whose_writer_was_killed_is_known_as_one(path: Path) -> None:
    program = "import os, pathlib, sys; from rule_runner.index.database import WatchDatabase;"
    program += "WatchDatabase(pathlib.Path(sys.argv[1])); os.kill(os.getpid(), 9)"
    subprocess.run([sys.executable, "-c", program, str(path)], check=False)
    assert path.with_name("watch.sqlite-wal").stat().st_size > 0
    with WatchDatabase(path) as database:
        assert database.trials() == []


def test_a_database_of_another_version_names_the_remedy(path: Path) -> None:
    with WatchDatabase(path) as database:
        database.connection.execute("PRAGMA user_version = 99")
    with pytest.raises(OutputError, match=r"of another version of rule-runner.* with --rebuild"):
        WatchDatabase(path)


def test_an_index_of_the_version_before_is_upgraded_and_its_issues_are_read_again(
    path: Path,
) -> None:
    path.parent.mkdir()
    with closing(sqlite3.connect(path)) as earlier:
        earlier.executescript(EARLIER.read_text())
    for _ in range(2):
        with WatchDatabase(path) as database:
            overfit = rule("Overfit", "NoIssuesFound", step=None, judged=9, findings=0)
            assert [(job.name, job.root, job.step) for job in database.rules_of(1)] == [
                ("LossSpike", None, 20),
                ("Overfit", None, None),
            ]
            assert database.acknowledged() == [1]
            assert database.counts() == {("judged", "IssuesFound"): 1}
    with WatchDatabase(path) as database, IndexReader(path) as reader:
        reader.check_version()
        back = rule("LossSpike", counted_severity=None, recovered_at=50)
        database.set_rules(1, [back, overfit])
        assert reader.rules_of(1) == [back, overfit]
        assert reader.acknowledged() == [1]
        (trial,) = reader.trials()
        assert (trial.outcome, trial.verdict) == ("IssuesFound", "Recovered")
    with WatchDatabase(path.with_name("new.sqlite")) as new_database, IndexReader(path) as reader:
        text = "SELECT name, type FROM pragma_table_xinfo(?)"
        for table in ("trials", "rule_jobs"):
            columns = sorted(new_database.execute(text, table))
            assert sorted(reader.execute(text, table)) == columns


def test_issues_that_have_recovered_are_a_verdict_of_their_own(path: Path) -> None:
    back = rule("LossSpike", counted_severity=None, recovered_at=50)
    muted = rule("Overfit", counted_severity=None)
    failed = rule("Failed", "Error")
    with WatchDatabase(path) as database:
        database.add(map(new, "abcde"), 10.0)
        for number, rules in enumerate(
            ([back], [back, muted], [back, failed], [back, rule("Dead", root="Dead")], [muted]), 1
        ):
            database.update(number, state=WatchState.JUDGED, outcome="IssuesFound")
            database.set_rules(number, rules)
        verdicts = [trial.verdict for trial in database.trials()]
        assert verdicts == ["Recovered", "Recovered", "Error", "IssuesFound", "IssuesFound"]
        assert database.counts() == {
            ("judged", "Recovered"): 2,
            ("judged", "Error"): 1,
            ("judged", "IssuesFound"): 2,
        }
        assert database.rule_counts()["LossSpike"] == {"Recovered": 4}
        assert database.incident_counts() == {"warning": 1}
        for fields, expected in (
            ({"outcome": "Recovered"}, "ab"),
            ({"outcome": "IssuesFound"}, "de"),
            ({"rule": "LossSpike", "rule_outcome": "Recovered"}, "abcd"),
            ({"rule": "LossSpike", "rule_outcome": "IssuesFound"}, ""),
            ({"severity": Severity.WARNING}, "bde"),
        ):
            listed = database.trials(TrialFilter(**fields))
            assert "".join(trial.path[-1] for trial in listed) == expected, fields
        database.update(1, outcome="Stopped")
        assert database.trials()[0].verdict == "Stopped", "somebody cancelled it"


def test_a_missing_database_cannot_be_read(path: Path) -> None:
    with pytest.raises(OutputError, match="cannot be used: unable to open database file"):
        IndexReader(path)


def test_a_pause_of_before_the_clock_was_set_back_does_not_count(path: Path) -> None:
    with WatchDatabase(path) as database:
        database.add([new("a")], 10.0)
        database.update(1, state=WatchState.QUEUED, not_before=1000.0)
        assert database.startable(990.0, 5, is_new=True) == []
        assert len(database.startable(100.0, 5, is_new=True)) == 1
        assert len(database.startable(1000.0, 5, is_new=True)) == 1
        database.forget_pauses()
        assert len(database.startable(990.0, 5, is_new=True)) == 1


def test_what_waits_for_a_commit_is_not_done_after_a_rollback(path: Path) -> None:
    done: list[str] = []
    with WatchDatabase(path) as database:
        database.when_committed(lambda: done.append("at once"))
        with suppress(OutputError), database.transaction():
            database.when_committed(lambda: done.append("rolled back"))
            database.connection.execute("nonsense")
        with database.transaction():
            database.when_committed(lambda: done.append("committed"))
            assert done == ["at once"]
    assert done == ["at once", "committed"]


def test_continued_trials_are_told_from_new_ones_whatever_the_clock_says(path: Path) -> None:
    with WatchDatabase(path) as database:
        for name, now in (("a", 30.0), ("b", 20.0), ("c", 10.0)):
            database.add([new(name)], now)
        for number in (2, 3, 1):
            database.update(number, state=WatchState.QUEUED, started_at=1.0, changed_at=-number)
        ready = database.startable(100.0, 5, is_new=False)
        assert [trial.id for trial in ready] == [2, 3, 1]
        assert database.startable(100.0, 5, is_new=True) == []
