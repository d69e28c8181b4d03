"""Actions: the actions of a rule when its condition is met, parsed from JSON text."""

from rule_core.rules.actions.actions import Actions
from rule_core.rules.actions.base import Action
from rule_core.rules.actions.message import MessageAction
from rule_core.rules.actions.parsing import parse_actions
from rule_core.rules.actions.stop_training import StopTrainingAction

__all__ = ["Action", "Actions", "MessageAction", "StopTrainingAction", "parse_actions"]
