"""Rule configurations of a request: each right, or with the one sentence that says why not."""

import json
import re
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped] # it comes without types
import pytest

from rule_runner.config.documents import parse_yaml
from rule_runner.config.job_file.definition import (
    JOB_FILE_SCHEMA,
    RULE_FIELDS,
    JobDefinition,
    Kind,
    RuleConfiguration,
    check_names,
    choose,
    configuration_of,
    definition_of,
    limits_passed,
)
from rule_runner.config.job_file.ignore import FIELDS
from rule_runner.config.job_file.reader import definition_from, read_job_file
from rule_runner.config.job_file.sources import source_options
from rule_runner.errors import JobError, UsageError


def configured(name: str = "A", **parameters: Any) -> dict[str, Any]:
    return {"RuleConfigurationName": name, "RuleParameters": parameters}


def defined(*names: str) -> JobDefinition:
    return JobDefinition("the job", tuple(RuleConfiguration(one, Kind.DEBUG) for one in names))


def test_a_request_of_the_service() -> None:
    request = {
        "TrainingJobName": "mnist-42",
        "AlgorithmSpecification": {"TrainingImage": "x"},
        "DebugHookConfig": {"S3OutputPath": "s3://bucket/jobs/", "LocalPath": "/x"},
        "DebugRuleConfigurations": [
            {
                **configured("Gradients", rule_to_invoke="VanishingGradient", threshold="1e-7"),
                "RuleEvaluatorImage": "image",
                "InstanceType": "ml.t3.medium",
                "VolumeSizeInGB": 30,
                "LocalPath": "/opt/ml",
                "S3OutputPath": "s3://elsewhere",
            }
        ],
        "ProfilerRuleConfigurations": [configured("Report", rule_to_invoke="ProfilerReport")],
        "ProfilerConfig": {"DisableProfiler": False},
    }
    parameters = {"rule_to_invoke": "VanishingGradient", "threshold": "1e-7"}
    assert definition_of(request, "the job") == JobDefinition(
        "the job",
        (
            RuleConfiguration("Gradients", Kind.DEBUG, parameters),
            RuleConfiguration("Report", Kind.PROFILER, {"rule_to_invoke": "ProfilerReport"}),
        ),
        "mnist-42",
        "s3://bucket/jobs/mnist-42/debug-output",
    )


@pytest.mark.parametrize(
    "request_",
    [
        {"DebugHookConfig": {"S3OutputPath": "s3://b"}},
        {"TrainingJobName": "job"},
        {"TrainingJobName": "job", "DebugHookConfig": {"S3OutputPath": None}},
        {"TrainingJobName": "~", "DebugHookConfig": {"S3OutputPath": "s3://b"}},
        {"TrainingJobName": "job", "DebugHookConfig": "s3://b"},
    ],
)
def test_a_request_that_does_not_say_where_tensors_are(request_: dict[str, Any]) -> None:
    found = definition_of({**request_, "DebugRuleConfigurations": [configured()]}, "the job")
    assert found.trial is None


@pytest.mark.parametrize(
    ("raw", "name", "problem"),
    [
        ([], "here", "A rule configuration must be an object, got a list."),
        ("x", "here", "A rule configuration must be an object, got text."),
        (None, "here", "A rule configuration must be an object, got nothing."),
        ({}, "here", "The rule configuration has no RuleConfigurationName."),
        (configured(""), "here", "The rule configuration has no RuleConfigurationName."),
        (
            {"RuleConfigurationName": 5},
            "here",
            'RuleConfigurationName must be a string, got 5. Write "5".',
        ),
        (
            {**configured(), "RuleParameter": {}},
            "A",
            (
                "A rule configuration has no field 'RuleParameter'. Did you mean 'RuleParameters'? "
                "Fields: RuleConfigurationName, RuleParameters, RuleEvaluatorImage, InstanceType, "
                "VolumeSizeInGB, LocalPath, S3OutputPath."
            ),
        ),
        (
            {**configured(), "RuleParameters": ["x"]},
            "A",
            "RuleParameters must be an object, got a list.",
        ),
        (
            configured(threshold=0.5, x=1),
            "A",
            "Parameter 'threshold' must be a string, got 0.5. Write \"0.5\".",
        ),
        (configured(on=True), "A", "Parameter 'on' must be a string, got True. Write \"True\"."),
        (
            configured(on=None),
            "A",
            "Parameter 'on' must be a string, got None. Leave it out, or give it a value.",
        ),
        (
            configured(names=["a", "b"]),
            "A",
            "Parameter 'names' must be a string, got ['a', 'b']. Write its items as one text.",
        ),
    ],
)
def test_what_is_wrong_with_a_configuration(raw: object, name: str, problem: str) -> None:
    found = configuration_of(raw, Kind.DEBUG, "here")
    assert (found.name, found.problem) == (name, problem)


@pytest.mark.parametrize("name", ["../up", "a/b", ".hidden", "a\nb", "x" * 256, "\ud800"])
def test_a_name_that_cannot_be_a_folder(name: str) -> None:
    found = configuration_of(configured(name), Kind.DEBUG, "here")
    assert (found.name, found.problem.partition(",")[0]) == (
        name,
        "Name of a rule job must be 1 to 255 bytes",
    )


def test_only_texts_are_kept_of_wrong_parameters() -> None:
    found = configuration_of(configured(a="b", c=1), Kind.DEBUG, "here")
    assert found.parameters == {"a": "b"}


def test_parameters_that_are_not_given() -> None:
    for given in (None, "", "~", "null"):
        raw = {"RuleConfigurationName": "A", "RuleParameters": given}
        assert configuration_of(raw, Kind.DEBUG, "here") == RuleConfiguration("A", Kind.DEBUG)


@pytest.mark.parametrize(
    ("request_", "problem"),
    [
        ([], "The job must hold an object with DebugRuleConfigurations, got a list."),
        (None, "The job must hold an object with DebugRuleConfigurations, got nothing."),
        (
            {"DebugRuleConfigurations": {}},
            "DebugRuleConfigurations of the job must be a list, got an object.",
        ),
        (
            {"DebugRuleConfigurations": []},
            (
                "The job holds no rules: neither DebugRuleConfigurations nor "
                "ProfilerRuleConfigurations."
            ),
        ),
        (
            {"DebugRuleConfiguration": [configured()], "RoleArn": "x"},
            (
                "The job holds no rules: neither DebugRuleConfigurations nor "
                "ProfilerRuleConfigurations. Did you mean 'DebugRuleConfigurations'?"
            ),
        ),
    ],
)
def test_a_request_that_defines_no_rules(request_: object, problem: str) -> None:
    with pytest.raises(JobError) as refused:
        definition_of(request_, "the job")
    assert str(refused.value) == problem


def test_two_of_one_name() -> None:
    check_names(defined("A", "B").configurations, "the job")
    with pytest.raises(
        JobError,
        match=r"^Two rule configurations of the job are called 'A'\. Names must differ\.$",
    ):
        check_names(defined("A", "B", "A").configurations, "the job")


@pytest.mark.parametrize(
    ("only", "exclude", "names"),
    [
        ([], [], ["A", "B", "C"]),
        (["B", "A"], [], ["A", "B"]),
        ([], ["B"], ["A", "C"]),
        (["A", "B"], ["B"], ["A"]),
    ],
)
def test_only_and_except(only: list[str], exclude: list[str], names: list[str]) -> None:
    found = choose(defined("A", "B", "C"), only, exclude)
    assert [one.name for one in found.configurations] == names


@pytest.mark.parametrize(
    ("only", "exclude", "problem"),
    [
        (
            ["Gradient"],
            [],
            (
                "Option --only names no rule configuration: 'Gradient'. Did you mean 'Gradients'? "
                "Names: 'Gradients', 'Loss'."
            ),
        ),
        (
            [],
            ["x"],
            "Option --except names no rule configuration: 'x'. Names: 'Gradients', 'Loss'.",
        ),
        (["Loss"], ["Loss"], "No rule configuration is left after --only and --except."),
    ],
)
def test_only_and_except_that_choose_nothing(
    only: list[str], exclude: list[str], problem: str
) -> None:
    with pytest.raises(UsageError) as refused:
        choose(defined("Gradients", "Loss"), only, exclude)
    assert str(refused.value) == problem


def test_limits_of_the_service_are_reported() -> None:
    within = {f"p{number}": "x" * 256 for number in range(100)}
    most = tuple(RuleConfiguration(str(n), Kind.DEBUG, within) for n in range(20))
    assert limits_passed(JobDefinition("the job", most)) == []
    beyond = {**within, "action_json": "x" * 257}
    more = (*most, RuleConfiguration("A", Kind.DEBUG, beyond))
    assert limits_passed(JobDefinition("the job", more)) == [
        "SageMaker takes at most 20 DebugRuleConfigurations, and 21 are given.",
        "SageMaker takes at most 100 parameters, and 101 of rule configuration 'A'.",
        (
            "SageMaker takes at most 256 characters, not parameter 'action_json' of rule "
            "configuration 'A'."
        ),
    ]


@pytest.mark.parametrize("suffix", ["json", "yaml", "yml", "txt", "JSON"])
def test_files_of_a_request(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"job.{suffix}"
    path.write_text(json.dumps({"DebugRuleConfigurations": [configured(threshold="1")]}))
    found = read_job_file(str(path))
    assert found.configurations == (RuleConfiguration("A", Kind.DEBUG, {"threshold": "1"}),)
    assert definition_from(path) == definition_from(str(path)) == found


def test_a_file_that_does_not_parse(tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    path.write_text("a: 1\na: 2")
    problem = f"^Job file {path} does not parse: line 2: key 'a' occurs twice\\.$"
    with pytest.raises(JobError, match=problem):
        read_job_file(str(path))


def test_a_job_file_elsewhere() -> None:
    with pytest.raises(UsageError, match=r"^Job file must be a folder of this machine"):
        read_job_file("s3://bucket/job.json")


def test_what_holds_no_rules() -> None:
    problem = "^Rules must be a list, a request or the path of a job file, got int"
    with pytest.raises(JobError, match=problem):
        definition_from(5)


SCHEMA = json.loads(JOB_FILE_SCHEMA.read_text())
FULL = {
    "TrainingJobName": "a",
    "DebugHookConfig": {"S3OutputPath": "s3://b"},
    "ProfilerConfig": {"S3OutputPath": "s3://b", "DisableProfiler": False},
    "DebugRuleConfigurations": [configured("A", rule_to_invoke="AllZero")],
    "ProfilerRuleConfigurations": [configured("B", rule_to_invoke="BatchSize")],
    "minCoverage": 0.9,
    "stopOn": "warning",
    "ignore": [{"rule": "A", "tensor": "x", "run": "y", "reason": "z", "until": "2026-12-31"}],
    "Sources": {
        "Names": [{"Pattern": "a", "Mode": "EVAL", "Collection": "losses"}],
        "LogPatterns": [{"Name": "mine", "Pattern": "(?P<step>.)"}],
    },
}


class Recorded(dict[str, Any]):
    """An object that records which of its keys are read."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.read: set[str] = set()

    def get(self, key: str, default: Any = None) -> Any:
        self.read.add(key)
        return super().get(key, default)


def test_the_schema_has_each_key_that_the_parser_reads() -> None:
    request = Recorded(FULL)
    definition_of(request, "the job")
    assert request.read == {*SCHEMA["properties"]} == {*FULL}
    assert {*SCHEMA["$defs"]["rule"]["properties"]} == {*RULE_FIELDS}
    assert {*SCHEMA["$defs"]["mute"]["properties"]} == {*FIELDS}
    for field, name in {"Names": "name", "LogPatterns": "log_pattern"}.items():
        fields = ", ".join(SCHEMA["$defs"][name]["properties"])
        with pytest.raises(JobError, match=rf"Fields: {fields}\."):
            source_options({field: [{"other": ""}]}, "the job")


def test_the_schema_accepts_the_documented_job_files() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    text = (Path(__file__).parents[5] / "docs" / "jobs.md").read_text()
    blocks = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    examples = [parse_yaml(block) for block in blocks]
    assert len(examples) >= 2
    for example in (FULL, *examples):
        jsonschema.validate(example, SCHEMA)


@pytest.mark.parametrize(
    "wrong",
    [
        {"stopOn": "note"},
        {"ignore": [{"rule": "A"}]},
        {"ignore": [{"reason": "z"}]},
        {"DebugRuleConfigurations": [{"RuleConfigurationName": "A", "RuleParameter": {}}]},
        {"Sources": {"Nmes": []}},
        {"Sources": {"Names": [{"Pattern": "a", "Mode": "EVALUATE"}]}},
    ],
)
def test_the_schema_rejects_what_the_parser_rejects(wrong: dict[str, Any]) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(FULL | wrong, SCHEMA)


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("stopon", "stopOn"),
        ("stop_on", "stopOn"),
        ("Ignore", "ignore"),
        ("min_coverage", "minCoverage"),
    ],
)
def test_a_misspelt_field_of_ours_is_an_error(name: str, nearest: str) -> None:
    message = f"^The job definition has an unknown field '{name}'. Did you mean '{nearest}'"
    with pytest.raises(JobError, match=message):
        definition_from(FULL | {name: "x"})
