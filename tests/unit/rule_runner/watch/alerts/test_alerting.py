"""Alerts of a fleet, to real servers here and as requests to the services of others."""

import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import http_places
import mail_server
import pytest
import reports
import responses
import watched
from alerted import Index, issue
from clocks import PatientClock
from http_places import Answer
from structlog.testing import capture_logs

from rule_core.severity import Severity
from rule_runner.index.records import RuleRecord
from rule_runner.notify.messenger import Message, Messenger
from rule_runner.results.json_text import json_digest
from rule_runner.watch.alerts.alerting import (
    GIVE_UP_S,
    RETRY_S,
    Alerting,
    alerting,
    details_of,
    services_of,
    state_path,
)
from rule_runner.watch.alerts.open_alerts import OpenAlerts
from rule_runner.watch.alerts.store import AlertStore
from rule_runner.watch.config import AlertsConfig

# Apprise imports it in Python 3.11 and 3.12.
pytestmark = pytest.mark.filterwarnings("ignore:'imghdr' is deprecated:DeprecationWarning")

URL = "https://rules.example.org"
SERVICES = {
    "slack": (
        "slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ/#training",
        "https://hooks.slack.com/services/T1JJ3T3L2/",
    ),
    "teams": (
        "workflows://prod-1.westus.logic.azure.com:443/643e69f83c8944/iWgxkb9dvWLZvi",
        "https://prod-1.westus.logic.azure.com:443/workflows/",
    ),
    "pagerduty": (
        "pagerduty://A1BRTD4JD@TIiajkdnlazkcOXrIdevi7F",
        "https://events.pagerduty.com/v2/enqueue",
    ),
}


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Index]:
    with closing(Index(tmp_path)) as index:
        yield index


def config(*addresses: str, **fields: Any) -> AlertsConfig:
    return AlertsConfig(sinks=tuple(f"apprise:{address}" for address in addresses), **fields)


def opened(index: Index, config: AlertsConfig, clock: PatientClock) -> Alerting:
    clock.now = max(clock.now, 1e6)
    return Alerting(config, index.path, services_of(config), URL, clock)


def recovered(name: str) -> RuleRecord:
    return issue(name, counted_severity=None, recovered_at=90)


def json_of(place: http_places.Place) -> str:
    return place.url.replace("http:", "json:")


def titles(place: http_places.Place) -> list[str]:
    return [json.loads(request.body)["title"] for request in place.requests]


def test_an_issue_is_told_once_with_a_link_and_again_if_more_serious(index: Index) -> None:
    number = index.judge("a", issue("Loss", "warning"))
    with http_places.serving() as place:
        settings, clock = config(json_of(place)), PatientClock()
        with opened(index, settings, clock) as alerts:
            alerts.look()
            alerts.look()
        with opened(index, settings, clock) as alerts:
            alerts.look()
            index.judge("a", issue("Loss", "error"), issue("Quiet", acknowledged=True))
            alerts.look()
    assert titles(place) == ["a: Loss found issues (warning)", "a: Loss found issues (error)"]
    body = json.loads(place.requests[0].body)
    assert f"{URL}/trials/{number}" in body["message"].splitlines()
    assert body["type"] == "warning"


def test_an_incident_is_one_alert_and_tells_its_end_over_restarts(index: Index) -> None:
    loss = issue("Loss", "warning", root="Loss", since=40)
    caused = issue("Loss", "warning", root="Spike", since=40)
    spike = issue("Spike", "warning", root="Spike", since=30)
    with http_places.serving() as place:
        settings, clock = config(json_of(place)), PatientClock()
        for rules in (
            [loss],
            [caused, spike],
            [caused, spike, issue("Dead", "warning", root="Spike", since=60)],
            [*map(recovered, ("Loss", "Spike")), issue("Dead", acknowledged=True)],
            [*map(recovered, ("Dead", "Loss", "Spike"))],
        ):
            index.judge("a", *rules)
            for _ in range(2):
                with opened(index, settings, clock) as alerts:
                    alerts.look()
    assert titles(place) == ["a: Loss found issues (warning)", "a: Spike has recovered"]
    last = json.loads(place.requests[1].body)
    assert last["type"] == "success"
    assert last["message"].startswith("recovered at step 90\n")
    keys = {request.headers["Idempotency-Key"] for request in place.requests}
    assert len(keys) == 2


def test_a_service_that_can_update_an_incident_does(index: Index) -> None:
    spike = issue("Spike", root="Spike")
    with responses.RequestsMock() as transport, http_places.serving() as place:
        transport.add_passthru(place.url)
        transport.add(responses.POST, SERVICES["pagerduty"][1], status=202)
        address = f"{SERVICES['pagerduty'][0]}/?action=map"
        settings = config(address, json_of(place), most_per_hour=1)
        with opened(index, settings, PatientClock()) as alerts:
            index.judge("a", spike)
            alerts.look()
            index.judge("a", spike, issue("Loss", root="Spike"))
            alerts.look()
            index.judge("a", *map(recovered, ("Loss", "Spike")))
            alerts.finish()
        bodies = [json.loads(call.request.body or b"") for call in transport.calls]
    bodies = [body for body in bodies if "event_action" in body]
    assert [body["event_action"] for body in bodies] == ["trigger", "trigger", "resolve"]
    assert len({body["dedup_key"] for body in bodies}) == 1
    assert "What may follow from it: Loss" in bodies[1]["payload"]["summary"]
    assert titles(place) == ["a: Spike found issues (error)", "a: Spike has recovered"]


def test_many_at_once_are_a_digest_and_a_second_one_waits(index: Index) -> None:
    with http_places.serving() as place:
        clock = PatientClock()
        settings = config(json_of(place), most_per_hour=2, digest_every="10m")
        with opened(index, settings, clock) as alerts:
            for number in range(5):
                index.judge(f"first-{number}", issue())
            alerts.look()
            for number in range(5):
                index.judge(f"second-{number}", issue())
            alerts.look()
            assert titles(place) == ["5 alerts on 5 trials"]
            clock.now += 600.0
            alerts.look()
            for name in "abc":
                index.judge(name, issue())
                alerts.look()
            assert titles(place)[1:] == [
                "5 alerts on 5 trials",
                "a: Loss found issues (error)",
                "b: Loss found issues (error)",
            ]
            alerts.finish()
    assert titles(place)[4:] == ["c: Loss found issues (error)"]


def test_what_is_acknowledged_meanwhile_is_not_told(index: Index) -> None:
    with http_places.serving() as place:
        clock = PatientClock()
        with opened(index, config(json_of(place), most_per_hour=0), clock) as alerts:
            index.judge("a", issue())
            alerts.look()
            index.judge("b", issue())
            alerts.look()
            index.judge("b", issue(acknowledged=True))
            clock.now += 3600.0
            alerts.look()
    assert titles(place) == ["a: Loss found issues (error)"]


def test_a_service_that_is_down_gets_the_same_message_later(index: Index) -> None:
    index.judge("a", issue())
    answers = [Answer(500), Answer(), Answer()]
    with http_places.serving(lambda _: answers.pop(0)) as down, http_places.serving() as up:
        clock = PatientClock()
        with opened(index, config(json_of(down), json_of(up)), clock) as alerts:
            with capture_logs() as logs:
                alerts.look()
                alerts.look()
            assert [log["event"] for log in logs] == ["alert_not_sent", "alert_sent"] or [
                log["event"] for log in logs
            ] == ["alert_sent", "alert_not_sent"]
            clock.now += RETRY_S
            alerts.look()
    assert (len(down.requests), len(up.requests)) == (2, 1)
    keys = {request.headers["Idempotency-Key"] for request in (*down.requests, *up.requests)}
    assert len(keys) == 1


def test_a_message_that_nobody_takes_is_given_up_after_a_day(index: Index) -> None:
    index.judge("a", issue())
    with http_places.serving(lambda _: Answer(403)) as place:
        clock = PatientClock(1e9)
        with opened(index, config(json_of(place)), clock) as alerts, capture_logs() as logs:
            alerts.look()
            clock.now += GIVE_UP_S + 1
            alerts.finish()
    assert [log["event"] for log in logs] == ["alert_not_sent", "alert_given_up"]
    assert all("127.0.0.1" not in log["service"] for log in logs)


def test_a_service_that_is_not_configured_any_more_gets_nothing(index: Index) -> None:
    index.judge("a", issue())
    with http_places.serving(lambda _: Answer(500)) as old, http_places.serving() as new:
        clock = PatientClock()
        with opened(index, config(json_of(old)), clock) as alerts:
            alerts.look()
        clock.now += RETRY_S
        with opened(index, config(json_of(new)), clock) as alerts, capture_logs() as logs:
            alerts.finish()
    assert (len(old.requests), new.requests, logs) == (1, [], [])


def test_trouble_with_the_index_is_logged_once_and_passes(index: Index) -> None:
    index.judge("a", issue())
    with http_places.serving() as place:
        hidden = index.path.with_suffix(".hidden")
        with opened(index, config(json_of(place)), PatientClock()) as alerts:
            index.path.rename(hidden)
            with capture_logs() as logs:
                alerts.look()
                alerts.look()
            assert [log["event"] for log in logs] == ["alerts_unavailable"]
            hidden.rename(index.path)
            alerts.look()
    assert len(place.requests) == 1


def test_a_message_has_the_first_finding_that_counts(index: Index, tmp_path: Path) -> None:
    fired = reports.fired("Loss", fingerprint="1")
    failed = reports.result("Failed", "Error", status_details="ClientError: no loss.")
    watched.save(tmp_path / "out" / "a", fired, failed)
    index.judge("a", issue("Loss"), issue("Failed", None, outcome="Error"), issue("Unknown"))
    index.judge("b", issue("Loss"))
    alerts = OpenAlerts(index.path, Severity.ERROR)
    state = alerts.changed()
    assert state is not None
    texts = {(alert.path, alert.rule): details_of(alert) for alert in state.alerts}
    assert texts == {
        ("/runs/a", "Loss"): "step 20, gradient/fc of worker_0, measured 1e-8, limit 1e-7",
        ("/runs/a", "Failed"): "no loss.",
        ("/runs/a", "Unknown"): "step 130",
        ("/runs/b", "Loss"): "step 130",
    }


def test_what_could_not_be_recorded_is_told_later(
    index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    index.judge("a", issue())
    monkeypatch.setattr("rule_runner.index.sqlite_file.BUSY_MS", 1)
    with (
        http_places.serving() as place,
        opened(index, config(json_of(place)), PatientClock()) as alerts,
    ):
        other = sqlite3.connect(state_path(index.path), isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with capture_logs() as logs:
            alerts.look()
        other.close()
        assert "database is locked" in logs[0]["reason"]
        alerts.look()
        assert len(place.requests) == 1


def test_messages_are_delivered_without_an_index(index: Index) -> None:
    index.judge("a", issue())
    answers = [Answer(500), Answer()]
    with http_places.serving(lambda _: answers.pop(0)) as place:
        clock = PatientClock()
        with opened(index, config(json_of(place)), clock) as alerts:
            alerts.look()
            index.close()
            index.path.unlink()
            clock.now += RETRY_S
            alerts.look()
    assert len(place.requests) == 2
    index.database = Index(index.path.parent).database


@pytest.mark.parametrize("name", SERVICES)
def test_services_get_requests_of_theirs(index: Index, name: str) -> None:
    address, url = SERVICES[name]
    number = index.judge("<!channel> <b>&", issue())
    status = 202 if name == "pagerduty" else 200
    with responses.RequestsMock() as transport:
        transport.add(responses.POST, re.compile(".*"), status=status, body="ok")
        with opened(index, config(address), PatientClock()) as alerts:
            alerts.look()
        (call,) = transport.calls
    body = call.request.body
    text = body.decode() if isinstance(body, bytes) else str(body)
    assert str(call.request.url).startswith(url)
    assert f"{URL}/trials/{number}" in text
    key = re.search(r"Message ([0-9a-f]{16})", text)
    assert key is not None
    if name == "teams":
        assert f"[{URL}/trials/{number}]({URL}/trials/{number})" in text
    if name == "slack":
        assert "<!channel>" not in text
    if name == "pagerduty":
        assert json.loads(text)["dedup_key"] == json_digest(["/runs/<!channel> <b>&", "Loss"], 16)


def test_an_e_mail_arrives(index: Index) -> None:
    index.judge("a", issue())
    with mail_server.receiving() as mails:
        address = f"mailto://127.0.0.1:{mails.port}?from=rules@example.org&to=team@example.org"
        with opened(index, config(address), PatientClock()) as alerts:
            alerts.look()
    (letter,) = mails.letters
    assert b"Subject: a: Loss found issues (error)" in letter.content
    assert f"{URL}/trials/".encode() in letter.content


def test_the_thread_sends_while_the_block_runs_and_the_rest_at_its_end(index: Index) -> None:
    index.judge("a", issue())
    arrived = threading.Event()

    def answer(_: http_places.Request) -> Answer:
        arrived.set()
        return Answer()

    with http_places.serving(answer) as place:
        settings = config(json_of(place), most_per_hour=1)
        with alerting(settings, index.path, services_of(settings), None, once=True):
            assert arrived.wait(60)
            index.judge("b", issue())
            index.judge("c", issue())
    assert titles(place) == ["a: Loss found issues (error)", "2 alerts on 2 trials"]


def test_without_alerts_nothing_is_written(index: Index) -> None:
    with alerting(None, index.path, {}, None):
        pass
    assert not state_path(index.path).exists()


def test_what_apprise_raises_is_a_message_that_was_not_sent(index: Index) -> None:
    class Broken(Messenger):
        def send(self, message: Any) -> None:
            raise RuntimeError(message.title)

    index.judge("a", issue())
    settings, clock = config("json://localhost"), PatientClock()
    clock.now = 1e6
    services = {"x": Broken("json://localhost")}
    with Alerting(settings, index.path, services, None, clock) as alerts, capture_logs() as logs:
        alerts.look()
    assert [(log["event"], log["reason"]) for log in logs] == [
        ("alert_not_sent", "Apprise failed: a: Loss found issues (error)")
    ]


class Listener(Messenger):
    """A service here, which keeps the messages."""

    def __init__(self) -> None:
        self.messages: list[Message] = []

    @property
    def updates(self) -> bool:
        return False

    def send(self, message: Message) -> None:
        self.messages.append(message)


class KilledError(BaseException):
    """Stands for the death of the process."""


class Deaths:
    """Lets the process die after a step between recording and sending."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, at: int) -> None:
        self.calls = 0
        self._at = at
        for owner, name in (
            (AlertStore, "keep_open"),
            (AlertStore, "add_message"),
            (Listener, "send"),
            (AlertStore, "delivered"),
        ):
            monkeypatch.setattr(owner, name, self._mortal(getattr(owner, name)))

    def _mortal(self, call: Any) -> Any:
        def mortal(*args: Any, **kwargs: Any) -> None:
            call(*args, **kwargs)
            self.calls += 1
            if self.calls == self._at:
                raise KilledError

        return mortal


INCIDENT = (
    [issue("Loss", root="Loss", since=40)],
    [issue("Loss", root="Spike", since=40), issue("Spike", root="Spike", since=30)],
    [recovered("Loss"), issue("Spike", root="Spike", since=30)],
    [recovered("Loss"), recovered("Spike")],
    [issue("Loss", root="Loss", since=95), recovered("Spike")],
)
LIFE = ["a: Loss found issues (error)", "a: Spike has recovered", "a: Loss found issues (error)"]


@pytest.mark.parametrize(("others", "count"), [(0, 2), (4, 1)])
def test_an_incident_that_was_in_a_digest_is_not_updated(
    index: Index, monkeypatch: pytest.MonkeyPatch, others: int, count: int
) -> None:
    monkeypatch.setattr(Listener, "updates", True)
    people = Listener()
    with Alerting(config(), index.path, {"people": people}, None, PatientClock(1e6)) as alerts:
        for number in range(others):
            index.judge(f"other-{number}", issue())
        index.judge("a", issue("Spike", root="Spike"))
        alerts.look()
        index.judge("a", issue("Spike", root="Spike"), issue("Loss", root="Spike"))
        alerts.look()
        alerts.look()
    assert len(people.messages) == count


@pytest.mark.parametrize("at", range(1, 22))
def test_a_death_at_any_moment_repeats_no_news_and_loses_none(
    index: Index, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    deaths, people = Deaths(monkeypatch, at), Listener()
    for rules in INCIDENT:
        index.judge("a", *rules)
        for _ in range(2):
            services = {"people": people}
            alerts = Alerting(config(), index.path, services, None, PatientClock(1e6))
            with alerts, suppress(KilledError):
                alerts.look()
    by_key = {message.key: message.title for message in people.messages}
    assert [*by_key.values()] == LIFE
    assert len(people.messages) <= len(LIFE) + 1
    assert deaths.calls >= at, "there are fewer moments"


PROGRAM = """
import sys, threading
from pathlib import Path
from rule_runner.watch.alerts.alerting import alerting, services_of
from rule_runner.watch.config import AlertsConfig

config = AlertsConfig(sinks=(sys.argv[2],))
with alerting(config, Path(sys.argv[1]), services_of(config), None):
    sys.stdin.read()
"""


def run(index: Index, place: http_places.Place) -> "subprocess.Popen[bytes]":
    arguments = [str(index.path), f"apprise:{json_of(place)}"]
    return subprocess.Popen([sys.executable, "-c", PROGRAM, *arguments], stdin=subprocess.PIPE)


def test_a_kill_while_a_message_is_under_way_loses_nothing_and_keeps_its_key(index: Index) -> None:
    for name in "ab":
        index.judge(name, issue())
    reached, release = threading.Event(), threading.Event()
    again = threading.Event()

    def answer(_: http_places.Request) -> Answer:
        if len(place.requests) == 2:
            reached.set()
            release.wait(60)
        elif len(place.requests) == 3:
            again.set()
        return Answer()

    with http_places.serving(answer) as place:
        with run(index, place) as killed:
            assert reached.wait(60)
            os.kill(killed.pid, signal.SIGKILL)
        release.set()
        with run(index, place) as second:
            assert again.wait(60)
            assert second.stdin is not None
            second.stdin.close()
        assert second.returncode == 0
    keys = [request.headers["Idempotency-Key"] for request in place.requests]
    assert len(keys) == 3
    assert keys[1] == keys[2] != keys[0]
