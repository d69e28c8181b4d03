"""The JSON file that configures the hook of a training job."""

from rule_core.exceptions import SMDebugValueError
from rule_core.logger import get_logger
from rule_core.model.reduction_config import ReductionConfig, split
from rule_core.model.save_config import SaveConfig, SaveConfigMode
from rule_core.modes import ModeKeys
from rule_core.saving.hook_config import CONFIG_FILE_PATH_ENV_STR

__all__ = [
    "CONFIG_FILE_PATH_ENV_STR",
    "ModeKeys",
    "ReductionConfig",
    "SMDebugValueError",
    "SaveConfig",
    "SaveConfigMode",
    "get_logger",
    "split",
]
