"""SaveConfig: the steps that a hook saves, by mode."""

from rule_core.exceptions import (
    SMDebugTypeError as SMDebugTypeError,
    SMDebugValueError as SMDebugValueError,
)
from rule_core.model.save_config import SaveConfig as SaveConfig, SaveConfigMode as SaveConfigMode
from rule_core.modes import ModeKeys as ModeKeys
