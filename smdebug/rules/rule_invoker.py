"""invoke_rule: runs one rule over the steps of its trial."""

from rule_core.exceptions import (
    NoMoreProfilerData as NoMoreProfilerData,
    RuleEvaluationConditionMet as RuleEvaluationConditionMet,
    StepUnavailable as StepUnavailable,
    TensorUnavailable as TensorUnavailable,
    TensorUnavailableForStep as TensorUnavailableForStep,
)
from rule_core.logger import get_logger as get_logger
from rule_core.rules.invoke_rule import invoke_rule as invoke_rule
