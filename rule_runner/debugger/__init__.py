"""The configuration of rules, hooks and profiling: `sagemaker.debugger` without the SDK.

Names, arguments, defaults, checks and requests are the same as in the SDK; docs/compatibility.md
explains every difference.
"""

from rule_runner.debugger import metrics_config as metrics_config
from rule_runner.debugger import rule_configs as rule_configs
from rule_runner.debugger.debugger import DEBUGGER_FLAG as DEBUGGER_FLAG
from rule_runner.debugger.debugger import CollectionConfig as CollectionConfig
from rule_runner.debugger.debugger import DebuggerHookConfig as DebuggerHookConfig
from rule_runner.debugger.debugger import ProfilerRule as ProfilerRule
from rule_runner.debugger.debugger import Rule as Rule
from rule_runner.debugger.debugger import RuleBase as RuleBase
from rule_runner.debugger.debugger import TensorBoardOutputConfig as TensorBoardOutputConfig
from rule_runner.debugger.debugger import framework_name as framework_name
from rule_runner.debugger.debugger import (
    get_default_profiler_processing_job as get_default_profiler_processing_job,
)
from rule_runner.debugger.debugger import get_default_profiler_rule as get_default_profiler_rule
from rule_runner.debugger.debugger import (
    get_rule_container_image_uri as get_rule_container_image_uri,
)
from rule_runner.debugger.framework_profile import FrameworkProfile as FrameworkProfile
from rule_runner.debugger.metrics_config import (
    DataloaderProfilingConfig as DataloaderProfilingConfig,
)
from rule_runner.debugger.metrics_config import DetailedProfilingConfig as DetailedProfilingConfig
from rule_runner.debugger.metrics_config import HorovodProfilingConfig as HorovodProfilingConfig
from rule_runner.debugger.metrics_config import PythonProfilingConfig as PythonProfilingConfig
from rule_runner.debugger.metrics_config import (
    SMDataParallelProfilingConfig as SMDataParallelProfilingConfig,
)
from rule_runner.debugger.profiler import Profiler as Profiler
from rule_runner.debugger.profiler_config import ProfilerConfig as ProfilerConfig
from rule_runner.debugger.utils import PythonProfiler as PythonProfiler
from rule_runner.debugger.utils import cProfileTimer as cProfileTimer
