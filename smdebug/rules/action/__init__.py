"""Actions that are carried out when the condition of a rule is met."""

from rule_core.rules.actions.actions import Actions as Actions
