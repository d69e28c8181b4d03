"""`train --profile`: a profile beside the tensors, which profiler rules judge meanwhile."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import training_scripts
from click.testing import CliRunner
from training_scripts import said

from rule_runner.cli import main

# A training that needs no framework; some of its steps wait.
SCRIPT = """
import sys, time
from smdebug.core.hook import Hook

hook = Hook("unused", include_workers="none")
seconds, is_slow = float(sys.argv[1]), sys.argv[2] == "slow"
time.sleep(2 * is_slow)
end, step = time.monotonic() + seconds, 0
while time.monotonic() < end:
    step += 1
    time.sleep((0.1 if step % 10 == 0 else 0.005) if is_slow else 0.05)
    hook.step()
hook.close()
print("the end")
"""
RULES = ("StepOutlier", "MaxInitializationTime")
OPTIONS = [
    *("--profile", "--output", "out"),
    *(word for name in RULES for word in ("--rule", name)),
    *(word for name in RULES for word in ("-p", f"{name}.scan_interval_us=1000000")),
]
SHORT = ("-p", "MaxInitializationTime.threshold=0.02")  # minutes


def train(folder: Path, words: list[str], *options: str) -> Any:
    folder.mkdir(exist_ok=True)
    (folder / "script.py").write_text(SCRIPT)
    command = [sys.executable, "script.py", *words]
    return training_scripts.train(folder, [*OPTIONS, *options], command)


def outcomes(folder: Path) -> dict[str, str]:
    paths = (folder / "out" / "profile-results").glob("*/rule_result.json")
    results = [json.loads(path.read_text()) for path in paths]
    return {result["rule"]: result["outcome"] for result in results}


def test_a_fault_is_found_when_the_training_ends(tmp_path: Path) -> None:
    done = train(tmp_path, ["2", "slow"], *SHORT, "--profile-interval", "100ms", "--fail-on-issues")
    assert (done.returncode, done.stdout) == (10, "the end\n"), done.stderr
    assert outcomes(tmp_path)["MaxInitializationTime"] == "IssuesFound"
    assert outcomes(tmp_path)["ProfilerReport"] == "NoIssuesFound"
    page = "out/profile-results/ProfilerReport/profiler-output/profiler-report.html"
    assert said(done)[-4:] == [
        "Profile: out/profile",
        "Show it with: rule-runner profile show out/profile",
        "Judge it with: rule-runner profile report out/profile --output DIR",
        f"Report of the profile: {page}",
    ]
    system = (tmp_path / "out" / "profile" / "system").rglob("*.json")
    assert any("algo-1" in path.name for path in system)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--profile-interval", "0s"], "Option --profile-interval must be a time"),
        (["--profile-operators", "x"], "Option --profile-operators must be a step"),
        (["-p", "StepOutlier.stddev"], "A parameter must be key=value"),
    ],
)
def test_wrong_options_start_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[str], problem: str
) -> None:
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(main, ["train", *OPTIONS, *options, "--", "touch", "started"])
    assert (done.exit_code, done.stdout) == (2, "")
    assert problem in done.stderr
    assert not (tmp_path / "started").exists()


@pytest.mark.nightly
@pytest.mark.timeout(900)
def test_a_fault_stops_the_training_and_a_healthy_one_goes_on(tmp_path: Path) -> None:
    stops = ("--stop-on-finding", "--stop-on", "warning")
    slow, healthy = tmp_path / "slow", tmp_path / "healthy"
    done = train(slow, ["900", "slow"], *stops, *SHORT)
    assert (done.returncode, done.stdout) == (10, ""), done.stderr
    assert "has found a warning: the training is stopped." in done.stderr
    assert "IssuesFound" in outcomes(slow).values()
    done = train(healthy, ["30", "fast"], *stops)
    assert (done.returncode, done.stdout) == (0, "the end\n"), done.stderr
    assert "IssuesFound" not in outcomes(healthy).values()
