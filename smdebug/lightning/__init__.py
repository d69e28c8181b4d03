"""Lightning: the callback that saves tensors, and its configuration."""

from rule_core.frameworks.lightning.callback import DebuggerCallback as DebuggerCallback
from rule_core.frameworks.pytorch.collection import Collection as Collection
from rule_core.frameworks.pytorch.hook import Hook as Hook
from rule_core.model.reduction_config import ReductionConfig as ReductionConfig
from rule_core.model.save_config import SaveConfig as SaveConfig, SaveConfigMode as SaveConfigMode
from rule_core.modes import modes as modes
