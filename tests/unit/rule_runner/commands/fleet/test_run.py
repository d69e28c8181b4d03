import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import evaluating
import fleets
import numpy as np
import pytest
import rawtrial
import s3_objects
import uncounted

from rule_core.clock import SystemClock
from rule_runner.commands.fleet import judging
from rule_runner.results.durable_files import FolderLock

STOPPED_BY = """
import os, signal
from smdebug.rules import Rule

class Stop(Rule):
    def invoke_at_step(self, step):
        if self.base_trial.tensor("loss").value(step)[0] > 5:
            os.kill(os.getpid(), signal.SIGTERM)
        return False
"""


@pytest.fixture(autouse=True)
def _quiet(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.setattr(judging, "LONG_AGO_S", -60.0)  # all trials ended long ago
    for name in ("JOB_COMPLETION_INDEX", "AWS_BATCH_JOB_ARRAY_INDEX", "SLURM_ARRAY_TASK_ID"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    evaluating.log_nothing()
    yield
    evaluating.log_nothing()


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    runs = fleets.write_runs(tmp_path / "runs", 4)
    return fleets.plan(runs, tmp_path / "out", tmp_path / "plan.jsonl", "--no-report")


def append(plan: Path, *lines: str) -> None:
    with plan.open("a", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in lines)


def test_each_trial_is_judged_once(plan: Path) -> None:
    first = fleets.fleet("run", "--plan", plan, "--format", "jsonl")
    assert first.exit_code == 0, first.output
    states = [(line["line"], line["state"], line["complete"]) for line in fleets.lines(first)]
    assert states == [
        (1, "without issues", False),
        (2, "with issues", False),
        (3, "without issues", False),
        (4, "with issues", False),
    ]
    before = {path: path.read_bytes() for path in Path("out").rglob("*.json*")}
    again = fleets.fleet("run", "--plan", plan)
    assert again.exit_code == 0
    assert again.stdout.count("(judged before)") == 4
    assert "4 had been judged before." in again.stderr
    assert {path: path.read_bytes() for path in before} == before


def test_shards_judge_all_trials_between_them(plan: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = fleets.fleet("run", "--plan", plan, "--shard", "1/3", "--format", "jsonl")
    monkeypatch.setenv("JOB_COMPLETION_INDEX", "0")
    zero = fleets.fleet("run", "--plan", plan, "--shards", "3", "--format", "jsonl")
    monkeypatch.delenv("JOB_COMPLETION_INDEX")
    monkeypatch.setenv("SLURM_ARRAY_TASK_ID", "2")
    two = fleets.fleet("run", "--plan", plan, "--shards", "3", "--format", "jsonl")
    numbers = [[line["line"] for line in fleets.lines(result)] for result in (zero, one, two)]
    assert numbers == [[1, 4], [2], [3]]
    assert "Shard 1/3: 1 trial: 1 with issues." in one.stderr


def test_bad_line_and_failing_trial_cost_only_themselves(plan: Path, tmp_path: Path) -> None:
    missing = f'{{"trial":"{tmp_path}/none","rules":[{{"name":"Overfit"}}],"output":"out/n"}}'
    append(plan, '{"trial": "/runs/a"', "no JSON", missing)
    rawtrial.write(tmp_path / "runs" / "t005", fleets.trial_files(1e-12))
    append(plan, plan.read_text().splitlines()[0].replace("t000", "t005"))
    result = fleets.fleet("run", "--plan", plan)
    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    assert len(lines) == 8
    assert lines[4].startswith("5: no trial: Line 5 of the plan is no request.")
    assert lines[5].startswith("6: no trial: Line 6 of the plan is not a JSON object")
    assert "none' does not exist" in lines[6]
    assert lines[7].endswith("t005: 1 IssuesFound")
    assert "8 trials: 3 failed, 3 with issues, 2 without issues." in result.stderr


def test_trial_without_anything_to_judge_fails(plan: Path, tmp_path: Path) -> None:
    rawtrial.write(tmp_path / "empty", evaluating.trial({0: {}}, {}))
    fleets.plan(tmp_path / "empty", "out", plan, "--rule", "auto")
    result = fleets.fleet("run", "--plan", plan)
    assert result.exit_code == 1
    assert "1 failed" in result.stderr


def test_rule_that_raises_fails_its_trial(plan: Path, tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text(STOPPED_BY.replace("import os, signal", "import numpy as os"))
    loud = evaluating.trial({0: {"loss": np.float32([9])}}, fleets.COLLECTIONS)
    rawtrial.write(tmp_path / "loud", loud)
    fleets.plan(tmp_path / "loud", "out", plan, "--rule", "a=Stop", "--source", "a=bad.py")
    result = fleets.fleet("run", "--plan", plan)
    assert result.exit_code == 1
    assert "1 Error" in result.stdout


def test_output_in_use_is_worth_a_retry(plan: Path) -> None:
    fleets.fleet("run", "--plan", plan, "--shard", "0/4")
    folder = next(Path("out").glob("t000-*"))
    lock = FolderLock(folder)
    try:
        result = fleets.fleet("run", "--plan", plan, "--shard", "0/4")
    finally:
        lock.close()
    assert result.exit_code == 75
    assert "is in use by process" in result.stdout


def test_output_of_another_evaluation_is_not(plan: Path) -> None:
    fleets.fleet("run", "--plan", plan, "--shard", "0/4")
    plan.write_text(plan.read_text().replace('"wait"', '"parameters":["threshold=1"],"wait"'))
    result = fleets.fleet("run", "--plan", plan, "--shard", "0/4")
    assert result.exit_code == 73
    assert "holds another evaluation" in result.stdout


def test_defect_of_the_evaluation_is_an_outcome(
    plan: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(judging, "evaluate_request", fail)
    result = fleets.fleet("run", "--plan", plan, "--shard", "0/4")
    assert result.exit_code == 70
    assert "InternalServerError" in result.stdout


@pytest.mark.parametrize("spec", ["local:1", "none"])
def test_executor_judges_as_one_process_does(plan: Path, spec: str) -> None:
    result = fleets.fleet("run", "--plan", plan, "--executor", spec)
    if spec == "none":
        assert result.exit_code == 2
        assert "An executor is local[:N]" in result.stderr
        return
    assert result.exit_code == 0, result.output
    on_workers = fleets.verdicts(Path("out"))
    Path("out").rename("out-on-workers")
    fleets.fleet("run", "--plan", plan)
    assert fleets.verdicts(Path("out")) == on_workers
    assert len(on_workers) == 4


def test_trials_and_outputs_in_s3(
    aws_endpoint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    s3_objects.make_bucket(aws_endpoint)
    s3_objects.put(aws_endpoint, "runs/a/", fleets.trial_files(1e-12))
    place = "s3://bucket/plan.jsonl"
    arguments = ("--output", "s3://bucket/out", "--rule", "VanishingGradient", "--plan", place)
    assert fleets.fleet("plan", "s3://bucket/runs", *arguments).exit_code == 0
    result = fleets.fleet("run", "--plan", place, "--shard", "0/1")
    assert result.exit_code == 0, result.output
    keys = [*s3_objects.content(aws_endpoint, "out/")]
    assert any(key.endswith("/results.json") for key in keys)
    again = fleets.fleet("run", "--plan", place)
    assert "1 had been judged before" in again.stderr


@pytest.mark.parametrize("executor", [(), ("--executor", "local:1")])
def test_signal_stops_the_run_and_the_next_one_resumes(
    plan: Path, tmp_path: Path, executor: tuple[str, ...]
) -> None:
    source = STOPPED_BY.replace("> 5", "> 5 and False").replace(
        "return False", "wait()\n        return False"
    )
    source = (
        "import time\nfrom pathlib import Path\n"
        + source
        + (
            "def wait():\n"
            f"    Path({str(tmp_path / 'waiting')!r}).touch()\n"
            f"    while Path({str(tmp_path / 'hold')!r}).exists():\n"
            "        time.sleep(0.01)\n"
        )
    )
    (tmp_path / "wait.py").write_text(source)
    (tmp_path / "hold").touch()
    fleets.plan(tmp_path / "runs", "out", plan, "--rule", "w=Stop", "--source", "w=wait.py")
    command = [sys.executable, "-m", "rule_runner", "fleet", "run", "--plan", plan, *executor]
    with subprocess.Popen(
        command,
        env=uncounted.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        fleets.wait_until((tmp_path / "waiting").exists)
        process.send_signal(signal.SIGTERM)
        SystemClock().sleep(0.3)  # the signal arrives while the rule waits
        (tmp_path / "hold").unlink()
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 143, errors
    assert "SIGTERM ended the run: start it again to judge the rest." in errors
    result = fleets.fleet("run", "--plan", plan)
    assert result.exit_code == 0, result.output
    assert "4 trials: 4 without issues" in result.stderr
