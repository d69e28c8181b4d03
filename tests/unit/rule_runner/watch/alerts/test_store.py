"""The state of alerts: nothing is lost or repeated, also after a crash."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from rule_core.severity import Severity
from rule_runner.errors import OutputError
from rule_runner.notify.messenger import Message
from rule_runner.watch.alerts.alert import Alert
from rule_runner.watch.alerts.store import AlertStore

MESSAGE = Message("title", "body", serious=True, key="k")


def alert(name: str) -> Alert:
    return Alert(
        trial=1,
        path=f"/runs/{name}",
        output=f"/out/{name}",
        rule="Loss",
        outcome="IssuesFound",
        severity=Severity.ERROR,
    )


A, B, C = map(alert, "abc")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "folder" / "watch.sqlite-alerts"


@pytest.fixture
def store(path: Path) -> Iterator[AlertStore]:
    with AlertStore(path) as store:
        yield store


def test_alerts_wait_while_they_are_open_and_are_told_once(store: AlertStore, path: Path) -> None:
    store.keep_open([A, B], 1.0)
    store.keep_open([B, C], 2.0)
    assert store.waiting() == [B, C]
    store.add_message(MESSAGE, [B], ["s"], 3.0, is_digest=False)
    assert store.waiting() == [C]
    with AlertStore(path) as again:
        again.keep_open([C], 4.0)
        again.keep_open([A, B, C], 5.0)
        assert again.waiting() == [C, A]


def test_a_message_is_delivered_to_each_service(store: AlertStore) -> None:
    store.keep_open([A], 1.0)
    store.add_message(MESSAGE, [A], ["s", "t"], 2.0, is_digest=False)
    first, second = store.due(2.0)
    assert (first.service, first.message, first.attempts, first.made_at) == ("s", MESSAGE, 0, 2.0)
    store.delivered(first)
    store.postpone(second, 60.0)
    assert store.due(59.0) == []
    assert store.count_undelivered() == 1
    (again,) = store.due(60.0)
    assert (again.service, again.attempts) == ("t", 1)
    store.postpone(again, 1e6)
    assert [delivery.service for delivery in store.due(61.0)] == ["t"], "the clock was set back"


def test_the_history_counts_an_hour(store: AlertStore) -> None:
    assert store.history(0.0) == (0, None)
    for at in (100.0, 200.0):
        store.add_message(MESSAGE, [], ["s"], at, is_digest=False)
    store.add_message(MESSAGE, [], ["s"], 300.0, is_digest=True)
    assert store.history(400.0) == (2, 300.0)
    assert store.history(3750.0) == (1, 300.0)


def test_a_file_of_something_else_or_another_version_is_refused(path: Path) -> None:
    path.parent.mkdir()
    path.write_text("this is no database at all" * 100)
    with pytest.raises(OutputError, match=r"are damaged: file is not a database\. Remove the file"):
        AlertStore(path)
    path.unlink()
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(OutputError, match=r"another version of rule-runner\. Remove the file"):
        AlertStore(path)


def test_a_locked_file_is_an_error_and_changes_nothing(store: AlertStore, path: Path) -> None:
    store.connection.execute("PRAGMA busy_timeout = 1")
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(OutputError, match="database is locked"):
        store.keep_open([A], 1.0)
    other.execute("ROLLBACK")
    other.close()
    assert store.waiting() == []
