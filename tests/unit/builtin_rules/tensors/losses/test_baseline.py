"""Baseline: its cases in baseline.rules.yaml, and runs judged by files of good runs."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from list_source import ListSource, source_index, source_trial
from seeded_runs import STEPS, Rows, good_runs, rows_of_seed

from builtin_rules import Baseline
from builtin_rules.statistics.baselines.baseline_file import make_baseline
from rule_core.severity import Severity
from rule_runner.cli import main
from rule_runner.commands.rule_tests import run_rule_tests
from rule_runner.config.defaults import Isolation
from rule_runner.engine.invocation import InProcessInvoker, InvocationOutcome, InvocationResult
from smdebug.exceptions import SMDebugValueError

HERE = Path(__file__).parent


def test_the_cases_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(HERE)
    cases = str(HERE / "baseline.rules.yaml")
    assert run_rule_tests([cases], None, Isolation.NONE, update=False) == 0


@pytest.fixture
def good(tmp_path: Path) -> str:
    path = tmp_path / "good.json"
    path.write_text(make_baseline(good_runs()).to_json())
    return str(path)


def judged(
    good: str, rows: Rows, first: int = 0, resumed_at: int | None = None
) -> InvocationResult:
    """Judge the end of a run, which was perhaps resumed before a step."""
    every = [(s, {k: float(v[s]) for k, v in rows.items()}) for s in range(first, STEPS)]
    if resumed_at is not None:
        every = [*every[: resumed_at + 20], *every[resumed_at:]]
    index = source_index(ListSource(*every))
    index.refresh()
    index.finish()
    trial = source_trial(index)
    invoker = InProcessInvoker("Baseline", Baseline(trial, good), [trial])
    for step in trial.steps(show_incomplete_steps=True):
        assert invoker.judge(step).did is InvocationOutcome.SKIPPED
    return invoker.finish(trial.steps(show_incomplete_steps=True)[-1])


def test_a_finding_names_metric_difference_step_and_band(good: str) -> None:
    rows = rows_of_seed(7)
    rows["loss"][100:] *= 1.5
    end = judged(good, rows)
    assert end.did is InvocationOutcome.MET
    (found,) = (each for each in end.findings if each.quantity == "final")
    assert (found.tensor, found.severity) == ("loss", Severity.WARNING)
    assert 80 <= found.step <= 120
    assert found.note is not None
    assert found.note.startswith("+")
    assert "of 5 good runs" in found.note


def test_a_better_run_is_a_note(good: str) -> None:
    rows = rows_of_seed(7)
    rows["loss"][50:] *= 0.5
    end = judged(good, rows)
    assert end.did is InvocationOutcome.CLEAR
    assert {each.severity for each in end.findings} == {Severity.NOTE}


@pytest.mark.parametrize("resumed_at", [None, 100, 170])
def test_a_healthy_run_is_judged_without_a_finding(good: str, resumed_at: int | None) -> None:
    end = judged(good, rows_of_seed(7), resumed_at=resumed_at)
    assert end.findings == ()
    assert {each.quantity for each in end.measurements} >= {"final", "level"}


def test_a_metric_that_is_not_repeated_after_a_resume_has_not_vanished(good: str) -> None:
    rows = rows_of_seed(7)
    early = [(s, {k: float(v[s]) for k, v in rows.items()}) for s in range(STEPS - 10)]
    late = [(s, {"loss": float(rows["loss"][s])}) for s in range(STEPS - 20, STEPS)]
    index = source_index(ListSource(*early, *late))
    index.refresh()
    index.finish()
    trial = source_trial(index)
    end = InProcessInvoker("Baseline", Baseline(trial, good), [trial]).finish(trial.steps()[-1])
    assert end.findings == ()


def test_a_wrong_file_is_an_error() -> None:
    with pytest.raises(SMDebugValueError, match="cannot be used"):
        Baseline(None, "absent.json")


def write_run(
    folder: Path, seed: int, change: Callable[[Rows], object] = len, lr: float = 0.1
) -> None:
    """Write a log and its configuration."""
    rows = rows_of_seed(seed)
    change(rows)
    folder.mkdir(parents=True)
    lines = [
        json.dumps({"step": step, **{key: float(each[step]) for key, each in rows.items()}})
        for step in range(STEPS)
    ]
    (folder / "metrics.jsonl").write_text("\n".join(lines) + "\n")
    (folder / "config.json").write_text(json.dumps({"lr": lr, "seed": seed}))


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments, catch_exceptions=False)


@pytest.fixture
def _runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for seed in range(5):
        write_run(Path("runs") / f"good-{seed}", seed)
    made = run("baseline", "make", "runs", "-o", "good.json")
    assert made.exit_code == 0
    assert "good.json: 5 runs, aligned by steps." in made.stdout
    assert "Settings: 1 in common; not compared: none." in made.stdout


@pytest.mark.usefixtures("_runs")
def test_check_compares_with_good_runs(tmp_path: Path) -> None:
    write_run(tmp_path / "new", 7)
    options = ("--baseline", "good.json", "--fail-on-issues", "--output", "out", "--no-report")
    assert run("check", "new", *options).exit_code == 0
    write_run(tmp_path / "worse", 7, lambda rows: rows["val_loss"].__imul__(1.2))
    worse = run("check", "worse", *options, "--overwrite")
    assert worse.exit_code == 10
    assert "Baseline (warning): val_loss ends at" in worse.stdout


@pytest.mark.usefixtures("_runs")
def test_a_run_of_another_recipe_is_refused(tmp_path: Path) -> None:
    write_run(tmp_path / "new", 7, lr=0.2)
    refused = run("check", "new", "--baseline", "good.json")
    assert refused.exit_code == 1
    assert "another recipe than baseline 'good.json': lr is '0.2', not '0.1'" in refused.stdout


@pytest.mark.usefixtures("_runs")
def test_another_baseline_judges_a_trial_again(tmp_path: Path) -> None:
    write_run(tmp_path / "new", 7)
    os.utime(tmp_path / "new" / "metrics.jsonl", (1.7e9, 1.7e9))
    options = ("check", "new", "--baseline", "good.json", "--no-report", "--format", "json")
    unchanged = [json.loads(run(*options).stdout)["trials"][0]["unchanged"] for _ in range(2)]
    run("baseline", "make", "runs/good-0", "-o", "good.json")
    unchanged.append(json.loads(run(*options).stdout)["trials"][0]["unchanged"])
    assert unchanged == [False, True, False]


@pytest.mark.usefixtures("_runs")
def test_evaluate_takes_a_baseline(tmp_path: Path) -> None:
    write_run(tmp_path / "worse", 7, lambda rows: rows["val_loss"].__imul__(1.2))
    environment = {"RULE_RUNNER_SOURCE_QUIET_S": "0"}
    options = ("--baseline", "good.json", "--output", "out", "--format", "json")
    evaluated = CliRunner().invoke(
        main, ["evaluate", "--trial", "worse", *options], env=environment
    )
    (rule,) = json.loads(evaluated.stdout)["rules"]
    assert (rule["rule"], rule["outcome"]) == ("Baseline", "IssuesFound")
    run("baseline", "make", "runs/good-0", "-o", "good.json")
    other = CliRunner().invoke(main, ["evaluate", "--trial", "worse", *options], env=environment)
    assert other.exit_code == 73, "the folder holds the verdict by the file before"
    alone = run("evaluate", "--trial", "worse", "--trend", "runs")
    assert (alone.exit_code, alone.stderr) == (2, "Error: Option --trend requires --baseline.\n")
    missing = run("baseline", "make", "absent", "-o", "x.json")
    assert missing.exit_code == 1
    assert not Path("x.json").exists()
