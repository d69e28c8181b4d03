"""Evaluations that are killed while they tell: no news is lost; what comes twice is the same."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import aws_server
import http_places

ROOT = Path(__file__).parents[2]
SUPPORT = ROOT / "tests" / "support"
KILLS = 200


def news(details: list[dict[str, Any]]) -> list[tuple[str, tuple[str, ...]]]:
    """Return what was told, each once, in the order in which it came."""
    found = {}
    for detail in details:
        statuses = [one["RuleEvaluationStatus"] for one in detail["DebugRuleEvaluationStatuses"]]
        found.setdefault(detail["EventKey"], (detail["TrainingJobStatus"], tuple(statuses)))
    return list(found.values())


def test_200_kills_lose_no_news(tmp_path: Path) -> None:
    bus = http_places.EventBus()
    with http_places.serving(bus.answer) as place:
        done = subprocess.run(
            [sys.executable, str(SUPPORT / "killed_deliveries.py"), str(tmp_path), str(KILLS), "5"],
            env={
                **os.environ,
                **aws_server.ENVIRONMENT,
                "AWS_ENDPOINT_URL": place.url,
                "PYTHONPATH": os.pathsep.join([str(ROOT), str(SUPPORT)]),
            },
            capture_output=True,
            text=True,
            check=False,
        )
    assert (done.stderr, done.returncode) == ("", 0)
    count = json.loads(done.stdout)
    assert count["kills"] == KILLS
    told: dict[str, list[dict[str, Any]]] = {}
    for entry in bus.taken:
        detail = json.loads(entry["Detail"])
        told.setdefault(detail["TrainingJobName"], []).append(detail)
    undisturbed = news(told["run-0"])
    assert len(undisturbed) == len(told["run-0"])
    assert undisturbed[-1] == ("Completed", ("IssuesFound",) * 8 + ("NoIssuesFound",) * 2)
    assert {name: news(details) for name, details in told.items() if name.startswith("run-")} == {
        f"run-{number}": undisturbed for number in range(count["runs"])
    }
    assert any(len(details) > len(undisturbed) for details in told.values())  # some came twice
    for details in told.values():
        same = {detail["EventKey"]: detail for detail in details}
        assert [same[detail["EventKey"]] for detail in details] == details
        assert len({detail["EventSequence"] for detail in details}) == len(same)
