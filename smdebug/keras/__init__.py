"""Keras 3: the callback and the hook, its configuration and the current hook."""

from rule_core.frameworks.keras.callback import DebuggerCallback as DebuggerCallback
from rule_core.frameworks.keras.collection import Collection as Collection
from rule_core.frameworks.keras.hook import KerasHook as KerasHook, get_hook as get_hook
from rule_core.model.collection import CollectionKeys as CollectionKeys
from rule_core.model.reduction_config import ReductionConfig as ReductionConfig
from rule_core.model.save_config import SaveConfig as SaveConfig, SaveConfigMode as SaveConfigMode
from rule_core.modes import modes as modes
from rule_core.saving.current_hook import del_hook as del_hook, set_hook as set_hook
from rule_core.trials.create_trial import create_trial as create_trial
