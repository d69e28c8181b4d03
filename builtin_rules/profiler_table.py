"""The built-in rules that judge windows of a profiler trial, one file each, and their table."""

from typing import TYPE_CHECKING, Final

from builtin_rules.rules_by_name import RulesByName

if TYPE_CHECKING:
    from builtin_rules.profiler.batch_size import BatchSize
    from builtin_rules.profiler.cpu_bottleneck import CPUBottleneck
    from builtin_rules.profiler.dataloader import Dataloader
    from builtin_rules.profiler.gpu_memory_increase import GPUMemoryIncrease
    from builtin_rules.profiler.io_bottleneck import IOBottleneck
    from builtin_rules.profiler.load_balancing import LoadBalancing
    from builtin_rules.profiler.low_gpu_utilization import LowGPUUtilization
    from builtin_rules.profiler.max_initialization_time import MaxInitializationTime
    from builtin_rules.profiler.overall_framework_metrics import OverallFrameworkMetrics
    from builtin_rules.profiler.overall_system_usage import OverallSystemUsage
    from builtin_rules.profiler.statistics.window_rule import WindowRule
    from builtin_rules.profiler.step_outlier import StepOutlier
    from builtin_rules.profiler.traces.collective_not_joined import CollectiveNotJoined
    from builtin_rules.profiler.traces.gpu_idle_waits_for_host import GPUIdleWaitsForHost
    from builtin_rules.profiler.traces.low_overlap import LowOverlap
    from builtin_rules.profiler.traces.memory_grows import MemoryGrows
    from builtin_rules.profiler.traces.small_kernels import SmallKernels
    from builtin_rules.profiler.traces.straggler_rank import StragglerRank
    from builtin_rules.reports.profiler.rule import ProfilerReport

PROFILER_RULES: Final = RulesByName["WindowRule"](
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

__all__ = [
    "PROFILER_RULES",
    "BatchSize",
    "CPUBottleneck",
    "CollectiveNotJoined",
    "Dataloader",
    "GPUIdleWaitsForHost",
    "GPUMemoryIncrease",
    "IOBottleneck",
    "LoadBalancing",
    "LowGPUUtilization",
    "LowOverlap",
    "MaxInitializationTime",
    "MemoryGrows",
    "OverallFrameworkMetrics",
    "OverallSystemUsage",
    "ProfilerReport",
    "SmallKernels",
    "StepOutlier",
    "StragglerRank",
]


def __getattr__(name: str) -> type["WindowRule"]:
    return PROFILER_RULES.attribute(__name__, name)
