"""Lightning: the callback that saves a training's tensors, and what it is configured with."""

from smdebug.core.modes import ModeKeys as modes  # noqa: N813 - the documented name
from smdebug.lightning.callback import DebuggerCallback
from smdebug.pytorch import Collection, Hook, ReductionConfig, SaveConfig, SaveConfigMode

__all__ = [
    "Collection",
    "DebuggerCallback",
    "Hook",
    "ReductionConfig",
    "SaveConfig",
    "SaveConfigMode",
    "modes",
]
