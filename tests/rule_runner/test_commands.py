"""What the command `evaluate` does once its options are parsed."""

import io
import json
import sys
from pathlib import Path
from typing import Any

import evaluating
import jsonschema
import numpy as np
import pytest
import rawtrial
import structlog

from builtin_rules import RULES
from rule_runner.cli.evaluation import evaluate
from rule_runner.commands import evaluate_trial
from rule_runner.config import Isolation
from rule_runner.errors import OutputError, ParameterError, UsageError
from rule_runner.results import EVALUATION_SCHEMA
from rule_runner.unopened import Unopened

PRINTS = """
from smdebug.rules import Rule

class Prints(Rule):
    def invoke_at_step(self, step):
        print("noise")
        return self.found(step, measured=float("nan")) if self.base_trial.steps() else False
"""


@pytest.fixture(autouse=True)
def _quiet() -> None:
    evaluating.log_nothing()


@pytest.fixture
def trial(tmp_path: Path) -> Path:
    steps = {step: {"loss": np.float32([1])} for step in range(3)}
    return rawtrial.write(tmp_path / "trial", evaluating.trial(steps, {"losses": ["loss"]}))


@pytest.fixture
def options(tmp_path: Path, trial: Path) -> dict[str, Any]:
    """Return what the command line gives for three options."""
    given = ["--trial", str(trial), "--rule", "ExplodingTensor", "--output", str(tmp_path / "out")]
    return evaluate.make_context("evaluate", [*given, "--quiet"]).params


def source(tmp_path: Path) -> Path:
    path = tmp_path / "prints.py"
    path.write_text(PRINTS)
    return path


def test_plain_text_where_nobody_watches(
    options: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert evaluate_trial(**options) == 0
    assert capsys.readouterr().out.splitlines() == [
        "ExplodingTensor: NoIssuesFound",
        "  judged 3 of 3 steps (0 to 2)",
        f"Results: {tmp_path / 'out'}",
        f"Report: {tmp_path / 'out' / 'report.html'}",
    ]


def test_a_report_that_cannot_be_written_costs_no_verdict(
    options: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "out" / "report.html").mkdir(parents=True)
    with structlog.testing.capture_logs() as logs:
        assert evaluate_trial(**options) == 0
    assert [one["event"] for one in logs if one["log_level"] == "warning"] == ["report_not_written"]
    assert capsys.readouterr().out.splitlines() == [
        "ExplodingTensor: NoIssuesFound",
        "  judged 3 of 3 steps (0 to 2)",
        f"Results: {tmp_path / 'out'}",
    ]


def test_json_is_one_object_whatever_the_rule_prints(
    options: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options |= {"form": "json", "rule": (), "source": (str(source(tmp_path)),)}
    assert evaluate_trial(**options | {"fail_on_issues": True}) == 10
    out, err = capsys.readouterr()
    found = json.loads(out)
    jsonschema.validate(found, json.loads(EVALUATION_SCHEMA.read_text()))
    assert found["rules"][0]["evidence"][0]["measured"] == "NaN"
    assert "noise" in err


def test_table_on_a_terminal(options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    stream = Terminal()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setattr(sys, "stdout", stream)
    evaluate_trial(**options)
    assert "┃" in stream.getvalue()
    assert f"Results: {options['output']}" in stream.getvalue()


def test_events_go_to_stdout_when_asked(
    options: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    evaluate_trial(**options | {"sink": ("stdout",), "training_job_name": "mine"})
    events = [json.loads(line) for line in capsys.readouterr().out.splitlines() if line[0] == "{"]
    assert [one["detail"]["TrainingJobName"] for one in events] == ["mine"] * len(events)
    assert len(events) == 3


def test_unwritten_output_is_told_after_the_results(
    options: dict[str, Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(*_: object) -> None:
        text = "Cannot write 'x': No space left on device."
        raise OutputError(text)

    monkeypatch.setattr("rule_runner.outputs.OutputFolder.write_result", refuse)
    assert evaluate_trial(**options) == 73
    assert capsys.readouterr().err == "Cannot write 'x': No space left on device.\n"


def test_all_rules_with_those_that_lack_a_parameter(
    options: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    assert evaluate_trial(**options | {"rule": ("all",), "form": "json"}) == 0
    rules = {one["rule"]: one for one in json.loads(capsys.readouterr().out)["rules"]}
    assert list(rules) == list(RULES)
    assert rules["ExplodingTensor"]["outcome"] == "NoIssuesFound"
    assert (rules["AllZero"]["status"], rules["AllZero"]["outcome"]) == ("Error", "NotEvaluated")
    assert rules["AllZero"]["status_details"] == (
        "InsufficientInformationForRuleInvocation: Rule 'AllZero' judged none of 3 known steps. "
        "Rule 'AllZero' needs parameter 'collection_names' or 'tensor_regex', and neither was "
        "given."
    )


def test_a_rule_of_all_is_judged_once_it_has_what_it_lacks(
    options: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    more = {"rule": ("all",), "form": "json", "param": ("AllZero.tensor_regex=loss",)}
    assert evaluate_trial(**options | more) == 0
    rules = {one["rule"]: one for one in json.loads(capsys.readouterr().out)["rules"]}
    assert rules["AllZero"]["outcome"] == "NoIssuesFound"


def test_a_rule_of_all_with_a_wrong_parameter_is_an_error(options: dict[str, Any]) -> None:
    more = {"rule": ("all",), "param": ("AllZero.threshold=many",)}
    with pytest.raises(ParameterError, match=r"'threshold' must be .*, got 'many'"):
        evaluate_trial(**options | more)


@pytest.mark.parametrize(
    ("mode", "code", "told"),
    [((), 10, "enforce"), (("observe",), 0, "observe"), (("Prints=observe",), 0, "observe")],
)
def test_a_finding_that_is_only_observed_fails_nothing(
    options: dict[str, Any],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    mode: tuple[str, ...],
    code: int,
    told: str,
) -> None:
    options |= {"form": "json", "rule": (), "source": (str(source(tmp_path)),), "mode": mode}
    assert evaluate_trial(**options | {"fail_on_issues": True}) == code
    (rule,) = json.loads(capsys.readouterr().out)["rules"]
    assert (rule["outcome"], rule["mode"]) == ("IssuesFound", told)
    events = evaluating.json_lines(tmp_path / "out" / "events.jsonl")
    entries = [one for each in events for one in each["detail"]["DebugRuleEvaluationStatuses"]]
    assert {one["RuleEvaluationMode"] for one in entries} == {told}
    assert entries[-1]["RuleEvaluationStatus"] == "IssuesFound"


def test_a_mode_is_no_parameter(options: dict[str, Any]) -> None:
    options |= {"rule": ("LossNotDecreasing",), "mode": ("observe",), "param": ("mode=TRAIN",)}
    evaluate_trial(**options)
    result = json.loads(Path(options["output"], "rule_result.json").read_text())
    assert (result["mode"], result["parameters"]["mode"]) == ("observe", "TRAIN")


@pytest.mark.parametrize(
    ("text", "match"),
    [("soon", "must be a whole number >= 0, got 'soon'"), ("-1", "got '-1'"), ("²", "got '²'")],
)
def test_window_of_the_environment_that_is_no_number(
    options: dict[str, Any], monkeypatch: pytest.MonkeyPatch, text: str, match: str
) -> None:
    monkeypatch.setenv("SMDEBUG_INCOMPLETE_STEP_WAIT_WINDOW", text)
    with pytest.raises(UsageError, match=match):
        evaluate_trial(**options)


class Recorded:
    """Stands in for the runner: what it was told."""

    config: Any

    def __init__(self, config: Any, **_: object) -> None:
        type(self).config = config
        raise KeyError


def test_options_reach_the_runner(
    options: dict[str, Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SMDEBUG_INCOMPLETE_STEP_WAIT_WINDOW", "7")
    monkeypatch.setenv("SAGEMAKER_ENV_RULE_STOP_SIGNAL_FILE", "signals/stop")
    monkeypatch.setattr("rule_runner.commands.Runner", Recorded)
    options |= {
        "other_trial": ("/a", "/b"),
        "start_step": 2,
        "end_step": 5,
        "keep_going": True,
        "no_wait": True,
        "wait_for_trial": 3.0,
        "timeout": 4.0,
        "idle_timeout": 0.0,
        "rule_timeout": 5.0,
        "isolate": "process",
        "end_grace": 6.0,
        "event_file_wait": 8.0,
        "overwrite": True,
        "fail_on_issues": True,
        "event_source": "mine",
        "training_job_name": "job",
        "param": ("only_nan=true",),
    }
    with pytest.raises(KeyError):
        evaluate_trial(**options)
    config = Recorded.config
    (rule,) = config.rules
    assert (rule.start_step, rule.end_step, rule.parameters) == (2, 5, {"only_nan": "true"})
    assert (config.other_trials, config.keep_going, config.wait) == (("/a", "/b"), True, False)
    assert (config.wait_for_trial, config.timeout, config.idle_timeout) == (3.0, 4.0, None)
    assert (config.rule_timeout, config.end_grace, config.event_file_wait) == (5.0, 6.0, 8.0)
    assert config.isolate is Isolation.PROCESS
    assert (config.window, config.overwrite) == (7, True)
    assert (config.event_source, config.training_job_name) == ("mine", "job")
    assert config.stop_files == (tmp_path / "trial" / "signals" / "stop",)


@pytest.mark.parametrize("own", [{"rule_timeout": 5.0}, {"isolate": "process"}])
def test_file_of_a_rule_with_a_process_of_its_own_is_not_run_here(
    options: dict[str, Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, own: dict[str, Any]
) -> None:
    monkeypatch.setattr("rule_runner.commands.Runner", Recorded)
    file = source(tmp_path)
    file.write_text(file.read_text() + "\nraise SystemError\n")
    given = options | {"rule": (), "source": (str(file),), "param": (), **own}
    with pytest.raises(KeyError):
        evaluate_trial(**given)
    (rule,) = Recorded.config.rules
    assert (rule.loaded.name, rule.loaded.rule_class) == ("Prints", Unopened)
