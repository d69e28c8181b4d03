"""Hook: saves tensors of a training job as a trial, independent of frameworks."""

from rule_core.exceptions import (
    SMDebugTypeError as SMDebugTypeError,
    SMDebugValueError as SMDebugValueError,
)
from rule_core.model.collection import Collection as Collection
from rule_core.model.reduction_config import ReductionConfig as ReductionConfig
from rule_core.model.save_config import SaveConfig as SaveConfig, SaveConfigMode as SaveConfigMode
from rule_core.modes import ModeKeys as ModeKeys
from rule_core.saving.base_hook import BaseHook as BaseHook
from rule_core.saving.hook import Hook as Hook
