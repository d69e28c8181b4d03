"""Calls of profiling rules and of what says what is profiled, and when."""

from collections.abc import Iterator

from debugger_rule_calls import CUSTOM, DEAD_RELU

RANGES = [
    *("", "start_step=3", "start_step=0", "num_steps=2", "start_step=3, num_steps=4"),
    *("start_unix_time=10", "duration=2", "duration=2.5", "start_unix_time=0, duration=1"),
    *("start_step=True", "num_steps=True", "duration=True", "start_unix_time=True"),
    *("start_unix_time=-5", "duration=float('inf')", "start_step=10**20", "3, 4", "None, None, 5"),
    *("start_step=-1", "start_step=1.5", "start_step='3'", "num_steps=0", "num_steps=-1"),
    *("num_steps=1.5", "start_unix_time=1.5", "start_unix_time='x'", "start_unix_time=10**18"),
    *("start_unix_time=10**30", "start_unix_time=10**12", "duration=0", "duration=-1"),
    *("duration='x'", "duration=float('nan')", "start_step=0, start_unix_time=0"),
    *("num_steps=1, duration=1", "start_step=-1, duration=1", "start_step=0, duration=0"),
]
DEFAULT_STEPS = [
    *("profile_default_steps=True", "start_step=3, num_steps=4, profile_default_steps=True"),
    *("start_step=-3, profile_default_steps=True", "duration=3, profile_default_steps=True"),
    *("profile_default_steps=1", "profile_default_steps=None", "3, 1, None, None, True"),
    *("start_step=3, profile_default_steps=False", "step=3"),
]
METRICS = [
    *("DetailedProfilingConfig", "DataloaderProfilingConfig", "PythonProfilingConfig"),
    *("HorovodProfilingConfig", "SMDataParallelProfilingConfig"),
]
SCAN = "scan_interval_us"
# The parameters of each profiler rule, by the checks that they get.
PERCENTILES = {
    "BatchSize": ["cpu_threshold_p95", "gpu_threshold_p95", "gpu_memory_threshold_p95"],
    "CPUBottleneck": ["threshold", "gpu_threshold", "cpu_threshold"],
    "IOBottleneck": ["threshold", "gpu_threshold", "io_threshold"],
    "LoadBalancing": ["threshold"],
    "LowGPUUtilization": ["threshold_p95", "threshold_p5"],
}
POSITIVES = {
    "BatchSize": ["patience", "window", SCAN],
    "CPUBottleneck": ["patience", SCAN],
    "GPUMemoryIncrease": ["increase", "patience", "window", SCAN],
    "IOBottleneck": ["patience", SCAN],
    "LoadBalancing": ["patience", SCAN],
    "LowGPUUtilization": ["window", "patience", SCAN],
    "MaxInitializationTime": ["threshold", SCAN],
    "OverallSystemUsage": [SCAN],
    "StepOutlier": ["stddev", "n_outliers", SCAN],
}
# Positional bounds of a range: those of a FrameworkProfile have other places.
NAMED = {"3, 4": "start_step=3, num_steps=4", "None, None, 5": "start_unix_time=5"}
REPORTS = [
    *("", "CPUBottleneck_cpu_threshold=80", "cpubottleneck_CPU_threshold=80"),
    "LowGPUUtilization_threshold_p5=1, LowGPUUtilization_threshold_p95=2",
    *("Dataloader_min_threshold=80, BatchSize_window=3", "Dataloader_max_threshold=1000"),
    *("StepOutlier_mode=None", "StepOutlier_mode='x'", "StepOutlier_mode=3"),
    *("Foo_bar=1", "foo=1", "_x=1", "BatchSize=1", "CPUBottleneck_foo=1", "CPUBottleneck_=1"),
    *("CPUBottleneck_cpu_threshold=101", "CPUBottleneck_cpu_threshold='80'", "ProfilerReport_x=1"),
    *("Dataloader_min_threshold=0", "Dataloader_patience=1", "rule_to_invoke='x'", "3"),
    *("Dataloader_scan_interval_us=0", "CPUBottleneck_cpu_threshold=1, Foo_bar=2"),
]
PROFILER_BUILT_IN = [
    *("", "name='n'", "name=''", "container_local_output_path='l', s3_output_path='s'"),
    *("instance_type='t', volume_size_in_gb=3", "volume_size_in_gb=0", "'n', 'l', 's', 't', 3"),
    *("image_uri='x'",),
]
PROFILER_CONFIGS = [
    *("", "'s3://b'", "''", "'s3://b', 500", "'s3://b', 0", "system_monitor_interval_millis='x'"),
    *("'s3://b', disable_profiler=True", "'s3://b', disable_profiler=None"),
    *("'s3://b', disable_profiler=0", "framework_profile_params=FrameworkProfile()"),
    *("'s', 500, FrameworkProfile(start_step=3)", "profile_params=Profiler()"),
    *("profile_params=Profiler(3, file_rotation_interval=None)", "framework_profile_params=3"),
    *("profile_params=3", "framework_profile_params=''", "profile_params=FrameworkProfile()"),
    *("profile_params=Profiler(), framework_profile_params=FrameworkProfile()",),
    *("profile_params=3, framework_profile_params=3", "disable_profiler=True, profile_params=3"),
]
FRAMEWORK_PROFILES = [
    *("local_path='/x'", "local_path=''", "local_path=3", "local_path=None", "'/x', 1, 2, 3"),
    *("file_max_size=1", "file_max_size=0", "file_max_size=1.5", "file_max_size=True"),
    *("file_max_size='1'", "file_close_interval=1.5", "file_close_interval=0"),
    *("file_close_interval='1'", "file_open_fail_threshold=0", "file_open_fail_threshold=2.5"),
    *("local_path=3, file_max_size=0", "file_max_size=0, start_step=-1"),
    *(f"{name}_profiling_config={kind}(start_step=2)" for name, kind in [
        ("detailed", "DetailedProfilingConfig"), ("dataloader", "DataloaderProfilingConfig"),
        ("python", "PythonProfilingConfig"), ("horovod", "HorovodProfilingConfig"),
        ("smdataparallel", "SMDataParallelProfilingConfig"),
    ]),
    ("detailed_profiling_config=DetailedProfilingConfig(duration=3), "
     "python_profiling_config=PythonProfilingConfig()"),
    *("start_step=-1, detailed_profiling_config=DetailedProfilingConfig()",),
    *("horovod_profiling_config=DataloaderProfilingConfig()", "python_profiling_config=0"),
    *("detailed_profiling_config='x'", "horovod_profiling_config=FrameworkProfile()"),
]  # fmt: skip
EXTRAS = {
    "DataloaderProfilingConfig": [
        *("metrics_regex='a'", "metrics_regex=''", "metrics_regex='('", "metrics_regex=3"),
        *("metrics_regex=None", "metrics_regex='é'", r"metrics_regex='a\\d'", "metrics_regex=b'a'"),
        *("metrics_regex='a\"b'", "start_step=-1, metrics_regex='('"),
    ],
    "PythonProfilingConfig": [
        *("python_profiler=PythonProfiler.CPROFILE", "python_profiler=PythonProfiler.PYINSTRUMENT"),
        *("cprofile_timer=cProfileTimer.CPU_TIME", "cprofile_timer=cProfileTimer.OFF_CPU_TIME"),
        *("cprofile_timer=cProfileTimer.DEFAULT", "python_profiler=None", "cprofile_timer=None"),
        *("cprofile_timer=cProfileTimer.CPU_TIME, profile_default_steps=True",),
        *("profile_default_steps=True, python_profiler=PythonProfiler.PYINSTRUMENT",),
        *("python_profiler=PythonProfiler.PYINSTRUMENT, cprofile_timer=3",),
        *("python_profiler='x'", "cprofile_timer='x'", "python_profiler=cProfileTimer.CPU_TIME"),
    ],
}


def profiling_rules() -> Iterator[str]:
    """Yield calls of rules that judge profiles."""
    yield from _parameters()
    yield "rule_configs.StepOutlier(mode='x').rule_parameters"
    yield "rule_configs.StepOutlier(mode=3).rule_parameters"
    yield "rule_configs.StepOutlier(mode=3, stddev=0).rule_parameters"
    for one in REPORTS:
        yield f"rule_configs.ProfilerReport({one}).rule_parameters"
    for one in PROFILER_BUILT_IN:
        report = f"rule_configs.ProfilerReport(BatchSize_window=3), {one}"
        yield f"ProfilerRule.sagemaker({report}).to_profiler_rule_config_dict()"
    for base in ("", "None", "'x'", DEAD_RELU):
        yield f"ProfilerRule.sagemaker({base})"
    for one in CUSTOM:
        yield f"ProfilerRule.custom('n', 'i', 't', 3, {one}).to_profiler_rule_config_dict()"


def _parameters() -> Iterator[str]:
    for rule, names in PERCENTILES.items():
        for name in names:
            for value in ("0", "100", "50.5", "101", "-1", "'70'", "None", "float('nan')"):
                yield f"rule_configs.{rule}({name}={value}).rule_parameters"
    for rule, names in POSITIVES.items():
        for arguments in ("", "7, 8", "foo=7"):
            yield f"rule_configs.{rule}({arguments}).rule_parameters"
        yield f"rule_configs.{rule}().rule_name"
        yield f"ProfilerRule.sagemaker(rule_configs.{rule}()).to_profiler_rule_config_dict()"
        for name in names:
            for value in ("1", "0.5", "True", "0", "-1", "'a'", "None"):
                yield f"rule_configs.{rule}({name}={value}).rule_parameters"


def profiling() -> Iterator[str]:
    """Yield calls of what is profiled."""
    for kind in METRICS:
        for one in [*RANGES, *DEFAULT_STEPS, *EXTRAS.get(kind, [])]:
            yield f"{kind}({one}).to_json_string()"
        for one in RANGES[:8]:
            yield f"{kind}({one})._to_json()"
    for one in FRAMEWORK_PROFILES + RANGES:
        yield f"FrameworkProfile({NAMED.get(one, one)}).profiling_parameters"
    for one in PROFILER_CONFIGS:
        yield f"ProfilerConfig({one})._to_request_dict()"
