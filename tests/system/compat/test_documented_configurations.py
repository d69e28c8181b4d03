"""The documents' examples run after one change: the name of the package."""

from typing import Any

import pytest

OLD, NEW = "sagemaker.debugger", "rule_runner.debugger"
DEFAULT = {
    "LocalPath": "/opt/ml/output/profiler",
    "RotateMaxFileSizeInBytes": "10485760",
    "RotateFileCloseIntervalInSeconds": "60",
    "FileOpenFailThreshold": "50",
}
DEFAULT_STEPS = {
    "DetailedProfilingConfig": '{"StartStep": 5, "NumSteps": 1, }',
    "DataloaderProfilingConfig": '{"StartStep": 7, "NumSteps": 1, "MetricsRegex": ".*", }',
    "PythonProfilingConfig": (
        '{"StartStep": 9, "NumSteps": 3, "ProfilerName": "cprofile", "cProfileTimer": "default", }'
    ),
    "HorovodProfilingConfig": '{"StartStep": 13, "NumSteps": 1, }',
    "SMDataParallelProfilingConfig": '{"StartStep": 15, "NumSteps": 1, }',
}
CHOSEN = {
    "DetailedProfilingConfig": '{"StartStep": 10, "NumSteps": 1, }',
    "DataloaderProfilingConfig": '{"StartStep": 9, "NumSteps": 2, "MetricsRegex": ".*", }',
    "PythonProfilingConfig": (
        '{"StartStep": 12, "NumSteps": 1, "ProfilerName": "cprofile", '
        '"cProfileTimer": "total_time", }'
    ),
}


def run(code: str) -> dict[str, Any]:
    """Run an example, the name of the package changed, and return its names."""
    assert OLD in code
    names: dict[str, Any] = {}
    exec(code.replace(OLD, NEW), names)
    return names


def everywhere(text: str) -> dict[str, str]:
    """Return all kinds of metrics in one range, as the text between the braces."""
    extras = {
        "DataloaderProfilingConfig": ', "MetricsRegex": ".*"',
        "PythonProfilingConfig": ', "ProfilerName": "cprofile", "cProfileTimer": "total_time"',
    }
    return {kind: f"{{{text}{extras.get(kind, '')}, }}" for kind in DEFAULT_STEPS}


def test_built_in_rules() -> None:
    rules = run("""
from sagemaker.debugger import Rule, rule_configs

built_in_rules = [
    Rule.sagemaker(rule_configs.vanishing_gradient()),
    Rule.sagemaker(rule_configs.overfit()),
    Rule.sagemaker(rule_configs.loss_not_decreasing())
]
""")["built_in_rules"]
    names = ["VanishingGradient", "Overfit", "LossNotDecreasing"]
    assert [rule.to_debugger_rule_config_dict() for rule in rules] == [
        {
            "RuleConfigurationName": name,
            "RuleEvaluatorImage": "DEFAULT_RULE_EVALUATOR_IMAGE",
            "RuleParameters": {"rule_to_invoke": name},
        }
        for name in names
    ]


def test_a_built_in_rule_with_parameters_and_collections() -> None:
    (rule,) = run("""
from sagemaker.debugger import CollectionConfig, Rule, rule_configs

built_in_rules = [
    Rule.sagemaker(
        base_config=rule_configs.weight_update_ratio(),
        rule_parameters={
                "large_threshold": "5.0"
        },
        collections_to_save=[
            CollectionConfig(
                name="weights",
                parameters={
                    "train.save_interval": "100"
                }
            )
        ]
    )
]
""")["built_in_rules"]
    assert rule.to_debugger_rule_config_dict()["RuleParameters"] == {
        "rule_to_invoke": "WeightUpdateRatio",
        "large_threshold": "5.0",
    }
    assert [one._to_request_dict() for one in rule.collection_configs] == [
        {"CollectionName": "weights", "CollectionParameters": {"train.save_interval": "100"}}
    ]


def test_a_custom_rule_is_the_request_that_the_programming_model_shows() -> None:
    rules = run("""
from sagemaker.debugger import CollectionConfig, Rule

rules = [
    Rule.custom(
        name='VGRule',
        image_uri='864354269164.dkr.ecr.us-east-1.amazonaws.com/sagemaker-debugger-rule-evaluator:latest',
        instance_type='ml.t3.medium',
        source='rules/vanishing_gradient_rule.py',
        rule_to_invoke='VanishingGradientRule',
        volume_size_in_gb=30,
        collections_to_save=[CollectionConfig("gradients")],
        rule_parameters={
            "threshold": "20.0"
        }
    )
]
""")["rules"]
    assert [rule.to_debugger_rule_config_dict() for rule in rules] == [
        {
            "RuleConfigurationName": "VGRule",
            "RuleEvaluatorImage": (
                "864354269164.dkr.ecr.us-east-1.amazonaws.com/"
                "sagemaker-debugger-rule-evaluator:latest"
            ),
            "InstanceType": "ml.t3.medium",
            "VolumeSizeInGB": 30,
            "RuleParameters": {
                "source_s3_uri": "rules/vanishing_gradient_rule.py",
                "rule_to_invoke": "VanishingGradientRule",
                "threshold": "20.0",
            },
        }
    ]


def test_collections_and_the_hook() -> None:
    hook_config = run("""
from sagemaker.debugger import CollectionConfig, DebuggerHookConfig

collection_configs=[
    CollectionConfig(name="weights"),
    CollectionConfig(name="biases"),
    CollectionConfig(
        name="custom_activations",
        parameters={
            "include_regex": "relu|tanh",
            "reductions": "mean,max",
            "save_histogram": "True",
            "end_step": "1000"
        }
    ),
    CollectionConfig(
        name="losses",
        parameters={
            "train.save_interval": "100",
            "eval.save_interval": "10"
        }
    )
]

hook_config = DebuggerHookConfig(
    collection_configs=collection_configs
)
""")["hook_config"]
    chosen = {
        "include_regex": "relu|tanh",
        "reductions": "mean,max",
        "save_histogram": "True",
        "end_step": "1000",
    }
    intervals = {"train.save_interval": "100", "eval.save_interval": "10"}
    assert hook_config._to_request_dict() == {
        "S3OutputPath": None,
        "CollectionConfigurations": [
            {"CollectionName": "weights"},
            {"CollectionName": "biases"},
            {"CollectionName": "custom_activations", "CollectionParameters": chosen},
            {"CollectionName": "losses", "CollectionParameters": intervals},
        ],
    }


@pytest.mark.parametrize(
    ("interval", "params", "metrics"),
    [
        pytest.param(5000, "FrameworkProfile()", DEFAULT_STEPS, id="interval"),
        pytest.param(None, "FrameworkProfile()", DEFAULT_STEPS, id="default"),
        pytest.param(1000, "FrameworkProfile()", DEFAULT_STEPS, id="every-second"),
        pytest.param(
            None,
            "FrameworkProfile(start_step=6, num_steps=1)",
            everywhere('"StartStep": 6, "NumSteps": 1'),
            id="one-step",
        ),
        pytest.param(
            1000,
            "FrameworkProfile(start_step=5, num_steps=10)",
            everywhere('"StartStep": 5, "NumSteps": 10'),
            id="ten-steps",
        ),
        pytest.param(
            1000,
            "FrameworkProfile(start_unix_time=int(time.time()), duration=600)",
            everywhere('"StartTimeInSecSinceEpoch": 1700000000, "Duration": 600'),
            id="ten-minutes",
        ),
        pytest.param(
            None,
            """FrameworkProfile(
        detailed_profiling_config=DetailedProfilingConfig(start_step=10, num_steps=1),
        dataloader_profiling_config=DataloaderProfilingConfig(start_step=9, num_steps=2),
        python_profiling_config=PythonProfilingConfig(start_step=12, num_steps=1),
    )""",
            CHOSEN,
            id="chosen-kinds",
        ),
        pytest.param(
            None,
            """FrameworkProfile(
        start_step=1,
        num_steps=10,
        detailed_profiling_config=DetailedProfilingConfig(start_step=10, num_steps=1),
        dataloader_profiling_config=DataloaderProfilingConfig(start_step=9, num_steps=2),
        python_profiling_config=PythonProfilingConfig(start_step=12, num_steps=1)
    )""",
            CHOSEN,
            id="chosen-kinds-win-over-the-range",
        ),
    ],
)
def test_profiling(
    interval: int | None,
    params: str,
    metrics: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("time.time", lambda: 1_700_000_000.5)
    given = f"system_monitor_interval_millis={interval}," if interval else ""
    config = run(f"""
import time
from sagemaker.debugger import ProfilerConfig, FrameworkProfile
from sagemaker.debugger import DetailedProfilingConfig, DataloaderProfilingConfig
from sagemaker.debugger import PythonProfilingConfig

profiler_config=ProfilerConfig(
    {given}
    framework_profile_params={params}
)
""")["profiler_config"]
    asked = {"ProfilingIntervalInMilliseconds": interval} if interval else {}
    assert config._to_request_dict() == {
        "DisableProfiler": False,
        **asked,
        "ProfilingParameters": DEFAULT | metrics,
    }


def test_the_full_structure_of_profiling_options() -> None:
    config = run("""
from sagemaker.debugger import (ProfilerConfig,
                                FrameworkProfile,
                                DetailedProfilingConfig,
                                DataloaderProfilingConfig,
                                PythonProfilingConfig)

profiler_config=ProfilerConfig(
    system_monitor_interval_millis=500,
    framework_profile_params=FrameworkProfile(
        detailed_profiling_config=DetailedProfilingConfig(
            start_step=5,
            num_steps=1
        ),
        dataloader_profiling_config=DataloaderProfilingConfig(
            start_step=7,
            num_steps=1
        ),
        python_profiling_config=PythonProfilingConfig(
            start_step=9,
            num_steps=1,
            python_profiler="cProfile",
            cprofile_timer="total_time"
        )
    )
)
""")["profiler_config"]
    python = (
        '{"StartStep": 9, "NumSteps": 1, "ProfilerName": "cprofile", '
        '"cProfileTimer": "total_time", }'
    )
    assert config._to_request_dict() == {
        "DisableProfiler": False,
        "ProfilingIntervalInMilliseconds": 500,
        "ProfilingParameters": DEFAULT
        | {
            "DetailedProfilingConfig": '{"StartStep": 5, "NumSteps": 1, }',
            "DataloaderProfilingConfig": (
                '{"StartStep": 7, "NumSteps": 1, "MetricsRegex": ".*", }'
            ),
            "PythonProfilingConfig": python,
        },
    }


def test_every_documented_name_is_where_the_documents_have_it() -> None:
    names = run("""
from sagemaker.debugger import (
    CollectionConfig, DataloaderProfilingConfig, DebuggerHookConfig, DetailedProfilingConfig,
    FrameworkProfile, HorovodProfilingConfig, ProfilerConfig, ProfilerRule, PythonProfiler,
    PythonProfilingConfig, Rule, RuleBase, SMDataParallelProfilingConfig,
    TensorBoardOutputConfig, cProfileTimer, get_default_profiler_rule,
    get_rule_container_image_uri, metrics_config, rule_configs,
)
import sagemaker.debugger.debugger
from sagemaker.debugger.debugger import RuleBase as SameBase
from sagemaker.debugger.framework_profile import FrameworkProfile as SameProfile
from sagemaker.debugger.metrics_config import MetricsConfigBase, StepRange, TimeRange
from sagemaker.debugger.profiler_config import ProfilerConfig as SameConfig
from sagemaker.debugger.profiler import Profiler
from sagemaker.debugger.utils import PythonProfiler as SameProfiler
""")
    assert issubclass(names["Rule"], names["SameBase"])
    assert issubclass(names["PythonProfilingConfig"], names["MetricsConfigBase"])
    assert names["metrics_config"].TimeRange is names["TimeRange"]
    assert names["RuleBase"] is names["SameBase"]
    assert names["FrameworkProfile"] is names["SameProfile"]
    assert names["ProfilerConfig"] is names["SameConfig"]
    assert names["PythonProfiler"] is names["SameProfiler"]
