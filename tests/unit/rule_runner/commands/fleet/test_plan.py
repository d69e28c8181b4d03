import json
import os
import re
from pathlib import Path

import evaluating
import fleets
import pytest
import rawtrial
import s3_objects

from rule_runner.commands.fleet import plan as planning


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    fleets.write_runs(tmp_path / "runs", 2)
    (tmp_path / "runs" / "log.csv").write_text("step,loss\n0,1\n1,0.5\n")
    return tmp_path / "runs"


def planned(*arguments: object) -> list[dict[str, object]]:
    result = fleets.fleet("plan", *arguments)
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_each_trial_and_source_is_a_line_with_its_own_output(runs: Path) -> None:
    lines = planned(runs, "--output", "out")
    assert [line["trial"] for line in lines] == [str(runs), f"{runs}/t000", f"{runs}/t001"]
    assert all(line["rules"] == [{"name": "auto"}] and line["wait"] is False for line in lines)
    outputs = {str(line["output"]) for line in lines}
    assert len(outputs) == 3
    assert {str(Path(output).parent) for output in outputs} == {str(runs.parent / "out")}


def test_plan_is_the_same_from_other_roots_and_folders(
    runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = planned(runs, "--output", runs.parent / "out")
    monkeypatch.chdir(runs)
    assert planned("t001", ".", "--output", "../out") == first


def test_options_of_evaluate_are_those_of_each_line(runs: Path) -> None:
    arguments = ("--rule", "VanishingGradient", "-p", "threshold=1e-9", "--end-step", "2")
    line = planned(runs / "t000", "--output", "out", "--follow", "--no-report", *arguments)[0]
    assert line["rules"] == [{"name": "VanishingGradient"}]
    assert line["parameters"] == ["threshold=1e-9"]
    assert (line["end_step"], line["report"]) == (2, False)
    assert "wait" not in line


def test_job_file_is_in_each_line(runs: Path) -> None:
    job = {"DebugRuleConfigurations": [{"RuleConfigurationName": "Mine"}]}
    job["DebugRuleConfigurations"][0] |= {"RuleParameters": {"rule_to_invoke": "ExplodingTensor"}}
    (runs.parent / "job.json").write_text(json.dumps(job))
    line = planned(runs / "t000", "--output", "out", "--job", "job.json")[0]
    assert "Mine" in json.dumps(line["job"])
    assert "rules" not in line


def test_patterns_and_age_choose_trials(runs: Path) -> None:
    for path in (runs / "t000").rglob("*"):
        os.utime(path, (1, 1))
    names = [Path(str(line["trial"])).name for line in planned(runs, "--output", "o")]
    assert names == ["runs", "t000", "t001"]
    recent = planned(runs, "--output", "o", "--since", "1d", "--include", "*/t0*")
    assert [Path(str(line["trial"])).name for line in recent] == ["t001"]
    without = planned(runs, "--output", "o", "--exclude", "*/t0*")
    assert [Path(str(line["trial"])).name for line in without] == ["runs"]


def test_trials_in_s3_are_planned_into_s3(aws_endpoint: str) -> None:
    s3_objects.make_bucket(aws_endpoint)
    for name in ("b", "a"):
        s3_objects.put(aws_endpoint, f"runs/{name}/", fleets.trial_files(0.5))
    target = "s3://bucket/plans/p.jsonl"
    arguments = (
        "s3://bucket/runs",
        "--output",
        "s3://bucket/out",
        "--since",
        "1h",
        "--plan",
        target,
    )
    result = fleets.fleet("plan", *arguments)
    assert result.exit_code == 0, result.output
    text = s3_objects.content(aws_endpoint)["plans/p.jsonl"].decode()
    lines = [json.loads(line) for line in text.splitlines()]
    assert [line["trial"] for line in lines] == ["s3://bucket/runs/a", "s3://bucket/runs/b"]
    assert all(line["output"].startswith("s3://bucket/out/") for line in lines)


def test_wrong_root_beside_a_right_one_is_named_and_sets_the_exit_code(runs: Path) -> None:
    result = fleets.fleet("plan", runs / "t000", runs / "t0000", "--output", "out")
    assert result.exit_code == 1
    assert len(result.stdout.splitlines()) == 1
    assert "does not exist. Did you mean" in result.stderr
    assert "Planned 1 trials." in result.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["missing", "--output", "out"], 1, "Trial 'missing' does not exist."),
        (["empty", "--output", "out"], 1, "No trial at 'empty' or below."),
        (["runs", "--output", "out/{name}"], 2, "needs {id}"),
        (["runs", "--output", "o", "--since", "50"], 2, "Option --since must be a time, such as"),
        (["runs", "--output", "o", "--since", "soon"], 2, "2w, got 'soon'."),
        (
            ["runs", "--output", "o", "--plan", "s3://bucket"],
            2,
            "has no name. Give s3://bucket/prefix",
        ),
        (["runs", "--output", "o", "--plan", "empty"], 73, "Plan 'empty' cannot be written: Is a"),
        (["runs", "--output", "o", "--job", "none.json"], 1, "none.json"),
        (["runs"], 2, "Missing option '--output'"),
    ],
)
def test_wrong_usage_is_one_sentence(
    runs: Path, arguments: list[str], code: int, message: str
) -> None:
    (runs.parent / "empty").mkdir()
    result = fleets.fleet("plan", *arguments)
    assert result.exit_code == code, result.output
    assert message in re.sub(r"\s+", " ", result.stderr)
    assert result.stdout == ""


def test_more_trials_are_planned_than_a_check_judges(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rule_runner.loading.trial_search.LOCAL_FOLDERS", 3)
    files = evaluating.trial({0: {}}, {})
    for number in range(8):
        rawtrial.write(tmp_path / "runs" / str(number), files)
    assert len(planned(tmp_path / "runs", "--output", tmp_path / "out")) == 8


def test_trial_whose_path_is_no_text_is_named(runs: Path) -> None:
    rawtrial.write(Path(os.fsdecode(os.fsencode(runs) + b"/\xff")), fleets.trial_files(0.5))
    result = fleets.fleet("plan", runs, "--output", "out")
    assert result.exit_code == 1
    assert len(result.stdout.splitlines()) == 3
    assert "is not planned: its path is not UTF-8. Rename it." in result.stderr


def test_incomplete_search_sets_the_exit_code(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "FOLDERS", 1)
    result = fleets.fleet("plan", runs, "--output", "out")
    assert result.exit_code == 1
    assert "was searched only in part" in result.stderr
