"""Rule: the base class of all rules, built-in or custom."""

from rule_core.exceptions import RuleEvaluationConditionMet as RuleEvaluationConditionMet
from rule_core.logger import get_logger as get_logger
from rule_core.rules.actions.actions import Actions as Actions
from rule_core.rules.requirements import RequiredTensors as RequiredTensors
from rule_core.rules.rule import Rule as Rule
