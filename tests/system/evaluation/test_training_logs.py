"""Runs in other formats, judged by the commands and the API as trials are."""

import json
import math
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import plugin_source
import pytest
import rawtrial

import rule_runner
from rule_core.clock import SystemClock
from rule_runner.cli import main
from rule_runner.commands.check.earlier import NAME
from rule_runner.commands.trial.summary import report_trial
from rule_runner.loading.trial_search import find_trials
from rule_runner.results.file_names import REPORT
from smdebug.core.writer import TrialWriter

RULE = "ExplodingTensor"
CONFIGURATIONS = [{"RuleConfigurationName": "one", "RuleParameters": {"rule_to_invoke": RULE}}]
HOUR_S = 3600


def line(step: int, loss: float, **other: float) -> str:
    return json.dumps({"step": step, "loss": loss, **other}) + "\n"


def log(*losses: float) -> bytes:
    return "".join(line(10 * place, loss) for place, loss in enumerate(losses)).encode()


HEALTHY = log(3.0, 2.5, 2.0, 1.8)
EXPLODED = log(3.0, 2.5, float("nan"), float("nan"), 1.8)  # a single NaN may pass


def aged(folder: Path, files: dict[str, bytes]) -> Path:
    """Write files of a training that ended an hour ago."""
    rawtrial.write(folder, files)
    for path in folder.rglob("*"):
        os.utime(path, (0, time.time() - HOUR_S))
    return folder


def evaluated(capfd: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, Any]]:
    with pytest.raises(SystemExit) as ended:
        main.main([*arguments, "--format", "json"], standalone_mode=False)
    return int(ended.value.code or 0), json.loads(capfd.readouterr().out)


@pytest.mark.parametrize("options", [[], ["--isolate", "process"]])
def test_evaluate_a_file(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], options: list[str]
) -> None:
    root = aged(tmp_path / "run", {"log.jsonl": EXPLODED})
    command = ["evaluate", "--trial", str(root / "log.jsonl"), "--rule", RULE]
    _, result = evaluated(capfd, *command, "--output", str(tmp_path / "out"), *options)
    (rule,) = result["rules"]
    assert (rule["status"], rule["step"]) == ("IssuesFound", 30)
    assert result["trial"]["path"] == str(root / "log.jsonl")


def test_api_and_a_named_format(tmp_path: Path) -> None:
    root = aged(tmp_path / "run", {"notes": EXPLODED})
    result = rule_runner.evaluate(f"jsonl:{root}/notes", CONFIGURATIONS)
    assert [rule.step for rule in result.rules] == [30]


def test_check_judges_each_run_once(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    files = {
        "jsonl/log.jsonl": EXPLODED,
        "sweep/run1.csv": b"step,loss\n0,1\n10,0.9\n20,0.8\n",
        "sweep/run2.csv": b"step,loss\n0,1\n10,inf\n20,inf\n30,0.8\n",
        "pickled/pytorch_model.bin": b"\x80\x04",
        "docs/notes.md": b"# notes\n",
    }
    aged(tmp_path / "runs", files)
    with TrialWriter(tmp_path / "runs" / "native", collections={"losses": "loss"}) as writer:
        writer.step(0, {"loss": 1.0})
    _, result = evaluated(capfd, "check", "runs", "--output", "out")
    found = {
        Path(trial["path"]).relative_to("runs").as_posix(): sorted(
            rule["configuration_name"]
            for rule in trial["evaluation"]["rules"]
            if rule["status"] == "IssuesFound"
        )
        for trial in result["trials"]
    }
    assert found.keys() == {"jsonl", "native", "sweep/run1.csv", "sweep/run2.csv"}
    assert RULE in found["jsonl"]
    assert RULE in found["sweep/run2.csv"]
    assert found["sweep/run1.csv"] == found["native"] == []
    assert not [rule for rule in result["trials"][0]["left_out"] if rule == "LossNotDecreasing"]


def test_interrupted_check_reports_what_it_has_judged(tmp_path: Path) -> None:
    aged(tmp_path / "runs" / "ended", {"log.jsonl": EXPLODED})
    rawtrial.write(tmp_path / "runs" / "running", {"log.jsonl": HEALTHY})
    command = [sys.executable, "-m", "rule_runner", "check", "runs", "--follow", "--output", "out"]
    process = subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    followed = tmp_path / "out" / "running" / "results.json"
    while not followed.exists():  # which is written when the evaluation begins
        with suppress(subprocess.TimeoutExpired):
            process.wait(0.1)
            raise AssertionError(process.communicate())
    process.send_signal(signal.SIGINT)
    said, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert "Traceback" not in errors
    lines = said.splitlines()
    assert any(line.startswith("runs/ended: broken since step ") for line in lines)
    assert "Checked 2 trials: 1 broken, 1 not judged." in lines
    assert f"Report: out/{REPORT}" in lines
    known = json.loads((tmp_path / "out" / NAME).read_text())
    assert [Path(path).name for path in known] == ["ended"]


def test_secrets_of_configurations_reach_no_result(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    key = "sk-0123456789planted4f9a"
    rows = [
        {"step": step, "loss": loss, "config": {"wandb_api_key": key, "password": key}}
        for step, loss in enumerate([3.0, math.nan, math.nan, math.nan])
    ]
    records = "\n".join(map(json.dumps, rows)) + f'\n["api_key", "{key}"]\napi_key={key}\n'
    table = f"step,loss,token\n0,3,1\n1,nan,{key}\n2,nan,{key}\n3,nan,{key}\n"
    settings = f'{{"api_key": "{key}"}}\n'
    files = {
        "a/log.jsonl": records,
        "b/metrics.csv": table,
        "b/config.yaml": f"secret: {key}\n",
        "c/config.json": settings,
        "c/train.log": f"HF_TOKEN={key}\n",
    }
    aged(tmp_path / "runs", {name: text.encode() for name, text in files.items()})
    with pytest.raises(SystemExit):
        main.main(["check", "runs", "--output", "out"], standalone_mode=False)
    said = "".join(capfd.readouterr())
    assert "***" in said
    results = [path for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert {"results.json", REPORT, NAME} <= {path.name for path in results}
    assert [path for path in results if key[-6:] in path.read_text()] == []
    assert key[-6:] not in said


def test_run_that_has_not_begun_is_waited_for_and_followed(tmp_path: Path) -> None:
    path, clock = tmp_path / "run" / "log.jsonl", SystemClock()

    def train() -> None:
        clock.sleep(0.5)
        path.parent.mkdir()
        with path.open("w") as file:
            for step, loss in enumerate([3.0, float("nan"), float("nan"), 1.0]):
                file.write(line(step, loss))
                file.flush()
                clock.sleep(0.1)
        (path.parent / "training_job_end.ts").touch()

    thread = threading.Thread(target=train)
    thread.start()
    result = rule_runner.evaluate(
        path.parent,
        CONFIGURATIONS,
        wait_for_trial=20.0,
        timeout=60.0,
    )
    thread.join()
    assert [(str(rule.status), rule.step) for rule in result.rules] == [("IssuesFound", 2)]


def test_last_step_of_a_run_that_may_grow_is_not_judged_without_waiting(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    rawtrial.write(tmp_path / "run", {"log.jsonl": HEALTHY})
    command = ["evaluate", "--trial", str(tmp_path / "run"), "--rule", RULE, "--no-wait"]
    _, result = evaluated(capfd, *command, "--output", str(tmp_path / "out"))
    (rule,) = result["rules"]
    assert rule["coverage"]["judged"] == 3
    text = "The run has not ended, so that step 30 is not judged: values may follow."
    assert text in rule["notes"] + result["notes"]


def test_check_judges_a_log_that_was_just_copied_to_its_last_complete_line(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    row = b"0.5,0.5\n"
    rawtrial.write(tmp_path / "run", {"training.log": b"loss,val_loss\n" + 4 * row + b"nan"})
    command = ["check", "run", "--output", "out", "--no-report"]

    def verdict() -> tuple[str, int, bool]:
        _, result = evaluated(capfd, *command)
        rules = result["trials"][0]["evaluation"]["rules"]
        (rule,) = (rule for rule in rules if rule["rule"] == RULE)
        return rule["outcome"], rule["coverage"]["known"], rule["trial_ended"]

    assert verdict() == ("NoIssuesFound", 4, False)
    with (tmp_path / "run" / "training.log").open("ab") as file:
        file.write(b",1\n")
    assert verdict() == ("IssuesFound", 5, False)


def test_show_says_what_was_recognised_and_why(tmp_path: Path) -> None:
    root = aged(tmp_path / "run", {"log.jsonl": HEALTHY, "metrics.csv": b"step,loss\n0,1\n"})
    report = report_trial(str(root))
    assert [source.kind for source in report.sources] == ["jsonl"]
    assert report.set_aside[0].startswith("'metrics.csv' is not read: jsonl describes the same run")
    assert (report.ended, report.why_ended) == (True, "nothing was written for 600 s")
    assert report.segments == []


def test_show_counts_the_segments(tmp_path: Path) -> None:
    root = aged(tmp_path / "run", {"log.jsonl": HEALTHY + log(2.9, 2.4)})
    segments = report_trial(str(root)).segments
    assert [(part.count, part.first, part.last) for part in segments] == [(4, 0, 30), (2, 0, 10)]


def test_format_of_another_package_in_every_process(tmp_path: Path) -> None:
    plugin_source.install(tmp_path / "site")
    aged(tmp_path / "run", {"mine.numbers": b"0 1.0\n10 nan\n20 nan\n30 1.0\n"})
    support = Path(plugin_source.__file__).parent
    search = os.pathsep.join([str(tmp_path / "site"), str(support), str(rawtrial_root())])
    command = ["-m", "rule_runner", "evaluate", "--trial", str(tmp_path / "run"), "--rule", RULE]
    options = ["--rule-timeout", "60", "--output", str(tmp_path / "out"), "--format", "json"]
    done = subprocess.run(
        [sys.executable, *command, *options],
        env={**os.environ, "PYTHONPATH": search},
        capture_output=True,
        check=False,
        text=True,
    )
    assert json.loads(done.stdout)["rules"][0]["step"] == 20, done.stderr


def rawtrial_root() -> Path:
    """Return the root of the clone."""
    return Path(rule_runner.__file__).parents[1]


def test_thousand_runs_are_found(tmp_path: Path) -> None:
    for number in range(1000):
        folder = tmp_path / f"run{number}"
        folder.mkdir()
        (folder / "log.jsonl").write_bytes(HEALTHY)
    search = find_trials(str(tmp_path), limit=2000)
    assert (len(search.trials), search.complete) == (1000, True)
