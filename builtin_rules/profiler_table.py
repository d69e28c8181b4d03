"""The built-in rules that judge windows of a profiler trial, one file each, and their table."""

from types import MappingProxyType
from typing import Final

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
from builtin_rules.reports.profiler.sub_rules import SUB_RULES

PROFILER_RULES: Final = MappingProxyType[str, type[WindowRule]](
    dict(
        sorted(
            [*SUB_RULES.items(), ("ProfilerReport", ProfilerReport)],
            key=lambda entry: entry[0].casefold(),
        )
    )
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
    "WindowRule",
]
