"""rule_runner.evaluate: typed results in memory, a caller left as it was."""

import contextlib
import logging
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import structlog
import vanishing

import rule_runner
from rule_runner.debugger import ProfilerRule, Rule, rule_configs
from rule_runner.errors import JobError, OutputError, ParameterError, TrialError, UsageError
from rule_runner.logs import through_logging
from rule_runner.results.output_folder import read_results_file
from rule_runner.results.schema import EvaluationResult, RuleResult
from smdebug.trials import create_trial

PROBING = """
import signal
from smdebug.rules import Rule

class Probes(Rule):
    def invoke_at_step(self, step):
        print("heard")
        self.base_trial.tensor("loss").value(step)
        seen = [signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)]
        return self.found(step, measured=repr(seen))
"""


@pytest.fixture
def trial(tmp_path: Path) -> Path:
    """Return an ended trial whose gradients vanish at 70."""
    return vanishing.write_trial(tmp_path / "trial")


@pytest.fixture
def _unconfigured() -> Iterator[None]:
    structlog.reset_defaults()
    yield
    structlog.reset_defaults()


def rules() -> list[Rule]:
    return [
        Rule.sagemaker(rule_configs.vanishing_gradient(), name="Gradients"),
        Rule.sagemaker(rule_configs.exploding_tensor()),
    ]


def outcomes(result: EvaluationResult) -> dict[str, str]:
    return {one.configuration_name: one.outcome for one in result.rules}


def probing(tmp_path: Path) -> list[dict[str, Any]]:
    path = tmp_path / "probes.py"
    path.write_text(PROBING)
    return [{"RuleConfigurationName": "P", "RuleParameters": {"source_s3_uri": str(path)}}]


def test_results_are_typed_and_nothing_is_kept(
    trial: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    monkeypatch.chdir(scratch)
    result = rule_runner.evaluate(trial, rules())
    assert isinstance(result, EvaluationResult)
    first, second = result.rules
    assert isinstance(first, RuleResult)
    assert (first.configuration_name, first.rule) == ("Gradients", "VanishingGradient")
    assert (first.status, first.step, second.status) == ("IssuesFound", 70, "NoIssuesFound")
    assert (first.evidence[0].tensor, first.coverage.judged) == ("gradient/fc.weight", 8)
    assert (result.trial.name, result.trial.steps, result.notes) == ("trial", 10, [])
    assert list(scratch.iterdir()) == []
    with pytest.raises(AttributeError, match="immutable"):
        first.status = "Error"  # type: ignore[misc] # that it cannot be set is what is shown


def test_output_is_that_of_the_command(trial: Path, tmp_path: Path) -> None:
    output = tmp_path / "out"
    result = rule_runner.evaluate(str(trial), rules()[:1], output=output)
    assert sorted(one.name for one in output.glob("[!.]*")) == [
        *("events.jsonl", "findings.jsonl", "measurements.json", "report.html", "results.json"),
    ]
    written = read_results_file(output).rules
    assert written[0].status == result.rules[0].status
    same = rule_runner.evaluate(trial, rules()[:1], output=output)
    assert (same.rules, len(same.notes)) == (written, 1)
    assert "nothing was judged again" in same.notes[0]
    with pytest.raises(OutputError, match=r"holds an ended evaluation without rule job 'Exploding"):
        rule_runner.evaluate(trial, rules(), output=output)
    again = rule_runner.evaluate(trial, rules()[:1], output=output, overwrite=True)
    assert outcomes(again) == outcomes(result)


def test_a_trial_object_and_its_name(trial: Path) -> None:
    opened = create_trial(trial, name="mine")
    assert rule_runner.evaluate(opened, rules()).trial.name == "mine"
    with pytest.raises(UsageError, match=r"must be whole, got one with range_steps=\(0, 5\)\."):
        rule_runner.evaluate(create_trial(trial, range_steps=(0, 5)), rules())


def test_requests_and_files_are_rules_too(trial: Path, tmp_path: Path) -> None:
    configuration = {
        "RuleConfigurationName": "A",
        "RuleParameters": {"rule_to_invoke": "ExplodingTensor"},
    }
    request = {"DebugRuleConfigurations": [configuration]}
    path = tmp_path / "job.json"
    path.write_bytes(msgspec.json.encode(request))
    for given in ([configuration], request, path, str(path)):
        assert outcomes(rule_runner.evaluate(trial, given)) == {"A": "NoIssuesFound"}


def test_the_request_says_the_trial(trial: Path, tmp_path: Path) -> None:
    place = tmp_path / "jobs" / "mnist-42" / "debug-output"
    place.parent.mkdir(parents=True)
    trial.rename(place)
    request = {
        "TrainingJobName": "mnist-42",
        "DebugHookConfig": {"S3OutputPath": str(tmp_path / "jobs")},
        "DebugRuleConfigurations": [rules()[1].to_debugger_rule_config_dict()],
    }
    result = rule_runner.evaluate(None, request, output=tmp_path / "out")
    assert (result.trial.path, result.trial.name, outcomes(result)) == (
        str(place),
        "mnist-42",
        {"ExplodingTensor": "NoIssuesFound"},
    )
    event = msgspec.json.decode((tmp_path / "out/events.jsonl").read_bytes().splitlines()[0])
    assert event["detail"]["TrainingJobName"] == "mnist-42"
    with pytest.raises(UsageError, match=r"^No trial was given, and the list does not say where"):
        rule_runner.evaluate(None, rules())


def test_options_are_those_of_the_command(trial: Path) -> None:
    two = rules()
    assert outcomes(rule_runner.evaluate(trial, two, only=["Gradients"])) == {
        "Gradients": "IssuesFound"
    }
    assert outcomes(rule_runner.evaluate(trial, two, exclude=["Gradients"])) == {
        "ExplodingTensor": "NoIssuesFound"
    }
    early = rule_runner.evaluate(trial, two, end_step=50, modes=["Gradients=observe"])
    assert outcomes(early) == {"Gradients": "NoIssuesFound", "ExplodingTensor": "NoIssuesFound"}
    assert [one.mode for one in early.rules] == ["observe", "enforce"]
    all_hits = rule_runner.evaluate(trial, two[:1], keep_going=True)
    assert all_hits.rules[0].findings_count == 3


def test_a_process_for_each_rule(trial: Path, tmp_path: Path) -> None:
    wrong = {"RuleConfigurationName": "B", "RuleParameters": {"rule_to_invoke": "x"}}
    given = [*rules()[:1], *probing(tmp_path), wrong]
    result = rule_runner.evaluate(trial, given, rule_timeout=60)
    assert outcomes(result) == {"Gradients": "IssuesFound", "P": "IssuesFound", "B": "Error"}


def test_what_is_wrong_alone(trial: Path) -> None:
    wrong = {"RuleConfigurationName": "B", "RuleParameters": {"rule_to_invoke": "Unknown"}}
    profiler = ProfilerRule.sagemaker(rule_configs.BatchSize())
    result = rule_runner.evaluate(trial, [*rules()[:1], wrong, profiler])
    assert outcomes(result) == {"Gradients": "IssuesFound", "B": "Error"}
    details = str(result.rules[1].status_details)
    assert details.startswith("ClientError: Unknown rule 'Unknown'. Built-in rules: ")
    assert result.notes == [
        (
            "Profiler rules are not evaluated without profiler data: 'BatchSize'. "
            "Give --profiler-trial PATH."
        )
    ]


@pytest.mark.parametrize(
    ("given", "error", "problem"),
    [
        ([], JobError, "^The list holds no rules: the list is empty"),
        (
            ["VanishingGradient", rules()[0]],
            JobError,
            r"^rules\[0\] of the list must be a Rule or its",
        ),
        ({}, JobError, "^The job definition holds no rules"),
        ([rules()[0], rules()[0]], JobError, "^Two rule configurations of the list are called"),
        (
            [ProfilerRule.sagemaker(rule_configs.BatchSize())],
            JobError,
            "^The list leaves nothing to evaluate",
        ),
    ],
)
def test_no_rules(trial: Path, given: Any, error: type[Exception], problem: str) -> None:
    with pytest.raises(error, match=problem):
        rule_runner.evaluate(trial, given)


def test_what_cannot_be(trial: Path, tmp_path: Path) -> None:
    with pytest.raises(TrialError, match=r"none' does not exist\.$"):
        rule_runner.evaluate(tmp_path / "none", rules())
    with pytest.raises(UsageError, match=r"^output must be a folder of this machine"):
        rule_runner.evaluate(trial, rules(), output="s3://bucket/out")
    with pytest.raises(UsageError, match=r"^Event source must not"):
        rule_runner.evaluate(trial, rules(), event_source="aws.sagemaker")


def test_signals_and_stdout_are_the_callers(
    trial: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = [signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)]
    result = rule_runner.evaluate(trial, probing(tmp_path))
    assert result.rules[0].evidence[0].measured == repr(before)[:200]
    assert capsys.readouterr().out == "heard\n"


def test_in_another_thread(trial: Path) -> None:
    found: list[dict[str, str]] = []
    thread = threading.Thread(
        target=lambda: found.append(outcomes(rule_runner.evaluate(trial, rules())))
    )
    thread.start()
    thread.join()
    assert found == [{"Gradients": "IssuesFound", "ExplodingTensor": "NoIssuesFound"}]


def test_an_interrupt_is_an_interrupt(trial: Path, tmp_path: Path) -> None:
    path = tmp_path / "breaks.py"
    path.write_text(PROBING.replace('print("heard")', "raise KeyboardInterrupt"))
    given = [{"RuleConfigurationName": "P", "RuleParameters": {"source_s3_uri": str(path)}}]
    before = set(threading.enumerate())  # of other tests
    with pytest.raises(KeyboardInterrupt):
        rule_runner.evaluate(trial, given, output=tmp_path / "out")
    assert set(threading.enumerate()) <= before


@pytest.mark.usefixtures("_unconfigured")
def test_logs_go_to_the_standard_library(
    trial: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    extra = {**probing(tmp_path)[0]["RuleParameters"], "misspelt": "1"}
    given = [{"RuleConfigurationName": "P", "RuleParameters": extra}]
    handlers = list(logging.getLogger().handlers)
    rule_runner.evaluate(trial, given)
    assert [one.getMessage() for one in caplog.records] == [
        (
            "event='parameter_left_out' rule_job='P' "
            "reason=\"Rule 'Probes' has no parameter 'misspelt': left out.\""
        )
    ]
    assert capsys.readouterr().out == "heard\n"
    assert (logging.getLogger().handlers, structlog.is_configured()) == (handlers, False)


@pytest.mark.usefixtures("_unconfigured")
def test_a_program_that_has_configured_logging_keeps_it() -> None:
    mine = [structlog.processors.KeyValueRenderer()]
    structlog.configure(processors=mine)
    with through_logging():
        assert structlog.get_config()["processors"] is mine
    assert structlog.get_config()["processors"] is mine


@pytest.mark.usefixtures("_unconfigured")
def test_two_evaluations_at_a_time_share_what_is_set() -> None:
    with contextlib.ExitStack() as outer:
        outer.enter_context(through_logging())
        with through_logging():
            pass
        assert structlog.is_configured()
    assert not structlog.is_configured()


def test_importing_is_light() -> None:
    code = (
        "import sys, rule_runner\n"
        "print(sorted({'numpy', 'smdebug', 'yaml', 'structlog'} & set(sys.modules)))\n"
        "print(callable(rule_runner.evaluate), 'numpy' in sys.modules)\n"
        "print('boto3' in sys.modules, 'docker' in sys.modules)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.splitlines() == ["[]", "True True", "False False"]
    with pytest.raises(AttributeError, match=r"^module 'rule_runner' has no attribute 'x'$"):
        rule_runner.x  # type: ignore[attr-defined]


def test_events_go_to_sinks(trial: Path, tmp_path: Path) -> None:
    told = tmp_path / "told.jsonl"
    result = rule_runner.evaluate(trial, rules()[:1], sinks=[f"file:{told}"])
    events = [msgspec.json.decode(line) for line in told.read_bytes().splitlines()]
    (last,) = events[-1]["detail"]["DebugRuleEvaluationStatuses"]
    assert (last["RuleEvaluationStatus"], result.notes) == ("IssuesFound", [])


def test_coverage_may_be_demanded(trial: Path) -> None:
    stalled = Rule.sagemaker(
        rule_configs.loss_not_decreasing(), rule_parameters={"num_steps": "10"}
    )
    for share, outcome in ((0.9, "NoIssuesFound"), (0.95, "NotEvaluated")):
        result = rule_runner.evaluate(trial, [stalled], min_coverage=share)
        assert outcomes(result) == {"LossNotDecreasing": outcome}
    with pytest.raises(ParameterError, match="'min_coverage' must be a number from 0 to 1, got 9"):
        rule_runner.evaluate(trial, [stalled], min_coverage=9)
