"""Rules, collections and hooks, under the same path as in the SDK."""

from typing import Final

from rule_runner.debugger import rule_configs
from rule_runner.debugger.debugging_rule import Rule
from rule_runner.debugger.hook_config import (
    CollectionConfig,
    DebuggerHookConfig,
    TensorBoardOutputConfig,
)
from rule_runner.debugger.image_uris import get_rule_container_image_uri
from rule_runner.debugger.profiling_rule import ProfilerRule
from rule_runner.debugger.ready_rules import (
    get_default_profiler_processing_job,
    get_default_profiler_rule,
)
from rule_runner.debugger.rule_base import RuleBase

__all__ = [
    "DEBUGGER_FLAG",
    "CollectionConfig",
    "DebuggerHookConfig",
    "ProfilerRule",
    "Rule",
    "RuleBase",
    "TensorBoardOutputConfig",
    "detailed_framework_name",
    "framework_name",
    "get_default_profiler_processing_job",
    "get_default_profiler_rule",
    "get_rule_container_image_uri",
    "rule_configs",
]

DEBUGGER_FLAG: Final = "USE_SMDEBUG"  # a variable of the training job; 0 turns the hook off
# Names of images, by which the SDK looks up their addresses.
framework_name: Final = "debugger"
detailed_framework_name: Final = "detailed-profiler"
