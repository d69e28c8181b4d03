"""Results read again: which belong together, which come first, and what damage does."""

from pathlib import Path

import pytest
import reports

from rule_runner.report.saved_results import read
from rule_runner.results.file_names import MEASUREMENTS, RESULTS


def test_rule_jobs_of_one_evaluation_are_a_run(tmp_path: Path) -> None:
    for name in ("AllZero", "VanishingGradient"):
        reports.save(tmp_path / "out" / name, reports.result(name))
    (run,) = read([tmp_path]).runs
    assert (run.output, run.trial) == (str(tmp_path / "out"), "/runs/mine")
    assert [job.result.rule for job in run.jobs] == ["AllZero", "VanishingGradient"]


def test_several_folders_are_several_runs_in_their_order(tmp_path: Path) -> None:
    second = reports.save(tmp_path / "second", reports.result())
    first = reports.save(tmp_path / "first", reports.result())
    assert [run.output for run in read([second, first]).runs] == [str(second), str(first)]
    assert [run.output for run in read([tmp_path]).runs] == [str(first), str(second)]


def test_trials_are_not_mixed_where_folders_happen_to_be_called_like_rules(tmp_path: Path) -> None:
    reports.save(tmp_path / "AllZero", reports.result("AllZero", trial="/a"))
    reports.save(tmp_path / "TreeDepth", reports.result("TreeDepth", trial="/b"))
    assert [run.trial for run in read([tmp_path]).runs] == ["/a", "/b"]


def test_what_needs_a_reader_comes_first(tmp_path: Path) -> None:
    outcomes = ["NoIssuesFound", "Stopped", "NotEvaluated", "Unheard", "Error", "IssuesFound"]
    for number, outcome in enumerate(outcomes):
        reports.save(tmp_path / f"r{number}", reports.result(f"r{number}", outcome))
    (run,) = read([tmp_path]).runs
    assert [job.result.outcome for job in run.jobs] == [
        *("IssuesFound", "Unheard", "Error", "NotEvaluated", "Stopped", "NoIssuesFound"),
    ]


def test_a_result_named_twice_is_shown_once(tmp_path: Path) -> None:
    folder = reports.save(tmp_path / "one", reports.result())
    (run,) = read([folder, tmp_path]).runs
    assert len(run.jobs) == 1


def test_links_and_hidden_folders_are_left_alone(tmp_path: Path) -> None:
    reports.save(tmp_path / "elsewhere", reports.result())
    reports.save(tmp_path / "here" / ".hidden", reports.result())
    (tmp_path / "here" / "link").symlink_to(tmp_path / "elsewhere")
    assert read([tmp_path / "here"]).runs == ()


@pytest.mark.parametrize("folder", ["missing", "file"])
def test_where_nothing_is_nothing_is_found(tmp_path: Path, folder: str) -> None:
    (tmp_path / "file").touch()
    assert read([tmp_path / folder]) == read([])


@pytest.mark.parametrize("text", ["{", "[]", '{"rules": 1}', "\ud800"])
def test_a_damaged_result_is_reported_and_costs_no_other(tmp_path: Path, text: str) -> None:
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / RESULTS).write_bytes(text.encode("utf-8", "surrogatepass"))
    reports.save(tmp_path / "good", reports.result())
    saved = read([tmp_path])
    assert [run.output for run in saved.runs] == [str(tmp_path / "good")]
    (problem,) = saved.problems
    assert problem.startswith(f"Result '{tmp_path}/bad/{RESULTS}' cannot be read: ")


def test_damaged_measurements_are_reported_and_cost_no_verdict(tmp_path: Path) -> None:
    folder = reports.save(tmp_path, reports.fired())
    (folder / MEASUREMENTS).write_text("{")
    job = read([folder]).runs[0].jobs[0]
    assert job.problem.startswith("Its measurements cannot be read: ")
    assert [line.name for line in job.drawings[0].lines] == ["gradient/fc"]


def test_measurements_are_drawn(tmp_path: Path) -> None:
    record = reports.measurements(reports.series({0: 1, 20: 1e-8}, met=[20]), left_out=3)
    job = read([reports.save(tmp_path, reports.fired(), record)]).runs[0].jobs[0]
    assert (job.left_out, job.problem) == (3, "")
    assert [len(line.points) for line in job.drawings[0].lines] == [2]
