"""Calls of the configuration classes, errors included, and those that the SDK answers otherwise."""

from collections.abc import Iterator

from debugger_profiling_calls import METRICS, POSITIVES, profiling, profiling_rules
from debugger_rule_calls import DEAD_RELU, STOP, debugging_rules, saving

SIGNATURES = [
    *("CollectionConfig", "DebuggerHookConfig", "TensorBoardOutputConfig", "Rule", "RuleBase"),
    *("Rule.sagemaker", "Rule.custom", "Rule.prepare_actions", "ProfilerRule"),
    *("Rule.to_debugger_rule_config_dict", "ProfilerRule.to_profiler_rule_config_dict"),
    *("ProfilerRule.custom", "ProfilerConfig", "FrameworkProfile", "Profiler", *METRICS),
    *("MetricsConfigBase", "StepRange", "TimeRange", "get_default_profiler_processing_job"),
    *(f"rule_configs.{rule}" for rule in POSITIVES),
    *(f"rule_configs.{name}" for name in ("StopTraining", "Email", "SMS", "ActionList")),
    *("rule_configs.ProfilerReport", "rule_configs.get_collection"),
]
PLAIN = [
    *("PythonProfiler('x')", "PythonProfiler('cProfile')"),
    *("[one.value for one in PythonProfiler]", "cProfileTimer('x')", "cProfileTimer('default')"),
    *("[(one.name, one.value) for one in cProfileTimer]", "vars(Profiler())"),
    *(f"StepRange({one}).to_json()" for one in ("5, 3", "5, None", "None, 3")),
    *(f"TimeRange({one}).to_json()" for one in ("5, 3.5", "0, None")),
    *("MetricsConfigBase('x', 1, 2, None, None).to_json_string()",),
    *("MetricsConfigBase('x', None, None, None, None).to_json_string()",),
    *("MetricsConfigBase('x', None, None, 3, 4).name", "MetricsConfigBase('x', -1, 0, None, None)"),
    *("MetricsConfigBase('x', 1, 2, 3, None)", "MetricsConfigBase('x')"),
    *("isinstance(DetailedProfilingConfig(), MetricsConfigBase)", "StepRange(3, 4).num_steps"),
    *("rule_configs.is_valid_action_object(x)".replace("x", one) for one in ("3", "[]", STOP)),
    *("rule_configs.is_valid_action_object(rule_configs.ActionList())",),
    *(f"rule_configs.get_collection({one!r})" for one in ("gradients", "losses", "weights")),
    *(f"rule_configs.get_collection({one!r})" for one in ("input_image", "input_sequence")),
    *(f"rule_configs.get_collection({one!r})" for one in ("relu_input", "relu_output", "x")),
    *("ProfilerConfig()._to_profiler_disabled_request_dict()", "rule_configs.dead_relu(1)"),
    "ProfilerConfig._to_profiler_disabled_request_dict()",
    *("get_default_profiler_processing_job().to_profiler_rule_config_dict()['RuleParameters']",),
    *("get_default_profiler_processing_job('t', 3).instance_type",),
    *("get_default_profiler_processing_job().volume_size_in_gb",),
    *("len(get_default_profiler_processing_job().name)",),
    *("prepared(Rule('n', 'i', 't', 'l', 's', 3, {'action_json': 'x'}, None))",),
    *("prepared(Rule('n', 'i', '', '', '', 0, {}, []))", "Rule('n', 'i', 't', 'l', 's', 3, {})"),
    *("prepared(Rule('n', 'i', 't', 'l', 's', 3, None, None))",),
    *("ProfilerRule('n', 'i', '', 0, 's', 3, None).to_profiler_rule_config_dict()",),
    ("(base := rule_configs.StepOutlier(), rule := ProfilerRule.sagemaker(base), "
     "rule.to_profiler_rule_config_dict(), base.rule_parameters)[-1]"),
    ("(base := rule_configs.dead_relu(), Rule.sagemaker(base, rule_parameters={'a': 'b'}), "
     "base)[-1]"),
    (f"(rule := Rule.sagemaker({DEAD_RELU}, actions={STOP}), prepared(rule), "
     "prepared(rule, 'job-2'))[-1]"),
]  # fmt: skip
# Each entry: what differs, and calls that show it. docs/compatibility.md says why.
DIFFERENCES = {
    "a single Email or SMS as action": [
        f"prepared(Rule.sagemaker({DEAD_RELU}, actions=rule_configs.Email('a@b.co')))",
        f"prepared(Rule.sagemaker({DEAD_RELU}, actions=rule_configs.SMS('+1')))",
    ],
    "rule_parameters of ProfilerRule.sagemaker": [
        "parameters(ProfilerRule.sagemaker)",
        "ProfilerRule.sagemaker(rule_configs.BatchSize(), rule_parameters={'window': '9'})",
    ],
    "strings for python_profiler and cprofile_timer": [
        f"PythonProfilingConfig({one}).to_json_string()"
        for one in (
            *("python_profiler='cProfile'", "python_profiler='Pyinstrument'"),
            *("cprofile_timer='total_time'", "cprofile_timer='off_cpu_time'"),
        )
    ],
    "rule_configs.Dataloader and rule_configs.OverallFrameworkMetrics": [
        "offered(rule_configs)",
        "rule_configs.Dataloader().rule_parameters",
        "rule_configs.OverallFrameworkMetrics().rule_parameters",
        "rule_configs.ProfilerReport(OverallFrameworkMetrics_scan_interval_us=9).rule_parameters",
    ],
    "opt_out_telemetry of ProfilerReport": [
        "rule_configs.ProfilerReport(opt_out_telemetry=True).rule_parameters",
        "rule_configs.ProfilerReport(opt_out_telemetry='True').rule_parameters",
    ],
    "get_rule_container_image_uri(region)": [
        "get_rule_container_image_uri('us-east-1')",
        "get_rule_container_image_uri(region='us-east-1')",
        "get_rule_container_image_uri('us-east-1', 'n')",
    ],
    "StepRange(None, None) and TimeRange(None, duration)": [
        "StepRange(None, None).to_json()",
        "TimeRange(None, 3.5).to_json()",
        "TimeRange(None, None).to_json()",
    ],
    "RuleBase(...)": ["RuleBase('n', 'i', 't', 'l', 's', 3, {}).name"],
    "get_default_profiler_rule()": [
        "offered(module)",
        "get_default_profiler_rule().rule_parameters",
    ],
    "a line break at the end of a prefix or an address": [
        "rule_configs.StopTraining('a\\n')",
        "rule_configs.Email('a@b.co\\n')",
    ],
    "a quotation mark in the name of a training job": [
        f"prepared(Rule.sagemaker({DEAD_RELU}, actions={STOP}), 'a\"b')",
    ],
}


def calls() -> Iterator[str]:
    """Yield the calls that are answered alike."""
    yield from (f"parameters({one})" for one in SIGNATURES)
    yield from saving()
    yield from debugging_rules()
    yield from profiling_rules()
    yield from profiling()
    yield from PLAIN
    yield from _images()


def _images() -> Iterator[str]:
    regions = ["us-east-1", "eu-west-1", "cn-north-1", "us-gov-west-1", "us-gov-east-1", "mars"]
    for region in [*regions, "il-central-1", "us-iso-east-1", "ap-northeast-3", ""]:
        for name in ("'n'", "None", "'DetailedProfilerProcessingJobConfig-x'"):
            yield f"get_rule_container_image_uri({name}, {region!r})"
    yield "get_rule_container_image_uri('n', region='us-east-1')"
    yield "get_rule_container_image_uri(name='n', region='us-east-1')"
    yield "get_rule_container_image_uri()"
