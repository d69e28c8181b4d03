"""Each executor in a process of its own: results, lost workers, errors, and stops."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import fleets
import pytest
import uncounted

SUPPORT = Path(__file__).parents[2] / "support"
EXECUTORS = [("local:2", "json"), ("dask:2", "distributed"), ("ray:2", "ray")]


def environment() -> dict[str, str]:
    """Return an environment in which the workers find the calls too."""
    return uncounted.environment() | {
        "PYTHONPATH": str(SUPPORT),
        "RAY_AUTH_MODE": "disabled",
        "RAY_raylet_start_wait_time_s": "300",  # on a busy machine
    }


@pytest.mark.parametrize(("spec", "library"), EXECUTORS)
@pytest.mark.timeout(600)
def test_executor_keeps_what_all_of_them_promise(spec: str, library: str, tmp_path: Path) -> None:
    pytest.importorskip(library, reason=f"{library} is not installed.")
    program = [sys.executable, str(SUPPORT / "executor_contract.py"), spec, str(tmp_path)]
    done = subprocess.run(program, env=environment(), capture_output=True, text=True, check=False)
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


@pytest.mark.nightly
@pytest.mark.parametrize(("spec", "library"), EXECUTORS)
@pytest.mark.timeout(1800)
def test_three_hundred_trials_have_the_same_results_on_each_executor(
    spec: str, library: str, tmp_path: Path
) -> None:
    pytest.importorskip(library, reason=f"{library} is not installed.")
    runs = fleets.write_runs(tmp_path / "runs", 300)
    arguments = ("--rule", "auto", "--end-grace", "0", "--no-report")
    plan = fleets.plan(runs, tmp_path / "out", tmp_path / "plan.jsonl", *arguments)
    assert fleets.fleet("run", "--plan", plan).exit_code == 0
    alone = fleets.verdicts(tmp_path / "out")
    (tmp_path / "out").rename(tmp_path / "alone")
    command = [sys.executable, "-m", "rule_runner", "fleet", "run", "--plan", str(plan)]
    done = subprocess.run(
        [*command, "--executor", spec],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert fleets.verdicts(tmp_path / "out") == alone
    collected = fleets.fleet("collect", plan, "--report", tmp_path / "out" / "index.html")
    assert collected.stdout.startswith("300 trials: 150 IssuesFound, 150 NoIssuesFound.")
