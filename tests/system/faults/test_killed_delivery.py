"""Evaluations that are killed at any moment: the same command ends with the verdict.

No news is lost, and what comes twice has one key.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aws_server
import http_places
import pytest
import s3_objects

ROOT = Path(__file__).parents[3]
SUPPORT = ROOT / "tests" / "support"
Details = list[dict[str, Any]]
Files = dict[str, bytes]
MANY = pytest.param(150, id="many", marks=pytest.mark.nightly)


def news(details: Details) -> list[tuple[str, tuple[str, ...]]]:
    """Return the statuses of the events, each key once, in order of arrival."""
    found = {}
    for detail in details:
        statuses = [one["RuleEvaluationStatus"] for one in detail["DebugRuleEvaluationStatuses"]]
        found.setdefault(detail["EventKey"], (detail["TrainingJobStatus"], tuple(statuses)))
    return list(found.values())


def killed(folder: Path, place: str, kills: int, s3: str = "") -> tuple[dict[str, int], Any]:
    """Kill evaluations; return how many, and the events of each."""
    bus = http_places.EventBus()
    with http_places.serving(bus.answer) as server:
        done = subprocess.run(
            [
                *(sys.executable, str(SUPPORT / "killed_deliveries.py")),
                *(str(folder), str(kills), "5", place),
            ],
            env={
                **os.environ,
                **aws_server.ENVIRONMENT,
                "AWS_ENDPOINT_URL": server.url,
                "AWS_ENDPOINT_URL_S3": s3 or server.url,
                "PYTHONPATH": os.pathsep.join([str(ROOT), str(SUPPORT)]),
            },
            capture_output=True,
            text=True,
            check=False,
        )
    assert (done.stderr, done.returncode) == ("", 0)
    count = json.loads(done.stdout)
    assert count["kills"] == kills
    told: dict[str, Details] = {}
    for entry in bus.taken:
        detail = json.loads(entry["Detail"])
        told.setdefault(detail["TrainingJobName"], []).append(detail)
    return count, told


def check_told(count: dict[str, int], told: dict[str, Details]) -> None:
    """Check that each run sent the same events as the undisturbed one."""
    undisturbed = news(told["run-0"])
    assert len(undisturbed) == len(told["run-0"])
    assert undisturbed[-1] == ("Completed", ("IssuesFound",) * 8 + ("NoIssuesFound",) * 2)
    assert {name: news(details) for name, details in told.items() if name.startswith("run-")} == {
        f"run-{number}": undisturbed for number in range(count["runs"])
    }
    assert len({detail["RunId"] for details in told.values() for detail in details}) == len(told)
    for details in told.values():
        sequences = {detail["EventKey"]: detail["EventSequence"] for detail in details}
        assert len(set(sequences.values())) == len(sequences)


def check_left(told: dict[str, Details], files_of: Callable[[str], Files]) -> None:
    """Check that each run left its report, and verdicts under the run id of its events."""
    for name, details in told.items():
        files = files_of(name)
        document = json.loads(files["results.json"])
        results = [document, *document["rules"]]
        assert len(results) == 11
        assert {one["run_id"] for one in results} == {details[0]["RunId"]}
        assert all(one["ended_at"] for one in results)
        assert "report.html" in files


@pytest.mark.parametrize("kills", [pytest.param(4, id="some"), MANY])
def test_killed_at_any_moment_the_same_command_ends_with_the_verdict(
    tmp_path: Path, kills: int
) -> None:
    count, told = killed(tmp_path, str(tmp_path), kills)

    def files_of(name: str) -> Files:
        found = (one for one in (tmp_path / name).rglob("*") if one.is_file())
        return {one.relative_to(tmp_path / name).as_posix(): one.read_bytes() for one in found}

    check_told(count, told)
    check_left(told, files_of)
    assert count["late"] or kills < 100
    for details in told.values():
        same = {detail["EventKey"]: detail for detail in details}
        assert [same[detail["EventKey"]] for detail in details] == details


@pytest.mark.parametrize("kills", [pytest.param(2, id="some"), MANY])
def test_killed_with_an_output_in_s3_the_same_command_ends_with_the_verdict_on_any_machine(
    tmp_path: Path, aws_endpoint: str, kills: int
) -> None:
    s3_objects.make_bucket(aws_endpoint)
    count, told = killed(tmp_path, "s3://bucket/out", kills, aws_endpoint)
    check_told(count, told)
    check_left(told, lambda name: s3_objects.content(aws_endpoint, f"out/{name}/"))
    assert count["late"] or kills < 100
