"""Lightning: the callback that saves tensors, and its configuration."""

from rule_core.frameworks.lightning.callback import DebuggerCallback
from rule_core.frameworks.pytorch.collection import Collection
from rule_core.frameworks.pytorch.hook import Hook
from rule_core.model.reduction_config import ReductionConfig
from rule_core.model.save_config import SaveConfig, SaveConfigMode
from rule_core.modes import ModeKeys as modes  # noqa: N813 - the documented name

__all__ = [
    "Collection",
    "DebuggerCallback",
    "Hook",
    "ReductionConfig",
    "SaveConfig",
    "SaveConfigMode",
    "modes",
]
