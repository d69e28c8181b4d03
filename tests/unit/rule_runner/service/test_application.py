"""The application over a real index: the table of trials, its query, and an index that is gone."""

from pathlib import Path

import pytest
from starlette.testclient import TestClient

from rule_core.clock import SystemClock
from rule_core.severity import Severity
from rule_runner.index.commands import Commands
from rule_runner.index.database import NewTrial, WatchDatabase
from rule_runner.index.records import RuleRecord
from rule_runner.index.states import WatchState
from rule_runner.service.access.tokens import Role, TokenFile
from rule_runner.service.application import build_application
from rule_runner.service.service import Service
from rule_runner.service.settings import ServiceSettings


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "watch.sqlite"
    with WatchDatabase(path) as index:
        index.add([NewTrial(f"/r/{n}", "/r", True, False, f"/o/{n}") for n in "ab"], 10.0)
        index.update(1, state=WatchState.JUDGED, outcome="IssuesFound", started_at=5.0)
        rule = RuleRecord(
            name="mine",
            rule="LossSpike",
            mode="enforce",
            outcome="IssuesFound",
            severity=Severity.ERROR,
            step=20,
            judged=3,
            findings=1,
            last_step=30,
        )
        index.set_rules(1, [rule])
    return path


@pytest.fixture
def client(database: Path) -> TestClient:
    service = Service(settings=ServiceSettings(), database=database, clock=SystemClock())
    return TestClient(build_application(service), "http://localhost")


def test_what_keeps_the_controller_waiting_is_said_beside_that_it_is_ready(database: Path) -> None:
    commands = Commands()
    service = Service(
        settings=ServiceSettings(), database=database, clock=SystemClock(), commands=commands
    )
    client = TestClient(build_application(service), "http://localhost")
    assert client.get("/readyz").text == "ready\n"
    commands.problem = "Executor 'ray://h:1' has disconnected."
    answer = client.get("/readyz")
    assert (answer.status_code, answer.text) == (200, f"ready\n{commands.problem}\n")
    commands.failure = "The controller has a defect."
    assert client.get("/readyz").status_code == 503


def test_the_table_has_trials_with_their_rules(client: TestClient) -> None:
    body = client.get("/api/v1/trials").json()
    assert (body["total"], [trial["path"] for trial in body["trials"]]) == (2, ["/r/a", "/r/b"])
    trial = body["trials"][0]
    assert (trial["severity"], trial["last_step"], trial["attempt"]) == ("error", 30, 1)
    assert trial["rules"][0]["name"] == "mine"


@pytest.mark.parametrize(
    ("query", "paths"),
    [
        ("sort=-path", ["/r/b", "/r/a"]),
        ("sort=-started&text=", ["/r/a", "/r/b"]),
        ("severity=error", ["/r/a"]),
        ("rule=mine&severity=warning", []),
        ("rule_outcome=IssuesFound", ["/r/a"]),
        ("page=2&limit=1", ["/r/b"]),
    ],
)
def test_a_query_filters_sorts_and_pages(client: TestClient, query: str, paths: list[str]) -> None:
    body = client.get(f"/api/v1/trials?{query}").json()
    assert [trial["path"] for trial in body["trials"]] == paths


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ("sorts=path", "Did you mean 'sort'?"),
        ("sort=-chnged", "Did you mean '-changed'?"),
        ("limit=x", "Expected `int`"),
        ("text=a&text=b", "'text' is given more than once."),
        ("state=null", "'state' cannot be null."),
    ],
)
def test_a_wrong_query_is_refused(client: TestClient, query: str, sentence: str) -> None:
    answer = client.get(f"/api/v1/trials?{query}")
    assert (answer.status_code, sentence in answer.json()["error"]) == (400, True)


def test_an_index_that_is_gone_is_said_in_a_sentence(client: TestClient, database: Path) -> None:
    assert client.get("/readyz").text == "ready\n"
    database.unlink()
    assert "does not exist" in client.get("/readyz").text
    answer = client.get("/api/v1/trials")
    assert (answer.status_code, answer.json()["error"].count("does not exist")) == (503, 1)
    assert client.get("/healthz").text == "ok\n"


def test_readiness_needs_no_token_and_tells_no_path(database: Path, tmp_path: Path) -> None:
    tokens = TokenFile(tmp_path / "tokens.json")
    secret = tokens.add("ann", Role.READ)
    settings = ServiceSettings(tokens=tokens.path)
    commands = Commands()
    service = Service(settings=settings, database=database, clock=SystemClock(), commands=commands)
    client = TestClient(build_application(service), "http://localhost")
    assert client.get("/readyz").text == "ready\n"
    commands.failure = "The disk /secret is full."
    answer = client.get("/readyz")
    assert (answer.status_code, answer.text) == (503, "Not ready.\n")
    known = client.get("/readyz", headers={"Authorization": f"Bearer {secret}"})
    assert (known.status_code, known.text) == (503, "The disk /secret is full.\n")
