"""The configuration of rules, hooks and profiling: `sagemaker.debugger` without the SDK.

Names, arguments, defaults, checks and requests are the same as in the SDK; docs/compatibility.md
explains every difference.
"""

from rule_runner.debugger import metrics_config as metrics_config, rule_configs as rule_configs
from rule_runner.debugger.debugger import (
    DEBUGGER_FLAG as DEBUGGER_FLAG,
    CollectionConfig as CollectionConfig,
    DebuggerHookConfig as DebuggerHookConfig,
    ProfilerRule as ProfilerRule,
    Rule as Rule,
    RuleBase as RuleBase,
    TensorBoardOutputConfig as TensorBoardOutputConfig,
    framework_name as framework_name,
    get_default_profiler_processing_job as get_default_profiler_processing_job,
    get_default_profiler_rule as get_default_profiler_rule,
    get_rule_container_image_uri as get_rule_container_image_uri,
)
from rule_runner.debugger.framework_profile import FrameworkProfile as FrameworkProfile
from rule_runner.debugger.metrics_config import (
    DataloaderProfilingConfig as DataloaderProfilingConfig,
    DetailedProfilingConfig as DetailedProfilingConfig,
    HorovodProfilingConfig as HorovodProfilingConfig,
    PythonProfilingConfig as PythonProfilingConfig,
    SMDataParallelProfilingConfig as SMDataParallelProfilingConfig,
)
from rule_runner.debugger.profiler import Profiler as Profiler
from rule_runner.debugger.profiler_config import ProfilerConfig as ProfilerConfig
from rule_runner.debugger.utils import (
    PythonProfiler as PythonProfiler,
    cProfileTimer as cProfileTimer,
)
