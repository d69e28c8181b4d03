"""invoke_rule: runs one rule over the steps of its trial."""

from rule_core.exceptions import (
    NoMoreProfilerData,
    RuleEvaluationConditionMet,
    StepUnavailable,
    TensorUnavailable,
    TensorUnavailableForStep,
)
from rule_core.logger import get_logger
from rule_core.rules.invoke_rule import invoke_rule

__all__ = [
    "NoMoreProfilerData",
    "RuleEvaluationConditionMet",
    "StepUnavailable",
    "TensorUnavailable",
    "TensorUnavailableForStep",
    "get_logger",
    "invoke_rule",
]
