"""ModeKeys: the phases of a training job."""

from rule_core.modes import ModeKeys

__all__ = ["ModeKeys"]
