"""The JSON file that configures the hook of a training job."""

from rule_core.exceptions import SMDebugValueError as SMDebugValueError
from rule_core.logger import get_logger as get_logger
from rule_core.model.reduction_config import ReductionConfig as ReductionConfig, split as split
from rule_core.model.save_config import SaveConfig as SaveConfig, SaveConfigMode as SaveConfigMode
from rule_core.modes import ModeKeys as ModeKeys
from rule_core.saving.hook_config import CONFIG_FILE_PATH_ENV_STR as CONFIG_FILE_PATH_ENV_STR
