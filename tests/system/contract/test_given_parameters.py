"""Each documented parameter of SageMaker's rules is applied as its sentence says if it is given."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
import saved
from click.testing import CliRunner
from fake_profiler_trial import FakeProfilerTrial
from parameter_cases import TENSOR_CASES, Case
from profiler_parameter_cases import CASES

import rule_runner
from rule_runner.cli import main
from rule_runner.debugger import Rule, rule_configs
from rule_runner.loading.loader import load_builtin
from rule_runner.loading.parameters import bind, construct
from rule_runner.results.schema import EvaluationResult
from smdebug.core.writer import TrialWriter

ROOT = Path(__file__).parents[3]
DOCUMENTED = json.loads((ROOT / "tests/data/documented_rules.json").read_text())
UNCHANGED = {"collection_names": "weights", "num_steps": "3"}


@pytest.mark.parametrize(
    ("case", "value", "met"),
    [
        pytest.param(case, value, met, id=f"{case.rule}-{case.parameter}={value}")
        for case in CASES
        for met, values in ((True, case.met), (False, case.clear))
        for value in values
    ],
)
def test_the_verdict_follows_from_the_sentence(
    case: Case, value: str, met: bool, tmp_path: Path
) -> None:
    assert case.is_met(value, tmp_path) is met


def test_every_documented_parameter_has_a_case() -> None:
    documented = {
        (rule, name) for rule, entry in DOCUMENTED.items() for name, *_ in entry["parameters"]
    }
    listed = {(case.rule, case.parameter) for case in CASES}
    assert listed - documented == {("ProfilerReport", "LowGPUUtilization_patience")}
    assert documented - listed == set()
    assert {case.rule for case in TENSOR_CASES}.isdisjoint(
        rule for rule, entry in DOCUMENTED.items() if entry["kind"] == "profiler"
    )


def test_the_page_is_current() -> None:
    script = ROOT / "scripts" / "parameter_table"
    done = subprocess.run(
        [sys.executable, script, "--check"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize(
    "name", ["Dataloader", "LoadBalancing", "LowGPUUtilization", "StepOutlier"]
)
def test_defaults_that_the_sdk_writes_do_not_bind(name: str) -> None:
    sent = getattr(rule_configs, name)().rule_parameters
    texts = {key: str(value) for key, value in sent.items() if key != "rule_to_invoke"}
    rule: Any = construct(bind(load_builtin(name), texts), FakeProfilerTrial())
    names = set(texts) - {"mode"}  # None
    assert rule.given == names
    for one in names:
        assert not rule.binds(one)
        other = {**texts, one: str(float(texts[one]) + 1)}
        changed: Any = construct(bind(load_builtin(name), other), FakeProfilerTrial())
        assert changed.binds(one)


# -- in jobs: a weight that stands still for three steps, in evaluation -------------------------


@pytest.fixture
def trial(tmp_path: Path) -> Path:
    """Return an ended trial with one weight that stands still while gradients are saved."""
    path = tmp_path / "ml" / "processing" / "input" / "tensors"
    collections = {"weights": "^fc", "gradients": "^gradient"}
    with TrialWriter(path, collections=collections) as writer:
        for step in range(3):
            writer.step(step, {"fc": np.ones((2, 2)), "gradient/fc": np.ones((2, 2))})
    return path


def verdicts(result: EvaluationResult) -> dict[str, str]:
    return {rule.configuration_name: str(rule.status) for rule in result.rules}


def test_a_parameter_of_a_job_binds(trial: Path, tmp_path: Path) -> None:
    config = rule_configs.unchanged_tensor()
    parameters = {"Given": UNCHANGED, "Default": {"collection_names": "weights"}}
    rules = [
        Rule.sagemaker(config, name=name, rule_parameters=given)
        for name, given in parameters.items()
    ]
    expected = {"Given": "IssuesFound", "Default": "NoIssuesFound"}
    assert verdicts(rule_runner.evaluate(trial, rules)) == expected
    document = [
        {
            "RuleConfigurationName": name,
            "RuleParameters": {"rule_to_invoke": "UnchangedTensor", **given},
        }
        for name, given in parameters.items()
    ]
    job, output = tmp_path / "job.json", tmp_path / "out"
    job.write_text(json.dumps({"DebugRuleConfigurations": document}))
    arguments = ["evaluate", "--trial", trial, "--job", job, "--output", output]
    CliRunner().invoke(main, [*map(str, arguments)])
    read = msgspec.json.decode((output / "results.json").read_bytes(), type=EvaluationResult)
    assert verdicts(read) == expected


@pytest.mark.parametrize(("num_steps", "status"), [("3", "IssuesFound"), ("", "NoIssuesFound")])
def test_a_parameter_of_a_container_binds(
    num_steps: str, status: str, trial: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RULE_RUNNER_ROOT", str(tmp_path / "ml"))
    environment = UNCHANGED | {"num_steps": num_steps, "rule_to_invoke": "UnchangedTensor"}
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    CliRunner().invoke(main, [])
    assert trial.exists()
    assert saved.result(tmp_path / "ml" / "processing/output/rule")["status"] == status


def test_an_evaluation_with_another_given_parameter_is_not_resumed(
    trial: Path, tmp_path: Path
) -> None:
    output = str(tmp_path / "out")
    rule = ["--rule", "UnchangedTensor", "-p", "collection_names=weights"]
    command = ["evaluate", "--trial", str(trial), "--output", output, *rule]
    first = CliRunner().invoke(main, command)
    again = CliRunner().invoke(main, [*command, "-p", "num_steps=3"])
    assert (first.exit_code, again.exit_code) == (0, 73)
