"""ModeKeys: which phase of the training job a step belongs to."""

from rule_core.modes import ModeKeys

__all__ = ["ModeKeys"]
