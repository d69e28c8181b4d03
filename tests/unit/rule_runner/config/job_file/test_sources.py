"""The section `Sources` of a job file: names and log patterns, or one sentence on what is wrong."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from rule_core.sources.options import LogPattern, NameRule, SourceOptions
from rule_runner.config.job_file.reader import read_job_file
from rule_runner.config.job_file.sources import source_options
from rule_runner.config.request import EvaluationRequest, read_request
from rule_runner.errors import JobError

JOB = r"""
Sources:
  Names:
    - {Pattern: "critic/.*", Collection: losses}
    - {Pattern: "hold/.*", Mode: EVAL, Collection: ""}
  LogPatterns:
    - Name: mine
      Pattern: 'it (?P<step>\d+) loss (?P<loss>\S+)'
    - Pattern: '(?P<step>\d+)'
  StepColumn: when
  Map: [loss=my_loss]
  Modes: ["eval=val_*"]
DebugRuleConfigurations:
  - RuleConfigurationName: A
    RuleParameters: {rule_to_invoke: LossNotDecreasing}
"""
OPTIONS = SourceOptions(
    (NameRule("critic/.*", None, "losses"), NameRule("hold/.*", "EVAL", "")),
    (
        LogPattern("mine", r"it (?P<step>\d+) loss (?P<loss>\S+)"),
        LogPattern("job", r"(?P<step>\d+)"),
    ),
    "when",
    ("loss=my_loss",),
    ("eval=val_*",),
)


def test_a_job_file_has_names_and_log_patterns(tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    path.write_text(JOB)
    assert read_job_file(str(path)).sources == OPTIONS


def test_the_names_of_a_request_precede_those_of_its_job(tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    path.write_text(JOB)
    own = SourceOptions(
        (NameRule("critic/x", None, "metrics"),), (LogPattern("a", "b"),), "row", ("a=my_loss",)
    )
    request = EvaluationRequest(job=read_job_file(str(path)), sources=own)
    again = read_request(request.to_json())
    assert again == request
    assert again.source_options == SourceOptions(
        own.names + OPTIONS.names,
        own.log_patterns + OPTIONS.log_patterns,
        "row",
        ("a=my_loss",),
        ("eval=val_*",),
    )
    assert EvaluationRequest(sources=own).source_options == own


@pytest.mark.parametrize(
    "section", [None, "", {}, {"Names": None}, {"Names": [], "LogPatterns": ""}]
)
def test_nothing_is_the_default(section: Any) -> None:
    assert source_options(section, "the job") == SourceOptions()


@pytest.mark.parametrize(
    ("section", "problem"),
    [
        (
            [],
            (
                "Sources of the job must be an object with Names, LogPatterns, StepColumn, Map, "
                "Modes."
            ),
        ),
        ({"StepColumn": 3}, "Sources.StepColumn of the job must be a string, got 3."),
        ({"Map": "a=b"}, "Sources.Map of the job must be a list, got text."),
        ({"Map": [{}]}, "Sources.Map[0] of the job must be a string, got {}."),
        (
            {"Map": ["a=x", "b=x"]},
            "Sources of the job is not valid. 'x' is given both 'a' and 'b'. Choose one.",
        ),
        (
            {"Modes": ["evl=x"]},
            (
                "Sources of the job is not valid. The mode of series 'x' must be one of train, "
                "eval, predict, global, got 'evl'. Did you mean 'eval=x'?"
            ),
        ),
        (
            {"names": []},
            (
                "Sources of the job has an unknown field 'names'. Did you mean 'Names'? "
                "Fields: Names, LogPatterns, StepColumn, Map, Modes."
            ),
        ),
        ({"Names": {"Pattern": "a"}}, "Sources.Names of the job must be a list, got an object."),
        (
            {"Names": ["loss"]},
            "Sources.Names[0] of the job must be an object with Pattern, Mode, Collection.",
        ),
        (
            {"Names": [{"Pattern": "a"}]},
            "Sources.Names[0] of the job must have a Pattern, and a Mode or a Collection.",
        ),
        (
            {"Names": [{"Mode": "EVAL"}]},
            "Sources.Names[0] of the job must have a Pattern.",
        ),
        (
            {"Names": [{"Pattern": "a", "Mode": "eval"}]},
            (
                "Sources.Names[0] of the job is not valid. The mode of 'a' must be one of "
                "TRAIN, EVAL, PREDICT, GLOBAL, got 'eval'."
            ),
        ),
        (
            {"Names": [{"Pattern": "a", "Mode": 3}]},
            "Mode in Sources.Names[0] of the job must be a string, got 3.",
        ),
        (
            {"Names": [{"Pattern": "(", "Mode": "EVAL"}]},
            (
                "Sources.Names[0] of the job is not valid. Pattern '(' is not a regular "
                "expression: missing ), unterminated subpattern at position 0."
            ),
        ),
        (
            {"LogPatterns": [{"Pattern": "loss (?P<loss>.*)"}]},
            (
                "Sources.LogPatterns[0] of the job must contain the group '(?P<step>...)': "
                "the step of a line's numbers."
            ),
        ),
        (
            {"LogPatterns": [{"Pattern": "["}]},
            (
                "Sources.LogPatterns[0] of the job is not valid. Pattern '[' is not a regular "
                "expression: unterminated character set at position 0."
            ),
        ),
        (
            {"LogPatterns": [{"Name": "a"}]},
            "Sources.LogPatterns[0] of the job must have a Pattern.",
        ),
        (
            {"LogPatterns": [{"Patern": "a"}]},
            (
                "Sources.LogPatterns[0] of the job has an unknown field 'Patern'. Did you mean "
                "'Pattern'? Fields: Name, Pattern."
            ),
        ),
    ],
)
def test_one_sentence_says_what_is_wrong(section: Any, problem: str) -> None:
    with pytest.raises(JobError) as failure:
        source_options(section, "the job")
    assert str(failure.value) == problem


def test_the_documented_section_is_accepted() -> None:
    text = (Path(__file__).parents[5] / "docs" / "sources" / "README.md").read_text()
    blocks = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    sections = [yaml.safe_load(block)["Sources"] for block in blocks]
    assert sections
    for section in sections:
        assert source_options(section, "the page") != SourceOptions()
