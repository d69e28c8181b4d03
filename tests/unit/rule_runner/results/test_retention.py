"""Retention: which evaluations are removed, and that files of others never are."""

import json
import os
import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
import saved
import vanishing
from click.testing import CliRunner, Result

from rule_runner.cli import main
from rule_runner.errors import UsageError
from rule_runner.results.cursors import Cursor
from rule_runner.results.durable_files import FolderLock, make_folder
from rule_runner.results.json_text import rfc3339
from rule_runner.results.retention import Retention, parse_retention, remove_old_runs

OLD = Path(__file__).parents[3] / "data" / "outputs-0.1.0"
DAY = 86400
NOW = 1_800_000_000.0


@pytest.fixture(scope="module")
def trial(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return vanishing.write_trial(tmp_path_factory.mktemp("trial") / "trial")


def evaluate(trial: Path, output: Path | str, *more: str) -> Result:
    arguments = ["--trial", str(trial), "--output", str(output), *more]
    return CliRunner().invoke(main, ["evaluate", *arguments])


def runs(trial: Path, parent: Path, *ages: float, rules: int = 1) -> list[Path]:
    """Write evaluations that ended `ages` days ago."""
    folders = []
    for number, age in enumerate(ages):
        folder = parent / f"run-{number}"
        names = ["--rule=VanishingGradient", "--rule=two=ExplodingTensor"][:rules]
        assert evaluate(trial, folder, *names).exit_code == 0
        content = saved.document(folder)
        for rule in content["rules"]:
            rule["ended_at"] = rfc3339_of(NOW - age * DAY)
        (folder / "results.json").write_text(json.dumps(content))
        folders.append(folder)
    return folders


def rfc3339_of(seconds: float) -> str:
    return rfc3339(datetime.fromtimestamp(seconds, UTC))


def left(parent: Path) -> list[str]:
    return sorted(path.name for path in parent.iterdir())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1", Retention(runs=1)),
        ("50", Retention(runs=50)),
        ("12h", Retention(seconds=12 * 3600)),
        ("30d", Retention(seconds=30 * DAY)),
        ("8w", Retention(seconds=56 * DAY)),
    ],
)
def test_retention_is_a_number_or_a_time(text: str, expected: Retention) -> None:
    assert parse_retention(text) == expected


@pytest.mark.parametrize("text", ["", "0", "0d", "-1", "1.5d", "30 days", "d", "1y", "٣", "9" * 20])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"--retention must be a number of evaluations"):
        parse_retention(text)


@pytest.mark.parametrize("rules", [1, 2])
def test_runs_that_ended_long_ago_are_removed(trial: Path, tmp_path: Path, rules: int) -> None:
    old, _, _ = runs(trial, tmp_path, 31, 29, 0, rules=rules)
    (old / "acknowledgements.jsonl").write_text("{}\n")
    removed = remove_old_runs(tmp_path / "new", parse_retention("30d"), NOW)
    assert (removed, left(tmp_path)) == ([old], ["run-1", "run-2"])


@pytest.mark.parametrize("layout", ["single", "several"])
def test_runs_of_version_0_1_0_are_removed_too(tmp_path: Path, layout: str) -> None:
    shutil.copytree(OLD / layout, tmp_path / "old")
    assert remove_old_runs(tmp_path / "new", Retention(seconds=1), NOW) == [tmp_path / "old"]
    assert left(tmp_path) == []


def test_the_newest_runs_are_kept_and_the_present_one_counts(trial: Path, tmp_path: Path) -> None:
    runs(trial, tmp_path, 1, 3, 2)
    assert remove_old_runs(tmp_path / "run-0", Retention(runs=4), NOW) == []
    remove_old_runs(tmp_path / "new", Retention(runs=3), NOW)
    assert left(tmp_path) == ["run-0", "run-2"]
    remove_old_runs(tmp_path / "run-2", Retention(runs=1), NOW)
    assert left(tmp_path) == ["run-2"]


def unfinished(run: Path) -> None:
    content = saved.document(run)
    content["rules"][0]["ended_at"] = None
    (run / "results.json").write_text(json.dumps(content))


def broken(run: Path) -> None:
    (run / "results.json").write_text("{")


def of_others(run: Path) -> None:
    (run / "results.json").write_text('{"ended_at": "2020-01-01T00:00:00Z"}')


def linked(run: Path) -> None:
    elsewhere = run.parent.with_name("elsewhere")
    run.rename(elsewhere)
    run.symlink_to(elsewhere)


def linked_result(run: Path) -> None:
    path = run / "results.json"
    path.rename(run / "moved")
    path.symlink_to(run / "moved")


def hidden(run: Path) -> None:
    run.rename(run.with_name(".run-0"))


def undelivered(run: Path) -> None:
    make_folder(run)
    Cursor(run, "eventbridge").write(1)


@pytest.mark.parametrize(
    "change", [unfinished, broken, of_others, linked, linked_result, hidden, undelivered]
)
def test_what_is_not_over_or_not_ours_is_kept(
    trial: Path, tmp_path: Path, change: Callable[[Path], None]
) -> None:
    parent = tmp_path / "rule-output"
    (run,) = runs(trial, parent, 100)
    change(run)
    before = sorted(tmp_path.rglob("*"))
    assert remove_old_runs(parent / "new", Retention(runs=1), NOW) == []
    assert sorted(tmp_path.rglob("*")) == before


def test_a_run_in_use_is_kept(trial: Path, tmp_path: Path) -> None:
    (run,) = runs(trial, tmp_path, 100)
    lock = FolderLock(run)
    assert remove_old_runs(tmp_path / "new", Retention(runs=1), NOW) == []
    lock.close()
    assert (run / "results.json").exists()


def test_files_of_others_stay_in_their_folder(trial: Path, tmp_path: Path) -> None:
    first, second = runs(trial, tmp_path, 100, 100, rules=2)
    (first / "notes.txt").write_text("mine")
    (second / "two").mkdir()
    (second / "two" / "model.pt").write_text("mine")
    (tmp_path / "model").mkdir()
    (tmp_path / "report.html").write_text("mine")
    outside = tmp_path.with_name(f"{tmp_path.name}-outside")
    outside.mkdir()
    (outside / "kept").touch()
    (second / "two" / "profiler-output").symlink_to(outside)
    assert remove_old_runs(tmp_path / "new", Retention(runs=1), NOW) == [second, first]
    remaining = [path.relative_to(tmp_path) for path in tmp_path.rglob("*") if path.is_file()]
    assert sorted(map(str, remaining)) == ["report.html", "run-0/notes.txt", "run-1/two/model.pt"]
    assert (tmp_path / "model").is_dir()
    assert (outside / "kept").exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may remove anything.")
def test_what_cannot_be_removed_costs_no_verdict(trial: Path, tmp_path: Path) -> None:
    (run,) = runs(trial, tmp_path, 100)
    run.chmod(0o500)
    assert remove_old_runs(tmp_path / "new", Retention(runs=1), NOW) == []
    run.chmod(0o700)


def test_evaluate_removes_what_is_older(trial: Path, tmp_path: Path) -> None:
    for number in range(4):
        options = ("--rule=VanishingGradient", "--retention=2")
        assert evaluate(trial, tmp_path / f"run-{number}", *options).exit_code == 0
    assert left(tmp_path) == ["run-2", "run-3"]
    wrong = evaluate(trial, tmp_path / "wrong", "--rule=VanishingGradient", "--retention=no")
    assert (wrong.exit_code, (tmp_path / "wrong").exists()) == (2, False)
    remote = evaluate(trial, "s3://b/x", "--rule=VanishingGradient", "--retention=2")
    assert remote.exit_code == 2


def test_no_report_leaves_no_page_and_no_measurements(trial: Path, tmp_path: Path) -> None:
    done = evaluate(trial, tmp_path / "run", "--rule=VanishingGradient", "--no-report")
    assert (done.exit_code, "Report:" in done.stdout) == (0, False)
    names = [path.name for path in (tmp_path / "run").rglob("*") if path.is_file()]
    assert {"report.html", "measurements.json"}.isdisjoint(names)
    assert {"events.jsonl", "findings.jsonl", "results.json"} <= {*names}
