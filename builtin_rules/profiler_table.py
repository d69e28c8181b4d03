"""The built-in rules that judge windows of a profiler trial, one file each, and their table."""

from typing import TYPE_CHECKING, Any, Final

from builtin_rules.rules_by_name import RulesByName

if TYPE_CHECKING:
    from builtin_rules.profiler.statistics.window_rule import WindowRule

PROFILER_RULES: Final["RulesByName[WindowRule]"] = RulesByName(
    {
        "BatchSize": "profiler.batch_size",
        "CollectiveNotJoined": "profiler.traces.collective_not_joined",
        "CPUBottleneck": "profiler.cpu_bottleneck",
        "Dataloader": "profiler.dataloader",
        "GPUIdleWaitsForHost": "profiler.traces.gpu_idle_waits_for_host",
        "GPUMemoryIncrease": "profiler.gpu_memory_increase",
        "IOBottleneck": "profiler.io_bottleneck",
        "LoadBalancing": "profiler.load_balancing",
        "LowGPUUtilization": "profiler.low_gpu_utilization",
        "LowOverlap": "profiler.traces.low_overlap",
        "MaxInitializationTime": "profiler.max_initialization_time",
        "MemoryGrows": "profiler.traces.memory_grows",
        "OverallFrameworkMetrics": "profiler.overall_framework_metrics",
        "OverallSystemUsage": "profiler.overall_system_usage",
        "ProfilerReport": "reports.profiler.rule",
        "SmallKernels": "profiler.traces.small_kernels",
        "StepOutlier": "profiler.step_outlier",
        "StragglerRank": "profiler.traces.straggler_rank",
    }
)


def __getattr__(name: str) -> Any:
    return PROFILER_RULES.attribute(__name__, name)
