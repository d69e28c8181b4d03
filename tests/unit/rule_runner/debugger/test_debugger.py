"""Rules: what requests hold of them, what they refuse, and what works here only."""

import pickle
from inspect import isfunction, signature
from typing import Any

import pytest

from rule_runner.debugger import (
    CollectionConfig,
    Profiler,
    ProfilerRule,
    Rule,
    get_default_profiler_processing_job,
    get_default_profiler_rule,
    get_rule_container_image_uri,
    rule_configs,
)

TEXTED = r"{\"endpoint\": \"+12\", \"name\": \"sms\"}"
STOPPED = r"{\"name\": \"stoptraining\", \"training_job_prefix\": \"job-1\"}"
IMAGE = "503895931360.dkr.ecr.us-east-1.amazonaws.com"


def stopping(actions: Any) -> Rule:
    return Rule.sagemaker(rule_configs.overfit(), actions=actions)


@pytest.mark.parametrize(
    ("action", "sent"),
    [
        (rule_configs.Email("a@b.co"), r"{\"endpoint\": \"a@b.co\", \"name\": \"email\"}"),
        (rule_configs.SMS("+12"), TEXTED),
        (rule_configs.StopTraining(), STOPPED),
        (
            rule_configs.StopTraining("own"),
            r"{\"training_job_prefix\": \"own\", \"name\": \"stoptraining\"}",
        ),
        (
            rule_configs.ActionList(rule_configs.SMS("+12"), rule_configs.StopTraining()),
            f"[{TEXTED}, {STOPPED}]",
        ),
    ],
)
def test_actions_become_a_parameter(action: Any, sent: str) -> None:
    rule = stopping(action)
    rule.prepare_actions("job-1")
    assert rule.rule_parameters == {"rule_to_invoke": "Overfit", "action_json": sent}


def test_the_next_training_job_gives_its_own_name() -> None:
    rule = stopping(rule_configs.StopTraining())
    rule.prepare_actions("job-1")
    rule.prepare_actions("job-2")
    assert "job-2" in rule.rule_parameters["action_json"]


def test_without_actions_none_are_sent() -> None:
    rule = stopping(None)
    rule.rule_parameters["action_json"] = "[]"
    rule.prepare_actions("job-1")
    assert rule.rule_parameters == {"rule_to_invoke": "Overfit"}


def test_parameters_win_in_their_order() -> None:
    rule = Rule.custom(
        "n", "i", "t", 3, "s.py", "R",
        other_trials_s3_input_paths=["x"],
        rule_parameters={"other_trial_0": "y", "source_s3_uri": "t.py"},
    )  # fmt: skip
    assert rule.rule_parameters == {
        "other_trial_0": "y",
        "source_s3_uri": "t.py",
        "rule_to_invoke": "R",
    }


def test_the_base_stays_as_it_is() -> None:
    base = rule_configs.dead_relu()
    rule = Rule.sagemaker(base, rule_parameters={"threshold_layer": "1"})
    rule.prepare_actions("job")
    assert base == rule_configs.dead_relu()


def test_no_collections_mean_those_of_the_base() -> None:
    rule = Rule.sagemaker(rule_configs.vanishing_gradient(), collections_to_save=[])
    assert rule.collection_configs == [CollectionConfig("gradients", {"save_interval": "500"})]


def test_profiling_rules_send_strings() -> None:
    rule = ProfilerRule.sagemaker(
        rule_configs.StepOutlier(), name="mine", rule_parameters={"stddev": 9, "n_outliers": True}
    )
    assert rule.to_profiler_rule_config_dict() == {
        "RuleConfigurationName": "mine",
        "RuleEvaluatorImage": "DEFAULT_RULE_EVALUATOR_IMAGE",
        "RuleParameters": {
            "stddev": "9",
            "mode": "None",
            "n_outliers": "True",
            "scan_interval_us": "60000000",
            "rule_to_invoke": "StepOutlier",
        },
    }


def test_the_base_of_a_profiling_rule_is_copied_if_parameters_are_given() -> None:
    base = rule_configs.BatchSize()
    ProfilerRule.sagemaker(base, rule_parameters={"window": 9}).to_profiler_rule_config_dict()
    assert base.rule_parameters == rule_configs.BatchSize().rule_parameters


def test_a_custom_profiling_rule() -> None:
    rule = ProfilerRule.custom("n", "i", "t", 3, "s.py", "R", rule_parameters={"a": 1})
    assert rule.to_profiler_rule_config_dict() == {
        "RuleConfigurationName": "n",
        "RuleEvaluatorImage": "i",
        "InstanceType": "t",
        "VolumeSizeInGB": 3,
        "RuleParameters": {"source_s3_uri": "s.py", "rule_to_invoke": "R", "a": "1"},
    }


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("opt_out_telemetry", True),
        ("opt_out_telemetry", "False"),
        ("OverallFrameworkMetrics_scan_interval_us", 9),
        ("dataloader_MIN_threshold", 9),
        ("StepOutlier_mode", None),
    ],
)
def test_the_report_takes_the_parameters_of_all_rules(key: str, value: Any) -> None:
    report = rule_configs.ProfilerReport(**{key: value})
    assert report.rule_parameters == {key: value, "rule_to_invoke": "ProfilerReport"}


@pytest.mark.parametrize(
    ("key", "value", "kind", "message"),
    [
        ("opt_out_telemetry", "perhaps", AssertionError, "opt_out_telemetry must be True or Fal"),
        ("threshold", 1, AssertionError, r"<rule_name>_<parameter_name>, got 'threshold'\."),
        ("Foo_bar", 1, AssertionError, r"rule name one of BatchSize, .*, got 'Foo_bar'\."),
        ("BatchSize_bar", 1, TypeError, r"^Rule BatchSize has no parameter 'bar'\. Its param"),
        ("BatchSize_window", 0, AssertionError, r"window must be a positive number, got 0\."),
        ("BatchSize_window", "1", TypeError, r"window must be a number, got '1'\."),
        ("StepOutlier_mode", 1, AssertionError, r"mode must be a string if given, got 1\."),
        ("LoadBalancing_threshold", 101, AssertionError, r"valid percentile, 0 to 100, got 101\."),
    ],
)
def test_the_report_refuses(key: str, value: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        rule_configs.ProfilerReport(**{key: value})


REFUSED = [
    (lambda: stopping([rule_configs.StopTraining()]), RuntimeError, "into rule_configs.ActionLis"),
    (
        lambda: stopping("stop"),
        RuntimeError,
        r"^Argument actions must be an Action or .* got 'stop",
    ),
    (
        lambda: Rule.sagemaker(rule_configs.overfit(), rule_parameters={"rule_to_invoke": "X"}),
        RuntimeError,
        r"^A built-in rule takes no parameter rule_to_invoke, got 'X'\. Remove it",
    ),
    (
        lambda: ProfilerRule.sagemaker(
            rule_configs.BatchSize(), rule_parameters={"rule_to_invoke": "X"}
        ),
        RuntimeError,
        r"^A built-in rule takes no parameter rule_to_invoke, got 'X'\. Remove it",
    ),
    (
        lambda: Rule.sagemaker(rule_configs.BatchSize()),  # type: ignore[arg-type]  # to be refused
        TypeError,
        r"must be what a function of rule_configs returns, got BatchSize\(.*ProfilerRule.sagemaker",
    ),
    (lambda: Rule.sagemaker({}), KeyError, "DebugRuleConfiguration"),
    (
        lambda: ProfilerRule.sagemaker(rule_configs.overfit()),  # type: ignore[arg-type]  # same
        AttributeError,
        r"must be an object of a class of rule_configs, got \{.*Rule\.sagemaker\.",
    ),
    (
        lambda: Rule.custom("n", "i", "t", 3, "s.py"),
        ValueError,
        r"go together, got 's.py' and None",
    ),
    (
        lambda: ProfilerRule.custom("n", "i", "t", 3, None, "R"),
        ValueError,
        r"got None and 'R'\. If you provide one, you must also provide the other\.",
    ),
    (
        lambda: rule_configs.StopTraining("a_b"),
        ValueError,
        r"^Invalid training job prefix: .*'a_b'\.",
    ),
    (lambda: rule_configs.StopTraining("a\n"), ValueError, r"^Invalid training job prefix: "),
    (
        lambda: rule_configs.Email("a.b@c.de"),
        ValueError,
        r"must be username@domain, got 'a.b@c.de'",
    ),
    (lambda: rule_configs.Email("a@b.co\n"), ValueError, r"^Invalid email address: "),
    (
        lambda: rule_configs.SMS("12"),
        ValueError,
        r"^Invalid phone number: .* E.164 format, got '12'",
    ),
    (
        lambda: rule_configs.SMS(12),  # type: ignore[arg-type]  # to be refused
        ValueError,
        r"^Argument phone_number must be a string, got 12\.",
    ),
    (
        lambda: rule_configs.ActionList([rule_configs.SMS("+1")]),  # type: ignore[arg-type]  # same
        TypeError,
        r"must be Action objects, given one by one, got \[",
    ),
]


@pytest.mark.parametrize(("make", "kind", "message"), REFUSED, ids=range(len(REFUSED)))
def test_what_rules_refuse(make: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        make()


def test_no_two_default_profiling_rules_have_one_name() -> None:
    rules = [get_default_profiler_rule() for _ in range(100)]
    assert len({rule.name for rule in rules}) == 100
    assert {rule.name.partition("-")[0] for rule in rules} == {"ProfilerReport"}
    assert rules[0].rule_parameters == {"rule_to_invoke": "ProfilerReport"}


def test_the_job_that_processes_profiles_has_the_profiler_s_machine() -> None:
    job, profiler = get_default_profiler_processing_job(), Profiler()
    machine = (profiler.instanceType, profiler.volumeSizeInGB)
    assert (job.instance_type, job.volume_size_in_gb) == machine
    assert "/detailed-profiler-processing:" in get_rule_container_image_uri(job.name, "us-east-1")


@pytest.mark.parametrize(
    ("given", "named"),
    [
        (("us-east-1",), {}),
        ((), {"region": "us-east-1"}),
        (("us-east-1", "mine"), {}),
        (("mine", "us-east-1"), {}),
        ((None, "us-east-1"), {}),
        (("mine",), {"region": "us-east-1"}),
        (("us-east-1",), {"name": "mine"}),
        ((), {"name": "mine", "region": "us-east-1"}),
    ],
)
def test_images_are_asked_for_in_either_order(given: Any, named: Any) -> None:
    expected = f"{IMAGE}/sagemaker-debugger-rules:latest"
    assert get_rule_container_image_uri(*given, **named) == expected


@pytest.mark.parametrize("given", [("mars",), ("mine", "mars"), (None, "mars")])
def test_a_region_without_images_is_refused(given: Any) -> None:
    with pytest.raises(ValueError, match=r"No builtin rule image is known in region 'mars'\."):
        get_rule_container_image_uri(*given)


def test_get_collection_knows_those_of_the_rules() -> None:
    assert rule_configs.get_collection("losses") == {
        "CollectionName": "losses",
        "CollectionParameters": {"save_interval": "500"},
    }
    assert rule_configs.get_collection("tree") is None
    config = rule_configs.loss_not_decreasing()
    assert config["CollectionConfigurations"] == [rule_configs.get_collection("losses")]


def test_functions_of_rules_look_as_if_they_were_written_out() -> None:
    functions = {
        name: value
        for name, value in vars(rule_configs).items()
        if isfunction(value) and value.__module__ == rule_configs.__name__ and name[0] != "_"
    }
    del functions["get_collection"]
    assert len(functions) == 21
    for name, function in functions.items():
        rule = function()["DebugRuleConfiguration"]["RuleConfigurationName"]
        assert (function.__name__, str(signature(function))) == (
            name,
            "() -> dict[str, typing.Any]",
        )
        assert str(function.__doc__).startswith(f"Configure {rule}: ")
        assert pickle.loads(pickle.dumps(function)) is function
