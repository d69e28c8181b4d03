"""The state of alerts: nothing is lost or repeated, also after a crash."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from rule_core.severity import Severity
from rule_runner.errors import OutputError
from rule_runner.notify.messenger import Message
from rule_runner.results.json_text import dump_json
from rule_runner.watch.alerts.alert import Alert
from rule_runner.watch.alerts.entries import Wait
from rule_runner.watch.alerts.store import AlertStore, MessageKind

SINGLE = MessageKind.SINGLE
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
EARLIER = """
CREATE TABLE messages (id INTEGER PRIMARY KEY, content TEXT NOT NULL,
    is_digest INTEGER NOT NULL, made_at REAL NOT NULL);
CREATE TABLE alerts (key TEXT PRIMARY KEY, content TEXT NOT NULL, found_at REAL NOT NULL,
    message INTEGER REFERENCES messages (id)) WITHOUT ROWID;
CREATE TABLE deliveries (message INTEGER NOT NULL REFERENCES messages (id),
    service TEXT NOT NULL, attempts INTEGER NOT NULL DEFAULT 0,
    not_before REAL NOT NULL DEFAULT 0, PRIMARY KEY (message, service)) WITHOUT ROWID;
INSERT INTO messages VALUES (1, '["title","body",true,"k",[]]', 0, 1.0);
INSERT INTO deliveries (message, service) VALUES (1, 's');
PRAGMA user_version = 1;
"""


def paths(store: AlertStore) -> list[str]:
    return [alert.path for alert in store.waiting()]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "folder" / "watch.sqlite-alerts"


@pytest.fixture
def store(path: Path) -> Iterator[AlertStore]:
    with AlertStore(path) as store:
        yield store


def test_alerts_wait_while_they_are_open_and_are_told_once(store: AlertStore, path: Path) -> None:
    store.keep_open([A, B], {}, 1.0)
    store.keep_open([B, C], {}, 2.0)
    assert paths(store) == [B.path, C.path]
    store.add_message(MESSAGE, store.waiting()[:1], ["s"], 3.0, SINGLE)
    assert paths(store) == [C.path]
    with AlertStore(path) as again:
        again.keep_open([C], {}, 4.0)
        again.keep_open([A, B, C], {}, 5.0)
        assert paths(again) == [C.path, A.path]


def test_alerts_of_the_version_before_are_not_told_again(path: Path) -> None:
    path.parent.mkdir()
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(EARLIER)
        for name, message in (("Loss", 1), ("Rate", 1), ("Waiting", None)):
            content = dump_json({**msgspec.to_builtins(A), "rule": name})
            row = (name, content, 1.0, message)
            connection.execute("INSERT INTO alerts VALUES (?, ?, ?, ?)", row)
        connection.commit()
    with AlertStore(path) as store:
        assert [message.message for message in store.due(2.0)] == [MESSAGE]
        waiting = replace(A, rule="Waiting", path="/runs/w")
        store.keep_open([replace(A, consequences=("Rate",)), waiting], {}, 2.0)
        assert paths(store) == ["/runs/w"]
        assert store.history(1000.0) == (1, None)
        store.keep_open([], {A.path: {"Loss": 30, "Rate": 20}}, 3.0)
        (recovered,) = store.waiting()
        assert (recovered.recovered_at, recovered.rules) == (30, {"Loss", "Rate"})


def test_an_update_tells_nobody_of_another_phase(store: AlertStore) -> None:
    joined, milder = replace(A, consequences=("B",)), replace(A, severity=Severity.WARNING)
    for alerts, waits in (([A], Wait.MESSAGE), ([joined], Wait.UPDATE), ([milder], Wait.UPDATE)):
        store.keep_open(alerts, {}, 1.0)
        (waiting,) = store.waiting(waits)
        store.add_message(MESSAGE, [waiting], ["s"], 1.0, MessageKind.UPDATE)
    store.keep_open([joined], {}, 2.0)
    assert store.waiting() == []
    assert len(store.waiting(Wait.UPDATE)) == 1
    assert store.history(2.0) == (0, None)


def test_a_message_is_delivered_to_each_service(store: AlertStore) -> None:
    store.keep_open([A], {}, 1.0)
    store.add_message(MESSAGE, [A], ["s", "t"], 2.0, SINGLE)
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
        store.add_message(MESSAGE, [], ["s"], at, SINGLE)
    store.add_message(MESSAGE, [], ["s"], 300.0, MessageKind.DIGEST)
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
        store.keep_open([A], {}, 1.0)
    other.execute("ROLLBACK")
    other.close()
    assert store.waiting() == []
