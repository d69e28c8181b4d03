"""Details: a trial with its findings, and the names of its files."""

from pathlib import Path
from typing import Any

import pytest
import watched
from served import add
from served import rule as record
from starlette.testclient import TestClient

from rule_core.clock import SystemClock
from rule_runner.index.database import WatchDatabase
from rule_runner.results.schema import Evidence
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


def test_an_output_that_is_gone_says_so(client: TestClient) -> None:
    assert detail(client, 2)["files"] == []
    assert client.get("/api/v1/trials/9").status_code == 404
