"""TrialWriter: writes trials that this package and smdebug 1.0.x can read."""

from rule_core.exceptions import SMDebugRuntimeError, SMDebugValueError
from rule_core.modes import ModeKeys
from rule_core.saving.trial_writer import Reductions, TrialWriter

__all__ = ["ModeKeys", "Reductions", "SMDebugRuntimeError", "SMDebugValueError", "TrialWriter"]
