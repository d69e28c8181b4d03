"""TrialWriter: writes trials that this package and smdebug 1.0.x can read."""

from rule_core.absent_names import absent_names
from rule_core.exceptions import (
    SMDebugRuntimeError as SMDebugRuntimeError,
    SMDebugValueError as SMDebugValueError,
)
from rule_core.modes import ModeKeys as ModeKeys
from rule_core.saving.trial_writer import Reductions as Reductions, TrialWriter as TrialWriter

__getattr__ = absent_names(__name__, {"FileWriter": "smdebug.core.writer.TrialWriter"})
