"""TrialWriter: writes trials that this package and smdebug 1.0.x can read."""

from rule_core.absent_names import absent_names
from rule_core.exceptions import SMDebugRuntimeError, SMDebugValueError
from rule_core.modes import ModeKeys
from rule_core.saving.trial_writer import Reductions, TrialWriter

__all__ = ["ModeKeys", "Reductions", "SMDebugRuntimeError", "SMDebugValueError", "TrialWriter"]

__getattr__ = absent_names(__name__, {"FileWriter": "smdebug.core.writer.TrialWriter"})
