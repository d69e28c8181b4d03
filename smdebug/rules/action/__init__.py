"""What is done when a rule's condition is met."""

from rule_core.rules.actions.actions import Actions

__all__ = ["Actions"]
