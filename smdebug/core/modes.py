"""ModeKeys: the phases of a training job."""

from rule_core.modes import ModeKeys as ModeKeys
