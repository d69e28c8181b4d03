"""Rule jobs of a definition: one that is wrong is refused alone, before anything runs."""

from pathlib import Path
from typing import Any

import pytest

from builtin_rules.profiler_table import PROFILER_RULES
from rule_runner.config.defaults import RuleMode
from rule_runner.config.job_file.definition import (
    JobDefinition,
    Kind,
    RuleConfiguration,
    definition_of,
)
from rule_runner.config.job_file.rule_jobs import PROCESSING, JobScope, notes_on, rule_jobs_of
from rule_runner.config.model import RuleJobConfig
from rule_runner.config.request import EvaluationRequest
from rule_runner.errors import JobError, UsageError
from rule_runner.loading.placeholder_rule import PlaceholderRule
from smdebug.rules.action.message_action import MessageAction

STOP = '{\\"name\\": \\"stoptraining\\"}'
CUSTOM = """
from smdebug.rules import Rule

class Mine(Rule):
    def __init__(self, base_trial, limit, start_step="3"):
        super().__init__(base_trial)

    def invoke_at_step(self, step):
        return False
"""


def job_of(scope: JobScope | None = None, /, **parameters: Any) -> RuleJobConfig:
    """Return the rule job of one configuration, 'A'."""
    raw = {"RuleConfigurationName": "A", "RuleParameters": parameters}
    definition = definition_of({Kind.DEBUG: [raw]}, "the job")
    (job,) = rule_jobs_of(definition, scope or JobScope())
    return job


def profiler(**parameters: Any) -> RuleConfiguration:
    return RuleConfiguration("P", Kind.PROFILER, parameters)


@pytest.fixture
def custom(tmp_path: Path) -> str:
    path = tmp_path / "mine.py"
    path.write_text(CUSTOM)
    return str(path)


def test_parameters_without_those_of_the_runner(tmp_path: Path) -> None:
    job = job_of(
        rule_to_invoke="SimilarAcrossRuns",
        collection_names="weights",
        other_trial_0=str(tmp_path),
        start_step="5",
        end_step="9",
        action_json='{"name": "sms", "endpoint": "+4912"}',
        RULE_RUNNER_MODE="observe",
        rule_stop_grace_time_secs="3",
    )
    assert job.config_error == ""
    assert (job.configuration_name, job.loaded.name) == ("A", "SimilarAcrossRuns")
    assert dict(job.parameters) == {
        "collection_names": "weights",
        "other_trial_0": str(tmp_path),
    }
    assert (job.start_step, job.end_step, job.other_trials) == (5, 9, (str(tmp_path),))
    assert (job.mode, job.actions) == (RuleMode.OBSERVE, '{"name": "sms", "endpoint": "+4912"}')


def test_a_rule_with_a_file(custom: str) -> None:
    job = job_of(source_s3_uri=custom, rule_to_invoke="Mine", limit="1", start_step="7")
    assert (job.config_error, job.loaded.name, job.start_step) == ("", "Mine", None)
    assert dict(job.parameters) == {"limit": "1", "start_step": "7"}
    assert job_of(source_s3_uri=f"file://{custom}", limit="1").loaded.name == "Mine"


def test_a_rule_with_a_process_of_its_own_is_not_run_here(custom: str) -> None:
    Path(custom).write_text("raise KeyError\n" + CUSTOM)
    job = job_of(JobScope(run=False), source_s3_uri=custom, rule_to_invoke="Mine", limit="1")
    assert (job.config_error, job.loaded.name) == ("", "Mine")
    assert job.loaded.rule_class is PlaceholderRule


@pytest.mark.parametrize(
    ("parameters", "problem"),
    [
        ({}, "No rule is named. Give 'rule_to_invoke', the class name of a rule, as a parameter."),
        (
            {"rule_to_invoke": "ExplodingTensors"},
            "Unknown rule 'ExplodingTensors'. Did you mean 'ExplodingTensor'?",
        ),
        (
            {"rule_to_invoke": "VanishingGradient", "treshold": "1"},
            "Unknown parameter 'treshold' of rule 'VanishingGradient'. Did you mean 'threshold'?",
        ),
        (
            {"rule_to_invoke": "VanishingGradient", "threshold": "x"},
            "Parameter 'threshold' must be a finite number >= 0, got 'x'.",
        ),
        (
            {"rule_to_invoke": "VanishingGradient", "threshold": 1},
            "Parameter 'threshold' must be a string, got 1. Write \"1\".",
        ),
        (
            {"rule_to_invoke": "ExplodingTensor", "start_step": "x"},
            "Parameter 'start_step' must be a whole number >= 0, got 'x'.",
        ),
        (
            {"rule_to_invoke": "ExplodingTensor", "RULE_RUNNER_MODE": "x"},
            "Parameter 'RULE_RUNNER_MODE' must be 'enforce' or 'observe', got 'x'.",
        ),
        ({"rule_to_invoke": "ExplodingTensor", "action_json": "{"}, "Actions must be JSON: "),
        (
            {"rule_to_invoke": "ExplodingTensor", "action_json": STOP},
            "Rule 'ExplodingTensor' is to stop a training job, and its name is not known.",
        ),
        (
            {"rule_to_invoke": "SimilarAcrossRuns"},
            "Parameter 'other_trials' is required: the path of the run to compare",
        ),
        (
            {"rule_to_invoke": "ExplodingTensor", "other_trial_0": "/no/such"},
            "Trial '/no/such' does not exist.",
        ),
        (
            {"rule_to_invoke": "ExplodingTensor", "other_trials": "ftp://x"},
            "Trials at ftp:// addresses cannot be read",
        ),
        ({"source_s3_uri": "/no/rule.py"}, "Rule file /no/rule.py does not exist."),
    ],
)
def test_what_is_refused(parameters: dict[str, Any], problem: str) -> None:
    job = job_of(**parameters)
    assert job.config_error.startswith(problem), job.config_error
    assert job.configuration_name == "A"


def test_what_is_wrong_with_a_rule_file(custom: str, tmp_path: Path) -> None:
    raises = tmp_path / "raises.py"
    raises.write_text("raise KeyError('x')\n" + CUSTOM)
    assert job_of(source_s3_uri=custom, rule_to_invoke="Other", limit="1").config_error == (
        f"No class 'Other' in {custom}. Rule classes there: 'Mine'."
    )
    assert job_of(source_s3_uri=custom, rule_to_invoke="Mine").config_error == (
        "Rule 'Mine' needs parameter 'limit', which was not given."
    )
    assert job_of(source_s3_uri=str(raises), rule_to_invoke="Mine", limit="1").config_error == (
        f"Rule file {raises} raised KeyError at line 1 while it is loaded: 'x'."
    )


def test_results_of_what_is_refused_show_no_reserved_parameters() -> None:
    endpoint = '{"name": "email", "endpoint": "me@example.com"}'
    job = job_of(
        rule_to_invoke="ExplodingTensors",
        x="y",
        source_s3_uri="",
        action_json=endpoint,
        AWS_REGION="z",
    )
    assert dict(job.parameters) == {"x": "y"}
    assert (job.loaded.name, job.actions) == ("ExplodingTensors", "")


def test_one_that_is_wrong_leaves_the_others() -> None:
    raw = [
        {"RuleConfigurationName": "A", "RuleParameters": {"rule_to_invoke": "ExplodingTensor"}},
        {"RuleConfigurationName": "../B", "RuleParameters": {"rule_to_invoke": "ExplodingTensor"}},
        {"RuleParameters": {"rule_to_invoke": "ExplodingTensor"}},
        5,
    ]
    jobs = rule_jobs_of(definition_of({Kind.DEBUG: raw}, "the job"), JobScope())
    assert [(one.configuration_name, bool(one.config_error)) for one in jobs] == [
        ("A", False),
        ("../B", True),
        ("DebugRuleConfigurations[2]", True),
        ("DebugRuleConfigurations[3]", True),
    ]


def test_what_the_command_line_adds() -> None:
    raw = [
        {
            "RuleConfigurationName": name,
            "RuleParameters": {"rule_to_invoke": "ExplodingTensor", **more},
        }
        for name, more in {
            "A": {"start_step": "5"},
            "B": {"RULE_RUNNER_MODE": "observe"},
            "C": {"RULE_RUNNER_MODE": "observe"},
        }.items()
    ]
    request = EvaluationRequest(
        actions=("A=sms:+4912",),
        modes=("B=enforce",),
        start_step=1,
        end_step=8,
        training_job_name="job",
    )
    one, two, three = rule_jobs_of(definition_of({Kind.DEBUG: raw}, "the job"), JobScope(request))
    assert (one.start_step, two.start_step, three.end_step) == (5, 1, 8)
    assert (one.mode, two.mode, three.mode) == (
        RuleMode.ENFORCE,
        RuleMode.ENFORCE,
        RuleMode.OBSERVE,
    )
    assert (one.operator_actions, two.operator_actions) == (
        (MessageAction("", "sms", "+4912"),),
        (),
    )


def test_what_the_caller_knows(tmp_path: Path) -> None:
    named = JobScope(EvaluationRequest(training_job_name="job"))
    assert job_of(named, rule_to_invoke="ExplodingTensor", action_json=STOP).config_error == ""
    missing = str(tmp_path / "later")
    later = job_of(
        JobScope(look=False), rule_to_invoke="ExplodingTensor", other_trials=f"{missing}, ,"
    )
    assert (later.config_error, later.other_trials) == ("", (missing,))


def test_options_for_a_rule_that_does_not_exist() -> None:
    with pytest.raises(UsageError, match=r"^Mode 'B=observe' names no rule of this evaluation\."):
        job_of(JobScope(EvaluationRequest(modes=("B=observe",))), rule_to_invoke="ExplodingTensor")
    with pytest.raises(UsageError, match=r"^Action for unknown rule 'B'\."):
        job_of(
            JobScope(EvaluationRequest(actions=("B=sms:+4912",))), rule_to_invoke="ExplodingTensor"
        )


def test_two_of_one_name_are_refused_whole() -> None:
    twice = (RuleConfiguration("A", Kind.DEBUG), RuleConfiguration("A", Kind.PROFILER))
    with pytest.raises(JobError, match=r"^Two rule configurations of the job are called 'A'\."):
        rule_jobs_of(JobDefinition("the job", twice), JobScope())


def profiler_job(**parameters: Any) -> RuleJobConfig:
    """Return the rule job of a profiler rule's configuration, 'P'."""
    definition = JobDefinition("the job", (profiler(**parameters),))
    (job,) = rule_jobs_of(definition, JobScope(run=False))
    return job


@pytest.mark.parametrize("name", PROFILER_RULES)
def test_profiler_rules_with_their_defaults(name: str) -> None:
    job = profiler_job(rule_to_invoke=name)
    assert (job.config_error, job.loaded.name, job.profiler) == ("", name, True)
    assert job.window_us == 60_000_000


@pytest.mark.parametrize(
    ("parameters", "problem"),
    [
        ({"rule_to_invoke": "BatchSize", "window": "10", "patience": "None"}, ""),
        ({"rule_to_invoke": "StepOutlier", "mode": "TRAIN", "stddev": "2.5"}, ""),
        ({"rule_to_invoke": "StepOutlier", "mode": "None"}, ""),
        ({"rule_to_invoke": "BatchSizes"}, "Unknown rule 'BatchSizes'. Did you mean 'BatchSize'?"),
        (
            {"rule_to_invoke": "BatchSize", "windows": "10"},
            "Unknown parameter 'windows' of rule 'BatchSize'. Did you mean 'window'?",
        ),
        (
            {"rule_to_invoke": "BatchSize", "window": "ten"},
            "Parameter 'window' must be a whole number >= 1, got 'ten'.",
        ),
        (
            {"rule_to_invoke": "BatchSize", "window": "-1"},
            "Parameter 'window' must be a whole number >= 1, got '-1'.",
        ),
        (
            {"rule_to_invoke": "AllZero"},
            "Rule 'AllZero' judges other data. It belongs to DebugRuleConfigurations.",
        ),
        ({"source_s3_uri": "/no/rule.py"}, "Rule file /no/rule.py does not exist."),
    ],
)
def test_what_is_wrong_with_a_profiler_rule(parameters: dict[str, str], problem: str) -> None:
    refused = profiler_job(**parameters).config_error
    assert refused.startswith(problem) if problem else refused == ""


def test_a_profiler_rule_among_those_over_tensors_is_refused() -> None:
    assert job_of(rule_to_invoke="BatchSize").config_error == (
        "Rule 'BatchSize' judges other data. It belongs to ProfilerRuleConfigurations."
    )


def test_a_profiler_rule_with_a_file_that_is_not_run(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text("raise KeyError\n" + CUSTOM)
    job = profiler_job(source_s3_uri=str(path), rule_to_invoke="Mine", scan_interval_us="30000000")
    assert (job.config_error, job.profiler, job.window_us) == ("", True, 30_000_000)


def test_rules_without_data_are_reported_by_name() -> None:
    debug = RuleConfiguration("A", Kind.DEBUG, {"RULE_RUNNER_SINKS": "stdout", "x": "y"})
    other = RuleConfiguration("Q", Kind.PROFILER, {"rule_to_invoke": "BatchSize"})
    processing = RuleConfiguration("D", Kind.PROFILER, {"rule_to_invoke": PROCESSING})
    definition = JobDefinition("the job", (debug, profiler(), other, processing))
    left_out = (
        "Parameter 'RULE_RUNNER_SINKS' of rule configuration 'A' is for a container and was "
        "left out."
    )
    no_rule = "Rule configuration 'D' was left out: DetailedProfilerProcessing is no rule."
    assert notes_on(definition, JobScope()) == (left_out, no_rule)
    assert notes_on(definition, JobScope(windows=False)) == (
        left_out,
        (
            "Profiler rules are not evaluated without profiler data: 'P', 'Q'. "
            "Give --profiler-trial PATH."
        ),
        no_rule,
    )
    assert notes_on(definition, JobScope(tensors=False)) == (
        left_out,
        "Rules over tensors are not evaluated without tensors: 'A'. Give --trial PATH.",
        no_rule,
    )
    assert [
        one.configuration_name for one in rule_jobs_of(definition, JobScope(tensors=False))
    ] == [
        "P",
        "Q",
    ]


def test_rules_without_data_only_are_nothing_to_evaluate() -> None:
    problem = (
        r"^The job leaves nothing to evaluate\. "
        r"Profiler rules are not evaluated without profiler data: 'P'\. "
        r"Give --profiler-trial PATH\.$"
    )
    with pytest.raises(JobError, match=problem):
        notes_on(JobDefinition("the job", (profiler(),)), JobScope(windows=False))
