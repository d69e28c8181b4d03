"""Rules from Python: the list that a job file makes, and objects with the methods of a Rule."""

import sys
from pathlib import Path
from typing import Any

import pytest

from rule_runner.config.job_file.definition import Kind, RuleConfiguration
from rule_runner.config.job_file.python_file import rules_of_file
from rule_runner.config.job_file.reader import definition_from, read_job_file
from rule_runner.config.job_file.sdk_objects import configurations_of, is_rule
from rule_runner.debugger import ProfilerRule, Rule, rule_configs
from rule_runner.errors import JobError

RULES = """
from rule_runner.debugger import Rule, rule_configs

def rule(name):
    return Rule.sagemaker(rule_configs.vanishing_gradient(), name=name)

"""


class Foreign:
    """What any SDK's Rule has."""

    def __init__(
        self, name: str, parameters: dict[str, Any] | None, *, fails: bool = False
    ) -> None:
        self.name = name
        self.parameters = parameters
        self.fails = fails
        self.prepared: list[str] = []

    def prepare_actions(self, training_job_name: str) -> None:
        if self.fails:
            msg = "no such prefix."
            raise AttributeError(msg)
        self.prepared.append(training_job_name)

    def to_debugger_rule_config_dict(self) -> dict[str, Any]:
        found: dict[str, Any] = {"RuleConfigurationName": self.name, "RuleEvaluatorImage": "x"}
        return found if self.parameters is None else {**found, "RuleParameters": self.parameters}


def job_file(tmp_path: Path, body: str, name: str = "job.py") -> Path:
    path = tmp_path / name
    path.write_text(RULES + body)
    return path


def names(path: Path) -> list[str]:
    return [one.name for one in read_job_file(str(path)).configurations]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("rules = [rule('A'), rule('B')]", ["A", "B"]),
        ("rules = (rule('A'),)", ["A"]),
        ("mine = [rule('A')]\nothers = [1]\nnone = []", ["A"]),
        ("rules = [rule('A')]\nmine = [rule('B')]", ["A"]),
        ("mine = [rule('A')]\nsame = mine", ["A"]),
        ("mine = [rule('A')]\nif __name__ == '__main__':\n    raise SystemExit", ["A"]),
    ],
)
def test_the_list_that_a_file_makes(tmp_path: Path, body: str, expected: list[str]) -> None:
    assert names(job_file(tmp_path, body)) == expected


def test_modules_beside_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "job_names_beside.py").write_text("NAME = 'Beside'")
    path = job_file(tmp_path, "from job_names_beside import NAME\nrules = [rule(NAME)]")
    before = [*sys.path]
    try:
        assert names(path) == ["Beside"]
        assert sys.path == before
        monkeypatch.chdir(tmp_path)
        assert names(Path("job.py")) == ["Beside"]
    finally:
        sys.modules.pop("job_names_beside", None)


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("x = 1", " defines no list of rules. Name the list 'rules'."),
        ("rules = rule('A')", "'rules' in job file {} must be a list of rules, got Rule."),
        (
            "a = [rule('A')]\nb = [rule('B')]",
            " defines 2 lists of rules: 'a', 'b'. Name the one to evaluate 'rules'.",
        ),
        ("rules = []", " holds no rules: the list is empty."),
        (
            "rules = [rule('A'), Rule]",
            "rules[1] of job file {} must be a Rule or its configuration, got ABCMeta.",
        ),
        ("raise KeyError('x')", " raised KeyError at line 7: 'x'."),
        (
            "from sagemaker.debugger import Rule",
            (
                " raised ModuleNotFoundError at line 7: No module named 'sagemaker'. "
                "The SDK is not installed: import these names from rule_runner.debugger."
            ),
        ),
        ("def f():\n    1 / 0\nf()", " raised ZeroDivisionError at line 8: division by zero."),
        (
            "import no_such_module",
            " raised ModuleNotFoundError at line 7: No module named",
        ),
        ("exit(3)", " ends the program at line 7. Do that only if __name__ == '__main__'."),
        ("rules = [", " does not parse: line 7: '[' was never closed."),
        ("compile('(', 'other', 'exec')", " raised SyntaxError at line 7: '(' was never closed"),
    ],
)
def test_a_file_that_makes_none(tmp_path: Path, body: str, problem: str) -> None:
    path = job_file(tmp_path, body)
    expected = problem.format(path) if "{}" in problem else f"Job file {path}{problem}"
    with pytest.raises(JobError) as refused:
        read_job_file(str(path))
    assert str(refused.value).startswith(expected)


def test_a_file_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(JobError, match=r"job\.py does not exist\.$"):
        rules_of_file(tmp_path / "job.py")


def test_what_is_a_rule() -> None:
    ours = Rule.sagemaker(rule_configs.all_zero())
    profiler = ProfilerRule.sagemaker(rule_configs.BatchSize())
    shown = [ours, profiler, Foreign("A", {}), Rule, ProfilerRule, Foreign, {}, "A", None]
    assert [is_rule(one) for one in shown] == [True] * 3 + [False] * 6


def test_rules_become_configurations() -> None:
    rules = [
        Rule.sagemaker(rule_configs.all_zero(), rule_parameters={"tensor_regex": "x"}),
        ProfilerRule.sagemaker(rule_configs.LoadBalancing(threshold=0.25), name="Balance"),
        Foreign("Theirs", {"rule_to_invoke": "Overfit"}),
        Foreign("Without", None),
        {"RuleConfigurationName": "Dict", "RuleParameters": {"rule_to_invoke": "AllZero"}},
        {"RuleConfigurationName": "Idle", "RuleParameters": {"rule_to_invoke": "BatchSize"}},
    ]
    zero = {"rule_to_invoke": "AllZero", "tensor_regex": "x"}
    balance = {
        "threshold": "0.25",
        "patience": "1000",
        "scan_interval_us": "60000000",
        "rule_to_invoke": "LoadBalancing",
    }
    assert configurations_of(rules, "the list") == (
        RuleConfiguration("AllZero", Kind.DEBUG, zero),
        RuleConfiguration("Balance", Kind.PROFILER, balance),
        RuleConfiguration("Theirs", Kind.DEBUG, {"rule_to_invoke": "Overfit"}),
        RuleConfiguration("Without", Kind.DEBUG),
        RuleConfiguration("Dict", Kind.DEBUG, {"rule_to_invoke": "AllZero"}),
        RuleConfiguration("Idle", Kind.PROFILER, {"rule_to_invoke": "BatchSize"}),
    )


def test_actions_are_prepared_and_the_rule_is_not_changed() -> None:
    stop = rule_configs.ActionList(
        rule_configs.StopTraining(), rule_configs.StopTraining("other"), rule_configs.SMS("+4912")
    )
    rule = Rule.sagemaker(rule_configs.all_zero(), actions=stop)
    (found,) = configurations_of([rule], "the list")
    assert found.parameters["action_json"] == (
        '[{"name": "stoptraining"}, '
        '{"training_job_prefix": "other", "name": "stoptraining"}, '
        '{"endpoint": "+4912", "name": "sms"}]'
    )
    assert rule.rule_parameters == {"rule_to_invoke": "AllZero"}
    theirs = Foreign("A", {})
    configurations_of([theirs], "the list")
    assert theirs.prepared == []


def test_a_rule_that_cannot_be_made_a_request_fails_alone() -> None:
    found = configurations_of([Foreign("A", {}, fails=True), Foreign("B", {})], "the list")
    assert [(one.name, one.problem) for one in found] == [
        ("A", "Rule 'A' raised AttributeError while its request was made: no such prefix."),
        ("B", ""),
    ]


def test_values_of_rules_must_be_texts() -> None:
    rule = Rule.sagemaker(rule_configs.all_zero(), rule_parameters={"threshold": 0.5})
    (found,) = definition_from([rule]).configurations
    assert found.problem == "Parameter 'threshold' must be a string, got 0.5. Write \"0.5\"."
