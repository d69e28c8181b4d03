"""The command `report`: whole output, exit codes."""

import shutil
from pathlib import Path

import pytest
import reports
from click.testing import CliRunner, Result

from rule_runner.cli import main

OLD = Path(__file__).parents[3] / "data" / "outputs-0.1.0"


def call(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["report", *map(str, arguments)])


def test_a_page_is_made_beside_the_results(tmp_path: Path) -> None:
    folder = reports.save(tmp_path / "out", reports.result())
    done = call(folder)
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout == f"Report: {folder}/report.html\n"
    assert "<title>mine</title>" in (folder / "report.html").read_text("utf-8")


def test_one_page_for_many_runs_lies_in_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folders = [reports.save(tmp_path / name, reports.result(trial=name)) for name in ("a", "b")]
    done = call(*folders)
    assert (done.exit_code, done.stdout) == (0, "Report: report.html\n")
    assert "<title>a, b</title>" in (tmp_path / "report.html").read_text("utf-8")
    assert sorted(one.name for one in tmp_path.iterdir()) == ["a", "b", "report.html"]


def test_place_and_title_can_be_chosen(tmp_path: Path) -> None:
    folder = reports.save(tmp_path / "out", reports.result())
    done = call(folder, "--output", tmp_path / "x.html", "--title", "Week 3")
    assert (done.exit_code, done.stdout) == (0, f"Report: {tmp_path}/x.html\n")
    assert "<title>Week 3</title>" in (tmp_path / "x.html").read_text("utf-8")


def test_a_folder_that_does_not_exist(tmp_path: Path) -> None:
    done = call(tmp_path / "none")
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr == (
        f"Error: Folder '{tmp_path}/none' does not exist. Give the output folder of an "
        "evaluation.\n"
    )


def test_a_folder_without_a_result(tmp_path: Path) -> None:
    full = reports.save(tmp_path / "full", reports.result())
    (tmp_path / "empty").mkdir()
    done = call(full, tmp_path / "empty")
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr == (
        f"Error: Folder '{tmp_path}/empty' holds no results.json, nor do the folders in "
        "it. Give the output folder of an evaluation.\n"
    )


def test_a_damaged_result_stands_on_the_page(tmp_path: Path) -> None:
    (tmp_path / "results.json").write_text("{")
    done = call(tmp_path)
    assert done.exit_code == 0
    assert "Not in this report." in (tmp_path / "report.html").read_text("utf-8")


@pytest.mark.parametrize("layout", ["single", "several"])
def test_results_of_version_0_1_0_are_reported(tmp_path: Path, layout: str) -> None:
    shutil.copytree(OLD / layout, tmp_path / "old")
    assert call(tmp_path / "old").exit_code == 0
    page = (tmp_path / "old" / "report.html").read_text("utf-8")
    assert "ExplodingTensor" in page
    assert ("LossNotDecreasing" in page) == (layout == "several")
