"""A second check reports the outcomes of trials that have not changed."""

import json
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from rule_runner.cli import main
from rule_runner.commands.check import earlier
from rule_runner.commands.check.earlier import NAME, EarlierChecks
from rule_runner.config.request import EvaluationRequest

HEALTHY = [3.0, 2.0, 1.0]
EXPLODED = [3.0, float("nan"), float("nan"), float("nan")]


def write(path: Path, losses: Sequence[float], age_s: float = 3600) -> None:
    """Write a log of a training that ended some time ago."""
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = "".join(f"{step},{loss}\n" for step, loss in enumerate(losses))
    path.write_text("step,loss\n" + rows)
    old = time.time() - age_s
    os.utime(path, (old, old))


@pytest.fixture(autouse=True)
def _runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(Path("runs/a/metrics.csv"), EXPLODED)
    write(Path("runs/b/metrics.csv"), HEALTHY)


def checked(*options: str, path: str = "runs") -> dict[str, dict[str, Any]]:
    arguments = ["check", path, "--format", "json", *options]
    done = CliRunner().invoke(main, arguments, catch_exceptions=False)
    return {trial["path"]: trial for trial in json.loads(done.stdout)["trials"]}


def timeless(value: Any) -> Any:
    """Return a result without the times that only its file has, or that go on meanwhile."""
    if isinstance(value, dict):
        dropped = {"duration_s", "ended_at"}
        return {name: timeless(item) for name, item in value.items() if name not in dropped}
    return [*map(timeless, value)] if isinstance(value, list) else value


def unchanged(trials: dict[str, dict[str, Any]]) -> list[str]:
    return [path for path, trial in trials.items() if trial["unchanged"]]


@pytest.mark.parametrize("options", [[], ["--output", "out"]])
def test_second_check_judges_what_has_changed(options: list[str]) -> None:
    first = checked(*options)
    assert unchanged(first) == []
    second = checked(*options)
    assert unchanged(second) == ["runs/a", "runs/b"]
    for path, trial in second.items():
        assert timeless(trial) == timeless({**first[path], "unchanged": True})
    write(Path("runs/b/metrics.csv"), EXPLODED)
    third = checked(*options)
    assert unchanged(third) == ["runs/a"]
    summaries = {path: trial["evaluation"]["summary"] for path, trial in third.items()}
    assert "IssuesFound" in summaries["runs/b"]
    assert summaries["runs/a"] == first["runs/a"]["evaluation"]["summary"]
    assert unchanged(checked(*options)) == ["runs/a", "runs/b"]


def test_report_links_to_the_page_of_an_earlier_check() -> None:
    checked()
    write(Path("runs/b/metrics.csv"), EXPLODED)
    checked()
    newest = max(
        Path("rule-output").glob("check-*/report.html"), key=lambda p: p.stat().st_mtime_ns
    )
    assert '"../check-' in newest.read_text()


def test_again_judges_all_also_in_the_same_folder() -> None:
    for options in (["--output", "out"], ["--output", "out", "--again"]):
        assert unchanged(checked(*options)) == []


@pytest.mark.parametrize("change", ["option", "version", "results", "record", "size", "file"])
def test_outcome_holds_only_while_nothing_changes(
    monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    checked(path="runs/a")
    options = []
    if change == "option":
        options = ["--fail-on-issues"]
    elif change == "version":
        monkeypatch.setattr(earlier, "versions", lambda: {"rule-runner": "99"})
    elif change == "results":
        (next(Path("rule-output").glob("check-*")) / "results.json").unlink()
    elif change == "record":
        Path("rule-output", NAME).write_text("{")
    elif change == "size":
        path = Path("runs/a/metrics.csv")
        status = path.stat()
        path.write_text(path.read_text() + "9,1.0\n")
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    else:
        write(Path("runs/a/other_val.csv"), HEALTHY)
    assert unchanged(checked(*options, path="runs/a")) == []


def test_trial_that_may_still_grow_is_judged_each_time() -> None:
    write(Path("runs/a/metrics.csv"), HEALTHY, age_s=0)
    checked()
    assert unchanged(checked()) == ["runs/b"]


def test_what_is_known_of_removed_results_is_forgotten() -> None:
    checked("--output", "out")
    Path("out/a/results.json").unlink()
    checked("--output", "out", path="runs/b")
    known = json.loads(Path("out", NAME).read_text())
    assert [Path(path).name for path in known] == ["b"]


def test_digest_of_what_cannot_be_looked_at_is_empty() -> None:
    checks = EarlierChecks(Path("out"), EvaluationRequest())
    assert checks.digest("runs/a") != checks.digest("runs/b")
    assert (checks.digest("s3://bucket/runs"), checks.digest("nowhere")) == ("", "")
    before = checks.digest("runs/a")
    write(Path("runs/a/rule-output/x/results.json"), HEALTHY)
    assert checks.digest("runs/a") == before


def test_file_of_a_run_changes_with_the_files_beside_it() -> None:
    checks = EarlierChecks(Path("out"), EvaluationRequest())
    before = checks.digest("csv:runs/a/metrics.csv")
    write(Path("runs/a/below/x.csv"), HEALTHY)
    assert checks.digest("csv:runs/a/metrics.csv") == before
    write(Path("runs/a/metrics_val.csv"), HEALTHY)
    assert checks.digest("csv:runs/a/metrics.csv") != before
