"""The configuration of rules, hooks and profiling: `sagemaker.debugger` without the SDK.

Names, arguments, defaults, checks and requests are the same as in the SDK; docs/compatibility.md
explains every difference.
"""

from rule_runner.debugger import metrics_config, rule_configs
from rule_runner.debugger.debugger import DEBUGGER_FLAG, framework_name
from rule_runner.debugger.debugging_rule import Rule
from rule_runner.debugger.framework_profile import FrameworkProfile
from rule_runner.debugger.hook_config import (
    CollectionConfig,
    DebuggerHookConfig,
    TensorBoardOutputConfig,
)
from rule_runner.debugger.image_uris import get_rule_container_image_uri
from rule_runner.debugger.metrics_config import (
    DataloaderProfilingConfig,
    DetailedProfilingConfig,
    HorovodProfilingConfig,
    PythonProfilingConfig,
    SMDataParallelProfilingConfig,
)
from rule_runner.debugger.profiler import Profiler
from rule_runner.debugger.profiler_config import ProfilerConfig
from rule_runner.debugger.profiler_enums import PythonProfiler, cProfileTimer
from rule_runner.debugger.profiling_rule import ProfilerRule
from rule_runner.debugger.ready_rules import (
    get_default_profiler_processing_job,
    get_default_profiler_rule,
)
from rule_runner.debugger.rule_base import RuleBase

__all__ = [
    "DEBUGGER_FLAG",
    "CollectionConfig",
    "DataloaderProfilingConfig",
    "DebuggerHookConfig",
    "DetailedProfilingConfig",
    "FrameworkProfile",
    "HorovodProfilingConfig",
    "Profiler",
    "ProfilerConfig",
    "ProfilerRule",
    "PythonProfiler",
    "PythonProfilingConfig",
    "Rule",
    "RuleBase",
    "SMDataParallelProfilingConfig",
    "TensorBoardOutputConfig",
    "cProfileTimer",
    "framework_name",
    "get_default_profiler_processing_job",
    "get_default_profiler_rule",
    "get_rule_container_image_uri",
    "metrics_config",
    "rule_configs",
]
