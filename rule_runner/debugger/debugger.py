"""Rules, collections and hooks, under the same path as in the SDK."""

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
    "CollectionConfig",
    "DebuggerHookConfig",
    "ProfilerRule",
    "Rule",
    "RuleBase",
    "TensorBoardOutputConfig",
    "get_default_profiler_processing_job",
    "get_default_profiler_rule",
    "get_rule_container_image_uri",
    "rule_configs",
]
