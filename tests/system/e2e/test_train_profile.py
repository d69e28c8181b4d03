"""`train --profile`: a profile beside the tensors, which profiler rules judge meanwhile."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import saved
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
# A PyTorch training whose samples or whose steps take their time.
LOADING = """
import sys, time
import torch

sample_s, step_s, seconds = map(float, sys.argv[1:])

class Samples(torch.utils.data.IterableDataset):
    def __iter__(self):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            time.sleep(sample_s)
            yield torch.randn(4)

model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for batch in torch.utils.data.DataLoader(Samples(), batch_size=2):
    optimizer.zero_grad()
    (model(batch) - batch[:, :1]).square().mean().backward()
    optimizer.step()
    time.sleep(step_s)
print("the end")
"""
RULES = ("StepOutlier", "MaxInitializationTime")
OPTIONS = [
    *("--profile", "--output", "out"),
    *(word for name in RULES for word in ("--rule", name)),
    *(word for name in RULES for word in ("-p", f"{name}.scan_interval_us=1000000")),
]
SHORT = ("-p", "MaxInitializationTime.threshold=0.02")  # minutes


def train(folder: Path, words: list[str], *options: str, script: str = SCRIPT) -> Any:
    folder.mkdir(exist_ok=True)
    (folder / "script.py").write_text(script)
    command = [sys.executable, "script.py", *words]
    return training_scripts.train(folder, [*OPTIONS, *options], command)


def outcomes(folder: Path) -> dict[str, str]:
    results = saved.results(folder / "out" / "profile-results").values()
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


@pytest.mark.nightly
@pytest.mark.timeout(900)
def test_waiting_for_batches_stops_the_training_and_a_fast_loader_goes_on(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="torch is not installed.")
    config = tmp_path / "config.json"
    parameters = {
        "DataloaderProfilingConfig": {"StartStep": 0, "NumSteps": 10**6},
        "RotateFileCloseIntervalInSeconds": 2,  # how late the rule sees what is loaded
    }
    config.write_text(json.dumps({"ProfilingParameters": parameters}))
    rule = {"scan_interval_us": 10**6, "patience": 5, "min_threshold": 150}  # any number of cores
    options = [
        *("--profile-config", str(config), "--rule", "Dataloader"),
        *(word for name, value in rule.items() for word in ("-p", f"Dataloader.{name}={value}")),
        *("--stop-on-finding", "--stop-on", "warning"),
    ]
    slow, healthy = tmp_path / "slow", tmp_path / "healthy"
    done = train(slow, ["0.05", "0", "600"], *options, script=LOADING)
    assert (done.returncode, done.stdout) == (10, ""), done.stderr
    assert "Dataloader has found a warning: the training is stopped." in done.stderr
    assert outcomes(slow)["Dataloader"] == "IssuesFound"
    done = train(healthy, ["0", "0.1", "15"], *options, script=LOADING)
    assert (done.returncode, done.stdout) == (0, "the end\n"), done.stderr
    assert outcomes(healthy)["Dataloader"] == "NoIssuesFound"
