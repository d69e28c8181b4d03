"""Each executor in a process of its own: results, lost workers, errors, and stops."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import fleets
import pytest
import rawtrial
import s3_objects

SUPPORT = Path(__file__).parents[2] / "support"


@pytest.mark.parametrize(("spec", "library"), fleets.EXECUTORS)
@pytest.mark.timeout(600)
def test_executor_keeps_what_all_of_them_promise(spec: str, library: str, tmp_path: Path) -> None:
    pytest.importorskip(library, reason=f"{library} is not installed.")
    program = [sys.executable, str(SUPPORT / "executor_contract.py"), spec, str(tmp_path)]
    done = subprocess.run(
        program, env=fleets.worker_environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    answers: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    assert answers == {
        "results": [0, 2, 4, 6],
        "others": [0, 2, 4, 6],
        "poison": "WorkerLostError",
        "poison_attempts": 3,
        "survives": True,
        "error": True,
        "stopped": "stopped",
    }


def plan_of_sources(folder: Path, endpoint: str, count: int) -> Path:
    """Plan trials of every source, one half in a folder and the other in S3."""
    s3_objects.make_bucket(endpoint)
    for number in range(count):
        files = fleets.source_files(number)
        if (number + number // 8) % 2:  # each source is in both places
            s3_objects.put(endpoint, f"runs/t{number:03}/", files)
        else:
            rawtrial.write(folder / "runs" / f"t{number:03}", files)
    roots = (folder / "runs", "s3://bucket/runs")
    arguments = ("--end-grace", "0", "--no-report", "-o", folder / "plan.jsonl")
    result = fleets.fleet("plan", *roots, "--output", folder / "out", *arguments)
    assert result.exit_code == 0, result.output
    assert f"Planned {count} trials." in result.stderr
    return folder / "plan.jsonl"


@pytest.mark.parametrize(
    ("spec", "library", "count"),
    [
        ("local:2", "json", 8),
        *(pytest.param(*executor, 300, marks=pytest.mark.nightly) for executor in fleets.EXECUTORS),
    ],
)
@pytest.mark.timeout(1800)
def test_each_source_has_the_same_results_on_each_executor(
    spec: str, library: str, count: int, tmp_path: Path, aws_endpoint: str
) -> None:
    pytest.importorskip(library, reason=f"{library} is not installed.")
    plan = plan_of_sources(tmp_path, aws_endpoint, count)
    here = fleets.fleet("run", "--plan", plan)
    alone = fleets.verdicts(tmp_path / "out")
    assert {path.partition("/")[0] for path in alone} == {
        Path(json.loads(line)["output"]).name for line in plan.read_text().splitlines()
    }
    (tmp_path / "out").rename(tmp_path / "alone")
    command = [sys.executable, "-m", "rule_runner", "fleet", "run", "--plan", str(plan)]
    done = subprocess.run(
        [*command, "--executor", spec],
        env=fleets.worker_environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == here.exit_code, done.stderr
    assert sorted(done.stdout.splitlines()) == sorted(here.stdout.splitlines())
    assert fleets.verdicts(tmp_path / "out") == alone
    collected = fleets.fleet("collect", plan, "--report", tmp_path / "out" / "index.html")
    assert collected.stdout.startswith(f"{count} trials: ")
