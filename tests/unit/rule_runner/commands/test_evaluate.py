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
import saved
import structlog
from msgspec.structs import replace

from builtin_rules import RULES
from rule_runner.commands.evaluate import evaluate_trial
from rule_runner.config.defaults import Isolation
from rule_runner.config.model import ProcessOptions, WaitOptions
from rule_runner.config.request import EvaluationRequest, RuleRequest
from rule_runner.errors import OutputError, ParameterError, UsageError
from rule_runner.loading.placeholder_rule import PlaceholderRule
from rule_runner.results.schema import EVALUATION_SCHEMA

EVERY = RuleRequest(name="all")
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
def requested(tmp_path: Path, trial: Path) -> EvaluationRequest:
    return EvaluationRequest(
        trial=str(trial),
        rules=(RuleRequest(name="ExplodingTensor"),),
        output=str(tmp_path / "out"),
        quiet=True,
    )


def prints(tmp_path: Path, more: str = "") -> RuleRequest:
    path = tmp_path / "prints.py"
    path.write_text(PRINTS + more)
    return RuleRequest(source=str(path))


def test_plain_text_where_nobody_watches(
    requested: EvaluationRequest, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert evaluate_trial(requested) == 0
    assert capsys.readouterr().out.splitlines() == [
        "ExplodingTensor: NoIssuesFound",
        "  judged 3 of 3 steps (0 to 2)",
        f"Results: {tmp_path / 'out'}",
        f"Report: {tmp_path / 'out' / 'report.html'}",
    ]


def test_a_report_that_cannot_be_written_costs_no_verdict(
    requested: EvaluationRequest, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "out" / "report.html").mkdir(parents=True)
    with structlog.testing.capture_logs() as logs:
        assert evaluate_trial(requested) == 0
    assert [one["event"] for one in logs if one["log_level"] == "warning"] == ["report_not_written"]
    assert capsys.readouterr().out.splitlines() == [
        "ExplodingTensor: NoIssuesFound",
        "  judged 3 of 3 steps (0 to 2)",
        f"Results: {tmp_path / 'out'}",
    ]


def test_json_is_one_object_whatever_the_rule_prints(
    requested: EvaluationRequest, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    requested = replace(requested, format="json", rules=(prints(tmp_path),), fail_on_issues=True)
    assert evaluate_trial(requested) == 10
    out, err = capsys.readouterr()
    found = json.loads(out)
    jsonschema.validate(found, json.loads(EVALUATION_SCHEMA.read_text()))
    assert found["rules"][0]["evidence"][0]["measured"] == "NaN"
    assert "noise" in err


def test_table_on_a_terminal(requested: EvaluationRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    stream = Terminal()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setattr(sys, "stdout", stream)
    evaluate_trial(requested)
    assert "┃" in stream.getvalue()
    assert f"Results: {requested.output}" in stream.getvalue()


def test_events_go_to_stdout_when_asked(
    requested: EvaluationRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    evaluate_trial(replace(requested, sinks=("stdout",), training_job_name="mine"))
    events = [json.loads(line) for line in capsys.readouterr().out.splitlines() if line[0] == "{"]
    assert [one["detail"]["TrainingJobName"] for one in events] == ["mine"] * len(events)
    assert len(events) == 3


def test_unwritten_output_is_reported_after_the_results(
    requested: EvaluationRequest,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def refuse(*_: object) -> None:
        text = "Cannot write 'x': No space left on device."
        raise OutputError(text)

    monkeypatch.setattr("rule_runner.results.output_folder.OutputFolder.write", refuse)
    assert evaluate_trial(requested) == 73
    assert capsys.readouterr().err == "Cannot write 'x': No space left on device.\n"


def test_all_rules_with_those_that_lack_a_parameter(
    requested: EvaluationRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    assert evaluate_trial(replace(requested, rules=(EVERY,), format="json")) == 0
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
    requested: EvaluationRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    told = ("AllZero.tensor_regex=loss", "AllZero.threshold=100")
    more = {"rules": (EVERY,), "format": "json", "parameters": told}
    assert evaluate_trial(replace(requested, **more)) == 0
    rules = {one["rule"]: one for one in json.loads(capsys.readouterr().out)["rules"]}
    assert rules["AllZero"]["outcome"] == "NoIssuesFound"


def test_a_rule_of_all_with_a_wrong_parameter_is_an_error(requested: EvaluationRequest) -> None:
    more = {"rules": (EVERY,), "parameters": ("AllZero.threshold=many",)}
    with pytest.raises(ParameterError, match=r"'threshold' must be .*, got 'many'"):
        evaluate_trial(replace(requested, **more))


@pytest.mark.parametrize(
    ("mode", "code", "told"),
    [((), 10, "enforce"), (("observe",), 0, "observe"), (("Prints=observe",), 0, "observe")],
)
def test_a_finding_that_is_only_observed_fails_nothing(
    requested: EvaluationRequest,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    mode: tuple[str, ...],
    code: int,
    told: str,
) -> None:
    requested = replace(
        requested, format="json", rules=(prints(tmp_path),), modes=mode, fail_on_issues=True
    )
    assert evaluate_trial(requested) == code
    (rule,) = json.loads(capsys.readouterr().out)["rules"]
    assert (rule["outcome"], rule["mode"]) == ("IssuesFound", told)
    events = evaluating.json_lines(tmp_path / "out" / "events.jsonl")
    entries = [one for each in events for one in each["detail"]["DebugRuleEvaluationStatuses"]]
    assert {one["RuleEvaluationMode"] for one in entries} == {told}
    assert entries[-1]["RuleEvaluationStatus"] == "IssuesFound"


def test_a_mode_is_no_parameter(requested: EvaluationRequest) -> None:
    rules = (RuleRequest(name="LossNotDecreasing"),)
    requested = replace(requested, rules=rules, modes=("observe",), parameters=("mode=TRAIN",))
    evaluate_trial(requested)
    result = saved.result(Path(requested.output or ""))
    assert (result["mode"], result["parameters"]["mode"]) == ("observe", "TRAIN")


@pytest.mark.parametrize(
    ("text", "match"),
    [("soon", "must be a whole number >= 0, got 'soon'"), ("-1", "got '-1'"), ("²", "got '²'")],
)
def test_window_of_the_environment_that_is_no_number(
    requested: EvaluationRequest, monkeypatch: pytest.MonkeyPatch, text: str, match: str
) -> None:
    monkeypatch.setenv("SMDEBUG_INCOMPLETE_STEP_WAIT_WINDOW", text)
    with pytest.raises(UsageError, match=match):
        evaluate_trial(requested)


class Recorded:
    """Stands in for the runner: records its arguments."""

    config: Any

    def __init__(self, config: Any, **_: object) -> None:
        type(self).config = config
        raise KeyError


def test_options_reach_the_runner(
    requested: EvaluationRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SMDEBUG_INCOMPLETE_STEP_WAIT_WINDOW", "7")
    monkeypatch.setenv("SAGEMAKER_ENV_RULE_STOP_SIGNAL_FILE", "signals/stop")
    monkeypatch.setattr("rule_runner.engine.evaluate.Runner", Recorded)
    requested = replace(
        requested,
        other_trials=("/a", "/b"),
        start_step=2,
        end_step=5,
        keep_going=True,
        wait=False,
        wait_for_trial=3.0,
        timeout=4.0,
        idle_timeout=0.0,
        rule_timeout=5.0,
        isolate=Isolation.PROCESS,
        end_grace=6.0,
        event_file_wait=8.0,
        overwrite=True,
        fail_on_issues=True,
        event_source="mine",
        training_job_name="job",
        parameters=("only_nan=true",),
    )
    with pytest.raises(KeyError):
        evaluate_trial(requested)
    config = Recorded.config
    (rule,) = config.rules
    assert (rule.start_step, rule.end_step, rule.parameters) == (2, 5, {"only_nan": "true"})
    assert config.waits == WaitOptions(
        wait=False,
        as_it_is=False,
        wait_for_trial=3.0,
        timeout=4.0,
        idle_timeout=0.0,
        end_grace=6.0,
        event_file_wait=8.0,
        poll_max=10.0,
        stop_grace=60.0,
        pause_file=None,
    )
    assert config.processes == ProcessOptions(
        isolate=Isolation.PROCESS,
        rule_timeout=5.0,
        own_processes=True,
        measure_on=None,
        measurements=None,
    )
    assert config.results.overwrite
    assert config.results.keep_going
    assert config.other_trials == ("/a", "/b")
    assert (config.messages.event_source, config.messages.training_job_name) == ("mine", "job")
    assert config.window == 7
    assert config.stop_files == (tmp_path / "trial" / "signals" / "stop",)


@pytest.mark.parametrize("own", [{"rule_timeout": 5.0}, {"isolate": Isolation.PROCESS}])
def test_file_of_a_rule_with_a_process_of_its_own_is_not_run_here(
    requested: EvaluationRequest,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    own: dict[str, Any],
) -> None:
    monkeypatch.setattr("rule_runner.engine.evaluate.Runner", Recorded)
    file = prints(tmp_path, "\nraise SystemError\n")
    with pytest.raises(KeyError):
        evaluate_trial(replace(requested, rules=(file,), **own))
    (rule,) = Recorded.config.rules
    assert (rule.loaded.name, rule.loaded.rule_class) == ("Prints", PlaceholderRule)


# -- trials that may still grow -------------------------------------------------------------------


@pytest.fixture
def growing(requested: EvaluationRequest, trial: Path) -> EvaluationRequest:
    (trial / evaluating.END).unlink()
    return replace(requested, quiet=False, idle_timeout=1.0)


def test_an_evaluation_says_once_until_when_it_waits(
    growing: EvaluationRequest, trial: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    class Growing(io.StringIO):
        """Standard error on which each notice is followed by a new step."""

        notices = 0

        def write(self, text: str) -> int:
            if "may still grow" in text:
                self.notices += 1
                rawtrial.write(trial, rawtrial.step_files(9, {"loss": np.float32([1])}))
            return super().write(text)

    stderr = Growing()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stderr", stderr)
        assert evaluate_trial(growing) == 124
    assert stderr.getvalue() == (
        f"Trial '{trial}' may still grow. Waiting until nothing new has come for 1 s "
        "(--idle-timeout); --no-wait judges only what is there.\n"
    )
    assert stderr.notices == 1
    assert "judged 4 of 4 steps (0 to 9)" in capsys.readouterr().out


@pytest.mark.parametrize(
    "more",
    [{"wait": False}, {"quiet": True}, {"pause_file": "/nowhere"}],
    ids=["no-wait", "quiet", "watch"],
)
def test_nothing_is_said_if_nobody_waits_or_listens(
    growing: EvaluationRequest, capsys: pytest.CaptureFixture[str], more: dict[str, Any]
) -> None:
    evaluate_trial(replace(growing, **more))
    assert capsys.readouterr().err == ""


def test_nothing_is_said_of_a_trial_that_has_ended(
    requested: EvaluationRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    evaluate_trial(replace(requested, quiet=False))
    assert capsys.readouterr().err == ""
