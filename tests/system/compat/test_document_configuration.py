"""Rules, collections and hooks of the configuration API as they are documented."""

import inspect
from typing import Any

import pytest

from rule_runner import debugger
from rule_runner.debugger import (
    CollectionConfig,
    DebuggerHookConfig,
    ProfilerRule,
    Rule,
    RuleBase,
    TensorBoardOutputConfig,
    metrics_config,
    rule_configs,
)

SIGNATURES = {
    "get_rule_container_image_uri": "region",
    "get_default_profiler_rule": "",
    "RuleBase": (
        "name, image_uri, instance_type, container_local_output_path, s3_output_path, "
        "volume_size_in_gb, rule_parameters"
    ),
    "Rule": (
        "name, image_uri, instance_type, container_local_output_path, s3_output_path, "
        "volume_size_in_gb, rule_parameters, collections_to_save, actions=None"
    ),
    "Rule.sagemaker": (
        "base_config, name=None, container_local_output_path=None, s3_output_path=None, "
        "other_trials_s3_input_paths=None, rule_parameters=None, collections_to_save=None, "
        "actions=None"
    ),
    "Rule.custom": (
        "name, image_uri, instance_type, volume_size_in_gb, source=None, rule_to_invoke=None, "
        "container_local_output_path=None, s3_output_path=None, "
        "other_trials_s3_input_paths=None, rule_parameters=None, collections_to_save=None, "
        "actions=None"
    ),
    "Rule.prepare_actions": "self, training_job_name",
    "Rule.to_debugger_rule_config_dict": "self",
    "ProfilerRule": (
        "name, image_uri, instance_type, container_local_output_path, s3_output_path, "
        "volume_size_in_gb, rule_parameters"
    ),
    "ProfilerRule.sagemaker": (
        "base_config, name=None, container_local_output_path=None, s3_output_path=None"
    ),
    "ProfilerRule.custom": (
        "name, image_uri, instance_type, volume_size_in_gb, source=None, rule_to_invoke=None, "
        "container_local_output_path=None, s3_output_path=None, rule_parameters=None"
    ),
    "ProfilerRule.to_profiler_rule_config_dict": "self",
    "CollectionConfig": "name, parameters=None",
    "DebuggerHookConfig": (
        "s3_output_path=None, container_local_output_path=None, hook_parameters=None, "
        "collection_configs=None"
    ),
    "TensorBoardOutputConfig": "s3_output_path, container_local_output_path=None",
    "ProfilerConfig": (
        "s3_output_path=None, system_monitor_interval_millis=None, framework_profile_params=None"
    ),
    "FrameworkProfile": (
        "local_path='/opt/ml/output/profiler', file_max_size=10485760, file_close_interval=60, "
        "file_open_fail_threshold=50, detailed_profiling_config=None, "
        "dataloader_profiling_config=None, python_profiling_config=None, "
        "horovod_profiling_config=None, smdataparallel_profiling_config=None, start_step=None, "
        "num_steps=None, start_unix_time=None, duration=None"
    ),
    "DetailedProfilingConfig": (
        "start_step=None, num_steps=None, start_unix_time=None, duration=None, "
        "profile_default_steps=False"
    ),
    "DataloaderProfilingConfig": (
        "start_step=None, num_steps=None, start_unix_time=None, duration=None, "
        "profile_default_steps=False, metrics_regex='.*'"
    ),
    "PythonProfilingConfig": (
        "start_step=None, num_steps=None, start_unix_time=None, duration=None, "
        "profile_default_steps=False, python_profiler=<PythonProfiler.CPROFILE: 'cprofile'>, "
        "cprofile_timer=<cProfileTimer.TOTAL_TIME: 'total_time'>"
    ),
    "PythonProfiler": "value",
    "cProfileTimer": "value",
    "metrics_config.StepRange": "start_step, num_steps",
    "metrics_config.StepRange.to_json": "self",
    "metrics_config.TimeRange": "start_unix_time, duration",
    "metrics_config.TimeRange.to_json": "self",
}
DEBUG_RULES = {
    "all_zero": "AllZero",
    "check_input_images": "CheckInputImages",
    "class_imbalance": "ClassImbalance",
    "confusion": "Confusion",
    "create_xgboost_report": "CreateXgboostReport",
    "dead_relu": "DeadRelu",
    "exploding_tensor": "ExplodingTensor",
    "feature_importance_overweight": "FeatureImportanceOverweight",
    "loss_not_decreasing": "LossNotDecreasing",
    "nlp_sequence_ratio": "NLPSequenceRatio",
    "overfit": "Overfit",
    "overtraining": "Overtraining",
    "poor_weight_initialization": "PoorWeightInitialization",
    "saturated_activation": "SaturatedActivation",
    "similar_across_runs": "SimilarAcrossRuns",
    "stalled_training_rule": "StalledTrainingRule",
    "tensor_variance": "TensorVariance",
    "tree_depth": "TreeDepth",
    "unchanged_tensor": "UnchangedTensor",
    "vanishing_gradient": "VanishingGradient",
    "weight_update_ratio": "WeightUpdateRatio",
}
PROFILER_RULES = [
    *("BatchSize", "CPUBottleneck", "Dataloader", "GPUMemoryIncrease", "IOBottleneck"),
    *("LoadBalancing", "LowGPUUtilization", "MaxInitializationTime", "OverallFrameworkMetrics"),
    *("OverallSystemUsage", "ProfilerReport", "StepOutlier"),
]
ATTRIBUTES = {
    "name": "n",
    "image_uri": "i",
    "instance_type": "ml.c4.xlarge",
    "container_local_output_path": "/l",
    "s3_output_path": "s3://o",
    "volume_size_in_gb": 3,
    "rule_parameters": {"a": "b"},
}


def resolve(name: str) -> Any:
    target: Any = debugger
    for part in name.split("."):
        target = getattr(target, part)
    return target


def written(parameter: inspect.Parameter) -> str:
    if parameter.default is parameter.empty:
        return parameter.name
    return f"{parameter.name}={parameter.default!r}"


@pytest.mark.parametrize("name", SIGNATURES)
def test_signature(name: str) -> None:
    target = resolve(name)
    if inspect.isclass(target) and name in {"PythonProfiler", "cProfileTimer"}:
        assert target(next(iter(target)).value) is next(iter(target))
        return
    promised = [text for text in SIGNATURES[name].split(", ") if text]
    parameters = [written(parameter) for parameter in inspect.signature(target).parameters.values()]
    assert parameters[: len(promised)] == promised
    assert all("=" in text for text in parameters[len(promised) :])


@pytest.mark.parametrize("kind", [Rule, ProfilerRule])
def test_rules_are_of_one_base(kind: type[RuleBase]) -> None:
    assert issubclass(kind, RuleBase)


def test_the_base_of_rules_cannot_be_instantiated() -> None:
    with pytest.raises(TypeError, match="abstract class RuleBase"):
        RuleBase("n", "i", None, None, None, None, {})  # type: ignore[abstract]


@pytest.mark.parametrize("attribute", ATTRIBUTES)
@pytest.mark.parametrize("kind", ["Rule", "ProfilerRule"])
def test_attribute_of_a_rule(kind: str, attribute: str) -> None:
    rule = (
        Rule(**ATTRIBUTES, collections_to_save=[]) if kind == "Rule" else ProfilerRule(**ATTRIBUTES)
    )
    assert getattr(rule, attribute) == ATTRIBUTES[attribute]


@pytest.mark.parametrize("function", DEBUG_RULES)
def test_built_in_debugging_rule(function: str) -> None:
    rule = Rule.sagemaker(getattr(rule_configs, function)())
    request = rule.to_debugger_rule_config_dict()
    assert rule.name == request["RuleConfigurationName"] == DEBUG_RULES[function]
    assert request["RuleParameters"]["rule_to_invoke"] == DEBUG_RULES[function]


@pytest.mark.parametrize("function", DEBUG_RULES)
def test_built_in_debugging_rule_with_arguments(function: str) -> None:
    rule = Rule.sagemaker(
        base_config=getattr(rule_configs, function)(),
        name="mine",
        container_local_output_path="/l",
        s3_output_path="s3://o",
        other_trials_s3_input_paths=["s3://other"],
        rule_parameters={"key": "value"},
        collections_to_save=[CollectionConfig(name="c", parameters={"key": "value"})],
        actions=rule_configs.ActionList(rule_configs.StopTraining()),
    )
    rule.prepare_actions("job-name")
    request = rule.to_debugger_rule_config_dict()
    parameters = request["RuleParameters"]
    assert request["RuleConfigurationName"] == "mine"
    assert (request["LocalPath"], request["S3OutputPath"]) == ("/l", "s3://o")
    assert (parameters["key"], parameters["other_trial_0"]) == ("value", "s3://other")
    assert "job-name" in parameters["action_json"]
    assert [collection._to_request_dict() for collection in rule.collection_configs] == [
        {"CollectionName": "c", "CollectionParameters": {"key": "value"}}
    ]


@pytest.mark.parametrize("name", PROFILER_RULES)
def test_built_in_profiling_rule(name: str) -> None:
    rule = ProfilerRule.sagemaker(
        base_config=getattr(rule_configs, name)(), s3_output_path="s3://o"
    )
    request = rule.to_profiler_rule_config_dict()
    assert request["RuleConfigurationName"] == name
    assert request["RuleParameters"]["rule_to_invoke"] == name
    assert request["S3OutputPath"] == "s3://o"


def test_the_default_profiling_rule_has_a_unique_name() -> None:
    first, second = debugger.get_default_profiler_rule(), debugger.get_default_profiler_rule()
    assert isinstance(first, ProfilerRule)
    assert first.rule_parameters["rule_to_invoke"] == "ProfilerReport"
    assert len({"ProfilerReport", first.name, second.name}) == 3


@pytest.mark.parametrize("kind", [Rule, ProfilerRule])
def test_custom_rule(kind: Any) -> None:
    rule = kind.custom(
        name="n",
        image_uri="i",
        instance_type="ml.t3.medium",
        volume_size_in_gb=30,
        source="s3://b/rule.py",
        rule_to_invoke="Mine",
        rule_parameters={"threshold": "20.0"},
    )
    parameters = {
        "source_s3_uri": "s3://b/rule.py",
        "rule_to_invoke": "Mine",
        "threshold": "20.0",
    }
    assert rule._to_request_dict() == {
        "RuleConfigurationName": "n",
        "RuleEvaluatorImage": "i",
        "InstanceType": "ml.t3.medium",
        "VolumeSizeInGB": 30,
        "RuleParameters": parameters,
    }


@pytest.mark.parametrize("kind", [Rule, ProfilerRule])
@pytest.mark.parametrize("argument", ["source", "rule_to_invoke"])
def test_source_and_rule_go_together(kind: Any, argument: str) -> None:
    with pytest.raises(ValueError, match="must also provide"):
        kind.custom("n", "i", "t", 3, **{argument: "x"})


@pytest.mark.parametrize(
    ("region", "account"),
    [
        ("us-east-1", "503895931360"),
        ("eu-central-1", "482524230118"),
        ("cn-north-1", "618459771430"),
    ],
)
def test_image_of_a_region(region: str, account: str) -> None:
    uri = debugger.get_rule_container_image_uri(region)
    assert uri.startswith(f"{account}.dkr.ecr.{region}.amazonaws.com")
    assert uri.endswith("/sagemaker-debugger-rules:latest")


@pytest.mark.parametrize(
    ("config", "request_dict"),
    [
        (CollectionConfig("c"), {"CollectionName": "c"}),
        (
            CollectionConfig(name="losses", parameters={"train.save_interval": "100"}),
            {"CollectionName": "losses", "CollectionParameters": {"train.save_interval": "100"}},
        ),
        (DebuggerHookConfig(), {"S3OutputPath": None}),
        (
            DebuggerHookConfig("s3://o", "/l", {"a": "b"}, [CollectionConfig("c")]),
            {
                "S3OutputPath": "s3://o",
                "LocalPath": "/l",
                "HookParameters": {"a": "b"},
                "CollectionConfigurations": [{"CollectionName": "c"}],
            },
        ),
        (TensorBoardOutputConfig("s3://o"), {"S3OutputPath": "s3://o"}),
        (
            TensorBoardOutputConfig("s3://o", container_local_output_path="/l"),
            {"S3OutputPath": "s3://o", "LocalPath": "/l"},
        ),
    ],
    ids=repr,
)
def test_request_of_what_is_saved(config: Any, request_dict: dict[str, Any]) -> None:
    assert config._to_request_dict() == request_dict


@pytest.mark.parametrize(
    ("bounds", "range_dict"),
    [
        ((5, 3), {"StartStep": 5, "NumSteps": 3}),
        ((None, 3), {"StartStep": 0, "NumSteps": 3}),
        ((5, None), {"StartStep": 5, "NumSteps": 1}),
        ((None, None), {"StartStep": 0, "NumSteps": 1}),
    ],
)
def test_range_of_steps(bounds: tuple[Any, Any], range_dict: dict[str, int]) -> None:
    assert metrics_config.StepRange(*bounds).to_json() == range_dict


@pytest.mark.parametrize(
    ("bounds", "range_dict"),
    [
        ((5, 3.5), {"StartTimeInSecSinceEpoch": 5, "Duration": 3.5}),
        ((5, None), {"StartTimeInSecSinceEpoch": 5}),
        ((None, 3.5), {"StartStep": 0, "Duration": 3.5}),
    ],
)
def test_range_of_time(bounds: tuple[Any, Any], range_dict: dict[str, float]) -> None:
    assert metrics_config.TimeRange(*bounds).to_json() == range_dict
