"""What is done when a rule's condition is met."""

from smdebug.rules.action.action import Actions

__all__ = ["Actions"]
