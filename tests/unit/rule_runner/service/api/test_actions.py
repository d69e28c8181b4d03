"""Actions: what is written, what a controller is asked for, and what is rejected."""

from pathlib import Path
from typing import Any

import pytest
import watched
from served import add
from served import rule as record
from starlette.testclient import TestClient

from rule_core.clock import SystemClock
from rule_runner.index.commands import Command, Commands, TrialAction
from rule_runner.index.database import WatchDatabase
from rule_runner.index.outputs import read_results
from rule_runner.results.acknowledgements import read_acknowledgements
from rule_runner.results.issues.acknowledged import finding_ids
from rule_runner.results.issues.incidents import incident_id
from rule_runner.results.schema import Evidence, RuleResult
from rule_runner.service.application import build_application
from rule_runner.service.service import Service
from rule_runner.service.settings import ServiceSettings


def fired(trial: Path) -> RuleResult:
    """Return a result with one finding."""
    evidence = [Evidence(20, "loss", None, 9.0, 3.0, None)]
    return watched.result(trial, outcome="IssuesFound", step=20, evidence=evidence)


class Client:
    """A client of a service with a judged, a running and a queued trial."""

    def __init__(self, folder: Path, *, is_watching: bool = True) -> None:
        self.output = folder / "output"
        trial = watched.log(folder / "runs")
        watched.save(self.output, fired(trial))
        database = folder / "watch.sqlite"
        with WatchDatabase(database) as index:
            add(index, str(trial), [record("LossSpike", "IssuesFound")], output=str(self.output))
            add(index, "/runs/2", state="running")
            add(index, "/runs/3", state="queued")
        self.commands = Commands() if is_watching else None
        service = Service(
            settings=ServiceSettings(),
            database=database,
            clock=SystemClock(),
            commands=self.commands,
        )
        self._client = TestClient(build_application(service), "http://localhost")

    def post(self, action: str, trial: object = 1, **body: Any) -> Any:
        """Post an action."""
        return self._client.post(f"/api/v1/trials/{trial}:{action}", json=body)

    def post_raw(self, body: bytes) -> Any:
        """Post the body of an acknowledgement."""
        return self._client.post("/api/v1/trials/1:acknowledge", content=body)


@pytest.fixture
def client(tmp_path: Path) -> Client:
    return Client(tmp_path)


def test_an_incident_is_acknowledged_by_its_root_cause_or_its_id(client: Client) -> None:
    (root,) = read_results(str(client.output))
    for incident in ("LossSpike", incident_id(root)):
        assert client.post("acknowledge", incident=incident, reason="known").status_code == 201
    assert [said.incident for said in read_acknowledgements(client.output)] == ["LossSpike"] * 2
    assert read_results(str(client.output))[0].is_acknowledged
    unknown = client.post("acknowledge", incident="Overfit", reason="known")
    assert (unknown.status_code, unknown.json()) == (
        404,
        {"error": "The trial has no incident 'Overfit'."},
    )


def test_an_acknowledgement_is_in_the_output_folder(client: Client) -> None:
    answer = client.post("acknowledge", rule="LossSpike", reason="known", until="2030-01-31")
    assert answer.status_code == 201
    (said,) = read_acknowledgements(client.output)
    assert (said.who, said.rule, said.kind, said.reason) == (
        "local",
        "LossSpike",
        "acknowledged",
        "known",
    )
    assert str(said.until) == "2030-01-31"
    assert client.commands is not None
    assert [*client.commands.taken()] == [Command(TrialAction.REFRESH, 1)]


@pytest.mark.parametrize(
    ("fields", "kind"),
    [({}, "acknowledged"), ({"mute": True}, "muted"), ({"withdraw": True}, "withdrawn")],
)
def test_kinds(fields: dict[str, bool], kind: str, client: Client) -> None:
    (result,) = read_results(str(client.output))
    finding = next(iter(finding_ids(result)))
    assert client.post("acknowledge", finding=finding, reason="x", **fields).status_code == 201
    assert [said.kind for said in read_acknowledgements(client.output)] == [kind]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"reason": "x"}, 400),
        ({"reason": "x", "rule": "LossSpike", "finding": "f"}, 400),
        ({"reason": "x", "rule": "Other"}, 404),
        ({"reason": "x", "finding": "none"}, 404),
        ({"rule": "LossSpike"}, 400),
        ({"rule": "LossSpike", "reason": ""}, 400),
        ({"rule": "LossSpike", "reason": "x" * 1001}, 400),
        ({"rule": "LossSpike", "reason": "x", "until": "soon"}, 400),
        ({"rule": "LossSpike", "reason": "x", "mutes": True}, 400),
        ({"rule": "LossSpike", "reason": "x", "who": "bob"}, 400),
    ],
)
def test_bad_bodies_write_nothing(body: dict[str, Any], status: int, client: Client) -> None:
    assert client.post("acknowledge", **body).status_code == status
    assert read_acknowledgements(client.output) == []


@pytest.mark.parametrize("body", [b"{", b"[]", b"\xff", b"[" * 60_000, b'"text"'])
def test_bodies_that_are_no_objects_are_rejected(body: bytes, client: Client) -> None:
    assert client.post_raw(body).status_code == 400


@pytest.mark.parametrize(
    ("action", "trial", "status"),
    [
        ("reevaluate", 1, 202),
        ("reevaluate", 2, 409),
        ("reevaluate", 3, 409),
        ("cancel", 1, 409),
        ("cancel", 2, 202),
        ("cancel", 3, 202),
        ("cancel", 4, 404),
        ("cancel", "x", 404),
        ("cancel", "9" * 30, 404),
    ],
)
def test_a_controller_is_asked_for_what_a_state_allows(
    action: str, trial: object, status: int, client: Client
) -> None:
    assert client.post(action, trial).status_code == status
    assert client.commands is not None
    assert len([*client.commands.taken()]) == (status == 202)


def test_the_index_of_another_controller_takes_acknowledgements_only(tmp_path: Path) -> None:
    client = Client(tmp_path, is_watching=False)
    assert client.post("reevaluate").status_code == 409
    assert client.post("acknowledge", rule="LossSpike", reason="x").status_code == 201
