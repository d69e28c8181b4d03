"""Actions: the actions of a rule when its condition is met, parsed from JSON text."""

from rule_core.rules.actions.actions import Actions as Actions
from rule_core.rules.actions.base import Action as Action
from rule_core.rules.actions.message import MessageAction as MessageAction
from rule_core.rules.actions.parsing import parse_actions as parse_actions
from rule_core.rules.actions.stop_training import StopTrainingAction as StopTrainingAction
