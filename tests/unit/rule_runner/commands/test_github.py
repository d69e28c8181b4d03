"""The command `github`: the summary of a workflow, a check run, and one comment."""

import json
from collections.abc import Iterator
from pathlib import Path

import github_server
import pytest
import reports
from click.testing import CliRunner, Result
from github_server import REPOSITORY, TOKEN, GitHub

from rule_core.severity import Severity
from rule_runner.cli import main
from rule_runner.commands import github as command
from rule_runner.commands.github import MARK, PAGE

ALLOW = "Give the job the permission 'checks: write', and GITHUB_TOKEN its token."
COMMIT, HEAD = "a" * 40, "b" * 40


@pytest.fixture
def github(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[GitHub]:
    event = tmp_path / "event.json"
    event.write_text(json.dumps({"pull_request": {"number": 7, "head": {"sha": HEAD}}}))
    monkeypatch.setattr(command, "PAUSE_S", 0.001)
    with github_server.serving() as server:
        variables = {
            "GITHUB_REPOSITORY": REPOSITORY,
            "GITHUB_TOKEN": TOKEN,
            "GITHUB_API_URL": server.url,
            "GITHUB_SHA": COMMIT,
            "GITHUB_EVENT_PATH": str(event),
        }
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
        yield server


@pytest.fixture
def results(tmp_path: Path) -> Path:
    return reports.save(tmp_path / "out", reports.fired())


def call(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["github", *map(str, arguments)])


def test_results_are_printed_outside_of_a_workflow(github: GitHub, results: Path) -> None:
    done = call(results)
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout.startswith("### rule-runner: 1 of 1 trial with issues\n")
    assert (github.check_runs, github.comments) == ([], {})


def test_results_are_added_to_the_summary(
    github: GitHub, results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    summary = tmp_path / "summary.md"
    summary.write_text("before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    done = call(results)
    assert (done.exit_code, done.stdout) == (0, "")
    assert summary.read_text().startswith("before\n### rule-runner: 1 of 1 trial with issues\n")
    assert github.check_runs == []


def test_a_check_run_is_about_the_last_commit_of_the_pull_request(
    github: GitHub, results: Path
) -> None:
    assert call(results, "--check", "training").exit_code == 0
    (check_run,) = github.check_runs
    output = check_run.pop("output")
    assert check_run == {
        "name": "training",
        "head_sha": HEAD,
        "status": "completed",
        "conclusion": "failure",
    }
    assert output["title"] == "1 of 1 trial with issues"
    assert "VanishingGradient" in output["summary"]


def test_a_check_run_of_a_push_is_about_its_commit(
    github: GitHub, results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GITHUB_EVENT_PATH")
    assert call(results, "--check", "training", "--comment").exit_code == 0
    assert [check_run["head_sha"] for check_run in github.check_runs] == [COMMIT]
    assert github.comments == {}


@pytest.mark.parametrize(
    ("outcome", "more", "options", "conclusion"),
    [
        ("NoIssuesFound", {}, [], "success"),
        ("NotEvaluated", {}, [], "success"),
        ("Error", {}, [], "failure"),
        ("IssuesFound", {"severity": Severity.ERROR}, [], "failure"),
        ("IssuesFound", {"severity": Severity.WARNING}, [], "neutral"),
        ("IssuesFound", {"severity": Severity.WARNING}, ["--fail-on", "warning"], "failure"),
        ("IssuesFound", {"severity": Severity.ERROR, "mode": "observe"}, [], "neutral"),
    ],
)
def test_the_conclusion_follows_the_severity(
    outcome: str,
    more: dict[str, str],
    options: list[str],
    conclusion: str,
    github: GitHub,
    tmp_path: Path,
) -> None:
    folder = reports.save(tmp_path / "out", reports.result("A", outcome, **more))
    assert call(folder, "--check", "x", *options).exit_code == 0
    assert [check_run["conclusion"] for check_run in github.check_runs] == [conclusion]


def test_a_cut_off_result_fails_the_check_run(github: GitHub, results: Path) -> None:
    (results / "results.json").write_text("{")
    assert call(results, "--check", "x").exit_code == 0
    (check_run,) = github.check_runs
    assert check_run["conclusion"] == "failure"
    assert "cannot be read" in check_run["output"]["summary"]


def test_there_is_one_comment_however_often_it_is_written(github: GitHub, results: Path) -> None:
    github.comments |= dict.fromkeys(range(1, PAGE + 2), "of a person")
    assert call(results, "--comment").exit_code == 0
    first = github.comments[PAGE + 2]
    reports.save(results, reports.result())
    assert call(results, "--comment").exit_code == 0
    assert len(github.comments) == PAGE + 2
    second = github.comments[PAGE + 2]
    assert first.startswith(f"{MARK}\n### rule-runner: 1 of 1 trial with issues\n")
    assert second.startswith(f"{MARK}\n### rule-runner: No issues in 1 trial\n")


def test_a_busy_server_is_asked_again(github: GitHub, results: Path) -> None:
    github.answers = [503, 502]
    assert call(results, "--check", "x").exit_code == 0
    assert len(github.check_runs) == 1


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        (
            [403],
            f"GitHub answered 403 to POST /check-runs. {ALLOW}",
        ),
        ([422], "GitHub answered 422 to POST /check-runs."),
        ([500] * 4, "GitHub answered 500 to POST /check-runs."),
    ],
)
def test_a_refusal_is_one_sentence(
    answers: list[int], message: str, github: GitHub, results: Path
) -> None:
    github.answers = answers
    done = call(results, "--check", "x")
    assert (done.exit_code, done.stderr) == (1, f"Error: {message}\n")


def test_a_server_that_is_down_is_named(
    github: GitHub, results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_API_URL", "http://127.0.0.1:9")
    done = call(results, "--check", "x")
    assert done.exit_code == 1
    assert "\nError: GitHub cannot be reached at 'http://127.0.0.1:9/repos/team" in done.stderr
    assert TOKEN not in done.stderr
    assert github.check_runs == []


@pytest.mark.parametrize("name", ["GITHUB_REPOSITORY", "GITHUB_TOKEN"])
@pytest.mark.usefixtures("github")
def test_a_missing_variable_is_named(
    name: str, results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(name)
    done = call(results, "--comment")
    assert done.exit_code == 2
    assert f"The variable {name} is not set" in done.stderr


@pytest.mark.usefixtures("github")
def test_an_event_that_cannot_be_read_is_named(
    results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "event.json").write_text("{")
    done = call(results, "--comment")
    assert done.exit_code == 2
    assert f"The event of the workflow at '{tmp_path}/event.json' cannot be read" in done.stderr
    monkeypatch.setenv("GITHUB_EVENT_PATH", str(tmp_path / "none"))
    assert call(results, "--comment").exit_code == 2


@pytest.mark.usefixtures("github")
def test_a_folder_without_results_is_named(tmp_path: Path) -> None:
    assert "holds no results.json" in call(tmp_path).stderr
