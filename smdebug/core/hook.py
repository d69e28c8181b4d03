"""Hook: saves tensors of a training job as a trial, independent of frameworks."""

from rule_core.exceptions import SMDebugTypeError, SMDebugValueError
from rule_core.model.collection import Collection
from rule_core.model.reduction_config import ReductionConfig
from rule_core.model.save_config import SaveConfig, SaveConfigMode
from rule_core.modes import ModeKeys
from rule_core.saving.base_hook import BaseHook
from rule_core.saving.hook import Hook

__all__ = [
    "BaseHook",
    "Collection",
    "Hook",
    "ModeKeys",
    "ReductionConfig",
    "SMDebugTypeError",
    "SMDebugValueError",
    "SaveConfig",
    "SaveConfigMode",
]
