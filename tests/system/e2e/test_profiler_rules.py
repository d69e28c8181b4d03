"""Profiler rules, as users have them judged: by name, from a file, in a job, in a container."""

import json
import signal
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import s3_objects
import saved
from click.testing import CliRunner, Result
from profiler_writer import END, minute, write

import rule_runner
from builtin_rules.profiler_table import PROFILER_RULES
from rule_runner.cli import main
from rule_runner.debugger import ProfilerRule, Rule, rule_configs
from smdebug.core.writer import TrialWriter
from smdebug.exceptions import RuleEvaluationConditionMet
from smdebug.rules import invoke_rule
from smdebug.trials import create_trial

SAMPLES = 120  # of a minute
# Written as rules of public repositories are: a clock and a window of its own.
CUSTOM = """
from smdebug.exceptions import RuleEvaluationConditionMet
from smdebug.profiler.profiler_constants import CONVERT_TO_MICROSECS
from smdebug.profiler.utils import str2bool
from smdebug.rules.rule import Rule


class Busy(Rule):
    def __init__(self, base_trial, threshold=90, scan_interval_us=60000000, verbose="False"):
        super().__init__(base_trial)
        self.threshold = float(threshold)
        self.scan_interval_us = int(scan_interval_us)
        self.last_timestamp = self.base_trial.first_timestamp
        self.verbose = str2bool(verbose)
        self.report["RuleParameters"] = f"threshold:{self.threshold}"

    def set_required_tensors(self, step):
        pass

    def invoke_at_step(self, step):
        pass

    def invoke(self, step):
        start = self.last_timestamp
        end = start + self.scan_interval_us
        self.base_trial.wait_for_data(end, start)
        events = self.base_trial.get_system_metrics(start, end)
        self.last_timestamp = end
        found = [one for one in events if one.type == "cpu" and one.value > self.threshold]
        self.report["Datapoints"] += len(events)
        self.report["Violations"] += len(found)
        if found:
            self.report["RuleTriggered"] += 1
            assert start / CONVERT_TO_MICROSECS <= found[0].timestamp
            raise RuleEvaluationConditionMet(self.rule_name, step)
"""


def write_profile(
    root: Path, cpus: Sequence[float], *, last: int = SAMPLES, end: bool = True
) -> str:
    """Write a minute for each value of a core, beside a GPU that does nothing."""
    for number, value in enumerate(cpus):
        samples = last if number == len(cpus) - 1 else SAMPLES
        write(root, minute(number, every_s=0.5, seconds=samples / 2, cpu0=value, gpu0=5.0))
    if end:
        write(root, END)
    return str(root)


@pytest.fixture
def profile(tmp_path: Path) -> str:
    """Return a job of eleven minutes whose core is busy from the third one on."""
    return write_profile(tmp_path / "profile", [50.0] * 2 + [95.0] * 9, last=40)


def evaluate(*arguments: str) -> tuple[Result, dict[str, Any]]:
    """Run evaluate; return its rules by name too."""
    result = CliRunner().invoke(main, ["evaluate", *arguments, "--format", "json"])
    shown = json.loads(result.stdout) if result.stdout else {"rules": []}
    return result, {one["configuration_name"]: one for one in shown["rules"]}


@pytest.mark.smoke
def test_by_name(profile: str, tmp_path: Path) -> None:
    result, rules = evaluate(
        "--profiler-trial", profile, "--rule", "CPUBottleneck", "--output", str(tmp_path / "out")
    )
    found = rules["CPUBottleneck"]
    assert (result.exit_code, found["status"], found["step"]) == (0, "IssuesFound", 8)
    assert found["status_details"] == (
        "RuleEvaluationConditionMet: Evaluation of the rule CPUBottleneck at step 8 resulted in "
        "the condition being met\n"
    )
    assert found["trial"] == profile
    report = tmp_path / "out" / "profiler-output" / "profiler-reports" / "CPUBottleneck.json"
    assert json.loads(report.read_text())["Violations"] == 7 * SAMPLES


def test_the_last_incomplete_minute_is_judged(tmp_path: Path) -> None:
    profile = write_profile(tmp_path / "profile", [50.0, 50.0, 95.0], last=11)
    parameters = ("-p", "patience=250", "-p", "threshold=4")
    given = ("--profiler-trial", profile, "--rule", "CPUBottleneck", *parameters)
    _, rules = evaluate(*given, "--output", str(tmp_path / "out"))
    found = rules["CPUBottleneck"]
    assert (found["status"], found["step"]) == ("IssuesFound", 2)
    assert found["coverage"]["known"] == 3
    _, rules = evaluate(*given, "-p", "scan_interval_us=30000000", "--output", str(tmp_path / "o2"))
    assert (rules["CPUBottleneck"]["step"], rules["CPUBottleneck"]["coverage"]["known"]) == (4, 5)


def test_rules_of_several_lengths_and_every_rule(profile: str, tmp_path: Path) -> None:
    output = str(tmp_path / "out")
    result, rules = evaluate(
        *("--profiler-trial", profile, "--output", output, "--rule", "all"),
        *("-p", "IOBottleneck.scan_interval_us=120000000"),
    )
    assert (result.exit_code, set(rules)) == (0, set(PROFILER_RULES))
    assert rules["IOBottleneck"]["coverage"]["known"] == 6
    assert rules["OverallSystemUsage"]["coverage"]["judged"] == 11
    assert rules["StepOutlier"]["outcome"] == "NotEvaluated"
    assert json.loads(result.stdout)["trial"]["workers"] == ["algo-1"]
    assert "profiler-reports" in {one.name for one in Path(output).rglob("*")}


@pytest.mark.parametrize("more", [(), ("--rule-timeout", "60"), ("--isolate", "process")])
def test_a_rule_of_the_users(profile: str, tmp_path: Path, more: tuple[str, ...]) -> None:
    rule = tmp_path / "busy.py"
    rule.write_text(CUSTOM)
    given = ("--profiler-trial", profile, "--source", str(rule), "--output", str(tmp_path / "out"))
    result, rules = evaluate(*given, "-p", "threshold=90", *more)
    found = rules["Busy"]
    # The questions of the documented trial include the ends of their ranges.
    assert (result.exit_code, found["status"], found["step"]) == (0, "IssuesFound", 1)


def test_a_rule_of_the_users_that_finds_nothing_sees_every_window(
    profile: str, tmp_path: Path
) -> None:
    rule = tmp_path / "busy.py"
    rule.write_text(CUSTOM)
    given = ("--profiler-trial", profile, "--source", str(rule), "--output", str(tmp_path / "out"))
    _, rules = evaluate(*given, "-p", "threshold=99", "-p", "scan_interval_us=30000000")
    assert rules["Busy"]["outcome"] == "NoIssuesFound"
    assert rules["Busy"]["coverage"]["judged"] == rules["Busy"]["coverage"]["known"] == 21


def test_in_python(profile: str, tmp_path: Path) -> None:
    scope: dict[str, Any] = {}
    exec(CUSTOM, scope)
    trial = create_trial(profile, profiler=True, output_dir=str(tmp_path / "rule"))
    with pytest.raises(RuleEvaluationConditionMet, match="at step 1 "):
        invoke_rule(scope["Busy"](trial), raise_eval_cond=True)
    rule = scope["Busy"](create_trial(profile, profiler=True), threshold=100)
    invoke_rule(rule)
    assert (rule.report["Datapoints"] > 0, rule.report["RuleTriggered"]) == (True, 0)


def test_beside_rules_over_tensors(profile: str, tmp_path: Path) -> None:
    tensors = tmp_path / "tensors"
    with TrialWriter(tensors, collections={"gradients": "^gradient"}) as writer:
        for step in range(5):
            writer.step(step, {"gradient/w": np.full(3, 10.0**-step, np.float32)})
    request = {
        "TrainingJobName": "mnist",
        "DebugRuleConfigurations": [
            {
                "RuleConfigurationName": "Gradients",
                "RuleParameters": {"rule_to_invoke": "VanishingGradient", "threshold": "0.1"},
            }
        ],
        "ProfilerRuleConfigurations": [
            {
                "RuleConfigurationName": "Cpu",
                "RuleParameters": {"rule_to_invoke": "CPUBottleneck", "patience": "100"},
            },
            {
                "RuleConfigurationName": "Tasks",
                "RuleParameters": {"rule_to_invoke": "DetailedProfilerProcessing"},
            },
        ],
    }
    job = tmp_path / "job.json"
    job.write_text(json.dumps(request))
    output = tmp_path / "out"
    result, rules = evaluate(
        *("--job", str(job), "--trial", str(tensors), "--profiler-trial", profile),
        *("--output", str(output)),
    )
    assert {name: (one["status"], one["step"]) for name, one in rules.items()} == {
        "Gradients": ("IssuesFound", 2),
        "Cpu": ("IssuesFound", 4),
    }
    shown = json.loads(result.stdout)
    assert (shown["trial"]["path"], shown["profiler_trial"]["path"]) == (str(tensors), profile)
    assert shown["notes"] == [
        "Rule configuration 'Tasks' was left out: DetailedProfilerProcessing is no rule."
    ]
    last = json.loads((output / "events.jsonl").read_text().splitlines()[-1])
    statuses = {
        one["RuleConfigurationName"]: one["RuleEvaluationStatus"]
        for name in ("DebugRuleEvaluationStatuses", "ProfilerRuleEvaluationStatuses")
        for one in last["detail"][name]
    }
    assert statuses == {"Gradients": "IssuesFound", "Cpu": "IssuesFound"}
    assert [
        one["RuleConfigurationName"] for one in last["detail"]["ProfilerRuleEvaluationStatuses"]
    ] == ["Cpu"]


def test_objects_of_the_configuration_api(profile: str) -> None:
    rules: list[Any] = [
        ProfilerRule.sagemaker(rule_configs.CPUBottleneck(patience=100, threshold=10), name="Cpu"),
        ProfilerRule.sagemaker(rule_configs.StepOutlier()),
        Rule.sagemaker(rule_configs.all_zero()),
    ]
    result = rule_runner.evaluate(None, rules, profiler_trial=profile)
    assert [(one.configuration_name, one.status, one.step) for one in result.rules] == [
        ("Cpu", "IssuesFound", 2),
        ("StepOutlier", "Error", None),
    ]
    assert result.notes == [
        "Rules over tensors are not evaluated without tensors: 'AllZero'. Give --trial PATH."
    ]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (
            ("--trial", "x", "--rule", "BatchSize"),
            "Error: Rule 'BatchSize' judges profiler data: give --profiler-trial PATH.\n",
        ),
        (
            ("--profiler-trial", "x", "--rule", "AllZero"),
            "Error: Rule 'AllZero' judges tensors: give --trial PATH.\n",
        ),
    ],
)
def test_the_other_kind_of_data(arguments: tuple[str, ...], problem: str) -> None:
    result, _ = evaluate(*arguments)
    assert (result.exit_code, result.stderr) == (2, problem)


def test_data_that_do_not_exist(tmp_path: Path) -> None:
    missing = str(tmp_path / "none")
    result, _ = evaluate("--profiler-trial", missing, "--rule", "BatchSize")
    assert (result.exit_code, result.stderr) == (
        1,
        f"Error: Trial '{missing}' does not exist.\n",
    )


def test_a_folder_without_profiler_data(tmp_path: Path) -> None:
    given = ("--profiler-trial", str(tmp_path), "--rule", "BatchSize", "--no-wait")
    result, rules = evaluate(*given, "--output", str(tmp_path / "out"))
    assert (result.exit_code, rules["BatchSize"]["outcome"]) == (1, "NotEvaluated")
    assert rules["BatchSize"]["status_details"] == (
        "ClientError: No debugging data was saved by the training job. "
        f"Trial '{tmp_path}' holds no profiler data in its folders 'system' and "
        "'framework', and no trace of torch.profiler."
    )


# -- as a rule container ---------------------------------------------------------------------


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return what stands for /opt/ml."""
    monkeypatch.setenv("RULE_RUNNER_ROOT", str(tmp_path / "ml"))
    before = signal.getsignal(signal.SIGTERM)
    yield tmp_path / "ml"
    signal.signal(signal.SIGTERM, before)


def contained(
    root: Path, environment: dict[str, str], inputs: Sequence[str] = ()
) -> dict[str, Any]:
    """Run a rule container; return its result."""
    config = root / "config"
    config.mkdir(parents=True)
    job = {"Environment": environment, "ProcessingInputs": [{"InputName": one} for one in inputs]}
    (config / "processingjobconfig.json").write_text(json.dumps(job))
    result = CliRunner().invoke(main, [])
    assert result.exit_code == 0, result.output
    return saved.result(root / "processing" / "output" / "rule")


def test_a_container(root: Path) -> None:
    write_profile(root / "processing" / "input" / "profiler", [95.0] * 4)
    environment = {
        "rule_to_invoke": "CPUBottleneck",
        "patience": "100",
        "scan_interval_us": "30000000",
    }
    found = contained(root, environment)
    assert (found["status"], found["step"]) == ("IssuesFound", 1)
    message = (root / "output" / "message").read_text()
    assert message.startswith("RuleEvaluationConditionMet: Evaluation of the rule CPUBottleneck at")


@pytest.mark.parametrize("inputs", [("Profiler",), ()])
def test_a_container_with_a_rule_of_the_users(root: Path, inputs: Sequence[str]) -> None:
    write_profile(root / "processing" / "input" / "profiler", [50.0, 95.0])
    (root / "busy.py").write_text(CUSTOM)
    found = contained(
        root, {"source_s3_uri": str(root / "busy.py"), "rule_to_invoke": "Busy"}, inputs
    )
    assert (found["status"], found["step"]) == ("IssuesFound", 0)


def test_a_stop_signal_ends_the_data_of_a_running_job(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    profile = root / "processing" / "input" / "profiler"
    write_profile(profile, [50.0, 50.0], end=False)
    signals = profile / "signals" / "BatchSize"
    signals.parent.mkdir()
    signals.write_text(str(int(time.time()) - 100))
    monkeypatch.setenv("SAGEMAKER_ENV_RULE_STOP_SIGNAL_FILE", "signals/BatchSize")
    found = contained(root, {"rule_to_invoke": "OverallSystemUsage"})
    assert (found["status"], found["trial_ended"]) == ("NoIssuesFound", True)
    assert found["coverage"]["judged"] == 2


# -- in S3 -----------------------------------------------------------------------------------


def test_in_s3(aws_endpoint: str, profile: str, tmp_path: Path) -> None:
    s3_objects.make_bucket(aws_endpoint)
    files = {
        one.relative_to(profile).as_posix(): one.read_bytes()
        for one in Path(profile).rglob("*")
        if one.is_file()
    }
    s3_objects.put(aws_endpoint, "job/profiler-output/", files)
    request = {
        "TrainingJobName": "job",
        "ProfilerConfig": {"S3OutputPath": f"s3://{s3_objects.BUCKET}/"},
        "ProfilerRuleConfigurations": [
            {"RuleConfigurationName": "C", "RuleParameters": {"rule_to_invoke": "CPUBottleneck"}}
        ],
    }
    job = tmp_path / "job.json"
    job.write_text(json.dumps(request))
    result, rules = evaluate("--job", str(job), "--output", str(tmp_path / "out"))
    assert (result.exit_code, rules["C"]["status"], rules["C"]["step"]) == (0, "IssuesFound", 8)
    assert rules["C"]["trial"] == f"s3://{s3_objects.BUCKET}/job/profiler-output"
    assert json.loads(result.stdout)["trial"]["name"] == "job"


def test_a_container_that_reports(root: Path) -> None:
    write_profile(root / "processing" / "input" / "profiler", [95.0] * 10)
    environment = {
        "rule_to_invoke": "ProfilerReport",
        "CPUBottleneck_threshold": "90",
        "opt_out_telemetry": "True",
    }
    found = contained(root, environment)
    assert (found["status"], found["coverage"]["judged"]) == ("NoIssuesFound", 10)
    output = root / "processing" / "output" / "rule" / "profiler-output"
    assert {one.name for one in output.iterdir()} == {
        *("profiler-report.html", "profiler-report.ipynb", "profiler-reports"),
    }
    reports = {one.stem: json.loads(one.read_text()) for one in output.rglob("*.json")}
    assert set(reports) == set(PROFILER_RULES) - {"ProfilerReport"}
    assert reports["CPUBottleneck"]["RuleTriggered"] == 2
    assert reports["CPUBottleneck"]["RuleParameters"].startswith("threshold:90\n")


def test_a_report_on_data_in_s3(aws_endpoint: str, profile: str, tmp_path: Path) -> None:
    s3_objects.make_bucket(aws_endpoint)
    files = {
        one.relative_to(profile).as_posix(): one.read_bytes()
        for one in Path(profile).rglob("*")
        if one.is_file()
    }
    s3_objects.put(aws_endpoint, "job/", files)
    place = f"s3://{s3_objects.BUCKET}/job"
    shown = CliRunner().invoke(main, ["profile", "show", place, "--format", "json"])
    (system,) = json.loads(shown.stdout)["system"]
    assert (shown.exit_code, system["files"], system["nbytes"]) == (0, 11, None)
    made = CliRunner().invoke(main, ["profile", "report", place, "-o", str(tmp_path / "out")])
    page = tmp_path / "out" / "profiler-output" / "profiler-report.html"
    assert (made.exit_code, made.stdout) == (0, f"Report: {page}\n")
    assert f"Data in {place}," in page.read_text()
    trace = tmp_path / "trace.json"
    merged = CliRunner().invoke(main, ["profile", "timeline", place, "-o", str(trace)])
    assert (merged.exit_code, trace.exists()) == (0, True)


def test_a_report_whose_condition_is_met(profile: str, tmp_path: Path) -> None:
    given = ("--profiler-trial", profile, "--rule", "ProfilerReport")
    result, rules = evaluate(
        *given, "--output", str(tmp_path / "out"), "-p", "met_if_triggered=yes", "--fail-on-issues"
    )
    found = rules["ProfilerReport"]
    assert (result.exit_code, found["status"], found["step"]) == (10, "IssuesFound", 10)
    assert [one["tensor"] for one in found["evidence"]] == ["CPUBottleneck", "LowGPUUtilization"]
    assert found["evidence"][0]["summary"] == "CPUBottleneck found something; the report says what."
