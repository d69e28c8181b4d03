"""Rule: the base class of all rules, built-in or custom."""

from rule_core.exceptions import RuleEvaluationConditionMet
from rule_core.logger import get_logger
from rule_core.rules.actions.actions import Actions
from rule_core.rules.requirements import RequiredTensors
from rule_core.rules.rule import Rule

__all__ = ["Actions", "RequiredTensors", "Rule", "RuleEvaluationConditionMet", "get_logger"]
