"""SaveConfig: the steps that a hook saves, by mode."""

from rule_core.exceptions import SMDebugTypeError, SMDebugValueError
from rule_core.model.save_config import SaveConfig, SaveConfigMode
from rule_core.modes import ModeKeys

__all__ = ["ModeKeys", "SMDebugTypeError", "SMDebugValueError", "SaveConfig", "SaveConfigMode"]
