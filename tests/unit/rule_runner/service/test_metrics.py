"""Metrics: what Prometheus reads."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families
from served import add, rule, service
from starlette.testclient import TestClient

from rule_runner.index.database import WatchDatabase
from rule_runner.service.application import build_application

ROOT = Path(__file__).parents[4]
MONITORING = ROOT / "examples" / "monitoring"


@pytest.fixture
def text(tmp_path: Path) -> str:
    database = tmp_path / "watch.sqlite"
    with WatchDatabase(database) as index:
        add(index, "/runs/a secret", [rule(outcome="IssuesFound", rule_time=1.5)], restarts=2)
        add(index, "/runs/b", [rule(known=50, judged=20, skipped=10)], state="running")
        add(index, "/runs/c", undelivered=3)
        add(index, "/runs/d", undelivered=4, removed=True)
        back = rule("LossSpike", "IssuesFound", counted_severity=None, recovered_at=150)
        add(index, "/runs/e", [back, rule("Overfit")])
        add(index, "/runs/f", [rule("LossSpike", "IssuesFound", root="LossSpike")])
    client = TestClient(build_application(service(database)), "http://localhost")
    client.get("/api/v1/trials/7")
    return client.get("/metrics").text


def test_the_index_and_the_service_are_measured(text: str) -> None:
    values = {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    name = "VanishingGradient"
    assert values["rule_runner_rule_jobs", "IssuesFound", name] == 1
    assert values["rule_runner_judged_steps", name] == 40
    assert values["rule_runner_waiting_steps", name] == 20
    assert values["rule_runner_rule_seconds", name] == 1.5
    assert values["rule_runner_restarts",] == 2
    assert values["rule_runner_undelivered_events",] == 3
    assert values["rule_runner_http_requests_total", "/api/v1/trials/{trial}", "404"] == 1
    assert values["rule_runner_trials", "IssuesFound", "judged"] == 2
    assert values["rule_runner_trials", "Recovered", "judged"] == 1
    assert values["rule_runner_rule_jobs", "Recovered", "LossSpike"] == 1
    assert values["rule_runner_incidents", "warning"] == 1
    assert "secret" not in text


@pytest.mark.parametrize("path", sorted(MONITORING.iterdir()), ids=lambda path: path.name)
def test_examples_use_metrics_that_exist(path: Path, text: str) -> None:
    used = set(re.findall(r"rule_runner_\w+", path.read_text()))
    assert used <= set(re.findall(r"^(rule_runner_\w+)", text, re.MULTILINE))
    if path.suffix == ".json":
        assert json.loads(path.read_text())["panels"]


def test_the_documented_metrics_are_those_that_exist(text: str) -> None:
    documented = set(re.findall(r"rule_runner_\w+", (ROOT / "docs" / "serve.md").read_text()))
    assert documented == set(re.findall(r"^(rule_runner_\w+)", text, re.MULTILINE))


def promtool(*arguments: str | Path, text: str = "") -> tuple[int, str]:
    """Return the exit code of promtool, and what it complained about."""
    if shutil.which("promtool") is None:
        pytest.skip("promtool is not installed.")
    command = ["promtool", "check", *arguments]
    done = subprocess.run(command, input=text, text=True, capture_output=True, check=False)
    return done.returncode, done.stderr


def test_promtool_accepts_them(text: str) -> None:
    assert promtool("metrics", text=text) == (0, "")


@pytest.mark.parametrize(("kind", "name"), [("rules", "alerts"), ("config", "prometheus")])
def test_promtool_accepts_the_examples(kind: str, name: str) -> None:
    assert promtool(kind, MONITORING / f"{name}.yaml") == (0, "")
