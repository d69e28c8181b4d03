"""Details: a trial with its findings, and the names of its files."""

from pathlib import Path
from typing import Any

import pytest
import reports
import watched
from served import add
from served import rule as record
from starlette.testclient import TestClient

from rule_core.clock import SystemClock
from rule_core.severity import Severity
from rule_runner.index.database import WatchDatabase
from rule_runner.index.outputs import read_output
from rule_runner.results.issues.incidents import incident_id
from rule_runner.results.schema import Evidence
from rule_runner.results.status import FindingState
from rule_runner.service.application import build_application
from rule_runner.service.service import Service
from rule_runner.service.settings import ServiceSettings


@pytest.fixture
def output(tmp_path: Path) -> Path:
    return tmp_path / "output"


@pytest.fixture
def client(tmp_path: Path, output: Path) -> TestClient:
    trial = watched.log(tmp_path / "runs")
    evidence = [Evidence(20, "loss", None, 9.0, 3.0, None)]
    found = watched.result(trial, outcome="IssuesFound", step=20, evidence=evidence)
    watched.save(output, found)
    database = tmp_path / "watch.sqlite"
    with WatchDatabase(database) as index:
        add(index, str(trial), [record("LossSpike", "IssuesFound")], output=str(output))
        add(index, "/runs/gone", output=str(tmp_path / "gone"))
        add(index, "/runs/far", output="s3://bucket/far")
    service = Service(settings=ServiceSettings(), database=database, clock=SystemClock())
    return TestClient(build_application(service), "http://localhost")


def detail(client: TestClient, number: int) -> Any:
    return client.get(f"/api/v1/trials/{number}").json()


def test_a_trial_has_its_findings_and_files(client: TestClient) -> None:
    trial = detail(client, 1)
    assert [rule["name"] for rule in trial["rules"]] == ["LossSpike"]
    assert [finding["rule"] for finding in trial["findings"]] == ["LossSpike"]
    assert trial["findings"][0]["id"]
    assert [name for name in trial["files"] if name.endswith("results.json")]
    assert trial["problem"] == ""


def test_a_trial_has_its_incidents(tmp_path: Path) -> None:
    advice = Evidence(20, "loss", None, 9.0, 3.0, None, summary="It is 9.", advice="Clip.")
    back: dict[str, Any] = {"state": FindingState.RECOVERED, "recovered_at": 50}
    results = [
        reports.fired("Dead", rule="DeadRelu", severity=Severity.WARNING),
        reports.result("Spike", "IssuesFound", rule="LossSpike", step=20, evidence=[advice]),
        reports.fired("Tree", rule="TreeDepth", severity=Severity.WARNING),
        reports.fired("Zero", rule="AllZero", severity=Severity.ERROR, **back),
    ]
    for result in results:
        reports.save(tmp_path / "out" / result.configuration_name, result)
    with WatchDatabase(tmp_path / "watch.sqlite") as index:
        output = str(tmp_path / "out")
        add(index, "/runs/a", read_output(output).rules, output=output)
    service = Service(
        settings=ServiceSettings(), database=tmp_path / "watch.sqlite", clock=SystemClock()
    )
    client = TestClient(build_application(service), "http://localhost")
    trial = detail(client, 1)
    first, second = trial["incidents"]
    assert first == {
        "id": incident_id(results[1]),
        "severity": "error",
        "root": "Spike",
        "consequences": ["Dead"],
        "state": "broken",
        "since": 20,
        "sentence": "It is 9.",
        "advice": "Clip.",
        "acknowledged": False,
    }
    assert (second["state"], second["root"], second["advice"]) == ("suspicious", "Tree", "")
    assert second["sentence"].startswith("step 20, gradient/fc of worker_0")
    assert trial["severity"] == "warning", "what has recovered does not count"
    assert (trial["verdict"], trial["since"], trial["sentence"]) == ("IssuesFound", 20, "It is 9.")
    rules = {rule["name"]: rule for rule in trial["rules"]}
    assert (rules["Zero"]["outcome"], rules["Zero"]["verdict"], rules["Zero"]["recovered_at"]) == (
        "IssuesFound",
        "Recovered",
        50,
    )
    assert not rules["Zero"]["acknowledged"]
    (listed,) = client.get("/api/v1/trials?outcome=IssuesFound").json()["trials"]
    assert (listed["sentence"], listed["rules"][0]["root"]) == ("It is 9.", "Spike")
    page = client.get("/trials/1").text
    start = page.index('<section class="card incident IssuesFound"')
    assert start < page.index('id="verdicts"')
    for text in ("Broken</span> since step 20", "It is 9. <strong>Clip.</strong>", "1 rule found"):
        assert text in page[start:]
    assert "step 20, recovered at step 50" in page
    assert '<td class="why" title="It is 9.">' in client.get("/trials").text


def test_an_output_that_is_gone_says_so(client: TestClient) -> None:
    assert detail(client, 2)["files"] == []
    assert client.get("/api/v1/trials/9").status_code == 404
